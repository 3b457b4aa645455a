"""Agreement, weights and calibration, held to statsmodels, to the paper's figures and to tables made by hand."""

from __future__ import annotations

import itertools
import random

import msgspec
import numpy as np
import pytest
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa, fleiss_kappa

from tests.annotate.material import BROKEN, NO, UNCLEAR, YES, annotation
from truecall.annotate.disputes import disputed
from truecall.annotate.folder import Annotation
from truecall.annotate.numbers import axis_numbers, tool_numbers
from truecall.annotate.records import Adjudication, Answer, PackRef
from truecall.annotate.weights import BOX, Cell, precision, rate, recall
from truecall.stats import agreement, clopper_pearson, exact_limits

WORDS = {0: YES, 1: NO, 2: UNCLEAR}


def decide(made: Annotation, answers: dict[int, Answer]) -> Annotation:
    """The annotation with the adjudicator's answers."""
    made.adjudication = Adjudication(
        pack=PackRef(sha256="j", ids={}),
        disputed=tuple(disputed(made)),
        controls=tuple(n for n in answers if n not in disputed(made)),
        answers={},
        protocol_sha256="",
    )
    made.decided = answers
    return made


# --------------------------------------------------------------------------- agreement


@pytest.mark.parametrize("table", [[[20, 5, 1], [3, 40, 2], [0, 1, 4]], [[61, 1, 0], [0, 36, 0], [0, 0, 1]]])
def test_kappa_of_annotators_is_that_of_statsmodels(table: list[list[int]]) -> None:
    pairs = [(WORDS[i], WORDS[j]) for i in range(3) for j in range(3) for _ in range(table[i][j])]
    made = annotation(["none"] * len(pairs), {"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    [found] = axis_numbers(made, "call").agreement
    theirs = cohens_kappa(np.array(table))
    same = sum(table[i][i] for i in range(3))
    assert (found.same.k, found.same.n) == (same, len(pairs))
    assert found.share.value == pytest.approx(same / len(pairs))
    assert found.kappa.value == pytest.approx(theirs.kappa, abs=1e-9)
    interval = found.kappa.interval
    assert (
        interval is not None
        and interval.method == "percentile bootstrap over items"
        and interval.n == len(pairs)
    )
    assert (interval.low, interval.high) == pytest.approx((theirs.kappa_low, theirs.kappa_upp), abs=0.04)


def test_kappa_by_hand() -> None:
    """Cohen's own form: 20 and 15 agreed of 50, margins 25/25 and 30/20: (0.7 - 0.5) / (1 - 0.5)."""
    pairs = [(YES, YES)] * 20 + [(YES, NO)] * 5 + [(NO, YES)] * 10 + [(NO, NO)] * 15
    made = annotation(["none"] * 50, {"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    assert axis_numbers(made, "call").agreement[0].kappa.value == pytest.approx(0.4)


def test_fleiss_kappa_of_three_is_that_of_statsmodels() -> None:
    dice = random.Random(4)
    rows = [
        [dice.choice([t, t, t, dice.randrange(3)]) for _ in range(3)] for t in dice.choices(range(3), k=80)
    ]
    columns = {name: [WORDS[row[place]] for row in rows] for place, name in enumerate("abc")}
    numbers = axis_numbers(annotation(["none"] * 80, columns), "call")
    assert [(each.a, each.b) for each in numbers.agreement] == [("a", "b"), ("a", "c"), ("b", "c")]
    counts, _ = aggregate_raters(np.array(rows))
    assert numbers.fleiss is not None and numbers.fleiss.interval is not None
    assert numbers.fleiss.value == pytest.approx(fleiss_kappa(counts), abs=1e-9)
    assert numbers.fleiss.interval.low < numbers.fleiss.value < numbers.fleiss.interval.high


def test_fleiss_kappa_is_undefined_where_there_is_nothing_to_compare() -> None:
    assert agreement.fleiss_kappa([]).value is None
    assert agreement.fleiss_kappa([("x", "x")] * 5).value is None
    with pytest.raises(ValueError, match="same number"):
        agreement.fleiss_kappa([("x", "y"), ("x",)])


def test_two_who_never_part_have_a_kappa_and_no_interval() -> None:
    numbers = axis_numbers(
        annotation(["tight", "none"] * 5, {"a": [YES, NO] * 5, "b": [YES, NO] * 5}), "call"
    )
    assert numbers.agreement[0].kappa.value == 1 and numbers.agreement[0].kappa.interval is None
    assert numbers.agreement[0].kappa.reason


# --------------------------------------------------------------------------- the paper's figures


def papers() -> Annotation:
    """98 texts: 40 tight, 28 more with a call, 30 without; of 80, 60 and 160 turns. 36 of the 40 are confirmed."""
    strata = ["tight"] * 40 + ["well_formed"] * 28 + ["none"] * 30
    truth = [YES] * 36 + [NO] * 4 + [YES] * 21 + [NO] * 7 + [YES] * 3 + [NO] * 27
    made = annotation(
        strata,
        {"a": truth, "b": truth},
        groups={"32B": {"tight": 80, "well_formed": 20, "none": 0}, "7B": {"well_formed": 40, "none": 160}},
    )
    return decide(made, {n: truth[n] for n in disputed(made)})


def test_36_of_40_calibrates_80_to_72() -> None:
    numbers = axis_numbers(papers(), "call")
    tight = numbers.strata[0]
    assert (tight.stratum, tight.reviewed, tight.population, tight.detector) == ("tight", 40, 80, "yes")
    assert tight.share.value == pytest.approx(0.900)
    [calibrated] = [each for each in numbers.calibrated if each.stratum == "tight"]
    assert (calibrated.group, calibrated.turns) == ("32B", 80)
    assert calibrated.estimate.value == pytest.approx(72)
    exact = clopper_pearson(36, 40)
    assert exact is not None and calibrated.estimate.interval is not None
    assert calibrated.estimate.interval.low == pytest.approx(80 * exact.low)
    assert calibrated.estimate.interval.high == pytest.approx(80 * exact.high)


def test_strata_weight_back_to_the_population() -> None:
    """By hand: 80 · 0.9 = 72, 60 · 0.75 = 45, 160 · 0.1 = 16: 133 calls in 300 turns, 117 of them found."""
    numbers = axis_numbers(papers(), "call")
    assert [(s.reviewed, s.population) for s in numbers.strata] == [(40, 80), (28, 60), (30, 160)]
    assert numbers.precision.value == pytest.approx(117 / 140) and numbers.precision.n == 68
    assert numbers.recall.value == pytest.approx(117 / 133) and numbers.recall.n == 98
    assert numbers.rate.value == pytest.approx(133 / 300)
    assert [s.holds.value for s in numbers.strata] == pytest.approx([72 / 133, 45 / 133, 16 / 133])
    assert numbers.rate.value != pytest.approx(60 / 98)  # what the sample itself would say


def test_the_limits_are_those_of_the_strata_at_their_corners() -> None:
    numbers = axis_numbers(papers(), "call")
    two, three = 1 - 0.05 / 2, 1 - 0.05 / 3
    tight, more = exact_limits(36, 40, two), exact_limits(21, 28, two)
    interval = numbers.precision.interval
    assert interval is not None and interval.method == BOX
    assert interval.low == pytest.approx((80 * tight[0] + 60 * more[0]) / 140)
    assert interval.high == pytest.approx((80 * tight[1] + 60 * more[1]) / 140)
    tight, more, none = exact_limits(36, 40, three), exact_limits(21, 28, three), exact_limits(3, 30, three)
    interval = numbers.recall.interval
    assert interval is not None
    found, missed = 80 * tight[0] + 60 * more[0], 160 * none[1]
    assert interval.low == pytest.approx(found / (found + missed))


def test_a_large_stratum_without_a_miss_leaves_recall_open() -> None:
    cells = [Cell("tight", 50, 20, 20, True), Cell("none", 10_000, 30, 0, False)]
    found = recall(cells)
    assert found.value == 1 and found.interval is not None and found.interval.low < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_the_limits_cover_at_least_95_percent(seed: int) -> None:
    """Samples drawn from a known population: the true recall and precision lie inside the limits."""
    rng = np.random.default_rng(seed)
    sizes, truth = (400, 120, 3000), (0.92, 0.55, 0.004)
    yes = [round(n * p) for n, p in zip(sizes, truth, strict=True)]
    true_recall = (yes[0] + yes[1]) / sum(yes)
    true_precision = (yes[0] + yes[1]) / (sizes[0] + sizes[1])
    inside = {"recall": 0, "precision": 0}
    rounds = 300
    for _ in range(rounds):
        cells = [
            Cell(str(place), n, 40, int(rng.hypergeometric(k, n - k, 40)), place < 2)
            for place, (n, k) in enumerate(zip(sizes, yes, strict=True))
        ]
        for name, function, true in (
            ("recall", recall, true_recall),
            ("precision", precision, true_precision),
        ):
            interval = function(cells).interval
            assert interval is not None
            inside[name] += interval.low <= true <= interval.high
    assert min(inside.values()) / rounds >= 0.95


# --------------------------------------------------------------------------- undefined is None, with a reason


def test_nothing_is_told_while_annotators_are_missing() -> None:
    numbers = axis_numbers(annotation(["tight", "none"], {"a": [YES, NO], "b": []}), "call")
    for estimate in (numbers.precision, numbers.recall, numbers.rate, numbers.agreement[0].kappa):
        assert estimate.value is None and "b" in estimate.reason
    assert numbers.calibrated == ()


def test_nothing_final_is_told_while_disputes_are_open() -> None:
    made = annotation(["tight"] * 4, {"a": [YES, YES, NO, YES], "b": [YES] * 4})
    numbers = axis_numbers(made, "call")
    assert numbers.agreement[0].same.k == 3
    assert numbers.precision.value is None and numbers.precision.reason.startswith("1 disputed")


@pytest.mark.parametrize(
    ("function", "cells", "reason"),
    [
        (precision, [Cell("none", 9, 3, 1, False)], "said yes to no turn"),
        (recall, [Cell("tight", 9, 3, 0, True), Cell("none", 9, 3, 0, False)], "is a yes"),
        (rate, [Cell("tight", 9, 0, 0, True)], "tight was reviewed"),
        (rate, [], "no turns"),
    ],
)
def test_undefined_has_a_reason(function: object, cells: list[Cell], reason: str) -> None:
    found = function(cells)  # type: ignore[operator]
    assert found.value is None and reason in found.reason


def test_a_whole_stratum_has_no_sampling_error() -> None:
    found = precision([Cell("tight", 10, 10, 9, True)])
    assert found.value == pytest.approx(0.9) and found.interval is None and "every turn" in found.reason
    mixed = precision([Cell("tight", 10, 10, 9, True), Cell("malformed", 100, 20, 10, True)])
    low, high = exact_limits(10, 20)  # the only stratum with an error has all of it
    assert mixed.interval is not None
    assert (mixed.interval.low, mixed.interval.high) == pytest.approx(
        ((9 + 100 * low) / 110, (9 + 100 * high) / 110)
    )


def test_a_count_of_a_stratum_that_was_reviewed_in_full_is_known() -> None:
    """Two arms, all texts reviewed: each arm has its own confirmed count, not the common precision's share."""
    truth = [YES, YES, NO, YES]
    made = annotation(["tight"] * 4, {"a": truth, "b": truth}, groups={"m": {"tight": 4}})
    made = decide(made, {n: truth[n] for n in disputed(made)})
    [found] = axis_numbers(made, "call").calibrated
    assert (found.estimate.value, found.estimate.interval, found.turns) == (3, None, 4)


# --------------------------------------------------------------------------- the other questions


def test_well_formed_is_of_all_texts() -> None:
    """No call is no well-formed call; the detector's malformed stratum is a no here."""
    truth = [YES, YES, BROKEN, YES, NO, NO]
    made = annotation(["tight", "tight", "malformed", "malformed", "none", "none"], {"a": truth, "b": truth})
    made = decide(made, {n: truth[n] for n in disputed(made)})
    numbers = axis_numbers(made, "well_formed")
    assert [(s.stratum, s.detector, s.share.value) for s in numbers.strata] == [
        ("tight", "yes", 1.0), ("malformed", "no", 0.5), ("none", "no", 0.0)
    ]  # fmt: skip
    assert numbers.precision.value == 1 and numbers.recall.value == pytest.approx(2 / 3)


def test_tools_are_compared_where_both_see_a_call() -> None:
    oslo, other = (msgspec.structs.replace(YES, tool=tool) for tool in ("offered:get_weather", "other"))
    made = annotation(["tight"] * 4, {"a": [oslo, oslo, NO, other], "b": [oslo, other, oslo, other]})
    [found] = tool_numbers(made).agreement
    assert (found.same.k, found.same.n) == (2, 3)


def test_every_pair_of_labels_has_a_final_answer_once_it_is_decided() -> None:
    for a, b, stratum in itertools.product(
        (YES, BROKEN, NO, UNCLEAR), (YES, BROKEN, NO, UNCLEAR), ("tight", "none")
    ):
        made = annotation([stratum], {"a": [a], "b": [b]})
        made = decide(made, dict.fromkeys(disputed(made), BROKEN))
        for axis in ("call", "well_formed"):
            assert axis_numbers(made, axis).strata[0].share.value in (0.0, 1.0)  # type: ignore[arg-type]
