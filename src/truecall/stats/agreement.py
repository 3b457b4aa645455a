"""Agreement of two raters on the same items."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from truecall.stats.bootstrap import DRAWS, FEWEST, Floats, percentile_limits
from truecall.stats.rates import Estimate, Interval, undefined


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]], *, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """Cohen's kappa (1960) of the labels that two raters gave to each item, with a percentile bootstrap interval.

    Undefined without items, and where chance alone explains full agreement (one label throughout). Draws in
    which it is undefined are left out; no interval where they are more than one in twenty, or where the raters
    never disagree.
    """
    n = len(pairs)
    if n == 0:
        return undefined("no items")
    labels = {label: place for place, label in enumerate(dict.fromkeys(x for pair in pairs for x in pair))}
    table = np.zeros((len(labels), len(labels)))
    for a, b in pairs:
        table[labels[a], labels[b]] += 1
    value = float(_kappa(table[None])[0])
    if np.isnan(value):
        return undefined("both raters gave one and the same label throughout", n)
    if n < FEWEST:
        return Estimate(value=value, n=n, reason=f"no interval from {n} items: it takes {FEWEST}")
    if value == 1:
        return Estimate(
            value=value, n=n, reason="no interval: no disagreement was seen, resampling can't show any"
        )
    counts = np.random.default_rng(seed).multinomial(n, table.ravel() / n, size=draws)
    drawn = _kappa(counts.reshape(draws, *table.shape).astype(np.float64))
    drawn = drawn[~np.isnan(drawn)]
    if len(drawn) < 0.95 * draws:
        return Estimate(value=value, n=n, reason="no interval: too many resamples hold one label only")
    low, high = percentile_limits(drawn)
    interval = Interval(low=low, high=high, method="percentile bootstrap over items", n=n)
    return Estimate(value=value, n=n, interval=interval)


def _kappa(tables: Floats) -> Floats:
    """Of tables (d, k, k), one kappa each; NaN where chance agreement is 1."""
    total = tables.sum(axis=(1, 2))
    agreed = np.trace(tables, axis1=1, axis2=2) / total
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / total**2
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa: Floats = np.where(chance < 1, (agreed - chance) / (1 - chance), np.nan)
    return kappa
