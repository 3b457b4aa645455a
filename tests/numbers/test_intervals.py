"""Intervals and estimates, against scipy, statsmodels and published figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap as scipy_bootstrap
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from truecall.stats import agreeing, calibrate, clopper_pearson, exact_limits, wilson
from truecall.stats.agreement import cohen_kappa
from truecall.stats.bootstrap import bca_limits, paired_difference, percentile_limits, ratio, resampled

COUNTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS)
@settings(deadline=None)
def test_wilson_and_clopper_pearson_agree_with_statsmodels(count: tuple[int, int]) -> None:
    k, n = count
    for ours, method in ((wilson(k, n), "wilson"), (clopper_pearson(k, n), "beta")):
        low, high = proportion_confint(k, n, method=method)
        assert ours is not None
        assert ours.low == pytest.approx(low, abs=1e-9)
        assert ours.high == pytest.approx(high, abs=1e-9)
        assert ours.n == n


@given(COUNTS, st.floats(0.5, 0.999))
@settings(deadline=None)
def test_exact_limits_at_other_levels(count: tuple[int, int], level: float) -> None:
    k, n = count
    assert exact_limits(k, n, level) == pytest.approx(
        proportion_confint(k, n, alpha=1 - level, method="beta"), abs=1e-9
    )


def test_without_trials_there_is_no_interval() -> None:
    assert wilson(0, 0) is None
    assert clopper_pearson(0, 0) is None


@pytest.mark.parametrize("interval", [wilson, clopper_pearson, exact_limits])
@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (0, -1)])
def test_impossible_counts_are_errors(interval: object, k: int, n: int) -> None:
    with pytest.raises(ValueError, match="no count"):
        interval(k, n)  # type: ignore[operator]


def test_calibration_of_the_published_count() -> None:
    found = calibrate(80, 36, 40)
    assert found.value == pytest.approx(72)
    exact = clopper_pearson(36, 40)
    assert found.interval is not None and exact is not None
    assert found.interval.low == pytest.approx(80 * exact.low)
    assert found.interval.high == pytest.approx(80 * exact.high)


def test_calibration_without_a_review_is_undefined() -> None:
    found = calibrate(80, 0, 0)
    assert found.value is None
    assert found.reason == "no item was reviewed"


@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("n", [1, 3, 8, 20])
def test_agreement_at_the_ends_is_the_exact_interval(k: int, n: int) -> None:
    ours, exact = agreeing(float(k), n), clopper_pearson(k * n, n)
    assert exact is not None
    assert (ours.low, ours.high) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_agreement_between_the_ends_has_width() -> None:
    found = agreeing(0.5, 8)
    assert found.low < 0.5 < found.high
    assert found.high - 0.5 == pytest.approx(0.5 - found.low)


# ------------------------------------------------------------------ bootstrap


@pytest.mark.parametrize("values", [[0.1, 0.4, 0.4, 0.9, 1.0], [0, 0, 0, 1, 0, 0, 0.5, 0, 0.2, 0, 0, 1]])
@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_limits_agree_with_scipy_on_the_same_draws(values: list[float], method: str) -> None:
    data = np.array(values)
    theirs = scipy_bootstrap((data,), np.mean, n_resamples=4000, method=method, rng=np.random.default_rng(5))
    drawn, n = theirs.bootstrap_distribution, len(data)
    if method == "BCa":
        ours = bca_limits(drawn, float(data.mean()), (data.sum() - data) / (n - 1))
    else:
        ours = percentile_limits(drawn)
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=1e-9)


@pytest.mark.parametrize("values", [[0.0] * 30 + [1.0] * 10, np.linspace(0, 1, 40).tolist()])
def test_both_ways_of_drawing_have_the_resampling_mean_and_spread(values: list[float]) -> None:
    """The first list has two distinct rows (multinomial), the second forty (indices)."""
    column = np.array(values)[:, None]
    sums = resampled(column, 20_000, np.random.default_rng(1))[:, 0]
    n, spread = len(values), float(np.std(values)) * math.sqrt(len(values))
    assert sums.mean() == pytest.approx(n * np.mean(values), abs=4 * spread / math.sqrt(20_000))
    assert sums.std() == pytest.approx(spread, rel=0.03)


def test_the_ratio_draws_numerator_and_denominator_together() -> None:
    """Each unit's rate is 1/2 or near it, so the ratio hardly moves though sizes differ a hundredfold."""
    found = ratio([1, 50, 2, 100, 1, 3], [2, 100, 4, 200, 2, 7])
    assert found.interval is not None
    assert found.value == pytest.approx(157 / 315)
    assert found.interval.high - found.interval.low < 0.08


def test_draws_are_seeded() -> None:
    values = [0.0, 0.2, 1.0, 0.4, 0.9]
    assert ratio(values, seed=3) == ratio(values, seed=3)
    assert ratio(values, seed=3, draws=200) != ratio(values, seed=4, draws=200)


@pytest.mark.parametrize("n", [1, 2])
def test_under_three_units_there_is_no_interval(n: int) -> None:
    found = ratio([0.5, 1.0][:n])
    assert found.value is not None
    assert found.interval is None
    assert "of at least 3" in found.reason


def test_no_units_no_number() -> None:
    assert ratio([]).value is None
    assert ratio([]).reason == "no episodes"


def test_units_that_agree_but_for_rounding_get_the_exact_interval() -> None:
    found = ratio([0.3, 0.1 + 0.2, 0.3, 0.3])
    assert found.interval is not None
    assert found.interval.method.startswith("exact binomial")
    assert found.interval.high - found.interval.low > 0.3


def test_a_denominator_of_zero_is_an_error() -> None:
    with pytest.raises(ValueError, match="denominator"):
        ratio([1, 0, 2], [1, 0, 3])


def test_bca_on_request() -> None:
    values = [0.0] * 17 + [0.5, 1.0, 1.0]
    plain, corrected = ratio(values), ratio(values, method="bca")
    assert plain.interval is not None and corrected.interval is not None
    assert corrected.interval.method == "BCa bootstrap over episodes"
    assert corrected.interval.high > plain.interval.high  # the skew is to the right


def test_few_discordant_items_take_the_exact_combination() -> None:
    few = paired_difference([1.0] * 2 + [-1.0] * 1 + [0.0] * 97)
    many = paired_difference([1.0] * 20 + [-1.0] * 5 + [0.0] * 75)
    rates = paired_difference([0.5, 0.25, 0.0, -0.5])
    assert few.interval is not None and many.interval is not None and rates.interval is not None
    assert few.interval.method == "clopper-pearson on gains and losses"
    assert "bootstrap" in many.interval.method
    assert "bootstrap" in rates.interval.method


# ------------------------------------------------------------------ kappa


@pytest.mark.parametrize("table", [[[20, 5], [3, 12]], [[30, 2, 1], [4, 25, 3], [0, 1, 9]]])
def test_kappa_agrees_with_statsmodels(table: list[list[int]]) -> None:
    pairs = [(a, b) for a, row in enumerate(table) for b, k in enumerate(row) for _ in range(k)]
    found = cohen_kappa(pairs, draws=500)
    assert found.value == pytest.approx(cohens_kappa(np.array(table)).kappa, abs=1e-9)
    assert found.interval is not None
    assert found.interval.low <= found.value <= found.interval.high


def test_full_agreement_has_a_kappa_and_no_interval() -> None:
    found = cohen_kappa([("call", "call")] * 8 + [("none", "none")] * 5)
    assert found.value == 1
    assert found.interval is None
    assert "no disagreement" in found.reason


def test_raters_who_always_part_have_a_kappa_and_no_interval() -> None:
    found = cohen_kappa([("call", "none")] * 9)
    assert found.value == 0
    assert found.interval is None
    assert "all resamples" in found.reason


def test_kappa_of_one_label_is_undefined() -> None:
    found = cohen_kappa([("call", "call")] * 10)
    assert found.value is None
    assert "one and the same label" in found.reason


def test_kappa_without_items_is_undefined() -> None:
    assert cohen_kappa([]).value is None
