"""One request at a time against sixteen at once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Final

from truecall.canonical import write
from truecall.preflight.material import ASK_WEATHER, WEATHER, user
from truecall.preflight.probes.base import Outcome, finding, no_answer, unknown, words
from truecall.preflight.probes.loopback import CALLS
from truecall.preflight.report import ProbeResult
from truecall.preflight.session import Answer, Session
from truecall.records import Count, Delivery, Json, Part

AT_ONCE: Final = 16
SHORT: Final = 12  # completion tokens of an answer in the model's own words


async def run(session: Session) -> Outcome:
    """The outcome must be the same, whatever it is."""
    body = _body(session)
    alone = await session.ask(body)
    if not alone.ok and not alone.verdict.calls:
        return no_answer(session, "load", alone)
    together = await asyncio.gather(*(session.ask(body, patient=False) for _ in range(AT_ONCE)))
    same = [a for a in together if _kind(a) == _kind(alone)]
    others = Counter(_said(a) for a in together if _kind(a) != _kind(alone))
    said = f"1 at a time {_said(alone)}; {AT_ONCE} at once the same {len(same)}/{AT_ONCE}"
    said += "".join(f", {what} {k}/{AT_ONCE}" for what, k in others.most_common())
    data: dict[str, Json] = {"alone": _kind(alone), "together": [_kind(a) for a in together]}
    if len(same) == AT_ONCE:
        said = f"{_said(alone)} both ways: 1 at a time, and {AT_ONCE}/{AT_ONCE} at once"
        return Outcome(ProbeResult(name="load", kind="contract", state="ok", said=said, data=data))
    limited = sum(a.verdict.delivery is Delivery.RATE_LIMITED for a in together)
    if limited and limited + len(same) == AT_ONCE:
        return unknown("load", f"{said}: the rate limit was met, not the engine's own")
    if alone.verdict.delivery in (Delivery.NOTHING, Delivery.UNKNOWN) and all(a.ok for a in together):
        return unknown("load", f"{said}: the model's own text varies")
    worst = next(a for a in together if _kind(a) != _kind(alone))
    found = finding(
        session,
        "load-changes-outcome",
        Part.SERVER,
        "degraded",
        f"{AT_ONCE} requests at once do not end like one alone",
        worst,
        count=Count(k=AT_ONCE - len(same), n=AT_ONCE),
        outcomes=[_kind(a) for a in together],
    )
    return Outcome(ProbeResult(name="load", kind="contract", state="finding", said=said, data=data), [found])


def _body(session: Session) -> dict[str, Json]:
    """A given call where the stack can be made to write one, else the model's own words."""
    note = session.notebook
    if note.accepted is not None and note.way in ("guided", "prefill"):
        request = session.stack.loopback(write(note.accepted, CALLS), [WEATHER], session.model)
        if request is not None:
            return request.body
    return session.body(user(ASK_WEATHER), None if note.gate else [WEATHER], max_tokens=SHORT)


def _kind(answer: Answer) -> str:
    """How an exchange ended, by what the interface gave."""
    if answer.ok and answer.response.choices[0].tool_calls:
        calls = [[c.name, c.arguments] for c in answer.response.choices[0].tool_calls]
        return json.dumps(calls, ensure_ascii=False)
    return _said(answer)


def _said(answer: Answer) -> str:
    if answer.exchange.failure is not None:
        return words(answer.exchange.failure.kind)
    if not answer.ok:
        return f"HTTP {answer.exchange.status}"
    count = len(answer.response.choices[0].tool_calls)
    if count:
        return "a call" if count == 1 else f"{count} calls"
    return "no call"
