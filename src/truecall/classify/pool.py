"""Calls to be matched, each at most once, found by name or arguments in constant time."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from truecall.records import Json

Item = TypeVar("Item")


def frozen(value: Json) -> Hashable:
    """A key that is equal exactly where two decoded JSON values are; nothing equals what is nested too deep."""
    try:
        return _frozen(value)
    except RecursionError:
        return object()


def _frozen(value: Json) -> Hashable:
    if isinstance(value, dict):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    found: Hashable = value
    return found


class Pool(Generic[Item]):
    """Items in order, each found by any of its keys and taken once."""

    def __init__(self, items: Iterable[Item], keys: Callable[[Item], Iterable[Hashable]]) -> None:
        self._items = dict(enumerate(items))
        self._places: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for place, item in self._items.items():
            for key in keys(item):
                self._places[key].append(place)

    def take(self, key: Hashable) -> Item | None:
        """The first item with this key that is still there, taken out; else None."""
        places = self._places.get(key)
        while places:
            item = self._items.pop(places.popleft(), None)
            if item is not None:
                return item
        return None

    def __iter__(self) -> Iterator[Item]:
        """The items that nobody took."""
        return iter(tuple(self._items.values()))
