"""The same call streamed and not streamed, and the stream's own form."""

from __future__ import annotations

from typing import Final

import msgspec

from truecall.canonical import write
from truecall.preflight.material import ASK_WEATHER, WEATHER, user
from truecall.preflight.probes.base import Outcome, decided, finding, no_answer
from truecall.preflight.probes.loopback import CALLS, MARKS, put_through
from truecall.preflight.report import ProbeResult
from truecall.preflight.session import Answer, Session
from truecall.records import Delivery, Finding, Part

_BREAKING: Final = frozenset(
    {"index_reused", "duplicate_chunk", "nameless", "no_index", "error_event", "cut", "invalid_payload"}
)


async def run(session: Session) -> Outcome:
    """By loopback where a dialect gets through, else with the model's own words at temperature 0."""
    note = session.notebook
    if note.gate is None and note.accepted is not None:
        outcome = await _both_ways(session, note.accepted)
        if outcome is not None:
            return outcome
    body = session.body(user(ASK_WEATHER), None if note.gate else [WEATHER], max_tokens=60)
    whole = await session.ask(body)
    streamed = await session.ask(body, stream=True)
    if not streamed.ok and not streamed.verdict.calls:
        return no_answer(session, "stream", streamed)
    one, other = whole.verdict.delivery, streamed.verdict.delivery
    if one is not other and Delivery.SURFACED in (one, other):
        return _differs(session, streamed, str(one), str(other))
    if _summary(whole) == _summary(streamed):
        same = "the same answer both ways"
    else:
        same = "a call both ways" if one is Delivery.SURFACED else "no call either way"
    return _form(session, streamed, f"{same} (the model's own words)")


async def _both_ways(session: Session, dialect: str) -> Outcome | None:
    """A given text put through the parser both ways, by the strongest way that can be streamed."""
    text = write(dialect, CALLS)
    for way in session.stack.ways:
        request = session.stack.loopback(text, [WEATHER], session.model, way)
        if way == "oracle" or request is None or not request.stream:
            continue
        whole, _, _, _ = await put_through(session, dialect, text, only_way=way)
        streamed, answer, _, _ = await put_through(session, dialect, text, only_way=way, stream=True)
        if answer is None or whole not in MARKS or streamed not in MARKS:
            continue
        if whole != streamed:
            return _differs(session, answer, whole, streamed)
        return _form(session, answer, f"the same call both ways ({dialect}, {way})")
    return None


def _summary(answer: Answer) -> tuple[str, tuple[object, ...]]:
    calls = tuple((c.name, str(c.arguments), c.delivery) for c in answer.verdict.calls)
    return ("" if calls else answer.content.strip()), calls


def _differs(session: Session, streamed: Answer, whole: str, in_stream: str) -> Outcome:
    found = finding(
        session,
        "stream-differs",
        Part.STREAM,
        "broken" if in_stream in ("erased", "leaked", "mangled") else "degraded",
        f"The same call is {whole} without streaming and {in_stream} when streamed",
        streamed,
    )
    form = _form(session, streamed, f"{whole} whole, {in_stream} streamed")
    form.findings.insert(0, found)
    return Outcome(msgspec.structs.replace(form.result, state="finding"), form.findings)


def _hides_call(streamed: Answer) -> str:
    """What a client that goes by finish_reason does with this stream's call; "" where finish_reason tells of it."""
    calls = streamed.response.choices[0].tool_calls if streamed.response.choices else ()
    if not calls or streamed.finish_reason not in ("stop", None) or not streamed.response.complete:
        return ""
    return "clients that go by it drop the call"


def _form(session: Session, streamed: Answer, said: str) -> Outcome:
    defects = list(streamed.response.defects)
    findings: list[Finding] = []
    if hidden := _hides_call(streamed):
        said += f"; but finish_reason {streamed.finish_reason}"
        findings.append(
            finding(
                session,
                "finish-reason-hides-call",
                Part.STREAM,
                "degraded",
                f"A stream with a call says finish_reason {streamed.finish_reason}: {hidden}",
                streamed,
                change="do not decide by finish_reason whether there are calls; upgrade the engine or its gateway",
            )
        )
    if defects:
        breaking = bool(_BREAKING & set(defects)) or not streamed.response.complete
        findings.append(
            finding(
                session,
                "stream-form",
                Part.STREAM,
                "degraded" if breaking else "note",
                f"The stream is not well formed: {', '.join(defects)}",
                streamed,
                defects=defects,
            )
        )
        said += f"; form: {', '.join(defects)}"
    state = decided(findings)
    return Outcome(ProbeResult(name="stream", kind="contract", state=state, said=said), findings)
