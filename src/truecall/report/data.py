"""What a report holds, before it is a page, Markdown or CSV: plain records without any layout.

A page has sections (one for each result that it is made from), a section has parts, a part has blocks. Texts of
models and servers stand in them as they came (or masked, see `truecall.report.share`); writers escape them.
"""

from __future__ import annotations

from typing import Literal

from truecall.pages import Mark
from truecall.records import Record
from truecall.report.charts.kinds import Chart
from truecall.stats import Interval

Tone = Literal["plain", "good", "warn", "bad"]


class Badge(Record, frozen=True):
    """A word that is set apart by its tone; the word alone says all."""

    word: str
    tone: Tone = "plain"


Cell = str | Badge
"""Empty text: nothing to say."""


class Column(Record, frozen=True):
    """``number``: its cells are aligned as numbers."""

    title: str
    number: bool = False


def columns(*titles: str) -> tuple[Column, ...]:
    """Columns of these titles; one that begins with ``#`` holds numbers."""
    return tuple(Column(title=t.removeprefix("#"), number=t.startswith("#")) for t in titles)


class Note(Record, frozen=True):
    """A paragraph."""

    text: str
    tone: Tone = "plain"


class Bullets(Record, frozen=True):
    """A list of short sentences."""

    items: tuple[str, ...]


class Table(Record, frozen=True):
    """Rows of cells; the first cell names its row. ``left_out``: rows that did not fit the page.

    ``grouped``: the first cell names a group of rows that stand together, the second names the row.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0
    grouped: bool = False


class Figure(Record, frozen=True):
    """A chart. ``name`` is that of its file; ``says``: what is to be seen, in words."""

    name: str
    title: str
    says: str
    chart: Chart


class Excerpt(Record, frozen=True):
    """A stretch of a foreign text. ``before`` and ``after``: characters of it that are left out."""

    text: str
    marks: tuple[Mark, ...] = ()
    before: int = 0
    after: int = 0


class Example(Record, frozen=True):
    """A turn to look at: what the model wrote beside what the interface returned.

    ``wrote`` None: nothing is known of it, and ``evidence`` says why. ``returned``: labelled pieces of the answer.
    """

    title: str
    verdict: tuple[Badge, ...]
    why: str
    evidence: str
    wrote: Excerpt | None
    returned: tuple[tuple[str, Excerpt], ...]
    sides: tuple[str, str] = ("The model wrote", "The interface returned")
    fix: str = ""
    repeat: str = ""  # the command that repeats it


class Examples(Record, frozen=True):
    """The worst turns, the worst first. ``of``: how many there are in all; None: not counted."""

    items: tuple[Example, ...]
    of: int | None = None


Block = Note | Bullets | Table | Figure | Examples


class Part(Record, frozen=True):
    """A part of a section. ``folded``: a page shows its title alone until it is opened."""

    title: str
    blocks: tuple[Block, ...]
    folded: bool = False


class Measure(Record, frozen=True):
    """One number with all that belongs to it: a line of the CSV. Rates are fractions.

    ``k`` of ``n`` ``unit`` for certain, ``unknown`` more perhaps; ``low`` and ``high`` are the bounds with unknown
    counted as no and as yes (None: undefined, ``reason`` says why). The 95 % interval has its method and n.
    """

    group: str
    number: str
    average: Literal["pooled", "per seed", "count", "range"]
    low: float | None
    high: float | None
    unit: str
    k: int | None = None
    unknown: int | None = None
    n: int | None = None
    interval_low: float | None = None
    interval_high: float | None = None
    method: str = ""
    interval_n: int | None = None
    reason: str = ""


def count(group: str, number: str, k: int, n: int, unit: str, unknown: int = 0) -> Measure:
    """A count of ``n`` units, ``unknown`` of them not known."""
    return Measure(
        group=group, number=number, average="count", low=None, high=None, unit=unit, k=k, unknown=unknown, n=n
    )


def share(
    group: str, number: str, k: int, n: int, unit: str, interval: Interval | None = None, unknown: int = 0
) -> Measure:
    """A share of all ``n`` units, ``unknown`` of them not known; undefined without any."""
    return Measure(
        group=group,
        number=number,
        average="pooled",
        low=k / n if n else None,
        high=(k + unknown) / n if n else None,
        unit=unit,
        k=k,
        unknown=unknown,
        n=n,
        interval_low=interval.low if interval else None,
        interval_high=interval.high if interval else None,
        method=interval.method if interval else "",
        interval_n=interval.n if interval else None,
        reason="" if n else f"no {unit}",
    )


class Section(Record, frozen=True):
    """One result. ``answer`` is the sentence that a reader needs first; ``state`` a word for it, where there is one."""

    kind: str
    name: str
    title: str
    answer: str
    parts: tuple[Part, ...]
    measures: tuple[Measure, ...] = ()
    state: Badge | None = None
    subtitle: str = ""


class ReportData(Record, frozen=True):
    """A whole report. ``shared``: prompts and values are masked."""

    title: str
    sections: tuple[Section, ...]
    made_at: float
    truecall: str
    detector: str
    shared: bool = False

    def figures(self) -> list[Figure]:
        """All figures, in order."""
        parts = (part for section in self.sections for part in section.parts)
        return [block for part in parts for block in part.blocks if isinstance(block, Figure)]
