"""Turns and episodes made short, for the tests of the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from truecall.funnel import Episode, Turn
from truecall.records import Delivery, Emission, Flags


def valid(**more: Any) -> Turn:
    """A valid call, surfaced."""
    flags = Flags(valid_emitted=True, valid_surfaced=True, produced=True)
    return Turn(
        emission=Emission.VALID, delivery=Delivery.SURFACED, flags=flags, emitted=True, surfaced=True, **more
    )


def forced(**more: Any) -> Turn:
    flags = Flags(valid_emitted=True, valid_surfaced=True, produced=True, forced=True)
    return Turn(
        emission=Emission.VALID, delivery=Delivery.SURFACED, flags=flags, emitted=True, surfaced=True, **more
    )


def leaked(**more: Any) -> Turn:
    """A valid call, left in the text."""
    flags = Flags(valid_emitted=True, well_formed_lost=True, produced=True)
    return Turn(emission=Emission.VALID, delivery=Delivery.LEAKED, flags=flags, emitted=True, **more)


def malformed(**more: Any) -> Turn:
    flags = Flags(produced=True)
    return Turn(emission=Emission.MALFORMED, delivery=Delivery.LEAKED, flags=flags, emitted=True, **more)


def prose(**more: Any) -> Turn:
    return Turn(emission=Emission.NO_CALL, delivery=Delivery.NOTHING, flags=Flags(produced=True), **more)


def vanished(**more: Any) -> Turn:
    """Tokens were generated and no text is there."""
    flags = Flags(produced=True, unknown=True)
    return Turn(emission=Emission.UNKNOWN, delivery=Delivery.UNKNOWN, flags=flags, **more)


def rejected(**more: Any) -> Turn:
    return Turn(emission=Emission.NOT_RUN, delivery=Delivery.REJECTED, **more)


def timed_out(**more: Any) -> Turn:
    flags = Flags(unknown=True)
    return Turn(emission=Emission.UNKNOWN, delivery=Delivery.TIMEOUT, flags=flags, **more)


def empty(**more: Any) -> Turn:
    return Turn(emission=Emission.EMPTY, delivery=Delivery.NOTHING, **more)


def episodes(turns: Iterable[Sequence[Turn]], *, arm: str = "arm", item: str = "aggregate") -> list[Episode]:
    """One episode for each list of turns, seeds counted from 0."""
    return [Episode(arm=arm, item=item, seed=seed, turns=tuple(some)) for seed, some in enumerate(turns)]


def judged(solved: Iterable[bool | None], *, arm: str) -> list[Episode]:
    """Episodes of one valid turn, solved or not."""
    return [
        Episode(arm=arm, item="code", seed=seed, turns=(valid(),), solved=passed)
        for seed, passed in enumerate(solved)
    ]
