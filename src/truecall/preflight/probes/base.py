"""What a probe is, and how it says what it found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from truecall.preflight.report import ProbeResult, ProbeState, Rate
from truecall.preflight.session import Answer, Session
from truecall.records import Count, EvidenceTier, Finding, Json, Part
from truecall.stats import wilson


@dataclass
class Outcome:
    """A probe's result and its findings."""

    result: ProbeResult
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class Probe:
    """``requests`` and ``tokens`` (completion tokens) are ceilings, told before anything is sent.

    ``thinking``: the ceiling of tokens for a model that reasons first (0: no other). ``needs``: the probes whose
    findings this one builds on; they are sent with it.
    """

    name: str
    asks: str
    run: Callable[[Session], Awaitable[Outcome]]
    requests: int
    tokens: int
    thinking: int = 0
    needs: tuple[str, ...] = ()


def rate(k: int, n: int) -> Rate:
    """``k`` of ``n`` with Wilson's interval; under three trials there is none."""
    if n < 3:
        return Rate(count=Count(k=k, n=n), interval=None, reason="fewer than 3 trials")
    return Rate(count=Count(k=k, n=n), interval=wilson(k, n))


def finding(
    session: Session,
    id: str,
    part: Part,
    severity: Literal["broken", "degraded", "note"],
    title: str,
    answer: Answer | None = None,
    *,
    change: str = "",
    count: Count | None = None,
    dialect: str | None = None,
    **detail: Json,
) -> Finding:
    """A finding with the evidence of ``answer``; the change comes from the stack where it knows one.

    ``dialect``: that of the call in question, kept in the detail.
    """
    wrote, tier = "", EvidenceTier.NONE
    if answer is not None:
        wrote, tier = answer.evidence.text or "", answer.verdict.tier
    if dialect is not None:
        detail["dialect"] = dialect
    return Finding(
        id=id,
        part=part,
        severity=severity,
        title=title,
        sent=answer.sent() if answer else "",
        got=answer.came() if answer else "",
        wrote=wrote[:2000],
        tier=tier,
        change=change or session.stack.advice(id, session.known(), dialect),
        repeat=session.curl(answer) if answer else "",
        count=count,
        detail=dict(detail),
    )


def decided(findings: list[Finding]) -> ProbeState:
    """A probe that came to a decision: ``finding`` when it found something, else ``ok``."""
    return "finding" if findings else "ok"


def unknown(name: str, said: str, kind: Literal["contract", "capability", "fact"] = "contract") -> Outcome:
    """The probe came to no decision, for the reason given."""
    return Outcome(ProbeResult(name=name, kind=kind, state="unknown", said=said))


def skipped(name: str, said: str, kind: Literal["contract", "capability", "fact"] = "contract") -> Outcome:
    """The probe was not sent, for the reason given."""
    return Outcome(ProbeResult(name=name, kind=kind, state="skipped", said=said))


def no_answer(session: Session, name: str, answer: Answer) -> Outcome:
    """The request failed or was refused: the outcome is about that, never about the model."""
    verdict, refusal = answer.verdict, answer.refusal()
    if refusal is not None and refusal.part is Part.GATE:
        return refused(session, name, answer)
    said = f"not answered: {answer.came(160)}"
    if refusal is not None and refusal.transient:
        return unknown(name, said)
    part = refusal.part if refusal is not None else verdict.cause
    found = finding(
        session,
        f"{name}-{slug(verdict.delivery)}",
        part,
        "broken" if name in WEIGHTY else "degraded",
        f"The {name} request was not answered: {refusal.title if refusal else words(verdict.delivery)}",
        answer,
        change=refusal.change if refusal else "",
        rule=verdict.rule,
    )
    return Outcome(ProbeResult(name=name, kind="contract", state="finding", said=said), [found])


def refused(session: Session, name: str, answer: Answer) -> Outcome:
    """The gate refused the request before the model ran. Once is a finding; a gate that is known to be closed
    is no new one."""
    refusal = answer.refusal()
    assert refusal is not None
    gate = session.notebook.gate
    if gate is not None and gate is not answer:
        return skipped(name, f"refused too: {answer.came(120)}")
    dialect = session.notebook.template_dialect
    change = session.stack.advice(refusal.rule, session.known(), dialect) or refusal.change
    found = finding(
        session,
        f"gate-refuses-{name}",
        refusal.part,
        "broken" if name in WEIGHTY else "degraded",
        refusal.title,
        answer,
        change=change,
        rule=refusal.rule,
    )
    said = f"refused: {answer.came(120)}"
    return Outcome(ProbeResult(name=name, kind="contract", state="finding", said=said), [found])


WEIGHTY: Final = frozenset({"auto", "own"})  # what every user of the endpoint needs


def slug(text: str) -> str:
    """A word of ours as it stands in ids."""
    return text.replace("_", "-")


def words(text: str) -> str:
    """A word of ours as it stands in sentences."""
    return text.replace("_", " ")
