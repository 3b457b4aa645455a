"""What the verbs run, compare and card give as JSON (docs/schemas), and the sentence that stands first."""

from __future__ import annotations

from truecall.card import Card, Item, checklist
from truecall.funnel import ArmNumbers
from truecall.records import Count, Record
from truecall.run.comparing import Compared, card_faults
from truecall.run.crossstack import Row, table
from truecall.run.journal import Loop
from truecall.run.predictions import Judged, judge
from truecall.run.result import ArmResult, RunResult

SCHEMA_VERSION = 1


class LoopSeen(Record, frozen=True):
    """A loop, with the episode that it was seen in."""

    episode: str
    loop: Loop


class ArmOutput(Record, frozen=True):
    """An arm's numbers. ``never_rendered``: its prompts never showed the model a tool, so that there is no rate."""

    name: str
    values: dict[str, str]
    never_rendered: bool
    steady: bool
    loops: tuple[LoopSeen, ...]
    role_confused: Count | None  # episodes in which a tool was taken for the function to be written
    numbers: ArmNumbers | None


class RunOutput(Record, frozen=True):
    """``truecall run --json``."""

    study: str
    answer: str
    findings: tuple[str, ...]
    arms: tuple[ArmOutput, ...]
    cross_stack: tuple[Row, ...]
    predictions: tuple[Judged, ...]
    schema_version: int = SCHEMA_VERSION


class CompareOutput(Record, frozen=True):
    """``truecall compare --json``."""

    comparison: Compared
    schema_version: int = SCHEMA_VERSION


class ArmCard(Record, frozen=True):
    """The card of an arm, the checklist, and what keeps it from a pass-rate comparison."""

    name: str
    card: Card
    checklist: tuple[Item, ...]
    faults: tuple[str, ...]


class CardOutput(Record, frozen=True):
    """``truecall card --json``."""

    study: str
    predictions_sha256: str | None
    arms: tuple[ArmCard, ...]
    schema_version: int = SCHEMA_VERSION


def run_output(result: RunResult) -> RunOutput:
    """All numbers of a run."""
    return RunOutput(
        study=result.card.study.name,
        answer=answer(result),
        findings=tuple(findings(result)),
        arms=tuple(_arm(arm) for arm in result.arms),
        cross_stack=tuple(table(result)),
        predictions=tuple(judge(result)),
    )


def arm_card(arm: ArmResult, quarrels: tuple[str, ...] = ()) -> ArmCard:
    """The card of an arm with its checklist. ``quarrels``: what was probed against what was declared."""
    items = checklist(arm.card, arm.numbers, arm.drift) if arm.numbers is not None else ()
    return ArmCard(name=arm.name, card=arm.card, checklist=items, faults=(*card_faults(arm), *quarrels))


def _arm(arm: ArmResult) -> ArmOutput:
    return ArmOutput(
        name=arm.name,
        values=arm.arm.values,
        never_rendered=arm.never_rendered,
        steady=arm.drift.steady,
        loops=tuple(LoopSeen(episode=e.episode.name, loop=e.loop) for e in arm.loops if e.loop is not None),
        role_confused=arm.confused,
        numbers=arm.numbers,
    )


def answer(result: RunResult) -> str:
    """The sentence that a reader needs first."""
    done = {arm.name: arm.numbers for arm in result.arms if arm.numbers is not None}
    if not done:
        return "No episode came to its end: there are no numbers."
    parts = []
    unseen = [arm.name for arm in result.arms if arm.never_rendered]
    if unseen:
        parts.append(
            f"In {', '.join(unseen)} the tools were never rendered: a rate there says nothing of the model."
        )
    lost = {name: numbers["censored_share"] for name, numbers in done.items()}
    most = max(lost, key=lambda name: lost[name].yes)
    if lost[most].yes:
        parts.append(
            f"Well-formed calls were lost, most in {most}: in {lost[most].yes} of {lost[most].n} turns."
        )
    failed = sum(numbers.request_errors for numbers in done.values())
    if failed:
        parts.append(f"{failed} request{'s' * (failed != 1)} failed; they are in no model's rate.")
    if not parts:
        yields = [numbers["interface_yield"] for numbers in done.values()]
        yes, n = sum(y.yes for y in yields), sum(y.n for y in yields)
        parts.append(f"No call was lost and no request failed: {yes} of {n} turns surfaced a valid call.")
    return " ".join(parts)


_SILENT = frozenset({"unreachable", "timeout"})


def nothing_came(result: RunResult) -> bool:
    """No arm has a produced turn, and all that came of requests was silence: there is nothing to tell."""
    done = [arm.numbers for arm in result.arms if arm.numbers is not None]
    return all(
        not n["observed_fidelity"].n and n.non_response and set(n.non_response) <= _SILENT for n in done
    )


def findings(result: RunResult) -> list[str]:
    """What ends a run with exit code 1: tools unseen, calls lost, requests failed, a backend that changed."""
    found = []
    for arm in result.arms:
        if arm.numbers is None:
            continue
        if arm.never_rendered:
            found.append(f"{arm.name}: tools never rendered")
        if arm.numbers["censored_share"].yes:
            found.append(f"{arm.name}: well-formed calls lost")
        if arm.numbers.request_errors:
            found.append(f"{arm.name}: requests failed")
        if not arm.drift.steady:
            found.append(f"{arm.name}: the backend changed")
    return found
