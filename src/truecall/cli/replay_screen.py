"""A replay's report on the screen: the answer first, then a line a parser, then places to look at."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from truecall.cli import screen
from truecall.cli.screen import visible

if TYPE_CHECKING:
    from truecall.replay.tally import Report, Row

_MOST_ROWS = 80
_MOST_EXAMPLES = 8
_MEANT = {
    "no_envelope": "the parser does not look for this form",
    "bad_payload": "the form is read, what stands inside is not",
    "trailing_text": "returned without the text around it",
    "wrong_name_dropped": "returned once a tool of that name is offered",
    "schema_dropped": "returned once the schema allows everything",
    "erased": "neither the call nor its text came out",
    "parser_loss": "a simple call in this very form is read, this one is not",
    "stream_loss": "returned whole, not streamed",
    "mangled": "another name or other arguments came out",
    "failed": "the parser raised, crashed or hung",
    "unasked": "the parser could not be given the text; not counted as lost",
}


def show(report: Report) -> None:
    """The report for a person."""
    out = screen.out
    out(visible(headline(report)))
    out(
        screen.plain(
            f"{report.texts:,} texts ({report.raw:,} before any parser) · streamed: {visible(report.splits)}"
        )
    )
    out()
    _table(report)
    layers = dict.fromkeys(layer for row in report.rows for layer in row.layers)
    for layer in layers:
        out(f"{layer}: {_MEANT.get(layer, '')}")
    if report.examples:
        out()
    for one in _examples(report):
        out(one)
    _notes(report)


def headline(report: Report) -> str:
    """The answer in a sentence, for the least and the most that any row returned."""
    rows = [row for row in report.rows if row.way == "whole" and row.emitted.calls]
    if not rows:
        return f"no call stands in {report.texts:,} texts: there is nothing that a parser could lose"
    groups = dict.fromkeys(row.group for row in rows)
    said = []
    for group in groups:
        of = [row for row in rows if row.group == group]
        most, least = max(of, key=lambda r: r.returned), min(of, key=lambda r: r.returned)
        name = f"{group}: " if len(groups) > 1 else ""
        text = f"{name}{most.parser} returned {most.returned:,} of {most.emitted.calls:,} emitted calls"
        if most is not least:
            text += f", {least.parser} {least.returned:,}"
        said.append(f"{text}; censored {share(most)}{'' if most is least else f' and {share(least)}'}")
    return " | ".join(said)


def share(row: Row) -> str:
    """Texts in which a well-formed call was lost, of all."""
    return f"{100 * row.lost / row.emitted.texts:.1f} %" if row.emitted.texts else screen.glyphs().dash


def show_csv(report: Report) -> None:
    """The rows, one column a layer."""
    layers = list(_MEANT)
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    head = [
        "group",
        "parser",
        "way",
        "texts",
        "tight",
        "strong",
        "weak",
        "calls",
        "parsed",
        "returned",
        "lost",
    ]
    writer.writerow([*head, "phantom", "split", *layers])
    for row in report.rows:
        e = row.emitted
        writer.writerow(
            [row.group, row.parser, row.way, e.texts, e.tight, e.strong, e.weak, e.calls, row.parsed]
            + [row.returned, row.lost, row.phantom, "" if row.split is None else row.split]
            + [row.layers.get(layer, 0) for layer in layers]
        )
    screen.out(target.getvalue().rstrip("\n"))


def _table(report: Report) -> None:
    """A table for each archive."""
    groups = dict.fromkeys(row.group for row in report.rows)
    left = _MOST_ROWS
    for group in groups:
        rows = [row for row in report.rows if row.group == group]
        e = rows[0].emitted
        name = f"{group}: " if len(groups) > 1 else ""
        screen.out(
            visible(
                f"{name}{e.texts:,} texts, {e.weak:,} with a call (tight {e.tight:,}, strong {e.strong:,}, "
                f"weak {e.weak:,}), {e.calls:,} calls"
            )
        )
        _archive(rows[:left])
        if len(rows) > left:
            screen.out(f"{len(rows) - left:,} rows more: --csv or --json lists all")
        left = max(0, left - len(rows))
        screen.out()


def _archive(rows: Sequence[Row]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="")
    for name in ("parser", "way", "returned", "parsed", "censored", "lost as"):
        table.add_column(name, justify="right" if name in ("returned", "parsed", "censored") else "left")
    for row, way in _joined(rows):
        layers = ", ".join(f"{layer} {n:,}" for layer, n in row.layers.items())
        extra = [f"phantom texts {row.phantom:,}"] if row.phantom else []
        extra += [f"streamed otherwise {row.split:,}"] if row.split else []
        table.add_row(
            visible(row.parser, 48),
            way,
            f"{row.returned:,}/{row.emitted.calls:,}",
            f"{row.parsed:,}",
            share(row),
            "; ".join([layers, *extra] if layers else extra) or screen.glyphs().dash,
        )
    screen.console().print(table)


def _joined(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    """Rows with their way; whole and streamed in one where they are the same."""
    out: list[tuple[Row, str]] = []
    for row in rows:
        last = out[-1][0] if out else None
        same = last is not None and row.parser == last.parser and row.layers == last.layers
        if same and row.way == "streamed" and not row.split and row.states == (last and last.states):
            out[-1] = (row, "both")
        else:
            out.append((row, row.way))
    return out


def _examples(report: Report) -> list[str]:
    lines = []
    seen: set[str] = set()
    for one in report.examples:
        if one.layer in seen:
            continue
        seen.add(one.layer)
        about = (
            f"{one.id} {one.parser} ({one.way}): {one.layer}, characters {one.start}-{one.end}: {one.reason}"
        )
        lines += [visible(about, 300), "    " + visible(one.text, screen.width() - 6)]
    return lines[: 2 * _MOST_EXAMPLES]


def _notes(report: Report) -> None:
    for one in report.idle:
        screen.out(visible(f"note: {one.parser} does not work here: {one.reason}", 300))
    if report.skipped:
        said = ", ".join(f"{reason} {n:,}" for reason, n in report.skipped.items())
        screen.out(visible(f"note: not replayed: {said}", 300))
    if report.raw < report.texts:
        screen.out(
            f"note: {report.texts - report.raw:,} texts are an interface's content: what its own parser took out is "
            "not in them"
        )
    health = report.health
    if any(health.get(key) for key in ("crashed", "hung", "noise", "too_large")):
        told = ", ".join(f"{key} {n}" for key, n in health.items())
        screen.out(f"note: workers: {told}")
