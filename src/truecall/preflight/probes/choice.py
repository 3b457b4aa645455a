"""tool_choice and strict: what is accepted, and what is enforced."""

from __future__ import annotations

from truecall.canonical import write
from truecall.preflight.material import ASK_WEATHER, CLOCK, WEATHER, Tool, user
from truecall.preflight.probes.base import Outcome, finding, no_answer, skipped, slug, words
from truecall.preflight.probes.loopback import CALLS, put_through
from truecall.preflight.probes.model import DID, LOST, note_dialect
from truecall.preflight.report import ProbeResult
from truecall.preflight.session import Answer, Session
from truecall.records import Delivery, Emission, Json, Part

_NO_TOOLS = "leave tools away in requests that must not end in a call"


async def required(session: Session) -> Outcome:
    """``required`` must give a call."""
    outcome = await _forced(session, "required", "required", [WEATHER])
    session.notebook.enforced = not any(f.id == "required-not-enforced" for f in outcome.findings)
    return outcome


async def named(session: Session) -> Outcome:
    """A named tool must give a call of that name, here one that the question does not ask for."""
    choice = {"type": "function", "function": {"name": "get_time"}}
    return await _forced(session, "named", choice, [WEATHER, CLOCK], want="get_time")


async def _forced(
    session: Session, name: str, choice: Json, tools: list[Tool], want: str | None = None
) -> Outcome:
    body = session.body(user(ASK_WEATHER), tools, tool_choice=choice, max_tokens=session.notebook.budget)
    answer = await session.ask(body)
    if not answer.ok and not answer.verdict.calls:
        return no_answer(session, name, answer)
    given = answer.response.choices[0].tool_calls if answer.response.choices else ()
    names = [call.name for call in given]
    if given and (want is None or set(names) == {want}):
        return _gave(session, name, answer, str(names[0]))
    if answer.verdict.delivery in LOST:
        return _forced_lost(session, name, answer)
    if answer.verdict.delivery is Delivery.CUT_OFF:
        said = f"enforced: a call was begun, and {answer.body['max_tokens']} tokens ended inside it"
        return Outcome(ProbeResult(name=name, kind="contract", state="ok", said=said))
    looped = answer.verdict.emission is Emission.TRUNCATED
    what = (
        f"a call of {', '.join(map(str, names))}"
        if names
        else f"no call in {answer.body['max_tokens']} tokens, which ran out"
        if looped
        else "an answer in prose"
    )
    asked = "A named tool" if want else f"tool_choice {name}"
    found = finding(
        session,
        "named-ignored" if want else f"{name}-not-enforced",
        Part.CONSTRAINT,
        "degraded",
        f"{asked} is accepted and not enforced: {what}",
        answer,
        change=_mend(session, looped),
        looped=looped,
    )
    said = f"not enforced: {what}"
    return Outcome(ProbeResult(name=name, kind="contract", state="finding", said=said), [found])


def _mend(session: Session, looped: bool) -> str:
    """What to do about it, where more is known than the engine; else "" and its own advice stands."""
    if session.notebook.rendered is False:
        return "serve a template that renders tools first: without one there is nothing to enforce"
    if looped:
        return (
            "it only forbids the end before a call: keep max_tokens small, and check each answer for a call"
        )
    return ""


def _gave(session: Session, name: str, answer: Answer, called: str) -> Outcome:
    """The constraint gave the call; its arguments are another matter."""
    emission = answer.verdict.emission
    if emission is Emission.VALID:
        said = f"enforced: a call of {called}, arguments valid"
        return Outcome(ProbeResult(name=name, kind="contract", state="ok", said=said))
    found = finding(
        session,
        "arguments-against-schema",
        Part.CONSTRAINT,
        "note",
        "A forced call need not have arguments that fit the schema",
        answer,
    )
    said = f"enforced: a call of {called}, but {words(emission)}"
    return Outcome(ProbeResult(name=name, kind="contract", state="finding", said=said), [found])


def _forced_lost(session: Session, name: str, answer: Answer) -> Outcome:
    verdict = answer.verdict
    found = finding(
        session,
        f"call-{slug(verdict.delivery)}",  # the same loss under auto is told once
        verdict.cause,
        "broken",
        f"Under tool_choice {name} the model calls; this server's {verdict.cause} {DID[verdict.delivery]}",
        answer,
        dialect=verdict.calls[0].dialect,
    )
    said = f"a call was written and {words(verdict.delivery)}"
    return Outcome(ProbeResult(name=name, kind="contract", state="finding", said=said), [found])


# --------------------------------------------------------------------------- none


async def none(session: Session) -> Outcome:
    """``none`` must surface nothing and leave the text alone; a call in the text is what was asked for."""
    note = session.notebook
    dialect = note.accepted
    if dialect is not None and note.way in ("guided", "prefill"):
        text = write(dialect, CALLS)
        outcome, answer, _, way = await put_through(session, dialect, text, more={"tool_choice": "none"})
        if answer is not None and outcome in ("nothing", "surfaced", "erased", "mangled"):
            return _under_none(session, answer, outcome, f"{dialect}, {way}")
    answer = await session.ask(
        session.body(user(ASK_WEATHER), [WEATHER], tool_choice="none", max_tokens=note.budget)
    )
    if not answer.ok:
        return no_answer(session, "none", answer)
    note_dialect(session, [answer] if note.own_dialect is None else [])
    if answer.response.choices[0].tool_calls:
        return _under_none(session, answer, "surfaced", "the model's own words")
    delivery = answer.verdict.delivery
    return _under_none(
        session, answer, delivery if answer.verdict.calls else "no call", "the model's own words"
    )


def _under_none(session: Session, answer: Answer, outcome: str, how: str) -> Outcome:
    if outcome in ("nothing", "leaked", "no call"):
        what = "no call was written" if outcome == "no call" else "respected: the call stayed in the text"
        return Outcome(ProbeResult(name="none", kind="contract", state="ok", said=f"{what} ({how})"))
    if outcome == "surfaced":
        id, part, what = "none-not-respected", Part.CONSTRAINT, "ignored: a call came out all the same"
    else:
        id, part, what = f"none-{slug(outcome)}", Part.PARSER, f"the parser still runs: the call is {outcome}"
    change = (
        session.stack.advice("none-not-respected", session.known()) if outcome == "surfaced" else _NO_TOOLS
    )
    found = finding(session, id, part, "degraded", f"tool_choice none: {what}", answer, change=change)
    said = f"{what} ({how})"
    return Outcome(ProbeResult(name="none", kind="contract", state="finding", said=said), [found])


# --------------------------------------------------------------------------- strict


async def strict(session: Session) -> Outcome:
    """``strict`` with ``required``: arguments must fit the schema."""
    if session.notebook.enforced is False:
        return skipped("strict", "required gives no call to be checked")
    body = {**WEATHER["function"], "strict": True}
    body["parameters"] = {**body["parameters"], "additionalProperties": False}
    tool = {"type": "function", "function": body}
    answer = await session.ask(
        session.body(user(ASK_WEATHER), [tool], tool_choice="required", max_tokens=session.notebook.budget)
    )
    if not answer.ok and not answer.verdict.calls:
        return no_answer(session, "strict", answer)
    if not answer.verdict.calls:
        said = "no call came to be checked"
        return Outcome(ProbeResult(name="strict", kind="contract", state="unknown", said=said))
    if answer.verdict.emission is Emission.VALID:
        said = "arguments fit the schema"
        return Outcome(ProbeResult(name="strict", kind="contract", state="ok", said=said))
    violations = [f"{v.path or '/'} {v.kind}" for c in answer.verdict.calls for v in c.violations]
    found = finding(
        session,
        "strict-not-enforced",
        Part.CONSTRAINT,
        "degraded",
        "strict: true is accepted and the arguments do not fit the schema",
        answer,
        violations=violations,
    )
    said = f"not enforced: {', '.join(violations) or words(answer.verdict.emission)}"
    return Outcome(ProbeResult(name="strict", kind="contract", state="finding", said=said), [found])
