"""How often the per-seed intervals hold the true rate, as measured by scripts/interval_coverage.py."""

from __future__ import annotations

from typing import Final

from truecall.stats import Interval

PAGE: Final = "docs/coverage_of_intervals.md"

ENOUGH: Final = 20
"""Episodes below which a percentile interval is always warned about."""

SHAPES: Final = ("even", "skewed", "0/1 at 50 %", "0/1 at 10 %", "one in eight loops")
"""How the rates of the episodes are spread; the documentation says what each is."""

MEASURED: Final[dict[int, tuple[float, ...]]] = {
    4: (81.2, 72.5, 100.0, 99.6, 98.2),
    6: (87.8, 80.9, 96.9, 98.4, 97.2),
    8: (89.8, 83.4, 93.0, 99.5, 86.3),
    10: (91.8, 86.1, 97.9, 99.8, 91.0),
    15: (93.5, 88.5, 92.3, 98.7, 94.5),
    20: (93.6, 90.6, 95.9, 99.8, 94.3),
    30: (93.3, 92.2, 95.7, 99.8, 93.8),
    50: (94.0, 94.0, 96.7, 96.3, 92.8),
    100: (94.7, 94.6, 96.5, 97.2, 93.9),
}
"""Per cent of percentile intervals that held the truth, by number of episodes and shape."""

POOLED: Final = {4: 58.6, 6: 57.6, 8: 70.0, 10: 73.2, 15: 83.8, 20: 87.8, 30: 90.3, 50: 92.5, 100: 93.8}
"""The same of pooled rates, where one episode in eight loops."""

FLOOR: Final = 90.0
"""From ``ENOUGH`` episodes on, every shape was held at least this often."""


def caution(interval: Interval | None, unit: str = "items") -> str:
    """What a reader of a bootstrap interval over few units must be told; empty where there is nothing."""
    if interval is None or "bootstrap" not in interval.method or interval.n >= ENOUGH:
        return ""
    return f"{interval.n} {unit}: bootstrap intervals are too narrow below {ENOUGH} ({PAGE})"


def measured(n: int) -> str:
    """What was measured at the nearest smaller number of episodes."""
    size = _measured_size(n)
    row = sorted(zip(MEASURED[size], SHAPES, strict=True))
    (worst, where), (best, _) = row[0], row[-1]
    return f"with {size} they held the truth in {worst:.0f} % ({where}) to {best:.0f} % of trials"


def measured_pooled(n: int) -> str:
    """The same for the pooled rate of looping episodes; empty where it is held often enough."""
    size = _measured_size(n)
    if POOLED[size] >= FLOOR:
        return ""
    return f"with {size} episodes of which some loop, pooled intervals held the truth in {POOLED[size]:.0f} % of trials"


def _measured_size(n: int) -> int:
    return max((size for size in MEASURED if size <= n), default=min(MEASURED))
