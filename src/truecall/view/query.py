"""What is looked for, as the address of a page says it: every view is a link."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

from truecall.records import Record

FACETS: Final = {
    "run": "Run",
    "arm": "Arm",
    "item": "Item or probe",
    "role": "Role",
    "emission": "Emission",
    "delivery": "Delivery",
    "uptake": "Uptake",
    "cause": "Cause",
    "dialect": "Dialect",
    "defect": "Defect or note",
    "tier": "Evidence",
    "model": "Model",
    "seed": "Seed",
}
"""Columns that the page offers as filters, in its order, with their headings."""

LINKED: Final = {"episode": "Episode", "rule": "Rule"}
"""Columns that a turn's page links to."""

WHOLE: Final = frozenset({"seed"})
"""Columns of whole numbers."""
_JUDGED: Final = frozenset({"emission", "delivery", "uptake", "cause", "tier", "rule"})
_LONGEST: Final = 1000  # characters of a search
_MOST: Final = 100  # values that are looked for: each link on the page holds them all


class Query(Record, frozen=True):
    """Filters and search. Values of one column are alternatives; columns are joined. "" is nothing."""

    where: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    text: str = ""

    def has(self, column: str, value: str) -> bool:
        """Whether the value is one of those looked for."""
        return value in self.where.get(column, ())

    @staticmethod
    def nothing(column: str) -> str:
        """What it means that a turn has no value in a column."""
        return "not judged" if column in _JUDGED else "none"

    def toggled(self, column: str, value: str) -> Query:
        """With the value looked for, or no longer."""
        had = self.where.get(column, ())
        values = tuple(v for v in had if v != value) if value in had else (*had, value)
        where = {**self.where, column: values}
        return Query(where={name: v for name, v in where.items() if v}, text=self.text)

    def without_text(self) -> Query:
        """The filters alone."""
        return Query(where=self.where)

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values as they stand in an address or form."""
        found = [(column, value) for column, values in self.where.items() for value in values]
        return [*found, ("text", self.text)] if self.text else found

    def link(self, path: str = "/", *more: tuple[str, str]) -> str:
        """The address of ``path`` with this query, after what else the page needs."""
        pairs = [*more, *self.pairs()]
        return f"{quote(path)}?{urlencode(pairs, errors='replace')}" if pairs else quote(path)

    def stored(self, *, but: str = "") -> dict[str, list[str | int | None]]:
        """The filters as the index takes them, the runs and one column (``but``) left out."""
        return {
            column: [_stored(column, value) for value in values]
            for column, values in self.where.items()
            if column not in ("run", but)
        }


def read(pairs: Iterable[tuple[str, str]]) -> Query:
    """The query that an address holds; what it says beyond that is left to others."""
    where: dict[str, tuple[str, ...]] = {}
    text, values = "", 0
    for name, value in pairs:
        if name == "text":
            text = value.strip()[:_LONGEST]
        elif values < _MOST and name in FACETS | LINKED and value not in where.get(name, ()):
            where[name] = (*where.get(name, ()), value)
            values += 1
    return Query(where=where, text=text)


def number(value: str) -> int | None:
    """A whole number as an address writes it; None for anything else."""
    return int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else None


def _stored(column: str, value: str) -> str | int | None:
    if value == "":
        return None
    found = number(value) if column in WHOLE else None
    return value if found is None else found
