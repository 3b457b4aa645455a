"""Bootstrap intervals of means and ratios over units (episodes, task instances, items) drawn with replacement.

A ratio is sum(numerators) / sum(denominators) over the drawn units; a mean is the ratio with denominators 1.
Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapters 13 (percentile) and 14 (BCa).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt

from truecall.stats.paired import difference_of_counts
from truecall.stats.rates import Estimate, Interval, agreeing, undefined

Floats = npt.NDArray[np.float64]
Method = Literal["percentile", "bca"]

DRAWS = 10_000
FEWEST = 3
"""Units below which no interval is given."""

_CELLS = 1_000_000  # drawn cells held at a time
_DEARER = 8  # times that a multinomial's count costs more than an index
_SAME = 1e-12  # rates closer than this differ by rounding alone
_NORMAL = NormalDist()


def resampled(columns: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Column sums over n rows drawn with replacement, ``draws`` times: (n, c) to (draws, c).

    Where few rows are distinct, how often each is drawn is multinomial: the same distribution, drawn faster.
    """
    n = len(columns)
    rows, counts = np.unique(columns, axis=0, return_counts=True)
    few = len(rows) * _DEARER <= n
    step = max(1, _CELLS // (len(rows) if few else n))
    sums = np.empty((draws, columns.shape[1]))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        if few:
            sums[start : start + size] = rng.multinomial(n, counts / n, size=size) @ rows
        else:
            drawn = rng.integers(0, n, size=(size, n))
            for place, column in enumerate(columns.T.copy()):
                sums[start : start + size, place] = column[drawn].sum(axis=1)
    return sums


def percentile_limits(drawn: Floats, level: float = 0.95) -> tuple[float, float]:
    """The middle ``level`` of the drawn statistics."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bca_limits(
    drawn: Floats, estimate: float, jackknife: Floats, level: float = 0.95
) -> tuple[float, float] | None:
    """Limits corrected for bias and skew (Efron 1987); None where the draws lie on one side of the estimate.

    ``jackknife`` holds the statistic with each unit left out in turn.
    """
    below = float(np.mean((drawn < estimate).astype(float) + (drawn <= estimate))) / 2
    if not 0 < below < 1:
        return None
    spread = jackknife.mean() - jackknife
    squares = float(np.sum(spread**2))
    if squares == 0:
        return None
    bias, skew = _NORMAL.inv_cdf(below), float(np.sum(spread**3)) / (6 * squares**1.5)
    quantiles = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = bias + _NORMAL.inv_cdf(tail)
        quantiles.append(_NORMAL.cdf(bias + z / (1 - skew * z)))
    low, high = np.quantile(drawn, quantiles)
    return float(low), float(high)


def ratio(
    numerators: Sequence[float],
    denominators: Sequence[float] | None = None,
    *,
    unit: str = "episodes",
    least: float = 0.0,
    most: float = 1.0,
    draws: int = DRAWS,
    seed: int = 0,
    method: Method = "percentile",
) -> Estimate:
    """The ratio (or mean) with its 95 % interval over units; ``least`` and ``most`` bound each unit's value.

    Under three units there is no interval, only the reason. Where all units agree, the exact binomial
    interval over units stands instead (``stats.agreeing``). Denominators are above 0. Draws are seeded.
    """
    n = len(numerators)
    if n == 0:
        return undefined(f"no {unit}")
    above = np.asarray(numerators, dtype=np.float64)
    below = np.ones(n) if denominators is None else np.asarray(denominators, dtype=np.float64)
    if below.shape != above.shape or not bool(np.all(below > 0)):
        raise ValueError("each numerator needs a denominator above 0")
    value = float(above.sum() / below.sum())
    if n < FEWEST:
        return Estimate(value=value, n=n, reason=f"no interval: {n} of at least {FEWEST} {unit}")
    each = above / below
    if float(each.max() - each.min()) < _SAME:
        same = agreeing(float(each[0]), n, least=least, most=most)
        return Estimate(value=float(each[0]), n=n, interval=same)
    rng = np.random.default_rng(seed)
    if float(below.min()) == float(below.max()):
        drawn = resampled(above[:, None], draws, rng)[:, 0] / (n * below[0])
    else:
        sums = resampled(np.column_stack([above, below]), draws, rng)
        drawn = sums[:, 0] / sums[:, 1]
    limits = percentile_limits(drawn)
    name = "percentile bootstrap"
    if method == "bca":
        left_out = (above.sum() - above) / (below.sum() - below)
        corrected = bca_limits(drawn, value, left_out)
        limits, name = (corrected, "BCa bootstrap") if corrected else (limits, f"{name}, BCa undefined")
    interval = Interval(low=limits[0], high=limits[1], method=f"{name} over {unit}", n=n)
    return Estimate(value=value, n=n, interval=interval)


FEW_DISCORDANT = 10
"""Discordant items below which the exact combination stands (docs/coverage_of_intervals.md)."""


def paired_difference(
    differences: Sequence[float],
    *,
    unit: str = "items",
    draws: int = DRAWS,
    seed: int = 0,
    method: Method = "percentile",
) -> Estimate:
    """The mean of per-item differences between two arms, -1 to 1, its interval from items drawn together.

    Where all are -1, 0 or 1 and fewer than ten are not 0, the exact combination of ``difference_of_counts``.
    """
    gains, losses = differences.count(1), differences.count(-1)
    pass_fail = gains + losses + differences.count(0) == len(differences)
    if len(differences) >= FEWEST and pass_fail and gains + losses < FEW_DISCORDANT:
        return difference_of_counts(gains, losses, len(differences))
    return ratio(differences, unit=unit, least=-1, draws=draws, seed=seed, method=method)
