"""How the entries of a card are written out."""

from __future__ import annotations

from collections.abc import Sequence

from truecall.records import Json


def in_words(thing: Json) -> str:
    """A value of a card in words: a run of numbers as its ends, an object as its fields."""
    if isinstance(thing, bool):
        return "yes" if thing else "no"
    if isinstance(thing, dict):
        return ", ".join(f"{name} {in_words(item)}" for name, item in thing.items())
    if isinstance(thing, Sequence) and not isinstance(thing, str):
        items = list(thing)
        if (
            len(items) > 2
            and all(isinstance(i, int) for i in items)
            and items == list(range(items[0], items[-1] + 1))
        ):
            return f"{items[0]} to {items[-1]}"
        return ", ".join(in_words(item) for item in items)
    return "none" if thing is None else str(thing)
