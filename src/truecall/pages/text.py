"""Text of models and servers as HTML: escaped, with what can't be seen made visible, and with spans marked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from markupsafe import Markup, escape

from truecall.records import Call, Detection, SpanKind

# Controls, line and paragraph separators, zero-width and bidi marks, tags, lone surrogates, non-characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffc\ufffe\uffff"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


class Mark(NamedTuple):
    """A stretch ``text[start:end]`` to be marked: ``kind`` names its style, ``label`` stands before it."""

    kind: str
    start: int
    end: int
    label: str = ""


def marks_of(detection: Detection) -> list[Mark]:
    """The marks of a detection: one for each span that is not plain content; a call's label tells what it is."""
    calls = {call.span.start: (number, call) for number, call in enumerate(detection.calls, 1)}
    return [
        Mark(span.kind.value, span.start, span.end, _label(*calls[span.start]) if span.start in calls else "")
        for span in detection.spans
        if span.kind is not SpanKind.CONTENT
    ]


def marked(text: str, marks: Iterable[Mark] = (), start: int = 0, end: int | None = None) -> Markup:
    """``text[start:end]`` as HTML with its marks; places count in the whole text.

    Marks must not overlap and come in order; one that reaches over an edge is shown up to it.
    """
    end = len(text) if end is None else min(end, len(text))
    pieces: list[Markup] = []
    at = start
    for mark in marks:
        first, last = max(mark.start, at), min(mark.end, end)
        if first >= last:
            continue
        label = (
            Markup('<b class="label">{}</b>').format(mark.label) if mark.label and first == mark.start else ""
        )
        pieces += [
            shown(text[at:first]),
            Markup('<span class="span span-{}">{}{}</span>').format(
                mark.kind, label, shown(text[first:last])
            ),
        ]
        at = last
    pieces.append(shown(text[at:end]))
    return Markup("").join(pieces)


def shown(text: str) -> Markup:
    """Foreign text as HTML. What can't be seen stands as its code point, set apart by its style."""
    return Markup(_UNSEEN.sub(_name, str(escape(text))))


def _name(match: re.Match[str]) -> str:
    return f'<i class="unseen">U+{ord(match.group()):04X}</i>'


def _label(number: int, call: Call) -> str:
    return " · ".join([f"call {number}", call.dialect, call.tier.value, *call.defects])
