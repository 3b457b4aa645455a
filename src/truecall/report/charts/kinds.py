"""What a chart shows, as plain numbers, and the same as a table for those who don't see it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from truecall.funnel import Step
from truecall.records import Record


class Grid(NamedTuple):
    """A chart's numbers as a table: its head, and its rows of texts."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Funnel(Record, frozen=True):
    """A panel for each group: the share that reached each step, lighter where it is not known."""

    panels: tuple[tuple[str, tuple[Step, ...]], ...]

    def grid(self) -> Grid:
        rows = [
            (name, step.name, str(step.k), str(step.unknown), f"{step.n} {step.unit}")
            for name, steps in self.panels
            for step in steps
        ]
        return Grid(("", "step", "reached", "unknown", "of"), tuple(rows))


class Estimate(Record, frozen=True):
    """A rate of a group: bounds (equal where nothing is unknown) and the interval; None: undefined, with a reason."""

    group: str
    series: str
    low: float | None
    high: float | None
    interval: tuple[float, float] | None
    n: str  # the denominator in words: "8 episodes"
    reason: str = ""


class Forest(Record, frozen=True):
    """Rates side by side with their intervals; ``beside`` is a share that always stands next to them."""

    series: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    beside: tuple[Estimate, ...]
    beside_title: str = "non-response"

    def grid(self) -> Grid:
        rows = [
            (e.group, e.series, span(e.low, e.high, e.reason), limits(e.interval), e.n)
            for e in (*self.estimates, *self.beside)
        ]
        return Grid(("", "rate", "value", "95 % interval", "of"), tuple(rows))


class Dot(Record, frozen=True):
    """One episode's (or instance's) own rate."""

    group: str
    series: str
    name: str
    value: float


class Dots(Record, frozen=True):
    """Every point behind a mean. ``means``: (group, series, mean)."""

    series: tuple[str, ...]
    dots: tuple[Dot, ...]
    means: tuple[tuple[str, str, float], ...]

    def grid(self) -> Grid:
        pairs = list(dict.fromkeys((d.group, d.name) for d in self.dots))
        values = {(d.group, d.name, d.series): percent(d.value) for d in self.dots}
        rows = [(g, n, *(values.get((g, n, s), "–") for s in self.series)) for g, n in pairs]
        return Grid(("", "instance", *self.series), tuple(rows))


class HeatCell(Record, frozen=True):
    """``value`` from 0 to 1 shades the cell, None leaves it blank; ``text`` stands in it."""

    row: str
    column: str
    value: float | None
    text: str


class Heat(Record, frozen=True):
    """Rows by columns. ``scale``: shaded by value, or coloured by ``text``'s tone (`TONES`)."""

    cells: tuple[HeatCell, ...]
    row_title: str
    column_title: str
    scale: Literal["value", "tone"] = "value"

    def grid(self) -> Grid:
        rows = list(dict.fromkeys(c.row for c in self.cells))
        columns = list(dict.fromkeys(c.column for c in self.cells))
        texts = {(c.row, c.column): c.text for c in self.cells}
        body = [(row, *(texts.get((row, column), "–") for column in columns)) for row in rows]
        return Grid((f"{self.row_title} \\ {self.column_title}", *columns), tuple(body))


class Slice(Record, frozen=True):
    """``count`` of a group's ``unit`` that are of this kind."""

    group: str
    kind: str
    count: int


class Stack(Record, frozen=True):
    """What a group's turns are made up of: one bar a group, parted by kind."""

    slices: tuple[Slice, ...]
    unit: str

    def grid(self) -> Grid:
        kinds = list(dict.fromkeys(s.kind for s in self.slices))
        counts = {(s.group, s.kind): s.count for s in self.slices}
        groups = list(dict.fromkeys(s.group for s in self.slices))
        return Grid(("", *kinds), tuple((g, *(str(counts.get((g, k), 0)) for k in kinds)) for g in groups))


class Spot(Record, frozen=True):
    """A point of two numbers in percent; ``told``: it is named in the chart."""

    name: str
    x: float
    y: float
    told: bool = False


class Scatter(Record, frozen=True):
    """Points of two numbers; those that are told stand out."""

    x_title: str
    y_title: str
    spots: tuple[Spot, ...]

    def grid(self) -> Grid:
        told = sorted(self.spots, key=lambda spot: not spot.told)
        rows = [(s.name, f"{s.x:.2f}", f"{s.y:.2f}", "yes" if s.told else "") for s in told]
        return Grid(("", self.x_title, self.y_title, "flagged"), tuple(rows))


Chart = Funnel | Forest | Dots | Heat | Stack | Scatter


def percent(value: float) -> str:
    """``12.3 %``."""
    return f"{100 * value:.1f} %"


def span(low: float | None, high: float | None, reason: str = "") -> str:
    """A rate between its bounds; undefined with its reason."""
    if low is None or high is None:
        return f"N/A: {reason}" if reason else "N/A"
    return percent(low) if low == high else f"{100 * low:.1f} to {100 * high:.1f} %"


def limits(interval: tuple[float, float] | None) -> str:
    """``[1.2, 3.4]`` in percent; empty without an interval."""
    return f"[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]" if interval else ""
