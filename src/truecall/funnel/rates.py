"""One rate over turns, pooled and per seed, with its bounds where something is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from truecall.funnel.turns import Episode, Turn
from truecall.records import Record
from truecall.stats import Estimate, Interval
from truecall.stats import bootstrap as boot

Judged = bool | None
"""Of one turn: yes, no, or unknown."""


class Settings(Record, frozen=True):
    """How rates are taken. ``population``: all eligible turns, or those that the task expects to call."""

    population: Literal["eligible", "expected"] = "eligible"
    draws: int = boot.DRAWS
    seed: int = 0
    method: boot.Method = "percentile"


class Tally(Record, frozen=True):
    """Turns of one episode: ``yes`` and ``unknown`` of ``n``."""

    yes: int
    unknown: int
    n: int


class Rate(Record, frozen=True):
    """A rate with unknown counted as no (``low``) and as yes (``high``); None without a population.

    ``n`` counts turns (pooled) or task instances (per seed). ``interval`` covers both bounds: from the lower
    limit of the one to the upper limit of the other. ``among_known`` leaves unknown turns out.
    """

    low: float | None
    high: float | None
    n: int
    interval: Interval | None = None
    among_known: float | None = None
    reason: str = ""  # why there is no rate, or no interval

    @property
    def point(self) -> float | None:
        """The rate, only where nothing is unknown."""
        return self.low if self.low == self.high else None

    @property
    def unknown(self) -> float | None:
        """The share that is unknown."""
        return None if self.low is None or self.high is None else self.high - self.low


class Number(Record, frozen=True):
    """A rate of one arm in both averages. ``yes``, ``unknown`` and ``n`` count turns.

    Per seed: the mean over task instances of the rate inside the episode, samples of an instance averaged
    first. ``episodes`` had a turn in the population; ``left_out`` had none.
    """

    name: str
    yes: int
    unknown: int
    n: int
    episodes: int
    left_out: int
    pooled: Rate
    per_seed: Rate


def tally(turns: Iterable[Turn], judge: Callable[[Turn], Judged], counts: Callable[[Turn], bool]) -> Tally:
    """Counts the turns of one episode that are in the population ``counts``."""
    yes = unknown = n = 0
    for turn in turns:
        if counts(turn):
            verdict = judge(turn)
            yes += verdict is True
            unknown += verdict is None
            n += 1
    return Tally(yes=yes, unknown=unknown, n=n)


def number(
    name: str, episodes: Sequence[Episode], tallies: Sequence[Tally], settings: Settings, empty: str
) -> Number:
    """The rate in both averages. ``tallies`` belong to ``episodes``; ``empty`` says why there may be none."""
    held = [(e, t) for e, t in zip(episodes, tallies, strict=True) if t.n]
    return Number(
        name=name,
        yes=sum(t.yes for _, t in held),
        unknown=sum(t.unknown for _, t in held),
        n=sum(t.n for _, t in held),
        episodes=len(held),
        left_out=len(episodes) - len(held),
        pooled=_pooled(held, settings, empty),
        per_seed=_per_seed(held, settings, empty),
    )


def by_instance(pairs: Iterable[tuple[Episode, float]]) -> dict[tuple[str, int], float]:
    """The mean of each task instance over its samples, in order of first appearance."""
    values: dict[tuple[str, int], list[float]] = {}
    for episode, value in pairs:
        values.setdefault(episode.instance, []).append(value)
    return {instance: sum(found) / len(found) for instance, found in values.items()}


def _per_seed(held: Sequence[tuple[Episode, Tally]], settings: Settings, empty: str) -> Rate:
    lows = by_instance((e, t.yes / t.n) for e, t in held)
    highs = by_instance((e, (t.yes + t.unknown) / t.n) for e, t in held)
    known = by_instance((e, t.yes / (t.n - t.unknown)) for e, t in held if t.unknown < t.n)
    low = _estimate(list(lows.values()), None, settings)
    high = low if lows == highs else _estimate(list(highs.values()), None, settings)
    among = sum(known.values()) / len(known) if known else None
    return _rate(low, high, len(lows), among, empty)


def _pooled(held: Sequence[tuple[Episode, Tally]], settings: Settings, empty: str) -> Rate:
    """Turns are not independent: whole instances are drawn, each with all of its turns."""
    sums: dict[tuple[str, int], list[int]] = {}
    for episode, t in held:
        one = sums.setdefault(episode.instance, [0, 0, 0])
        one[0], one[1], one[2] = one[0] + t.yes, one[1] + t.unknown, one[2] + t.n
    sizes = [n for _, _, n in sums.values()]
    low = _estimate([yes for yes, _, _ in sums.values()], sizes, settings)
    unknown = sum(unknown for _, unknown, _ in sums.values())
    high = low if not unknown else _estimate([y + u for y, u, _ in sums.values()], sizes, settings)
    known = sum(sizes) - unknown
    among = sum(yes for yes, _, _ in sums.values()) / known if known else None
    return _rate(low, high, sum(sizes), among, empty)


def _estimate(above: Sequence[float], below: Sequence[float] | None, settings: Settings) -> Estimate:
    return boot.ratio(above, below, draws=settings.draws, seed=settings.seed, method=settings.method)


def _rate(low: Estimate, high: Estimate, n: int, among_known: float | None, empty: str) -> Rate:
    if low.value is None:
        return Rate(low=None, high=None, n=0, reason=empty)
    interval = low.interval
    if low is not high and low.interval is not None and high.interval is not None:
        methods = dict.fromkeys((low.interval.method, high.interval.method))
        interval = Interval(
            low=low.interval.low,
            high=high.interval.high,
            method=f"bounds: {' and '.join(methods)}",
            n=low.interval.n,
        )
    return Rate(
        low=low.value, high=high.value, n=n, interval=interval, among_known=among_known, reason=low.reason
    )
