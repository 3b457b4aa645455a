"""All numbers of one arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from truecall.funnel import notices
from truecall.funnel.definitions import (
    DEFINITIONS,
    STEPS,
    VARIANTS,
    Definition,
    eligible,
    final_answer,
    non_response,
    reached,
    sent,
)
from truecall.funnel.rates import Number, Settings, Tally, number, tally
from truecall.funnel.turns import Episode, Turn
from truecall.records import Count, Emission, Record

POSITIONS = (*((i, i) for i in range(1, 10)), (10, 19), (20, 49), (50, 99), (100, None))
"""Turn positions in an episode, first and last; the last group is open."""


class Step(Record, frozen=True):
    """One step of the funnel: ``k`` of ``n`` reached it, ``unknown`` may have."""

    name: str
    k: int
    unknown: int
    n: int
    unit: str = "turns"


class Position(Record, frozen=True):
    """Turns at positions ``first`` to ``last`` (counted from 1; None: open): counts, not rates.

    Late positions hold only the episodes that got there; their rates are of those.
    """

    first: int
    last: int | None
    episodes: int
    steps: tuple[Step, ...]
    lost: Step


class ArmNumbers(Record, frozen=True):
    """The numbers of one arm. ``non_response`` and ``emissions`` count turns; ``n`` of each is all eligible turns.

    ``request_errors`` counts failed requests before retries, ``truncated`` produced turns whose budget ended
    before any call (they count as no call), ``forced`` turns kept out of emitted fidelity, ``final_answers``
    produced turns without a call where nothing says whether a call was due. ``called_emitted`` and
    ``called_surfaced``: share of episodes with at least one valid call. ``first_passes`` and ``rescues`` count
    episodes; ``solved`` is undefined where any episode was not judged.
    """

    arm: str
    settings: Settings
    episodes: int
    instances: int
    turns: int
    numbers: tuple[Number, ...]
    variants: tuple[Number, ...]
    non_response: dict[str, Count]
    emissions: dict[str, Count]
    causes: dict[str, Count]
    request_errors: int
    truncated: int
    forced: int
    final_answers: int
    steps: tuple[Step, ...]
    rendered: Step
    positions: tuple[Position, ...]
    called_emitted: Number
    called_surfaced: Number
    solved: Number
    first_passes: Number
    rescues: Number
    ended: dict[str, int]
    warnings: tuple[notices.Notice, ...]

    def __getitem__(self, name: str) -> Number:
        """The number (or variant) of this name; KeyError where there is none."""
        found = next((n for n in (*self.numbers, *self.variants) if n.name == name), None)
        if found is None:
            raise KeyError(name)
        return found


def measure(episodes: Sequence[Episode], settings: Settings | None = None) -> ArmNumbers:
    """The numbers of one arm, from all of its episodes. The work grows with the number of turns.

    Raises ValueError where the episodes belong to several arms, or to none.
    """
    settings = settings or Settings()
    arms = {episode.arm for episode in episodes}
    if len(arms) != 1:
        raise ValueError(f"numbers belong to one arm, not to {len(arms)}")
    held = [[t for t in e.turns if _in_population(t, settings)] for e in episodes]
    turns = list(chain.from_iterable(held))
    taken = [_take(d, episodes, held, settings) for d in DEFINITIONS]
    told = [w for n, tallies in taken for w in notices.dominance(n, episodes, tallies)]
    told += [w for n, _ in taken for w in notices.thinness(n)]
    offered = sum(map(eligible, turns))
    return ArmNumbers(
        arm=arms.pop(),
        settings=settings,
        episodes=len(episodes),
        instances=len({episode.instance for episode in episodes}),
        turns=len(turns),
        numbers=tuple(n for n, _ in taken),
        variants=tuple(_take(d, episodes, held, settings)[0] for d in VARIANTS),
        non_response=_census(filter(None, map(non_response, turns)), offered),
        emissions=_census((str(t.emission) for t in turns if t.eligible), offered),
        causes=_census((str(t.cause) for t in turns if t.eligible and _at_fault(t)), offered),
        request_errors=sum(episode.request_errors for episode in episodes),
        truncated=sum(t.flags.produced and t.emission is Emission.TRUNCATED for t in turns),
        forced=sum(t.flags.produced and t.flags.forced for t in turns),
        final_answers=sum(map(final_answer, turns)),
        steps=(*_steps(turns), _judged_step("solved", [e.solved for e in episodes], "episodes")),
        rendered=_judged_step("rendered", [t.rendered for t in turns if sent(t)], "turns"),
        positions=tuple(_positions(episodes, settings)),
        called_emitted=_called("called_emitted", episodes, held, _emits, settings),
        called_surfaced=_called("called_surfaced", episodes, held, _surfaces, settings),
        solved=_of_episodes("solved", episodes, [e.solved for e in episodes], settings),
        first_passes=_of_episodes(
            "first_passes", episodes, [e.first_turn_passed for e in episodes], settings
        ),
        rescues=_of_episodes("rescues", episodes, [e.rescued for e in episodes], settings),
        ended=dict(Counter(e.ended for e in episodes if e.ended).most_common()),
        warnings=notices.merged(told),
    )


def _in_population(turn: Turn, settings: Settings) -> bool:
    return settings.population == "eligible" or turn.expected is True


def _take(
    definition: Definition, episodes: Sequence[Episode], held: Sequence[Sequence[Turn]], settings: Settings
) -> tuple[Number, list[Tally]]:
    tallies = [tally(turns, definition.judge, definition.counts) for turns in held]
    empty = definition.empty
    if settings.population == "expected" and not any(held):
        empty = "nothing says of any turn that it should call"
    return number(definition.name, episodes, tallies, settings, empty), tallies


def _census(words: Iterable[str], n: int) -> dict[str, Count]:
    return {word: Count(k=k, n=n) for word, k in Counter(words).most_common()}


def _at_fault(turn: Turn) -> bool:
    return turn.flags.well_formed_lost or not turn.flags.produced


# --------------------------------------------------------------------------- the funnel


def _steps(turns: Sequence[Turn]) -> tuple[Step, ...]:
    ways = [reached(turn) for turn in turns if sent(turn)]
    steps = [Step(name="sent", k=len(ways), unknown=0, n=len(ways))]
    steps += [
        _judged_step(name, [way[place] for way in ways], "turns") for place, (name, _) in enumerate(STEPS)
    ]
    return tuple(steps)


def _judged_step(name: str, judged: Sequence[bool | None], unit: str) -> Step:
    unknown = sum(j is None for j in judged)
    return Step(name=name, k=sum(j is True for j in judged), unknown=unknown, n=len(judged), unit=unit)


def _positions(episodes: Sequence[Episode], settings: Settings) -> Iterable[Position]:
    for first, last in POSITIONS:
        there = [e.turns[first - 1 : last] for e in episodes if len(e.turns) >= first]
        turns = [turn for some in there for turn in some if _in_population(turn, settings)]
        if turns:
            lost = _judged_step("lost", [t.lost for t in turns if t.flags.produced], "turns")
            yield Position(first=first, last=last, episodes=len(there), steps=_steps(turns), lost=lost)


# --------------------------------------------------------------------------- shares of episodes


Word = tuple[bool, bool | None]
"""Of one turn: whether it can say anything, and what it says."""


def _emits(turn: Turn) -> Word:
    told = (turn.flags.produced or turn.flags.unknown) and not turn.flags.forced
    return told, turn.valid_emitted


def _surfaces(turn: Turn) -> Word:
    return True, turn.valid_surfaced


def _called(
    name: str,
    episodes: Sequence[Episode],
    held: Sequence[Sequence[Turn]],
    judge: Callable[[Turn], Word],
    settings: Settings,
) -> Number:
    """Of each episode: some turn is a yes, else some turn is unknown, else no. Without a word it is left out."""
    tallies = []
    for turns in held:
        words = {says for told, says in map(judge, filter(eligible, turns)) if told}
        yes, unknown = True in words, True not in words and None in words
        tallies.append(Tally(yes=yes, unknown=unknown, n=bool(words)))
    return number(name, episodes, tallies, settings, "no episode can tell")


def _of_episodes(
    name: str, episodes: Sequence[Episode], judged: Sequence[bool | None], settings: Settings
) -> Number:
    """A share of episodes: each counts once, so pooled differs from per seed by samples alone."""
    tallies = [Tally(yes=j is True, unknown=j is None, n=1) for j in judged]
    return number(name, episodes, tallies, settings, "no episode")
