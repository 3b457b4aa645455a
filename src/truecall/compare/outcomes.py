"""What arms are compared on: one value per task instance, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from truecall.funnel.definitions import DEFINITIONS, sent
from truecall.funnel.rates import by_instance, tally
from truecall.funnel.turns import Episode
from truecall.records import Record

Instance = tuple[str, int]
"""A task instance: item and seed."""

OUTCOMES: Final[dict[str, Callable[[Episode], bool | None]]] = {
    "solved": lambda episode: episode.solved,
    "first_turn_passed": lambda episode: episode.first_turn_passed,
    "rescued": lambda episode: episode.rescued,
    "first_turn_valid": lambda episode: episode.turns[0].valid_surfaced if episode.turns else None,
    "called": lambda episode: _any([t.valid_surfaced for t in episode.turns if sent(t)]),
}
"""Pass/fail outcomes of an episode by name; None: not known."""


def _any(judged: Sequence[bool | None]) -> bool | None:
    return True if True in judged else None if None in judged or not judged else False


class Values(Record, frozen=True):
    """One value between 0 and 1 per instance. ``unknown``: instances whose value nobody can tell."""

    values: dict[Instance, float]
    unknown: frozenset[Instance] = frozenset()
    samples: int = 1  # the most samples that one instance has


def outcome(name: str, episodes: Sequence[Episode]) -> Values:
    """A pass/fail outcome of each instance, samples averaged. KeyError for an unknown name."""
    judge = OUTCOMES[name]
    judged = [(episode, judge(episode)) for episode in episodes]
    unknown = frozenset(episode.instance for episode, passed in judged if passed is None)
    known = [(e, float(passed)) for e, passed in judged if passed is not None and e.instance not in unknown]
    return Values(values=by_instance(known), unknown=unknown, samples=_samples(episodes))


def rate(name: str, episodes: Sequence[Episode], *, unknown_as: bool = False) -> Values:
    """A number of ``funnel`` inside each instance. ``unknown_as`` True: unknown turns count as yes.

    Instances without a turn in the number's population are left out. KeyError for an unknown name.
    """
    definition = next((d for d in DEFINITIONS if d.name == name), None)
    if definition is None:
        raise KeyError(name)
    pairs = []
    for episode in episodes:
        t = tally(episode.turns, definition.judge, definition.counts)
        if t.n:
            pairs.append((episode, (t.yes + (t.unknown if unknown_as else 0)) / t.n))
    return Values(values=by_instance(pairs), samples=_samples(episodes))


def has_unknown(name: str, episodes: Sequence[Episode]) -> bool:
    """Some turn of the number's population is unknown."""
    definition = next(d for d in DEFINITIONS if d.name == name)
    return any(tally(e.turns, definition.judge, definition.counts).unknown for e in episodes)


def by_sample(episodes: Sequence[Episode]) -> dict[int | None, list[Episode]]:
    """The episodes of one arm by sampling seed: given to ``compare`` as arms, they show what sampling moves."""
    samples: dict[int | None, list[Episode]] = {}
    for episode in episodes:
        samples.setdefault(episode.sample, []).append(episode)
    return samples


def _samples(episodes: Sequence[Episode]) -> int:
    counts: dict[Instance, int] = {}
    for episode in episodes:
        counts[episode.instance] = counts.get(episode.instance, 0) + 1
    return max(counts.values(), default=0)
