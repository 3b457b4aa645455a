"""Does the prompt hold the tools? By token counts on any engine, and in the prompt's own text where it can be had."""

from __future__ import annotations

from typing import Final

from truecall.preflight.material import ASK_WEATHER, WEATHER, round_trip, user, with_description
from truecall.preflight.probes.base import Outcome, finding, no_answer, refused, unknown
from truecall.preflight.probes.loopback import dialect_of
from truecall.preflight.report import ProbeResult
from truecall.preflight.session import Answer, Session
from truecall.records import Json, Part

WORDS: Final = 300
_CITY: Final = "Paris"


async def run(session: Session) -> Outcome:
    """Prompt tokens without tools, with one short tool description and with one long."""
    bare = await session.ask(session.body(user(ASK_WEATHER), max_tokens=1))
    if not bare.ok:
        return no_answer(session, "rendered", bare)
    short = await session.ask(session.body(user(ASK_WEATHER), [WEATHER], max_tokens=1))
    gate: Outcome | None = None
    choice: dict[str, Json] = {}
    if not short.ok:
        refusal = short.refusal()
        if refusal is None or refusal.ran is not False:
            return no_answer(session, "rendered", short)
        if refusal.part is not Part.GATE:
            return no_answer(session, "rendered", short)
        session.notebook.gate = short
        choice = {"tool_choice": "none"}  # vLLM renders the tools all the same
        short = await session.ask(session.body(user(ASK_WEATHER), [WEATHER], max_tokens=1, **choice))
        gate = _refused(session)
        if not short.ok:
            return gate
    long = await session.ask(
        session.body(user(ASK_WEATHER), [with_description(WEATHER, WORDS)], max_tokens=1, **choice)
    )
    outcome = _decide(session, bare, short, long, await session.prompt_text(short))
    await _template_dialect(session, choice)
    if gate is not None:
        gate = _refused(session)  # again: the template's dialect is known now
        outcome.findings[:0] = gate.findings
        outcome.result = ProbeResult(
            name="rendered",
            kind="contract",
            state="finding",
            said=f"{gate.result.said} · with tool_choice none: {outcome.result.said}",
            data=outcome.result.data,
        )
    return outcome


def _refused(session: Session) -> Outcome:
    gate = session.notebook.gate
    assert gate is not None
    return refused(session, "auto", gate)


def _decide(session: Session, bare: Answer, short: Answer, long: Answer, prompt: str | None) -> Outcome:
    name = None if prompt is None else WEATHER["function"]["name"] in prompt.replace(ASK_WEATHER, "")
    counts = (bare.prompt_tokens, short.prompt_tokens, long.prompt_tokens)
    data: dict[str, Json] = {"prompt_tokens": list(counts), "name_in_prompt": name}
    if name is None and None in counts[:2]:
        return unknown("rendered", "the server states no prompt tokens and shows no prompt")
    if name is None and not session.notebook.counts_follow(bare.prompt_tokens):
        return unknown(
            "rendered", f"the server states {bare.prompt_tokens} prompt tokens for every prompt: no evidence"
        )
    none, one, many = counts
    grew = none is not None and one is not None and one > none
    session.notebook.rendered = bool(name) or (name is None and grew)
    if grew and name is False:
        title = "A tool adds prompt tokens, but its name is not in the prompt: the prompt is cut"
        return _cut(
            session, short, title, f"{none} → {one} prompt tokens with one tool, without its name", data
        )
    if not session.notebook.rendered:
        found = finding(
            session,
            "tools-not-rendered",
            Part.TEMPLATE,
            "broken",
            "The chat template never shows the tools to the model",
            short,
            prompt_tokens=list(counts),
        )
        said = f"no: {none} prompt tokens without tools, {one} with one tool"
        return Outcome(
            ProbeResult(name="rendered", kind="contract", state="finding", said=said, data=data), [found]
        )
    said = _yes(none, one, many if long.ok else None, name)
    if many is not None and one is not None and long.ok:
        if many - one < WORDS // 2:
            title = f"A tool description of {WORDS} words adds {many - one} prompt tokens: the prompt is cut"
            return _cut(session, long, title, said, data)
    elif not long.ok:
        said += f"; with a long description: {long.came(120)}"
    return Outcome(ProbeResult(name="rendered", kind="contract", state="ok", said=said, data=data))


def _cut(session: Session, shown: Answer, title: str, said: str, data: dict[str, Json]) -> Outcome:
    session.notebook.cut = True
    counts = data["prompt_tokens"]
    found = finding(session, "context-cut", Part.SERVER, "broken", title, shown, prompt_tokens=counts)
    result = ProbeResult(
        name="rendered", kind="contract", state="finding", said=f"the prompt is cut: {said}", data=data
    )
    return Outcome(result, [found])


def _yes(none: int | None, one: int | None, many: int | None, name: bool | None) -> str:
    said = "yes"
    if None not in (none, one):
        said += f": {none} → {one} prompt tokens with one tool"
        said += f", {many} with a long description" if many is not None else ""
    return said + ("; the tool's name is in the prompt" if name else "")


async def _template_dialect(session: Session, choice: dict[str, Json]) -> None:
    """The dialect in which the template writes a past call, read from a rendered conversation."""
    answer = await session.ask(session.body(round_trip("18 degrees"), [WEATHER], max_tokens=1, **choice))
    prompt = await session.prompt_text(answer) if answer.ok else None
    if prompt is None:
        return
    after = prompt.rpartition(ASK_WEATHER)[2]
    if _CITY in after:
        session.notebook.template_dialect = dialect_of(after, [WEATHER])
