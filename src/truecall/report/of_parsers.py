"""Replays and matrices (the engines' own parsers, offline) as sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from truecall.detector import detect
from truecall.replay.matrix import TAKEN, MatrixOutput, Ran, TemplatesOutput
from truecall.replay.tally import Example as Lost
from truecall.replay.tally import Report, Row
from truecall.report.charts.kinds import Heat, HeatCell, Slice, Stack, percent
from truecall.report.data import (
    Badge,
    Block,
    Cell,
    Example,
    Examples,
    Figure,
    Measure,
    Note,
    Part,
    Section,
    Table,
    columns,
    count,
    share,
)
from truecall.report.examples import excerpt
from truecall.report.share import Mask
from truecall.report.words import many, tally

MOST_ROWS: Final = 60


# --------------------------------------------------------------------------- replay


def replay(report: Report, name: str, mask: Mask) -> Section:
    """A replay: what each parser returned of the calls that the model wrote, and the layer where it lost the rest."""
    rows = report.rows[:MOST_ROWS]
    slices = []
    for row in rows:
        slices.append(Slice(group=_row(row), kind="returned", count=row.returned))
        slices += [Slice(group=_row(row), kind=layer, count=count) for layer, count in row.layers.items()]
    says = "Calls that the model wrote, by the layer that lost them (docs/replay.md): returned, or why not."
    blocks: list[Block] = [
        Figure(
            name="layers", title="Layers", says=says, chart=Stack(slices=tuple(slices), unit="emitted calls")
        ),
        _replayed(rows, len(report.rows) - len(rows)),
    ]
    blocks += [
        Note(text=f"{one.parser} does not work here: {one.reason}.", tone="warn") for one in report.idle
    ]
    parts = [Part(title="Layers of loss", blocks=tuple(blocks))]
    if report.examples:
        items = tuple(_lost(example, mask) for example in report.examples[:MOST_ROWS])
        parts.append(Part(title="Lost calls", blocks=(Examples(items=items, of=None),)))
    if report.skipped:
        parts.append(Part(title="What was not replayed", blocks=(Note(text=f"{tally(report.skipped)}."),)))
    return Section(
        kind="replay",
        name=name,
        title="Replay through the engines' own parsers",
        subtitle=f"{many(report.texts, 'text')}, {report.raw:,} before any parser · streams: {report.splits}",
        answer=_answer(report.rows),
        parts=tuple(parts),
        measures=tuple(line for row in report.rows for line in _measures(row)),
    )


def _row(row: Row) -> str:
    return f"{row.parser} · {row.group}{' · streamed' if row.way == 'streamed' else ''}"


def _answer(rows: Sequence[Row]) -> str:
    whole = [row for row in rows if row.way == "whole" and row.emitted.calls]
    if not whole:
        return "No call stands in these texts: there is nothing that a parser could lose."
    most, least = max(whole, key=_share), min(whole, key=_share)
    said = f"{most.parser} returned {most.returned:,} of {most.emitted.calls:,} emitted calls"
    return (
        f"{said}."
        if most is least
        else f"{said}, {least.parser} {least.returned:,} of {least.emitted.calls:,}."
    )


def _share(row: Row) -> float:
    return row.returned / row.emitted.calls


def _replayed(rows: Sequence[Row], left: int) -> Table:
    cells = []
    for row in rows:
        e = row.emitted
        censored = percent(row.lost / e.texts) if e.texts else "N/A"
        cells.append(
            (
                _row(row),
                f"{e.texts:,}",
                f"{row.returned} of {e.calls}",
                f"{row.parsed} of {e.weak}",
                f"{censored} ({row.lost} of {e.texts})",
                str(row.phantom),
                tally(row.layers) or "none",
            )
        )
    heads = ("texts", "calls returned", "texts parsed whole", "censored", "phantom")
    return Table(
        caption="Censored: texts in which a well-formed call was lost, of all texts",
        columns=columns(
            "parser",
            *(f"#{h}" for h in heads),
            "lost by layer",
        ),
        rows=tuple(cells),
        left_out=left,
    )


def _lost(found: Lost, mask: Mask) -> Example:
    return Example(
        title=f"{found.parser} · {mask.path(found.id, 'text')}",
        verdict=(Badge(word=found.layer, tone="warn"), Badge(word=found.way)),
        why=found.reason,
        evidence=f"characters {found.start} to {found.end} of the text, the first {len(found.text)}",
        wrote=excerpt(mask.text(found.text), detect(found.text, None)),
        returned=(("parser", excerpt("the call did not come out as written", None)),),
    )


def _measures(row: Row) -> list[Measure]:
    layers = {"returned": row.returned, **row.layers}
    return [
        *(count(_row(row), f"layer: {layer}", k, row.emitted.calls, "calls") for layer, k in layers.items()),
        share(_row(row), "censored", row.lost, row.emitted.texts, "texts"),
    ]


# --------------------------------------------------------------------------- matrix


def matrix(found: MatrixOutput, name: str) -> Section:
    """Which dialect's texts each parser takes."""
    parts = [_engine(ran) for ran in found.engines]
    if found.changes:
        rows = tuple(
            (c.parser, c.id, c.before, c.after, Badge(word="regression", tone="bad") if c.regression else "")
            for c in found.changes[:MOST_ROWS]
        )
        heads = ("parser", "text", "before", "after", "")
        table = Table(
            caption=f"Against {found.against}",
            columns=columns(*heads),
            rows=rows,
            left_out=len(found.changes) - len(rows),
        )
        parts.append(Part(title="Version against version", blocks=(table,)))
    parsers = sum(len(ran.parsers) for ran in found.engines)
    deaf = [
        f"{ran.engine}:{p}"
        for ran in found.engines
        for p in ran.parsers
        if not any(c.outcome == TAKEN for c in ran.cells if c.parser == p)
    ]
    answer = f"{many(parsers, 'parser')} read {many(found.texts, 'text')}"
    answer += f"; {', '.join(deaf[:5])} took none of them." if deaf else "; each took some of them."
    return Section(
        kind="matrix",
        name=name,
        title="Dialects × parsers",
        answer=answer,
        parts=tuple(parts),
        measures=tuple(line for ran in found.engines for line in _taken(ran)),
    )


def _engine(ran: Ran) -> Part:
    cells = []
    for dialect in dict.fromkeys(cell.dialect for cell in ran.cells):
        for parser in ran.parsers:
            k, n = _canonical(ran, dialect, parser)
            cells.append(
                HeatCell(
                    row=dialect, column=parser, value=k / n if n else None, text=f"{k}/{n}" if n else "–"
                )
            )
    says = "Texts of each dialect, as they should be written, that came out of the parser as the calls that they hold."
    chart = Heat(cells=tuple(cells), row_title="dialect", column_title="parser")
    figure = Figure(name=f"matrix-{ran.engine}", title=ran.engine, says=says, chart=chart)
    rows: list[tuple[Cell, ...]] = [
        (
            parser,
            *(
                tally(Counter(c.outcome for c in ran.cells if c.parser == parser and bool(c.fault) is odd))
                or "none"
                for odd in (False, True)
            ),
        )
        for parser in ran.parsers
    ]
    heads = ("parser", "texts as they should be", "malformed texts")
    table = Table(caption="Outcomes", columns=columns(*heads), rows=tuple(rows))
    notes = [Note(text=f"{one.parser} does not work here: {one.reason}.", tone="warn") for one in ran.idle]
    return Part(title=ran.engine, blocks=(figure, table, *notes))


def _canonical(ran: Ran, dialect: str, parser: str) -> tuple[int, int]:
    """Texts taken, of those without a fault, in the form of the dialect that this parser takes best."""
    forms: dict[str, list[bool]] = {}
    for cell in ran.cells:
        if cell.dialect == dialect and cell.parser == parser and not cell.fault:
            forms.setdefault(cell.form, []).append(cell.outcome == TAKEN)
    return max(((sum(taken), len(taken)) for taken in forms.values()), default=(0, 0))


def _taken(ran: Ran) -> list[Measure]:
    pairs = [(d, p) for d in dict.fromkeys(cell.dialect for cell in ran.cells) for p in ran.parsers]
    return [
        count(f"{ran.engine}:{parser}", f"taken: {dialect}", *_canonical(ran, dialect, parser), "texts")
        for dialect, parser in pairs
    ]


def meetings(found: TemplatesOutput, name: str) -> Section:
    """Chat templates met with parsers: which pairs lose what the template asks for."""
    cells = tuple(
        HeatCell(
            row=m.template,
            column=m.parser,
            value=m.taken / m.written if m.written else None,
            text=f"{m.taken}/{m.written}" if m.written else "–",
        )
        for m in found.meetings
    )
    says = "Calls as the template asks for them, through each parser: how many came out."
    chart = Heat(cells=cells, row_title="template", column_title="parser")
    blocks: list[Block] = [Figure(name="templates", title="Template × parser", says=says, chart=chart)]
    advice = tuple((m.template, m.parser, m.advice) for m in found.meetings if m.advice)
    if advice:
        heads = ("template", "parser", "what is wrong")
        blocks.append(
            Table(
                caption="Mismatches",
                columns=columns(*heads),
                rows=advice[:MOST_ROWS],
                left_out=max(0, len(advice) - MOST_ROWS),
            )
        )
    lost = sum(1 for m in found.meetings if m.written and not m.taken)
    answer = f"{lost} of {len(found.meetings)} pairs of template and parser lose every call."
    measures = tuple(
        count(m.parser, f"taken: {m.template}", m.taken, m.written, "texts") for m in found.meetings
    )
    return Section(
        kind="matrix",
        name=name,
        title="Templates × parsers",
        answer=answer,
        parts=(Part(title="Template × parser", blocks=tuple(blocks)),),
        measures=measures,
    )
