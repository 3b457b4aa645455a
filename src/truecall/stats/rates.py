"""Intervals for rates. Every interval carries its method and n."""

from __future__ import annotations

from math import sqrt

from truecall.records import Record

_Z95 = 1.959963984540054  # the normal distribution's 97.5 % point


class Interval(Record, frozen=True):
    """A 95 % interval of a rate. ``method`` and ``n`` say how it was made."""

    low: float
    high: float
    method: str
    n: int


class Estimate(Record, frozen=True):
    """A number from ``n`` trials with its interval, or the reason why one of them is missing."""

    value: float | None
    n: int
    interval: Interval | None = None
    reason: str = ""


def undefined(reason: str, n: int = 0) -> Estimate:
    """No number, and why."""
    return Estimate(value=None, n=n, reason=reason)


def _checked(k: int, n: int) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no count")


def wilson(k: int, n: int) -> Interval | None:
    """Wilson's score interval of ``k`` in ``n`` (Wilson 1927); None without trials.

    Raises ValueError unless 0 <= k <= n.
    """
    _checked(k, n)
    if n == 0:
        return None
    p, z2 = k / n, _Z95 * _Z95
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z95 * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    low = 0.0 if k == 0 else max(0.0, centre - half)
    high = 1.0 if k == n else min(1.0, centre + half)
    return Interval(low=low, high=high, method="wilson", n=n)


def exact_limits(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """The limits of Clopper and Pearson (1934): ``level`` between 0 and 1, two-sided, ``n`` at least 1.

    Raises ValueError unless 0 <= k <= n and n >= 1.
    """
    _checked(k, n)
    if n == 0:
        raise ValueError("no trials, no limits")
    from scipy.special import betaincinv  # slow to load

    tail = (1 - level) / 2
    low = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - tail))
    return low, high


def clopper_pearson(k: int, n: int) -> Interval | None:
    """The exact binomial interval of ``k`` in ``n``; None without trials.

    Raises ValueError unless 0 <= k <= n.
    """
    if n == 0:
        _checked(k, n)
        return None
    low, high = exact_limits(k, n)
    return Interval(low=low, high=high, method="clopper-pearson", n=n)


def agreeing(value: float, n: int, *, least: float = 0.0, most: float = 1.0) -> Interval:
    """The interval of a mean where all ``n`` units gave the same ``value`` between ``least`` and ``most``.

    Resampling can't see any spread there. The exact binomial interval of 0 in ``n`` bounds the share of units
    that would differ, and the mean lies between ``value`` and the case in which all of those lie at one end.
    For values 0 and 1 of a rate this is Clopper and Pearson's interval of 0 or n in n. ``n`` at least 1.
    """
    differ = exact_limits(0, n)[1]
    return Interval(
        low=value - differ * (value - least),
        high=value + differ * (most - value),
        method="exact binomial, all agree",
        n=n,
    )


def calibrate(count: int, confirmed: int, reviewed: int) -> Estimate:
    """A classifier's ``count`` times its precision, ``confirmed`` of ``reviewed`` items in an adjudicated sample.

    The interval is Clopper and Pearson's of the precision, times ``count``: it holds the error of the review,
    not that of drawing the items. (80 with 36 of 40 gives 72.) Raises ValueError for impossible counts.
    """
    _checked(confirmed, reviewed)
    if count < 0:
        raise ValueError(f"{count} is no count")
    exact = clopper_pearson(confirmed, reviewed)
    if exact is None:
        return undefined("no item was reviewed")
    interval = Interval(
        low=count * exact.low, high=count * exact.high, method="clopper-pearson of the precision", n=reviewed
    )
    return Estimate(value=count * confirmed / reviewed, n=reviewed, interval=interval)
