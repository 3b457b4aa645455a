"""The runs that are looked at: one list of turns over all of them, page by page from their indexes."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Container, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple, Self

from truecall.errors import InputError
from truecall.store import Place, find_place, name_of, state_dir
from truecall.store.index import Index, TurnRow, open_index
from truecall.store.index_file import Told, nobody
from truecall.store.turns import WholeTurn
from truecall.view.query import Query

PAGE: Final = 50
_LAST: Final = 2**62
_GROWING: Final = 30.0  # seconds since the last line in which a run counts as going on


class Run:
    """One run folder and its index, under a name for addresses."""

    def __init__(self, name: str, path: Path, index: Index) -> None:
        self.name = name
        self.path = path
        self.index = index
        self.fault = ""  # why the log could not be read again

    @property
    def grew(self) -> float | None:
        """Seconds since the log's last line, where that is so short that the run seems to go on."""
        try:
            age = time.time() - (self.path / "log.jsonl").stat().st_mtime
        except OSError:
            return None
        return max(0.0, age) if age < _GROWING else None


class Entry(NamedTuple):
    """A turn in the list."""

    run: Run
    row: TurnRow


class Page(NamedTuple):
    """A stretch of the list, and whether turns come before and after it."""

    entries: list[Entry]
    earlier: bool
    later: bool


class Shelf:
    """The open runs, in the order given. Used by one thread at a time. ``told``: see ``open_index``.

    Raises:
        InputError: a run is not there, or can't be read.
    """

    def __init__(self, names: Sequence[str], told: Told = nobody) -> None:
        self.runs: dict[str, Run] = {}
        with ExitStack() as opened:
            for path in {os.path.realpath(path): path for path in map(_folder, names)}.values():
                name = _free(path, self.runs)
                self.runs[name] = Run(name, path, opened.enter_context(open_index(path, told)))
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def refresh(self) -> None:
        """Takes in what running runs have written since. A run that can't be read any more stays as it was."""
        for run in self.runs.values():
            try:
                run.index.refresh()
                run.fault = ""
            except OSError as error:
                run.fault = f"log.jsonl can't be read any more ({error.strerror})"
            except (InputError, sqlite3.Error) as error:
                run.fault = str(error)

    def wanted(self, query: Query) -> list[Run]:
        """The runs that the query looks into."""
        names = query.where.get("run")
        return [run for name, run in self.runs.items() if names is None or name in names]

    def counts(self, query: Query) -> dict[str, int]:
        """How many turns of each run the rest of the query finds."""
        where = query.stored()
        return {name: run.index.count(where, text=query.text) for name, run in self.runs.items()}

    def after(self, query: Query, place: Entry | None, limit: int = PAGE) -> Page:
        """The turns that follow ``place`` (None: the first ones)."""
        found: list[Entry] = []
        for run, start in _from(self.wanted(query), place):
            rows = run.index.page(
                query.stored(), text=query.text, after=start or 0, limit=limit + 1 - len(found)
            )
            found += [Entry(run, row) for row in rows]
            if len(found) > limit:
                break
        return Page(found[:limit], place is not None, len(found) > limit)

    def before(self, query: Query, place: Entry, limit: int = PAGE) -> Page:
        """The turns that lead up to ``place``."""
        found: list[Entry] = []
        for run, end in _from(self.wanted(query)[::-1], place):
            more = limit + 1 - len(found)
            rows = run.index.page(
                query.stored(), text=query.text, before=_LAST if end is None else end, limit=more
            )
            found = [*(Entry(run, row) for row in rows), *found]
            if len(found) > limit:
                break
        return Page(found[-limit:], len(found) > limit, True)

    def entry(self, name: str, key: str) -> Entry | None:
        """The turn with this key; None where there is none."""
        run = self.runs.get(name)
        row = run.index.find(key) if run is not None else None
        return Entry(run, row) if run is not None and row is not None else None

    def turn(self, entry: Entry) -> WholeTurn:
        """All that is kept of a turn."""
        return entry.run.index.turn(entry.row.id)


def _folder(name: str) -> Path:
    return find_place(name, list(Place)).absolute()


def _free(path: Path, taken: Container[str]) -> str:
    """The run's name for people and addresses: ``run/0007``, or its folder's; one that no other run has."""
    name = base = name_of(path) if path.parent.parent == state_dir() else Path(os.path.realpath(path)).name
    number = 1
    while name in taken:
        number += 1
        name = f"{base} ({number})"
    return name


def _from(runs: list[Run], place: Entry | None) -> Iterable[tuple[Run, int | None]]:
    """The runs from that of ``place`` on, each with the row to go on from (None: from its end)."""
    if place is None:
        return [(run, None) for run in runs]
    names = [run.name for run in runs]
    start = names.index(place.run.name) if place.run.name in names else 0
    return [(run, place.row.id if run is place.run else None) for run in runs[start:]]
