"""Turns gathered into conversations, which the numbers take for episodes.

A request goes on with a conversation when it repeats the messages of its last request, or answers its calls.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Final

import msgspec

from truecall.funnel import Episode, Turn

_OPEN: Final = 20_000  # conversations that may still go on; the oldest are closed
_ARM: Final = "recorded"


class _Open(msgspec.Struct):
    """A conversation: its turns, the numbers of the first and the last exchange, its place among those that may
    go on. Last may stand None: a turn whose client left its last attempt."""

    first: int
    turns: list[Turn | None]
    number: int
    key: bytes

    @property
    def shape(self) -> tuple[Turn, ...]:
        return tuple(turn for turn in self.turns if turn is not None)


class Conversations:
    """All agent turns of a record. What is closed is kept by its shape, so that equal conversations cost nothing."""

    def __init__(self) -> None:
        self._open: OrderedDict[bytes, dict[int, _Open]] = OrderedDict()
        self._by_number: dict[int, _Open] = {}
        self._closed: Counter[tuple[Turn, ...]] = Counter()
        self._same: dict[Turn, Turn] = {}  # one object for all equal turns

    def add(
        self, number: int, chain: Sequence[bytes], turn: Turn, *, after: int | None, instead_of: int | None
    ) -> tuple[int, int]:
        """A turn that was answered: the exchange that opened its conversation, and its place there from 1 on.

        ``chain``: the digests of its first 0, 1, 2 … messages. ``after``: the exchange whose calls it brings the
        results of. ``instead_of``: the failed exchange that it is a retry of.
        """
        turn = self._same.setdefault(turn, turn)
        failed = self._by_number.get(instead_of) if instead_of is not None else None
        found = failed or (self._by_number.get(after) if after is not None else None)
        if found is None:
            found = next((self._oldest(key) for key in reversed(chain[1:-1]) if key in self._open), None)
        if found is None:
            found = _Open(number, [turn], number, chain[-1])
        else:
            self._take(found)
            if failed is not None or found.turns[-1] is None:
                del found.turns[-1]
            found.turns.append(turn)
            found.number, found.key = number, chain[-1]
        self._put(found)
        while len(self._by_number) > _OPEN:
            oldest = self._oldest(next(iter(self._open)))
            self._take(oldest)
            self._closed[oldest.shape] += 1
        return found.first, len(found.turns)

    def left(self, number: int, *, instead_of: int | None) -> None:
        """A turn whose client left is in no number, nor is the failed exchange that it was a retry of."""
        found = self._by_number.get(instead_of) if instead_of is not None else None
        if found is not None:
            self._take(found)
            found.turns[-1], found.number = None, number
            self._put(found)

    def alone(self, turn: Turn) -> None:
        """A further answer to a request that has one already: a conversation of its own."""
        self._closed[turn,] += 1

    def observed(self, number: int, value: bool) -> None:
        """What became of the calls of a conversation's last turn."""
        found = self._by_number.get(number)
        if found is not None and found.turns[-1] is not None:
            turn = msgspec.structs.replace(found.turns[-1], executed=value or None, observed=value)
            found.turns[-1] = self._same.setdefault(turn, turn)

    def episodes(self) -> list[Episode]:
        """All conversations so far."""
        shapes = self._closed.copy()
        shapes.update(found.shape for found in self._by_number.values())
        every = (turns for turns, count in shapes.items() for _ in range(count) if turns)
        return [Episode(arm=_ARM, item=str(place), turns=turns) for place, turns in enumerate(every, 1)]

    def _oldest(self, key: bytes) -> _Open:
        return next(iter(self._open[key].values()))

    def _put(self, found: _Open) -> None:
        """Puts a conversation among those that may go on."""
        self._open.setdefault(found.key, {})[found.number] = found
        self._by_number[found.number] = found

    def _take(self, found: _Open) -> None:
        """Takes a conversation from those that may go on."""
        left = self._open[found.key]
        del left[found.number]
        if not left:
            del self._open[found.key]
        del self._by_number[found.number]
