"""The viewer's pages, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from truecall.pages import environment, shown
from truecall.store.turns import WholeTurn
from truecall.view.facets import facets_of
from truecall.view.query import FACETS, LINKED, Query, number
from truecall.view.runs import Entry, Page, Run, Shelf
from truecall.view.texts import file_of, text_of
from truecall.view.turn import TIERS, episode_around, shown_of

BRIEF: Final = 300  # characters of a name


class Missing(Exception):
    """There is no such page: one line that says what is missing."""


class Pages:
    """Makes pages from the open runs. One thread at a time."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._turn = lru_cache(maxsize=2)(self._read)

    def list(self, query: Query, asked: Mapping[str, str]) -> str:
        """The list of turns. ``asked``: ``of`` and ``after`` or ``before`` name the turn to go on from."""
        self._shelf.refresh()
        place = self._shelf.entry(asked.get("of", ""), asked.get("after", asked.get("before", "")))
        if place is not None and "before" in asked:
            page = self._shelf.before(query, place)
        else:
            page = self._shelf.after(query, place)
        counts, wanted = self._shelf.counts(query), self._shelf.wanted(query)
        return _render(
            "list.html",
            query=query,
            page=page,
            found=sum(counts[run.name] for run in wanted),
            total=sum(run.index.count() for run in self._shelf.runs.values()),
            facets=facets_of(query, wanted, counts),
            runs=list(self._shelf.runs.values()),
            notes=notes_of(list(self._shelf.runs.values())),
            earlier=_beside(query, page, 0, "before") if page.earlier else None,
            later=_beside(query, page, -1, "after") if page.later else None,
        )

    def turn(self, query: Query, asked: Mapping[str, str]) -> str:
        """A turn's page. ``query`` is the list that its reader came from."""
        entry = self._entry(asked)
        turn = self._turn(entry)
        before = self._shelf.before(query, entry, 1).entries
        after = self._shelf.after(query, entry, 1).entries
        return _render(
            "turn.html",
            query=query,
            entry=entry,
            turn=turn,
            row=entry.row,
            shown=shown_of(turn, entry.row),
            tiers=TIERS,
            episode=episode_around(entry.run, entry.row),
            earlier=before[0] if before else None,
            later=after[0] if after else None,
        )

    def text(self, query: Query, asked: Mapping[str, str]) -> str:
        """A text on pages of its own, part by part."""
        entry = self._entry(asked)
        text = text_of(self._turn(entry), asked.get("what", ""))
        if text is None:
            raise Missing("This turn has no such text.")
        part = number(asked.get("part", "")) or 1
        return _render("text.html", query=query, entry=entry, text=text, part=max(1, min(part, text.parts)))

    def file(self, asked: Mapping[str, str]) -> bytes:
        """A whole text, to be kept as a file."""
        data = file_of(self._turn(self._entry(asked)), asked.get("what", ""))
        if data is None:
            raise Missing("This turn has no such text.")
        return data

    def _entry(self, asked: Mapping[str, str]) -> Entry:
        entry = self._shelf.entry(asked.get("of", ""), asked.get("key", ""))
        if entry is None:
            raise Missing("No open run has this turn.")
        return entry

    def _read(self, entry: Entry) -> WholeTurn:
        turn = self._shelf.turn(entry)
        # Elsewhere the harness's own parser has its say, which only the run itself could hear.
        alone = entry.row.condition in (None, "native", "native_hint")
        return (
            msgspec.structs.replace(turn, verdict=turn.judged()) if turn.verdict is None and alone else turn
        )


def message_page(title: str, text: str, *, again: str | None = None) -> str:
    """A page that says one thing; ``again``: an address of ours to try."""
    return _render("message.html", title_text=title, text=text, again=again)


def notes_of(runs: Sequence[Run]) -> list[str]:
    """What the reader of these runs should know."""
    notes = [f"{run.name}: {run.fault}" for run in runs if run.fault]
    for run in runs:
        if run.index.bad:
            lines, are = ("1 line", "is") if run.index.bad == 1 else (f"{run.index.bad:,} lines", "are")
            notes.append(f"{run.name}: {lines} of the log can't be read and {are} left out.")
    growing = [f"{run.name} ({age:.0f} s ago)" for run in runs if (age := run.grew) is not None]
    if growing:
        notes.append(
            f"Just written to: {', '.join(growing)}. While a run goes on, load this page again for more."
        )
    return notes


def address(path: str, entry: Entry, *more: tuple[str, str], query: Query | None = None) -> str:
    """The address of a page about a turn; it stays the same as long as the run folder has its name."""
    pairs = [("of", entry.run.name), ("key", entry.row.key), *more, *(query.pairs() if query else ())]
    return f"{path}?{urlencode(pairs, errors='replace')}"


def _beside(query: Query, page: Page, place: int, name: str) -> str:
    """The address of the list's page before or after this one."""
    entry = page.entries[place]
    return query.link("/", ("of", entry.run.name), (name, entry.row.key))


def brief(text: str) -> Markup:
    """A name or the like, for a line of its own: its beginning, where it is longer than any name."""
    return shown(text if len(text) <= BRIEF else f"{text[:BRIEF]}…")


@cache
def _templates() -> Environment:
    made = environment("truecall.view")
    made.filters["brief"] = brief
    return made


def _render(template: str, **values: Any) -> str:
    shared = {
        "policy": None,  # it is in the header
        "inline_styles": (),
        "inline_scripts": (),
        "linked_styles": ("/style.css", "/view.css"),
        "linked_scripts": ("/view.js",),
        "address": address,
        "columns": FACETS | LINKED,
    }
    return _templates().get_template(template).render(**shared, **values)
