"""The user's own failing request: repeated, judged, looked at in the prompt, then made as small as still fails."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from truecall import wire
from truecall.preflight.probes.base import Outcome, finding, slug, words
from truecall.preflight.probes.model import DID, note_dialect
from truecall.preflight.probes.own_prompt import InPrompt, in_prompt
from truecall.preflight.probes.reduce import reduced
from truecall.preflight.report import ProbeResult
from truecall.preflight.request_file import OwnRequest
from truecall.preflight.session import Answer, Session
from truecall.records import Count, Delivery, Emission, Finding, Json, Part

TIMES: Final = 5
_FINE: Final = (Delivery.SURFACED, Delivery.NOTHING)


def probe(own: OwnRequest) -> Callable[[Session], Awaitable[Outcome]]:
    """The probe for one request file."""

    async def run(session: Session) -> Outcome:
        return await _run(session, own)

    return run


async def _run(session: Session, own: OwnRequest) -> Outcome:
    body = {**own.body, "model": own.body.get("model") or session.model}
    body.pop("stream", None)
    body.pop("stream_options", None)
    whole: list[Answer] = []
    streamed: list[Answer] = []
    for answers, stream in ((whole, False), (streamed, True)):
        while len(answers) < TIMES and not session.given_up:
            answers.append(await session.ask(body, api=own.api, stream=stream))
    everything = [*whole, *streamed]
    note_dialect(session, everything if session.notebook.own_dialect is None else [])
    seen = await in_prompt(session, body, own.api, whole)
    data: dict[str, Json] = {
        "tools": seen.tools,
        "names_in_prompt": seen.names,
        "messages_in_prompt": seen.messages,
        "prompt_tokens": seen.tokens,
        "context_length": seen.context,
        "whole": dict(Counter(_end(a) for a in whole)),
        "streamed": dict(Counter(_end(a) for a in streamed)),
    }
    said = [f"{_count(seen.tools, 'tool')}, {_tally(whole, streamed)}", *seen.said()]
    findings = _not_in_prompt(session, seen, everything)
    failed = [a for a in everything if _failed(a)]
    if failed:
        shown, count = _worst(failed, everything)
        smallest = await _smallest(session, shown, own.api)
        tools, messages = _length(smallest.get("tools")), _length(smallest.get("messages"))
        size = len(json.dumps(smallest, ensure_ascii=False))
        data["smallest"] = {"tools": tools, "messages": messages, "characters": size}
        if smallest != shown.body:
            few = f"{_count(tools, 'tool')} and {_count(messages, 'message')}"
            said.append(f"still fails with {few} (repeat, below)")
        findings.append(_finding(session, shown, count, smallest))
    elif not findings:
        findings = _not_the_stack(session, everything)
    toolless = not failed and not findings and not _offers_tools(body, own.api)
    if toolless:
        said.append("no tools were offered, so nothing can be said of tool calls")
        findings.append(_no_tools(session, everything[0]))
    result = ProbeResult(
        name="own",
        kind="contract",
        state="unknown" if toolless else "finding" if findings else "ok",
        said=" · ".join(said),
        data=data,
    )
    return Outcome(result, findings)


def _offers_tools(body: dict[str, Json], api: str) -> bool:
    return bool(wire.read_request(body, api).tools or body.get("functions"))


def _no_tools(session: Session, shown: Answer) -> Finding:
    title = "Your request offers no tools, so nothing can be said of tool calls"
    change = "give the request that your client really sends, with its tools"
    return finding(session, "own-no-tools", Part.HARNESS, "note", title, shown, change=change)


def _worst(failed: list[Answer], everything: list[Answer]) -> tuple[Answer, Count]:
    """The failure that came most often, and how often."""
    kinds = Counter((a.verdict.delivery, a.verdict.rule) for a in failed)
    kind, hit = kinds.most_common(1)[0]
    shown = next(a for a in failed if (a.verdict.delivery, a.verdict.rule) == kind)
    return shown, Count(k=hit, n=len(everything))


async def _smallest(session: Session, shown: Answer, api: str) -> dict[str, Json]:
    """The smallest request that still fails so; what may go well later is not worth the requests."""
    refusal = shown.refusal()
    if session.given_up or (refusal is not None and refusal.transient):
        return shown.body
    return await reduced(session, shown, api)


def _not_the_stack(session: Session, answers: list[Answer]) -> list[Finding]:
    """Nothing was lost on the way: what the budget or the model did, where that is no valid call."""
    kinds = Counter(a.verdict.emission for a in answers)
    emission, k = kinds.most_common(1)[0]
    shown = next(a for a in answers if a.verdict.emission is emission)
    view = wire.read_request(shown.body, shown.response.api)
    if not view.tools or view.tool_choice == "none" or emission is Emission.VALID:
        return []
    count = Count(k=k, n=len(answers))
    if emission is Emission.TRUNCATED:
        limit = f" (now {view.max_tokens})" if view.max_tokens is not None else ""
        title, change = "Your request: max_tokens ends the answer before any call", f"raise max_tokens{limit}"
        return [
            finding(session, "own-truncated", Part.BUDGET, "broken", title, shown, change=change, count=count)
        ]
    said = {
        Emission.NO_CALL: "the model answers without a call",
        Emission.EMPTY: "the model ends at once",
        Emission.INVALID_ARGUMENTS: "the calls come out as the model writes them, with arguments against the schema",
        Emission.WRONG_NAME: "the calls come out as the model writes them, of a tool that was not offered",
    }.get(emission)
    if said is None:
        return []
    title = f"Your request: {said}, {k} times of {len(answers)}; nothing is lost on the way"
    return [finding(session, f"own-{slug(emission)}", Part.MODEL, "note", title, shown, count=count)]


def _failed(answer: Answer) -> bool:
    verdict = answer.verdict
    return verdict.delivery not in _FINE or verdict.emission is Emission.UNKNOWN


def _end(answer: Answer) -> str:
    """How one try ended: what became of its call, or why there was none."""
    verdict = answer.verdict
    return words(verdict.delivery if verdict.calls or verdict.delivery not in _FINE else verdict.emission)


def _tally(whole: list[Answer], streamed: list[Answer]) -> str:
    """``5 times whole and 5 streamed: ERASED 10/10``, the two apart where they differ."""
    ends, others = Counter(map(_end, whole)), Counter(map(_end, streamed))
    if ends == others:
        return f"{len(whole)} times whole and {len(streamed)} streamed: {_shares(ends + others)}"
    return f"whole {_shares(ends)}, streamed {_shares(others)}"


def _shares(ends: Counter[str]) -> str:
    n = sum(ends.values())
    loud = {"erased", "mangled"}
    return ", ".join(f"{e.upper() if e in loud else e} {k}/{n}" for e, k in ends.most_common()) or "not sent"


def _finding(session: Session, shown: Answer, count: Count, smallest: dict[str, Json]) -> Finding:
    verdict, refusal = shown.verdict, shown.refusal()
    dialect = next((c.dialect for c in verdict.calls if c.dialect), None)
    part = verdict.cause if verdict.cause is not Part.NONE else Part.UNKNOWN
    if verdict.delivery in DID:
        title = f"Your model calls; this server's {part} {DID[verdict.delivery]}"
    elif refusal is not None:
        title = f"Your request is not answered: {refusal.title}"
    else:
        title = f"Your request: {verdict.detail or verdict.rule}"
    asked = "parser-mismatch" if part is Part.PARSER and dialect else verdict.rule
    found = finding(
        session,
        f"own-{slug(verdict.delivery)}",
        part,
        "note" if verdict.delivery is Delivery.RATE_LIMITED else "broken",
        title,
        shown,
        change=session.stack.advice(asked, session.known(), dialect) or (refusal.change if refusal else ""),
        count=count,
        dialect=dialect,
        rule=verdict.rule,
    )
    repeat = session.curl(dataclasses.replace(shown, body=smallest))
    return msgspec.structs.replace(found, repeat=repeat)


def _not_in_prompt(session: Session, seen: InPrompt, answers: list[Answer]) -> list[Finding]:
    """Tools or messages of the request that the model never sees."""
    shown = answers[0]
    called = any(a.verdict.flags.valid_emitted for a in answers)
    if not shown.ok or (
        called and seen.names is None
    ):  # against mere token counts, a valid call is the proof
        return []
    out: list[Finding] = []
    if seen.rendered is False and not session.notebook.cut:  # a cut prompt has lost them after the template
        out.append(
            finding(
                session,
                "own-tools-not-rendered",
                Part.TEMPLATE,
                "broken",
                "The chat template shows none of your tools to the model",
                shown,
                change=session.stack.advice("tools-not-rendered", session.known()),
            )
        )
    elif seen.cut:
        out.append(
            finding(
                session,
                "own-context-cut",
                Part.SERVER,
                "broken",
                f"Your prompt is cut before the model sees it: {seen.cut}",
                shown,
                change=session.stack.advice("context-cut", session.known()),
            )
        )
    return out


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _length(value: Json) -> int:
    return len(value) if isinstance(value, list) else 0
