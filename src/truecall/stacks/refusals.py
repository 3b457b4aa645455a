"""Reading an error: what refused, whether the model ran, and what to change.

The text decides before the status does: engines answer 500 for a missing flag and 400 after a whole
generation. Patterns are regular expressions over the error's message, type and code in lower case, escapes
undone and blanks joined, so that a gateway's wrapping and small changes of wording don't matter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache

from truecall.records import Delivery, ErrorBody, Part, Record

_MOST = 16_384  # characters of a body that are searched


class Refusal(Record, frozen=True):
    """An answer that is an error, read.

    ``ran``: whether the model generated anything (None: can't be told). ``attempted``: the error itself says
    that the model tried to call, whether or not its text is there. ``delivery`` holds where no call is seen
    in the evidence. ``transient``: the same request may succeed later.
    """

    rule: str
    part: Part
    ran: bool | None
    delivery: Delivery
    title: str
    change: str = ""
    attempted: bool = False
    transient: bool = False


class Pattern(Record, frozen=True):
    """A known error text: regular expressions, any of which may match, and what it means.

    ``statuses`` empty: any status.
    """

    rule: str
    match: tuple[str, ...]
    part: Part
    title: str
    change: str = ""
    ran: bool | None = False
    delivery: Delivery = Delivery.REJECTED
    attempted: bool = False
    transient: bool = False
    statuses: tuple[int, ...] = ()

    def refusal(self) -> Refusal:
        return Refusal(
            rule=self.rule,
            part=self.part,
            ran=self.ran,
            delivery=self.delivery,
            title=self.title,
            change=self.change,
            attempted=self.attempted,
            transient=self.transient,
        )


@cache
def _compiled(alternatives: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(alternatives))


_ESCAPED = re.compile(r"\\+(?:u00([0-7][0-9a-f])|([nrt])|([\"'/\\`]))", re.IGNORECASE)


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return " " if match[2] else match[3]


def plain(text: str) -> str:
    """A text as patterns see it: JSON escapes undone (also nested ones), one blank between words, lower."""
    return " ".join(_ESCAPED.sub(_unescape, text[:_MOST]).split()).lower()


def find(patterns: Iterable[Pattern], text: str, status: int | None) -> Pattern | None:
    """The first pattern that the (already plain) text matches."""
    for pattern in patterns:
        if pattern.statuses and status not in pattern.statuses:
            continue
        if _compiled(pattern.match).search(text):
            return pattern
    return None


def texts(error: ErrorBody | None, body_text: str) -> list[str]:
    """What to search, nearest first: the stated error, then the whole body without the model's own text.

    What the model wrote must not decide what the error was, so a ``generation`` is cut out of both.
    """
    found: list[str] = []
    own = error.generation if error else None
    if error is not None:
        words = f"{error.message} {error.type or ''} {error.code if error.code is not None else ''}"
        found.append(plain(_without(words, own)))
    whole = plain(_without(body_text, own))
    if whole and whole not in found:
        found.append(whole)
    return found


def _without(text: str, own: str | None) -> str:
    if not own or len(own) < 4:
        return text
    for form in (own, json.dumps(own)[1:-1], json.dumps(own, ensure_ascii=False)[1:-1]):
        text = text.replace(form, " ")
    return text


def blamed_fields(error: ErrorBody | None, body_text: str, fields: Sequence[str]) -> tuple[str, ...]:
    """Those of ``fields`` that an error names: added for evidence, they are ours and can be left away."""
    found = " ".join(texts(error, body_text))
    return tuple(f for f in fields if re.search(rf"(?<![a-z0-9_]){re.escape(f.lower())}(?![a-z0-9_])", found))
