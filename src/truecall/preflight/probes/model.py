"""What the model does by itself: rates, apart from the verdict on the stack, and what became of its calls."""

from __future__ import annotations

from typing import Final

from truecall.preflight.material import ASK_NOTHING, ASK_WEATHER, WEATHER, user
from truecall.preflight.probes.base import Outcome, decided, finding, no_answer, rate, skipped
from truecall.preflight.report import ProbeResult
from truecall.preflight.session import Answer, Session
from truecall.records import Count, Delivery, Emission, Finding, Json, Part

TRIES: Final = 5
SHORT: Final = 60  # completion tokens for an answer in a sentence
LOST: Final = (Delivery.LEAKED, Delivery.ERASED, Delivery.MANGLED)
DID: Final = {
    Delivery.LEAKED: "leaves the call in the text",
    Delivery.ERASED: "erases the call",
    Delivery.MANGLED: "changes the call",
}


async def auto(session: Session) -> Outcome:
    """The everyday request, repeated: a rate of the model's, and what became of the calls it wrote."""
    note = session.notebook
    if note.gate is not None:
        return await _behind_gate(session)
    first = await _call(session)
    if not first.ok and not first.verdict.calls:
        return no_answer(session, "auto", first)
    if _still_thinking(first):
        note.thinks = True
        first = await _call(session)
    answers = [first]
    if note.rendered is not False or first.verdict.calls:  # else there is no rate to be had
        answers += [await _call(session, temperature=1, seed=seed) for seed in range(1, TRIES)]
    produced = [a for a in answers if a.verdict.flags.produced]
    emitted = [a for a in produced if a.verdict.flags.valid_emitted]
    note_dialect(session, produced)
    findings = _lost_calls(session, produced)
    data: dict[str, Json] = {
        "verdicts": [f"{a.verdict.emission} {a.verdict.delivery}" for a in answers],
        "own_dialect": note.own_dialect,
        "thinks": note.thinks,
    }
    if note.rendered is False and not emitted:
        said = "no rate: the tools never reached the model"
        return Outcome(ProbeResult(name="auto", kind="capability", state="unknown", said=said, data=data))
    return Outcome(
        ProbeResult(
            name="auto",
            kind="capability",
            state=decided(findings),
            said=_said(produced, len(emitted)),
            rate=rate(len(emitted), len(produced)),
            data=data,
        ),
        findings,
    )


async def _call(session: Session, **sampling: Json) -> Answer:
    budget = session.notebook.budget
    body = session.body(user(ASK_WEATHER), [WEATHER], tool_choice="auto", max_tokens=budget)
    return await session.ask({**body, **sampling})


def _still_thinking(answer: Answer) -> bool:
    """The budget ended in reasoning: a model that thinks first needs more of it."""
    if answer.verdict.emission is not Emission.TRUNCATED:
        return False
    return bool(answer.reasoning) or "<think>" in (answer.evidence.text or answer.content)


def _said(produced: list[Answer], emitted: int) -> str:
    n = len(produced)
    surfaced = sum(a.verdict.flags.valid_surfaced for a in produced)
    cut = sum(a.verdict.emission is Emission.TRUNCATED for a in produced)
    said = f"valid calls emitted {emitted}/{n}, surfaced {surfaced}/{n}"
    return said + (f", out of tokens before any call {cut}/{n}" if cut else "")


async def _behind_gate(session: Session) -> Outcome:
    """The gate refuses; with tool_choice none the model may still show what it would write."""
    body = session.body(user(ASK_WEATHER), [WEATHER], tool_choice="none", max_tokens=session.notebook.budget)
    answer = await session.ask(body)
    if answer.ok:
        note_dialect(session, [answer])
    return skipped("auto", "the gate refuses tools", "capability")


def note_dialect(session: Session, answers: list[Answer]) -> None:
    """The dialect that the model itself writes, read from evidence stronger than the interface."""
    names = [c.dialect for a in answers for c in a.verdict.calls if c.dialect]
    if names:
        session.notebook.own_dialect = max(sorted(set(names)), key=names.count)


def _lost_calls(session: Session, produced: list[Answer]) -> list[Finding]:
    """One finding for each way in which a well-formed call of the model's was lost."""
    out: list[Finding] = []
    for delivery in LOST:
        hit = [a for a in produced if a.verdict.flags.well_formed_lost and a.verdict.delivery is delivery]
        if hit:
            shown = hit[0].verdict
            found = finding(
                session,
                f"call-{delivery}",
                shown.cause,
                "broken",
                f"The model calls; this server's {shown.cause} {DID[delivery]}",
                hit[0],
                count=Count(k=len(hit), n=len(produced)),
                dialect=next((c.dialect for c in shown.calls if c.dialect), None),
                rule=shown.rule,
            )
            out.append(found)
    return out


async def abstain(session: Session) -> Outcome:
    """A question that wants no call: how often does one come?"""
    note = session.notebook
    if note.gate is not None:
        return skipped("abstain", "the gate refuses tools", "capability")
    if note.rendered is False:
        return skipped("abstain", "the tools never reach the model", "capability")
    budget = note.budget if note.thinks else SHORT
    answers: list[Answer] = []
    for seed in range(3):
        body = session.body(user(ASK_NOTHING), [WEATHER], tool_choice="auto", max_tokens=budget)
        answers.append(await session.ask({**body, "temperature": 1, "seed": seed} if seed else body))
        if session.given_up:
            break
    produced = [a for a in answers if a.verdict.flags.produced]
    if not produced:
        return no_answer(session, "abstain", answers[0])
    called = [a for a in produced if a.verdict.calls]
    findings: list[Finding] = []
    phantoms = [a for a in called if a.verdict.delivery is Delivery.PHANTOM]
    if phantoms:
        found = finding(
            session,
            "phantom-call",
            Part.PARSER,
            "broken",
            "The server surfaced a call that the model did not write",
            phantoms[0],
            count=Count(k=len(phantoms), n=len(produced)),
        )
        findings.append(found)
    result = ProbeResult(
        name="abstain",
        kind="capability",
        state=decided(findings),
        said=f"calls where none was wanted {len(called)}/{len(produced)}",
        rate=rate(len(called), len(produced)),
    )
    return Outcome(result, findings)
