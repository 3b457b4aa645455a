"""Exact tests on paired outcomes, corrections for many tests, overlap of sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from math import exp, inf, lgamma, log, log1p
from typing import NamedTuple

from truecall.stats.rates import Estimate, Interval, exact_limits, undefined

_NEGLIGIBLE = 1e-20  # a term this small beside the sum changes no digit of it
_TIES = 1 + 1e-7  # probabilities this close count as equal (as in R and scipy)


def binomial_test(k: int, n: int, p: float = 0.5) -> float:
    """The exact two-sided p-value of ``k`` successes in ``n`` trials under rate ``p``.

    It sums all outcomes that are no more likely than ``k`` (the method of R's binom.test). Sums stop where
    terms no longer count, so the work grows with the square root of ``n``. No trials give 1.

    Raises ValueError unless 0 <= k <= n and 0 <= p <= 1.
    """
    if not (0 <= k <= n and 0 <= p <= 1):
        raise ValueError(f"{k} of {n} at {p} is no binomial outcome")
    if p in (0.0, 1.0):
        return 1.0 if k == n * p else 0.0
    if k == n * p:
        return 1.0
    rates = _Rates(p / (1 - p), log(p), log1p(-p))
    if k > n * p:  # so that k lies in the lower tail
        k, p, rates = n - k, 1 - p, _Rates((1 - p) / p, rates.log_no, rates.log_yes)
    bound = _log_pmf(k, n, rates) + log(_TIES)
    mode = min(n, int((n + 1) * p))
    if _log_pmf(mode, n, rates) <= bound:  # nothing is more likely than k
        return 1.0
    upper = _first(mode, n, lambda i: _log_pmf(i, n, rates) <= bound)
    above = _tail(upper, n, rates, down=False) if upper <= n else 0.0
    return min(1.0, _tail(k, n, rates, down=True) + above)


class _Rates(NamedTuple):
    """A rate as odds and logarithms: 1 - p would lose a small p."""

    odds: float
    log_yes: float
    log_no: float


def _log_pmf(k: int, n: int, rates: _Rates) -> float:
    choose = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return choose + k * rates.log_yes + (n - k) * rates.log_no


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first number in low..high for which ``holds`` (from there on it always does); high + 1 if none."""
    high += 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _tail(k: int, n: int, rates: _Rates, *, down: bool) -> float:
    """P(X <= k) or P(X >= k), as a sum of terms that fall off from ``k``."""
    total = term = 1.0
    i = k
    while (i > 0 if down else i < n) and term > total * _NEGLIGIBLE:
        term *= i / ((n - i + 1) * rates.odds) if down else (n - i) * rates.odds / (i + 1)
        i += -1 if down else 1
        total += term
    return exp(_log_pmf(k, n, rates) + log(total))


def mcnemar(gains: int, losses: int) -> float:
    """The exact two-sided p-value of McNemar's test on discordant pairs (McNemar 1947); 1 where there are none.

    Raises ValueError for negative counts.
    """
    if gains < 0 or losses < 0:
        raise ValueError(f"{gains} gains and {losses} losses are no counts")
    return binomial_test(min(gains, losses), gains + losses)


def difference_of_counts(gains: int, losses: int, n: int) -> Estimate:
    """The paired difference (gains - losses) / n of two pass rates over ``n`` items.

    The interval is the Bonferroni combination of two exact 97.5 % intervals, on gains and on losses: it holds
    at least 95 %, also where few items differ. Raises ValueError for impossible counts.
    """
    if min(gains, losses) < 0 or gains + losses > n:
        raise ValueError(f"{gains} gains and {losses} losses of {n} are no counts")
    if n == 0:
        return undefined("no paired items")
    gain, loss = exact_limits(gains, n, 0.975), exact_limits(losses, n, 0.975)
    interval = Interval(
        low=gain[0] - loss[1], high=gain[1] - loss[0], method="clopper-pearson on gains and losses", n=n
    )
    return Estimate(value=(gains - losses) / n, n=n, interval=interval)


def bonferroni(ps: Sequence[float]) -> list[float]:
    """Each p-value times the number of tests, at most 1."""
    return [min(1.0, p * len(ps)) for p in ps]


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values (Holm 1979), in the order given."""
    adjusted = [0.0] * len(ps)
    highest = -inf
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, ps[place] * (len(ps) - rank)))
        adjusted[place] = highest
    return adjusted


def jaccard(a: Set[object], b: Set[object]) -> Estimate:
    """The overlap of two sets: shared members over all members. Undefined where both are empty."""
    union = len(a | b)
    if not union:
        return undefined("both sets are empty")
    return Estimate(value=len(a & b) / union, n=union)
