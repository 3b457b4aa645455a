"""A report as Markdown (GitHub's): the same parts, charts as their tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from truecall.report.data import (
    Badge,
    Block,
    Bullets,
    Cell,
    Example,
    Examples,
    Excerpt,
    Figure,
    Note,
    ReportData,
    Table,
)
from truecall.report.words import seen

MOST_ROWS = 200

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$!])")
_RUN = re.compile(r"`+")


def markdown(report: ReportData, figures: Mapping[int, str] | None = None) -> str:
    """The report as Markdown. ``figures``: where the picture of a figure stands, by the figure's ``id()``."""
    return "\n".join(_lines(report, figures or {})).rstrip("\n") + "\n"


def _lines(report: ReportData, figures: Mapping[int, str]) -> Iterator[str]:
    yield f"# {_text(report.title)}"
    for section in report.sections:
        level = 2
        if len(report.sections) > 1:
            name = f" ({_text(section.name)})" if section.name else ""
            yield from ("", f"## {_text(section.title)}{name}")
            level = 3
        state = f"**{_text(section.state.word)}** " if section.state else ""
        yield from ("", f"{state}{_text(section.answer)}")
        yield from ("", f"*{_text(section.subtitle)}*") if section.subtitle else ()
        for part in section.parts:
            yield from ("", f"{'#' * level} {_text(part.title)}")
            for block in part.blocks:
                yield ""
                yield from _block(block, level + 1, figures)
    masked = " Prompts, values and addresses are masked." if report.shared else ""
    yield from ("", f"truecall {report.truecall}, detector {_text(report.detector)}.{masked}")


def _block(block: Block, level: int, figures: Mapping[int, str]) -> Iterator[str]:
    if isinstance(block, Note):
        yield _text(block.text)
    elif isinstance(block, Bullets):
        yield from (f"- {_text(item)}" for item in block.items)
    elif isinstance(block, Table):
        yield from (f"*{_text(block.caption)}*", "")
        numbers = [column.number for column in block.columns]
        yield from _table([c.title for c in block.columns], numbers, block.rows, block.left_out)
    elif isinstance(block, Figure):
        if id(block) in figures:
            yield from (f"![{_text(block.title)}](<{figures[id(block)]}>)", "")
        yield from (f"*{_text(block.title)}. {_text(block.says)}*", "")
        grid = block.chart.grid()
        yield from _table(grid.head, [], grid.rows, 0)
    else:
        yield from _examples(block, level)


def _table(
    head: Sequence[str], numbers: Sequence[bool], rows: Sequence[Sequence[Cell]], left_out: int
) -> Iterator[str]:
    yield f"| {' | '.join(_text(title) or ' ' for title in head)} |"
    yield (
        "|"
        + "|".join("---:" if place < len(numbers) and numbers[place] else "---" for place in range(len(head)))
        + "|"
    )
    for row in rows[:MOST_ROWS]:
        yield f"| {' | '.join(_cell(cell) for cell in row)} |"
    left = left_out + max(0, len(rows) - MOST_ROWS)
    if left > 0:
        yield from ("", f"{left:,} more are left out.")


def _cell(cell: Cell) -> str:
    return f"**{_text(cell.word)}**" if isinstance(cell, Badge) else _text(cell)


def _examples(block: Examples, level: int) -> Iterator[str]:
    if block.of is not None and block.of > len(block.items):
        yield from (f"{len(block.items)} of {block.of:,} are shown, the worst first.", "")
    for number, item in enumerate(block.items):
        if number:
            yield ""
        yield from _example(item, level)


def _example(item: Example, level: int) -> Iterator[str]:
    yield f"{'#' * level} {_text(item.title)}"
    words = " ".join(f"**{_text(word.word)}**" for word in item.verdict)
    yield from (
        "",
        f"{words} {_text(item.why)}".strip(),
        "",
        f"{item.sides[0]} ({_text(item.evidence)}):",
        "",
    )
    yield from _fenced(item.wrote) if item.wrote is not None else ("Nothing is known of it.",)
    yield from ("", f"{item.sides[1]}:")
    for label, piece in item.returned:
        yield from ("", f"{_text(label)}:", "")
        yield from _fenced(piece)
    if item.fix:
        yield from ("", f"What to change: {_text(item.fix)}")
    if item.repeat:
        yield ""
        yield from _fenced(Excerpt(text=item.repeat))


def _fenced(piece: Excerpt) -> Iterator[str]:
    """A foreign text in a fence that is longer than any run of backticks in it."""
    lines = [seen(line) for line in piece.text.split("\n")]
    fence = "`" * max(3, *(len(run) + 1 for line in lines for run in _RUN.findall(line)), 3)
    if piece.before:
        yield from (f"({piece.before:,} characters before)", "")
    yield from (f"{fence}text", *lines, fence)
    if piece.after:
        yield from ("", f"({piece.after:,} characters after)")


def _text(text: str) -> str:
    """Foreign text as text: nothing in it is markup."""
    return _SPECIAL.sub(r"\\\1", seen(" ".join(text.split("\n"))))
