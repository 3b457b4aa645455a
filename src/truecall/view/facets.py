"""The filters that the list offers, with how many turns each would show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from truecall.store.index import Index
from truecall.view.query import FACETS, WHOLE, Query, number
from truecall.view.runs import Run

OPEN: Final = 10  # values of a facet that are in sight,
MOST: Final = 200  # and with those that can be opened
_LONGEST: Final = 300  # characters of a value: a server may call its model anything
_ALONE: Final = frozenset({"run", "item", "seed", "defect"})  # too many values to be counted with others


class Facet(NamedTuple):
    """A column's values with their turns: those in sight, those that can be opened, and how many are left out.

    "" is nothing.
    """

    column: str
    values: list[tuple[str, int]]
    more: list[tuple[str, int]]
    left_out: int


def facets_of(query: Query, runs: Sequence[Run], counts: dict[str, int]) -> list[Facet]:
    """For each column with a choice in it: its values under the rest of the query.

    ``runs``: those that are looked into. ``counts``: of all runs, see ``Shelf.counts``. Values that are
    looked for come first, then words with the most turns first, numbers in their order.
    """
    found: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    found["run"].update(counts)
    for run in runs:
        _count(run.index, query, found)
    for name in FACETS:
        for value in query.where.get(name, ()):
            found[name].setdefault(value, 0)
    return [
        _facet(name, found[name], query) for name in FACETS if len(found[name]) > 1 or name in query.where
    ]


def _count(index: Index, query: Query, found: dict[str, Counter[str]]) -> None:
    """Adds the values of a run's turns, the column ``run`` itself left out."""
    # One pass for all columns without a filter of their own. Where nothing is filtered each column's index is quicker.
    joint = [name for name in FACETS if query.pairs() and name not in _ALONE and name not in query.where]
    if joint:
        for values, turns in index.combinations(joint, query.stored(), text=query.text):
            for name, value in zip(joint, values, strict=True):
                found[name][_word(value)] += turns
    for name in FACETS:
        if name not in joint and name != "run":
            for each, turns in index.values(name, query.stored(but=name), text=query.text):
                found[name][_word(each)] += turns


def _facet(column: str, counts: Counter[str], query: Query) -> Facet:
    values = [item for item in _ordered(column, counts) if len(item[0]) <= _LONGEST]
    values.sort(key=lambda item: not query.has(column, item[0]))
    return Facet(column, values[:OPEN], values[OPEN:MOST], len(counts) - len(values[:MOST]))


def _word(value: str | int | None) -> str:
    return "" if value is None else str(value)


def _ordered(column: str, counts: Counter[str]) -> list[tuple[str, int]]:
    if column not in WHOLE:
        return counts.most_common()
    return sorted(counts.items(), key=lambda item: (number(item[0]) is None, number(item[0]) or 0))
