"""Exact tests, corrections and overlap, against scipy, statsmodels and the published table."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests

from truecall.compare import corrected, paired_test_of_counts
from truecall.stats import binomial_test, bonferroni, difference_of_counts, holm, jaccard, mcnemar

RATES = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(1e-12, 1 - 1e-12)  # scipy overflows nearer to 0
PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "data" / "papers" / "paired_tests.csv"


@given(st.integers(0, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), RATES)
@settings(deadline=None)
def test_binomial_agrees_with_scipy(count: tuple[int, int], p: float) -> None:
    k, n = count
    expected = binomtest(k, n, p).pvalue if n else 1.0
    assert binomial_test(k, n, p) == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 200), st.integers(0, 200))
@settings(deadline=None)
def test_mcnemar_agrees_with_statsmodels(gains: int, losses: int) -> None:
    expected = statsmodels_mcnemar([[0, gains], [losses, 0]], exact=True).pvalue if gains + losses else 1.0
    assert mcnemar(gains, losses) == pytest.approx(min(1.0, expected), abs=1e-9)


def test_mcnemar_of_a_million_pairs() -> None:
    assert mcnemar(500_000, 502_000) == pytest.approx(binomtest(500_000, 1_002_000).pvalue, abs=1e-9)


@pytest.mark.parametrize(("k", "n", "p"), [(-1, 3, 0.5), (4, 3, 0.5), (1, 3, 1.5)])
def test_impossible_outcomes_are_errors(k: int, n: int, p: float) -> None:
    with pytest.raises(ValueError, match="no binomial outcome"):
        binomial_test(k, n, p)
    with pytest.raises(ValueError, match="no counts"):
        mcnemar(-1, 2)


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=40))
@settings(deadline=None)
def test_corrections_agree_with_statsmodels(ps: list[float]) -> None:
    assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist(), abs=1e-9)
    assert bonferroni(ps) == pytest.approx(multipletests(ps, method="bonferroni")[1].tolist(), abs=1e-9)


def test_no_tests_no_corrections() -> None:
    assert holm([]) == []
    assert bonferroni([]) == []


@pytest.mark.parametrize(
    ("gains", "losses", "difference", "low", "high"),
    [(0, 3, -0.0055, -0.0179, 0.0072), (1, 4, -0.0055, -0.0206, 0.0101)],
    ids=["T26", "T27"],
)
def test_published_intervals_of_paired_differences(
    gains: int, losses: int, difference: float, low: float, high: float
) -> None:
    found = difference_of_counts(gains, losses, 542)
    assert found.interval is not None
    assert found.value == pytest.approx(difference, abs=5e-5)
    assert found.interval.low == pytest.approx(low, abs=5e-5)
    assert found.interval.high == pytest.approx(high, abs=5e-5)


def test_differences_of_impossible_counts_are_errors() -> None:
    with pytest.raises(ValueError, match="no counts"):
        difference_of_counts(3, 3, 5)
    assert difference_of_counts(0, 0, 0).value is None


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the papers' tables are not beside this checkout")
def test_all_27_published_tests() -> None:
    """The family of the interface-censoring paper: p, Bonferroni's p, and the ten that survive."""
    with PUBLISHED.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 27
    tests = []
    for row in rows:
        n, gains, losses = (int(row[key]) for key in ("n", "gains", "losses"))
        both = (n - gains - losses) // 2
        neither = n - gains - losses - both
        name = row["id"]
        tests.append(
            paired_test_of_counts(
                "before", "after", name, gains=gains, losses=losses, both=both, neither=neither
            )
        )
    done = corrected(tests)
    for row, test in zip(rows, done, strict=True):
        assert (test.n, test.gains, test.losses) == tuple(int(row[k]) for k in ("n", "gains", "losses"))
        assert test.p == pytest.approx(float(row["p"]), rel=1e-9)
        assert test.p_bonferroni == pytest.approx(float(row["bonferroni_p"]), rel=1e-9)
        assert test.p_holm is not None and test.p_bonferroni is not None and test.p is not None
        assert test.p <= test.p_holm <= test.p_bonferroni
        assert test.family == 27
    survivors = {test.outcome for test in done if test.survives}
    assert survivors == {*("T04", "T05", "T06", "T10", "T11", "T13", "T14", "T15", "T17", "T21")}


def test_a_published_row_from_its_counts() -> None:
    """T11: 13 gains and 1 loss of 100 are just below 0.05 after 27 tests; T16 is just above."""
    assert 27 * mcnemar(13, 1) == pytest.approx(0.0494384765625, rel=1e-12)
    assert 27 * mcnemar(27, 8) == pytest.approx(0.05071208789, rel=1e-9)


def test_jaccard() -> None:
    assert jaccard({1, 2, 3}, {2, 3, 4}).value == pytest.approx(0.5)
    assert jaccard({1}, set()).value == 0
    assert jaccard(set(), set()).value is None
    assert jaccard(set(), set()).reason == "both sets are empty"
