"""Round trip, truncation, a bad schema: what the interface does at its edges."""

from __future__ import annotations

from typing import Final

from truecall.canonical import write
from truecall.evidence import STRONGER
from truecall.preflight.material import ASK_LONG, ASK_WEATHER, BAD_SCHEMA, WEATHER, round_trip, user
from truecall.preflight.probes.base import Outcome, finding, no_answer, skipped, unknown
from truecall.preflight.probes.loopback import CALLS
from truecall.preflight.report import ProbeResult, ProbeState
from truecall.preflight.session import Answer, Session
from truecall.records import Finding, Json, Part

_LONG_RESULT: Final = 120


async def result(session: Session) -> Outcome:
    """A tool result must be accepted, and must reach the prompt."""
    if session.notebook.gate is not None:
        return skipped("result", "the gate refuses tools")
    short = await session.ask(session.body(round_trip("18 degrees"), [WEATHER], max_tokens=16))
    if not short.ok and not short.verdict.calls:
        return no_answer(session, "result", short)
    long_text = " ".join(f"reading {n}" for n in range(_LONG_RESULT // 2))
    long = await session.ask(session.body(round_trip(long_text), [WEATHER], max_tokens=1))
    one, many = short.prompt_tokens, long.prompt_tokens
    data: dict[str, Json] = {"prompt_tokens": [one, many]}
    shown = long.response.prompt_text
    if shown is not None:
        reached = long_text in shown
    elif one is None or many is None or not session.notebook.counts_follow(many):
        return unknown("result", "accepted; whether it reaches the prompt is not stated")
    else:
        reached = many - one >= _LONG_RESULT // 4
    if reached:
        said = "accepted and rendered" + ("" if one is None else f" ({one} → {many} prompt tokens)")
        return Outcome(ProbeResult(name="result", kind="contract", state="ok", said=said, data=data))
    if session.notebook.cut:
        return unknown(
            "result", f"accepted ({one} → {many} prompt tokens); the prompt is cut, so it is not told more"
        )
    found = finding(
        session,
        "tool-result-not-rendered",
        Part.TEMPLATE,
        "broken",
        "Tool results are accepted, but the chat template never shows them to the model",
        long,
        prompt_tokens=[one, many],
    )
    return Outcome(
        ProbeResult(
            name="result", kind="contract", state="finding", said=f"not rendered ({one} → {many})", data=data
        ),
        [found],
    )


async def budget(session: Session) -> Outcome:
    """A budget that ends inside the answer must be told as such, streaming or not."""
    body = _cut_body(session)
    findings: list[Finding] = []
    said: list[str] = []
    state: ProbeState = "unknown"
    for stream in (False, True):
        answer = await session.ask(body, stream=stream)
        if not answer.ok and not answer.verdict.calls:
            if findings or state == "ok":
                said.append(f"streamed: {answer.came(120)}")
                break
            return no_answer(session, "budget", answer)
        lies, words = _judged(answer, body["max_tokens"])
        said.append(f"{'streamed' if stream else 'whole'}: {words}")
        if lies:
            findings.append(_lie(session, answer))
        if lies is not None:
            state = "ok"
    if len(said) == 2 and said[0].partition(": ")[2] == said[1].partition(": ")[2]:
        said = [f"{said[0].partition(': ')[2]}, whole and streamed"]
    result = ProbeResult(
        name="budget",
        kind="contract",
        state="finding" if findings else state,
        said=f"cut at {body['max_tokens']} tokens · {' · '.join(said)}",
    )
    return Outcome(result, findings[:1])


def _cut_body(session: Session) -> dict[str, Json]:
    """A request whose answer is longer than its budget: a given call where the stack can be made to write one."""
    note = session.notebook
    if note.accepted is not None and note.way == "guided":
        request = session.stack.loopback(write(note.accepted, CALLS), [WEATHER], session.model, "guided")
        if request is not None:
            return {**request.body, "max_tokens": 12}
    return session.body(user(ASK_LONG), None if note.gate else [WEATHER], max_tokens=8)


def _judged(answer: Answer, limit: int) -> tuple[bool | None, str]:
    """(does finish_reason lie, in words); None: can't be told."""
    spent, finish = answer.completion_tokens, answer.finish_reason
    if finish in ("length", "max_tokens"):
        return False, f"finish_reason {finish}"
    if spent is None:
        return None, f"finish_reason {finish}, token counts are not stated"
    if spent < limit:
        return None, f"the answer ended by itself after {spent} tokens"
    if finish == "stop" and not answer.verdict.calls and answer.evidence.tier not in STRONGER:
        return None, "the answer may have ended by itself just then"
    return True, f"finish_reason {finish}"


def _lie(session: Session, answer: Answer) -> Finding:
    finish = answer.finish_reason
    how = " when streamed" if answer.stream else ""
    return finding(
        session,
        "finish-reason-lies",
        Part.STREAM if answer.stream else Part.PARSER if finish == "tool_calls" else Part.SERVER,
        "degraded",
        f"An answer that max_tokens cut says finish_reason {finish}{how}",
        answer,
    )


async def schema(session: Session) -> Outcome:
    """A schema with a type that does not exist: refused or tolerated, but never a crash."""
    if session.notebook.gate is not None:
        return skipped("schema", "the gate refuses tools")
    answer = await session.ask(
        session.body(user(ASK_WEATHER), [BAD_SCHEMA], tool_choice="auto", max_tokens=8)
    )
    status = answer.exchange.status
    if answer.ok:
        said = "a schema with an unknown type is accepted without a word"
        return Outcome(ProbeResult(name="schema", kind="contract", state="ok", said=said))
    if status is not None and 400 <= status < 500:
        said = f"refused: {answer.came(120)}"
        return Outcome(ProbeResult(name="schema", kind="contract", state="ok", said=said))
    found = finding(
        session,
        "bad-schema-breaks",
        Part.SERVER,
        "degraded",
        "A bad parameter schema is answered as a server fault instead of a refusal",
        answer,
    )
    return Outcome(
        ProbeResult(name="schema", kind="contract", state="finding", said=answer.came(160)), [found]
    )
