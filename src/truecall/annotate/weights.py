"""Shares of a stratified sample weighted back to the population: a stratum counts with its size N, not its n."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from truecall.stats import Estimate, Interval, exact_limits, undefined

BOX: Final = "Clopper-Pearson limits of the strata, Bonferroni, combined"
EVERY_TURN: Final = "no interval: every turn was reviewed"


class Cell(NamedTuple):
    """A stratum in the review: its size in the population, how many were reviewed, how many said yes."""

    name: str
    size: int
    reviewed: int
    confirmed: int
    positive: bool

    @property
    def known(self) -> bool:
        """Every turn of it was reviewed: no sampling error."""
        return self.reviewed == self.size


def precision(cells: Sequence[Cell]) -> Estimate:
    """Of the turns to which the detector says yes, the share that are: sum N p / sum N over those strata."""
    positive = [cell for cell in cells if cell.positive]
    if not positive:
        return undefined("the detector said yes to no turn")
    return _weighted(positive, lambda yes, no: yes / sum(cell.size for cell in positive))


def recall(cells: Sequence[Cell]) -> Estimate:
    """Of the turns that are a yes, the share to which the detector says yes."""
    return _weighted(cells, lambda yes, no: yes / (yes + no) if yes + no else None)


def rate(cells: Sequence[Cell]) -> Estimate:
    """The share of the strata's turns that are a yes: sum N p / sum N."""
    return _weighted(cells, lambda yes, no: (yes + no) / sum(cell.size for cell in cells), falls=False)


Function = Callable[[float, float], float | None]


def _weighted(cells: Sequence[Cell], function: Function, *, falls: bool = True) -> Estimate:
    """``function`` of the expected yeses in strata where the detector says yes, and where it says no.

    It rises with the first, and falls (or rises) with the second: its limits are those at the corners of the box
    that the strata's simultaneous limits make. Conservative: 95 % at least.
    """
    n = sum(cell.reviewed for cell in cells)
    empty = [cell.name for cell in cells if not cell.reviewed]
    if not cells or empty:
        return undefined(f"no text of the stratum {', '.join(empty)} was reviewed" if empty else "no turns")
    unsure = sum(not cell.known for cell in cells)

    def corner(positive: int, negative: int) -> float | None:
        def total(side: bool, which: int) -> float:
            return sum(c.size * _limits(c, unsure)[which] for c in cells if c.positive is side)

        return function(total(True, positive), total(False, negative))

    value = corner(1, 1)
    if value is None:
        return undefined("no reviewed text is a yes", n)
    if not unsure:
        return Estimate(value=value, n=n, reason=EVERY_TURN)
    low, high = corner(0, 2 if falls else 0), corner(2, 0 if falls else 2)
    interval = Interval(low=low or 0.0, high=1.0 if high is None else min(high, 1.0), method=BOX, n=n)
    return Estimate(value=value, n=n, interval=interval)


def _limits(cell: Cell, unsure: int) -> tuple[float, float, float]:
    """The lower limit, the share and the upper limit of one stratum, where ``unsure`` strata share the error."""
    share = cell.confirmed / cell.reviewed
    if cell.known:
        return share, share, share
    low, high = exact_limits(cell.confirmed, cell.reviewed, 1 - 0.05 / unsure)
    return low, share, high
