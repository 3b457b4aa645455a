"""Answers to numbers: agreement, kappa, precision and recall weighted back to the population, calibrated counts.

Undefined is None with the reason. Every estimate carries its n, every interval its method.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from truecall.annotate.disputes import Axis, disputed, disputed_axes, final, label, pending, voices
from truecall.annotate.folder import Annotation
from truecall.annotate.records import STRATA
from truecall.annotate.weights import EVERY_TURN, Cell, precision, rate, recall
from truecall.records import Count, Record
from truecall.stats import Estimate, calibrate, clopper_pearson, undefined
from truecall.stats.agreement import cohen_kappa, fleiss_kappa

POSITIVE: Final[dict[str, frozenset[str]]] = {
    "call": frozenset({"tight", "well_formed", "malformed"}),
    "well_formed": frozenset({"tight", "well_formed"}),
}
"""Of each question the strata in which the detector's answer is yes."""


class Agreement(Record, frozen=True):
    """How often two gave the same answer, over the texts on which both gave one. Of the sample, not weighted."""

    a: str
    b: str
    same: Count
    share: Estimate
    kappa: Estimate


class StratumNumbers(Record, frozen=True):
    """One stratum. ``share``: of its reviewed texts, those whose final answer is yes.

    Where the detector says yes that is its precision; where it says no, what it misses. ``holds``: the share of
    all texts with a yes, in the population, that lie in this stratum; recall is the sum over the strata in which
    the detector says yes.
    """

    stratum: str
    detector: str
    population: int
    reviewed: int
    share: Estimate
    holds: Estimate


class Calibrated(Record, frozen=True):
    """The detector's count in one group and stratum, times the stratum's precision in the review.

    Where every turn of the stratum was reviewed it is what was found in the group itself.
    """

    group: str
    stratum: str
    turns: int
    estimate: Estimate


class AxisNumbers(Record, frozen=True):
    """All numbers of one question. ``rate``: the share of the population's turns whose answer is yes.

    ``fleiss`` None: there are two annotators. ``strata`` and ``calibrated`` are empty before there are final answers.
    """

    agreement: tuple[Agreement, ...]
    fleiss: Estimate | None
    detector: Agreement
    strata: tuple[StratumNumbers, ...]
    precision: Estimate
    recall: Estimate
    rate: Estimate
    calibrated: tuple[Calibrated, ...]


class ToolNumbers(Record, frozen=True):
    """Which tool: agreement of the annotators, and of the detector with the final answers, over texts with calls."""

    agreement: tuple[Agreement, ...]
    detector: Agreement


class AdjudicationNumbers(Record, frozen=True):
    """What became of the disputes about the call.

    ``disputed``: items in dispute on any question. ``away``: of those disputed on the call, the ones on which the
    final answer is not the detector's. ``controls``: undisputed items to which the adjudicator, asked blind, gave
    the common answer on the call.
    """

    disputed: int
    away: Count | None
    controls: Count | None


# --------------------------------------------------------------------------- the annotation's numbers


def axis_numbers(annotation: Annotation, axis: Axis) -> AxisNumbers:
    """All numbers of a question; None with the reason where answers are missing."""
    agreement, fleiss = _agreements(annotation, axis), _fleiss(annotation, axis)
    if why := _lacks(annotation):
        nothing = undefined(why)
        return AxisNumbers(
            agreement=agreement,
            fleiss=fleiss,
            detector=_unknown("detector", "final", why),
            strata=(),
            precision=nothing,
            recall=nothing,
            rate=nothing,
            calibrated=(),
        )
    cells = _cells(annotation, axis)
    return AxisNumbers(
        agreement=agreement,
        fleiss=fleiss,
        detector=_detector(annotation, axis),
        strata=tuple(_stratum(cell, cells) for cell in cells),
        precision=precision(cells),
        recall=recall(cells),
        rate=rate(cells),
        calibrated=_calibrated(annotation, axis, cells),
    )


def tool_numbers(annotation: Annotation) -> ToolNumbers:
    """Which tool, over texts in which both of a pair see a call."""
    why = _lacks(annotation)
    detector = _unknown("detector", "final", why) if why else _detector(annotation, "tool")
    return ToolNumbers(agreement=_agreements(annotation, "tool"), detector=detector)


def adjudication_numbers(annotation: Annotation) -> AdjudicationNumbers | None:
    """What was disputed and how it ended; None while annotators' answers are missing."""
    if annotation.waiting:
        return None
    open_ones = disputed(annotation)
    if annotation.decided is None or annotation.adjudication is None:
        return AdjudicationNumbers(disputed=len(open_ones), away=None, controls=None)
    items = annotation.key.items
    on_call = [n for n in open_ones if "call" in disputed_axes(voices(annotation, n))]
    away = sum(final(annotation, n, "call") != items[n].text.detector.call for n in on_call)
    controls = annotation.adjudication.controls
    same = sum(annotation.decided[n].call == final(annotation, n, "call") for n in controls)
    return AdjudicationNumbers(
        disputed=len(open_ones),
        away=Count(k=away, n=len(on_call)),
        controls=Count(k=same, n=len(controls)),
    )


def _lacks_annotators(annotation: Annotation) -> str:
    return f"the answers of {', '.join(annotation.waiting)} are missing" if annotation.waiting else ""


def _lacks(annotation: Annotation) -> str:
    """Why there are no final answers yet; "" where there are."""
    if why := _lacks_annotators(annotation):
        return why
    left = pending(annotation)
    return f"{left} disputed texts wait for the adjudicator" if left else ""


def _cells(annotation: Annotation, axis: Axis) -> list[Cell]:
    """The strata of the population, reviewed."""
    cells = []
    for name in STRATA:
        mine = [n for n, item in enumerate(annotation.key.items) if item.text.stratum == name]
        confirmed = sum(final(annotation, n, axis) == "yes" for n in mine)
        size = annotation.key.population.size(name)
        if size:
            cells.append(Cell(name, size, len(mine), confirmed, name in POSITIVE[axis]))
    return cells


def _share(cell: Cell) -> Estimate:
    if not cell.reviewed:
        return undefined("no text of it was reviewed")
    value = cell.confirmed / cell.reviewed
    if cell.known:
        return Estimate(value=value, n=cell.reviewed, reason=EVERY_TURN)
    return Estimate(value=value, n=cell.reviewed, interval=clopper_pearson(cell.confirmed, cell.reviewed))


def _stratum(cell: Cell, cells: Sequence[Cell]) -> StratumNumbers:
    alone = [each._replace(positive=each.name == cell.name) for each in cells]
    return StratumNumbers(
        stratum=cell.name,
        detector="yes" if cell.positive else "no",
        population=cell.size,
        reviewed=cell.reviewed,
        share=_share(cell),
        holds=recall(alone),
    )


def _calibrated(annotation: Annotation, axis: Axis, cells: Sequence[Cell]) -> tuple[Calibrated, ...]:
    """By group, for the strata in which the detector says yes. The precision is that of all groups together."""
    items = annotation.key.items
    found = []
    for group, strata in annotation.key.population.groups.items():
        for cell in cells:
            count = strata.get(cell.name, 0)
            if not (cell.positive and count):
                continue
            if cell.known:
                mine = [
                    n
                    for n, item in enumerate(items)
                    if (item.text.group, item.text.stratum) == (group, cell.name)
                ]
                value = sum(final(annotation, n, axis) == "yes" for n in mine)
                estimate = Estimate(value=value, n=len(mine), reason=EVERY_TURN)
            else:
                estimate = calibrate(count, cell.confirmed, cell.reviewed)
            found.append(Calibrated(group=group, stratum=cell.name, turns=count, estimate=estimate))
    return tuple(found)


# --------------------------------------------------------------------------- agreement


def agreement(a: str, b: str, pairs: Sequence[tuple[str, str]]) -> Agreement:
    """Raw agreement with its exact interval, and Cohen's kappa, of the labels that two gave to the same texts."""
    same = sum(first == second for first, second in pairs)
    count = Count(k=same, n=len(pairs))
    if not pairs:
        return Agreement(a=a, b=b, same=count, share=undefined("no text"), kappa=cohen_kappa(pairs))
    share = Estimate(value=same / len(pairs), n=len(pairs), interval=clopper_pearson(same, len(pairs)))
    return Agreement(a=a, b=b, same=count, share=share, kappa=cohen_kappa(pairs))


def _unknown(a: str, b: str, why: str) -> Agreement:
    return Agreement(a=a, b=b, same=Count(k=0, n=0), share=undefined(why), kappa=undefined(why))


def _agreements(annotation: Annotation, axis: Axis) -> tuple[Agreement, ...]:
    """Of each pair of annotators, before any adjudication."""
    found = []
    for a, b in combinations(annotation.annotators, 2):
        absent = [name for name in (a, b) if name not in annotation.answers]
        if absent:
            found.append(_unknown(a, b, f"the answers of {', '.join(absent)} are missing"))
            continue
        first, second = annotation.answers[a], annotation.answers[b]
        both = [(label(first[n], axis), label(second[n], axis)) for n in sorted(first)]
        found.append(agreement(a, b, [(x, y) for x, y in both if x is not None and y is not None]))
    return tuple(found)


def _detector(annotation: Annotation, axis: Axis) -> Agreement:
    pairs = []
    for n, item in enumerate(annotation.key.items):
        ours, stands = label(item.text.detector, axis), final(annotation, n, axis)
        if ours is not None and stands is not None:
            pairs.append((ours, stands))
    return agreement("detector", "final", pairs)


def _fleiss(annotation: Annotation, axis: Axis) -> Estimate | None:
    """Of three annotators or more; None where there are two."""
    if len(annotation.annotators) < 3:
        return None
    if why := _lacks_annotators(annotation):
        return undefined(why)
    given = [annotation.answers[name] for name in annotation.annotators]
    return fleiss_kappa([[label(each[n], axis) for each in given] for n in range(len(annotation.key.items))])
