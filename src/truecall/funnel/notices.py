"""What a reader of an arm's numbers must be told: thin data, and one episode that makes the pool."""

from __future__ import annotations

from collections.abc import Sequence

from truecall.funnel.coverage import ENOUGH, PAGE, measured, measured_pooled
from truecall.funnel.rates import Number, Tally
from truecall.funnel.turns import Episode
from truecall.records import Record
from truecall.stats.bootstrap import FEWEST

MOST_OF_POOL = 0.5
"""An episode with a larger share of the turns dominates the pooled rate."""

APART = 0.10
"""Pooled and per-seed rates further apart than this are reported."""


class Notice(Record, frozen=True):
    """One thing to know. ``numbers`` are the rates that it is about, ``episode`` the one that makes it so."""

    id: str
    text: str
    numbers: tuple[str, ...]
    episode: str = ""


def dominance(number: Number, episodes: Sequence[Episode], tallies: Sequence[Tally]) -> list[Notice]:
    """One episode holds most of the turns, or pooled and per seed part by more than 10 points."""
    if number.episodes < 2:
        return []
    place = max(range(len(tallies)), key=lambda i: tallies[i].n)
    largest, name = tallies[place], episodes[place].name
    share = largest.n / number.n
    caution = measured_pooled(number.pooled.interval.n) if number.pooled.interval else ""
    tail = f"; {caution} ({PAGE})" if caution else ""
    found = []
    if share > MOST_OF_POOL:
        found.append(
            Notice(
                id="dominant_episode",
                text=f"{name} holds {largest.n} of {number.n} turns ({share:.0%}): the pooled rate is mostly "
                f"its own{tail}",
                numbers=(number.name,),
                episode=name,
            )
        )
    gap = _gap(number)
    if gap > APART:
        pooled, seed = number.pooled, number.per_seed
        found.append(
            Notice(
                id="pooled_parts_from_per_seed",
                text=f"pooled {_shown(pooled.low, pooled.high)} and per seed {_shown(seed.low, seed.high)} part by "
                f"{100 * gap:.1f} points; the longest episode is {name} with {largest.n} of {number.n} turns",
                numbers=(number.name,),
                episode=name,
            )
        )
    return found


def thinness(number: Number) -> list[Notice]:
    """Too few instances for an interval, or for one that holds what it says."""
    n = number.per_seed.n
    if not n or n >= ENOUGH:
        return []
    if number.per_seed.interval is None:
        text = f"under {FEWEST} task instances there is no interval"
        return [Notice(id="no_interval", text=text, numbers=(number.name,))]
    if "bootstrap" not in number.per_seed.interval.method:
        return []
    text = f"{n} episodes: percentile intervals are too narrow below {ENOUGH}; {measured(n)} ({PAGE})"
    return [Notice(id="narrow_interval", text=text, numbers=(number.name,))]


def merged(warnings: Sequence[Notice]) -> tuple[Notice, ...]:
    """The same words about several numbers are said once."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for w in warnings:
        groups.setdefault((w.id, w.text, w.episode), []).extend(w.numbers)
    return tuple(
        Notice(id=id, text=text, numbers=tuple(names), episode=episode)
        for (id, text, episode), names in groups.items()
    )


def _gap(number: Number) -> float:
    pooled, seed = number.pooled, number.per_seed
    if pooled.low is None or pooled.high is None or seed.low is None or seed.high is None:
        return 0.0
    return max(abs(pooled.low - seed.low), abs(pooled.high - seed.high))


def _shown(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "undefined"
    return f"{100 * low:.1f} %" if low == high else f"{100 * low:.1f} to {100 * high:.1f} %"
