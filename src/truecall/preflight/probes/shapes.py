"""Harder calls, put through the live parser by loopback: several, nested, unicode, empty, a closing tag inside."""

from __future__ import annotations

from typing import Any, Final

from truecall.canonical import Written, write
from truecall.preflight.material import CODE, NESTED, NO_ARGUMENTS, WEATHER, Tool
from truecall.preflight.probes.base import Outcome, decided, finding, skipped
from truecall.preflight.probes.loopback import MARKS, put_through
from truecall.preflight.report import ProbeResult
from truecall.preflight.session import Session
from truecall.records import Finding, Json, Part

_NESTED: Final[dict[str, Any]] = {
    "traveller": {"name": "Kyzyl Oorzhak", "age": 41},
    "stops": ["Kyzyl", "Oslo"],
    "flexible": True,
}
SHAPES: Final[dict[str, tuple[Written, list[Tool]]]] = {
    "parallel": ([("get_weather", {"city": "Kyzyl"}), ("get_weather", {"city": "Oslo"})], [WEATHER]),
    "nested": ([("book_trip", _NESTED)], [NESTED]),
    "unicode": ([("get_weather", {"city": "Кызыл 北京 🌦 Kyzyl"})], [WEATHER]),
    "empty arguments": ([("list_cities", {})], [NO_ARGUMENTS]),
    "closing tag in a string": (
        [("run_code", {"code": "print('</tool_call>')  # Kyzyl\nprint(\"]}\")"})],
        [CODE],
    ),
}
RARE: Final = "closing tag in a string"  # most engines' parsers lose it; it only matters where code is passed
_ONE_CALL: Final = frozenset({"react"})


async def run(session: Session) -> Outcome:
    """Each shape in the dialect that this parser reads."""
    if session.notebook.gate is not None:
        return skipped("shapes", "the gate refuses tools")
    dialect = session.notebook.accepted
    if dialect is None:
        why = (
            "no dialect gets through this parser" if session.notebook.table else "no text can be put through"
        )
        return skipped("shapes", f"{why} (see loopback)")
    outcomes: dict[str, str] = {}
    findings: list[Finding] = []
    for name, (calls, tools) in SHAPES.items():
        if name == "parallel" and dialect in _ONE_CALL:
            continue
        outcome, answer, verdict, _ = await put_through(session, dialect, write(dialect, calls), list(tools))
        came = len(answer.response.choices[0].tool_calls) if answer is not None and answer.ok else 0
        if outcome == "surfaced" and came != len(calls):
            outcome = f"{came} of {len(calls)} surfaced"
        outcomes[name] = outcome
        lost = (outcome in MARKS and outcome != "surfaced") or "of" in outcome.split()
        if lost and answer is not None:
            findings.append(
                finding(
                    session,
                    f"shape-{name.replace(' ', '-')}",
                    verdict.cause if verdict is not None and verdict.cause is not Part.NONE else Part.PARSER,
                    "note" if name == RARE else "degraded",
                    f"A well-formed {dialect} call ({name}) does not come out as written: {outcome}",
                    answer,
                    dialect=dialect,
                    written=write(dialect, calls),
                )
            )
        if session.given_up:
            break
    data: dict[str, Json] = {"dialect": dialect, "way": session.notebook.way, "outcomes": dict(outcomes)}
    said = _said(outcomes)
    known = any(outcome in MARKS for outcome in outcomes.values())
    state = decided(findings) if known else "unknown"
    return Outcome(
        ProbeResult(
            name="shapes", kind="contract", state=state, said=f"{said} (as {dialect} text)", data=data
        ),
        findings,
    )


def _said(outcomes: dict[str, str]) -> str:
    """The outcomes, the good ones first and together: ``all 5 surfaced`` where there are no others."""
    good = [name for name, outcome in outcomes.items() if outcome == "surfaced"]
    if len(good) == len(outcomes):
        return f"{', '.join(outcomes)}: all surfaced"
    parts = [f"{', '.join(good)} surfaced"] if good else []
    parts += [f"{n} {MARKS.get(o, o)}" for n, o in outcomes.items() if o != "surfaced"]
    return " · ".join(parts)
