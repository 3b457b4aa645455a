"""Agreement of raters on the same items."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from truecall.stats.bootstrap import DRAWS, FEWEST, Floats, percentile_limits, resampled
from truecall.stats.rates import Estimate, Interval, undefined


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]], *, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """Cohen's kappa (1960) of the labels that two raters gave to each item, with a percentile bootstrap interval.

    Undefined without items, and where chance alone explains full agreement (one label throughout). Draws in
    which it is undefined are left out; no interval where they are more than one in twenty, where the raters
    never disagree, or where all draws give the same value.
    """
    n = len(pairs)
    if n == 0:
        return undefined("no items")
    labels = _numbered(pairs)
    table = np.zeros((len(labels), len(labels)))
    for a, b in pairs:
        table[labels[a], labels[b]] += 1
    value = float(_cohen(table[None])[0])

    if np.isnan(value):
        return undefined("both raters gave one and the same label throughout", n)
    counts = np.random.default_rng(seed).multinomial(n, table.ravel() / n, size=draws)
    drawn = _cohen(counts.reshape(draws, *table.shape).astype(np.float64))
    return _without(value, n) or _with_interval(value, n, drawn)


def fleiss_kappa(ratings: Sequence[Sequence[Hashable]], *, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """Fleiss' kappa (1971) of the labels that the same number of raters gave to each item, two or more.

    Undefined, and without an interval, where `cohen_kappa` is. Raises ValueError for uneven ratings.
    """
    n = len(ratings)
    if n == 0:
        return undefined("no items")
    raters = len(ratings[0])
    if raters < 2 or any(len(row) != raters for row in ratings):
        raise ValueError("each item needs the same number of ratings, two or more")
    labels = _numbered(ratings)
    counts = np.zeros((n, len(labels)))
    for place, row in enumerate(ratings):
        for given in row:
            counts[place, labels[given]] += 1
    agreed = ((counts**2).sum(axis=1) - raters) / (raters * (raters - 1))
    columns = np.column_stack([agreed, counts / raters])
    value = float(_fleiss(columns.mean(axis=0)[None])[0])
    if np.isnan(value):
        return undefined("all raters gave one and the same label throughout", n)
    drawn = _fleiss(resampled(columns, draws, np.random.default_rng(seed)) / n)
    return _without(value, n) or _with_interval(value, n, drawn)


def _numbered(rows: Sequence[Sequence[Hashable]]) -> dict[Hashable, int]:
    return {label: place for place, label in enumerate(dict.fromkeys(x for row in rows for x in row))}


def _without(value: float, n: int) -> Estimate | None:
    """The estimate where there can be no interval."""
    if n < FEWEST:
        return Estimate(value=value, n=n, reason=f"no interval: {n} of at least {FEWEST} items")
    if value == 1:
        return Estimate(
            value=value, n=n, reason="no interval: no disagreement was seen, resampling can't show any"
        )
    return None


def _with_interval(value: float, n: int, drawn: Floats) -> Estimate:
    kept = drawn[~np.isnan(drawn)]
    if len(kept) < 0.95 * len(drawn):
        return Estimate(value=value, n=n, reason="no interval: too many resamples hold one label only")
    if np.ptp(kept) < 1e-12:  # as where one rater says yes and the other no throughout
        return Estimate(value=value, n=n, reason="no interval: all resamples give the same value")
    low, high = percentile_limits(kept)
    interval = Interval(low=low, high=high, method="percentile bootstrap over items", n=n)
    return Estimate(value=value, n=n, interval=interval)


def _cohen(tables: Floats) -> Floats:
    """Of tables (d, k, k), one kappa each; NaN where chance agreement is 1."""
    total = tables.sum(axis=(1, 2))
    agreed = np.trace(tables, axis1=1, axis2=2) / total
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / total**2
    return _beyond(agreed, chance)


def _fleiss(means: Floats) -> Floats:
    """Of rows (d, 1 + k), the mean agreement inside items and each label's share; NaN where chance is 1."""
    return _beyond(means[:, 0], (means[:, 1:] ** 2).sum(axis=1))


def _beyond(agreed: Floats, chance: Floats) -> Floats:
    """Agreement beyond chance, as a share of what was possible."""
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa: Floats = np.where(chance < 1 - 1e-12, (agreed - chance) / (1 - chance), np.nan)
    return kappa
