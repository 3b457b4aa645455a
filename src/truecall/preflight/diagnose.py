"""From findings to the sentence that a person reads first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from truecall.preflight.report import ProbeResult, State
from truecall.preflight.session import Notebook
from truecall.records import Finding, Part

_SEVERITY: Final = ("broken", "degraded", "note")
_FIRST: Final = (
    # What explains other findings comes before them.
    Part.NETWORK,
    Part.GATEWAY,
    Part.SERVER,
    Part.GATE,
    Part.TEMPLATE,
    Part.PARSER,
    Part.STREAM,
    Part.CONSTRAINT,
    Part.BUDGET,
    Part.HARNESS,
    Part.MODEL,
    Part.UNKNOWN,
    Part.NONE,
)


STOPS: Final = ("no-answer", "rate-limited", "stopped-answering")
"""Findings that say why there are no others."""


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Worst first; among equals the user's own request, then what explains the others."""
    return tuple(
        sorted(
            findings,
            key=lambda f: (_SEVERITY.index(f.severity), not f.id.startswith("own-"), _FIRST.index(f.part)),
        )
    )


def sentence(state: State, findings: Sequence[Finding], note: Notebook, probes: Sequence[ProbeResult]) -> str:
    """The answer in a sentence: what is wrong and what to change, or what was shown to work."""
    own = next((f.title for f in findings if f.id.startswith("own-")), None)
    if state == "READY":
        return f"{own}." if own is not None else _ready(note, probes)
    serious = [f for f in findings if f.severity != "note" or f.id in STOPS]
    if not serious:
        stopped = next((p.said for p in probes if p.name == "stopped"), None)
        if stopped is None and own is not None:
            return f"{own}."
        return f"{stopped}." if stopped else "no contract probe came to a decision; see the table."
    first = serious[0]
    text = first.title.rstrip(".")
    if first.change:
        text += f". {capital(first.change)}".rstrip(".")
    more = len(serious) - 1
    return f"{text}." + (f" ({more} more below.)" if more else "")


def capital(text: str) -> str:
    """A sentence's first letter; names of fields, commands and engines stay as they are."""
    first = text.split(maxsplit=1)[0]
    named = not first.isalpha() or not first.islower()
    return text if named else text[0].upper() + text[1:]


def _ready(note: Notebook, probes: Sequence[ProbeResult]) -> str:
    auto = next((p for p in probes if p.name == "auto"), None)
    parts = ["tools reach the prompt"] if note.rendered else []
    if note.accepted:
        parts.append(f"{note.accepted} text comes out as a call")
    text = ", and ".join(parts) or "nothing was found wrong"
    if auto is not None and auto.rate is not None and auto.rate.count.n and not auto.rate.count.k:
        text += f"; the model itself wrote no valid call in {auto.rate.count.n} tries"
    return f"{text}."
