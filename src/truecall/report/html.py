"""A report as one HTML file. Needs the extra ``report``."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from markupsafe import Markup

from truecall.pages import environment, one_file
from truecall.report.charts.svg import page_svg
from truecall.report.data import Block, Cell, Part, ReportData, Section

MOST_ROWS: Final = 400
"""Rows of a figure's own table."""


def page(report: ReportData) -> str:
    """The page: no script, no request, nothing beside it."""
    number = _numbers()
    drawn = {number(f): Markup(page_svg(f.chart, f"{f.title}. {f.says}")) for f in report.figures()}
    environment("truecall.report").filters["groups"] = _groups
    return one_file(
        "truecall.report",
        "report.html",
        styles=("report.css",),
        report=report,
        made=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(report.made_at)),
        drawn=drawn,
        number=number,
        anchor=_anchors(report),
        most_rows=MOST_ROWS,
    )


def _numbers() -> Callable[[Block], str]:
    """A name for each block that an element of the page must be called by."""
    known: dict[int, str] = {}

    def number(block: Block) -> str:
        return known.setdefault(id(block), f"b{len(known) + 1}")

    return number


def _groups(rows: Sequence[Sequence[Cell]]) -> list[list[Sequence[Cell]]]:
    """Rows that stand together, by their first cell."""
    return [list(group) for _, group in groupby(rows, key=lambda row: row[0])]


def _anchors(report: ReportData) -> Callable[..., str]:
    """Names of places in the page, by section and part: unlike each other, and of plain letters."""
    numbers = {id(section): number for number, section in enumerate(report.sections, 1)}

    def anchor(section: Section, part: Part | None = None) -> str:
        place = f"s{numbers[id(section)]}"
        return place if part is None else f"{place}-{section.parts.index(part)}-{_slug(part.title)}"

    return anchor


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40]
