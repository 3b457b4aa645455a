"""A scan's report on the screen: the answer first, then a line for each group, then places to look at."""

from __future__ import annotations

import csv
import io
import os
from typing import TYPE_CHECKING, Any

import msgspec

from truecall.cli import screen
from truecall.cli.screen import visible
from truecall.report.words import size

if TYPE_CHECKING:
    from truecall.scan.summary import Numbers, Rate, Report
    from truecall.scan.tally import Example

_COLUMNS = (
    ("emitted", "emitted"),
    ("emitted_valid", "valid"),
    ("surfaced", "surfaced"),
    ("censored", "lost"),
    ("executed", "executed"),
    ("observed", "observed"),
)
_MOST_GROUPS = 60
_MOST_EXAMPLES = 6


def plain(report: Report) -> dict[str, Any]:
    """The report as plain data."""
    data: dict[str, Any] = msgspec.to_builtins(report)
    return data


def show(report: Report) -> None:
    """The report for a person."""
    out = screen.out
    out(visible(report.headline))
    kinds = ", ".join(f"{name} ×{n:,}" for name, n in report.sources.items()) or "nothing"
    out(
        screen.plain(
            f"{kinds} · {report.files:,} files · {size(report.bytes)} · {report.total.turns:,} turns"
        )
    )
    out()
    _table(report)
    _beside(report.total)
    for line in report.limits:
        out(visible(f"note: {line}"))
    if report.examples:
        out()
        for example in report.examples[:_MOST_EXAMPLES]:
            _example(example)
    for bad in report.bad_named[:5]:
        out(visible(f"bad: {_place(bad.place)}: {bad.reason}", 300))


def show_csv(report: Report) -> None:
    """One line for each group; a rate has three columns: k, unknown, n."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    names = list(report.total.rates)
    head = [*report.by, "turns", "eligible"]
    writer.writerow([*head, *(f"{name}_{part}" for name in names for part in ("k", "unknown", "n"))])
    for one in report.groups or (report.total,):
        values: list[Any] = [
            *(_safe(one.group.get(field, "")) for field in report.by),
            one.turns,
            one.eligible,
        ]
        for name in names:
            rate = one.rates[name]
            values += [rate.k, rate.unknown, rate.n]
        writer.writerow(values)
    screen.out(target.getvalue().rstrip("\n"))


def _safe(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@") and not text.lstrip("-").isdecimal() else text


def _table(report: Report) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="")
    for field in report.by or ("",):
        table.add_column(field, overflow="fold")
    table.add_column("turns", justify="right")
    for _, label in _COLUMNS:
        table.add_column(label, justify="right")
    blanks = bool(report.total.placeholders)
    if blanks:
        table.add_column("placeholders", justify="right")
    shown = report.groups[:_MOST_GROUPS]
    common = _common_folder([one.group["file"] for one in shown]) if "file" in report.by else ""
    for one in shown:
        names = (one.group[field].removeprefix(common) for field in report.by)
        table.add_row(*(visible(name, 60) for name in names), f"{one.eligible:,}", *_cells(one, blanks))
    if not report.groups or len(report.groups) > 1:
        whole = ["all", *[""] * (len(report.by) - 1)]
        table.add_row(*whole, f"{report.total.eligible:,}", *_cells(report.total, blanks))
    screen.console().print(table)
    if len(report.groups) > len(shown):
        screen.out(f"{len(report.groups) - len(shown):,} groups more: --csv or --json lists all")


def _common_folder(files: list[str]) -> str:
    """The folder that all files share, with its slash: what need not be said on every line."""
    common = os.path.commonprefix(files)  # noqa: RUF071 - cut at a slash below; addresses and "(other)" are no paths
    return common[: common.rfind("/") + 1] if len(files) > 1 else ""


def _cells(one: Numbers, blanks: bool) -> list[str]:
    cells = [_cell(one.rates[name]) for name, _ in _COLUMNS]
    if blanks:  # of the turns with a whole call
        emitted = one.rates["emitted"].k
        cells.append(f"{one.placeholders / emitted * 100:.1f} %" if emitted else screen.glyphs().dash)
    return cells


def _cell(rate: Rate) -> str:
    """``71.2 %`` where all is known, ``40.0-71.2 %`` where some is not, ``unknown`` where nothing is."""
    dash = screen.glyphs().dash
    if not rate.n:
        return dash
    if rate.value is not None:
        return f"{rate.value * 100:.1f} %"
    if rate.unknown == rate.n or (rate.k == 0 and rate.unknown):
        return "unknown" if rate.k == 0 else f"{rate.k / rate.n * 100:.1f}{dash}100 %"
    return f"{rate.k / rate.n * 100:.1f}{dash}{(rate.k + rate.unknown) / rate.n * 100:.1f} %"


def _beside(total: Numbers) -> None:
    """What stands beside the rates: intervals of the main ones, causes, dialects, errors."""
    out = screen.out
    valid = total.rates["emitted_valid"]
    if valid.low is not None and valid.high is not None:
        out(
            f"valid calls emitted, 95 % limits: {valid.low * 100:.1f} to {valid.high * 100:.1f} % of {valid.n:,} turns"
        )
    mean = total.per_episode
    if mean is not None and mean.mean is not None:
        span = (
            f" [{mean.low * 100:.1f}, {mean.high * 100:.1f}]"
            if mean.low is not None and mean.high is not None
            else ""
        )
        out(
            f"per episode, averaged over {mean.episodes:,}: {mean.mean * 100:.1f} %{span or ' (' + mean.reason + ')'}"
        )
    for label, counts in (
        ("dialects", total.dialects),
        ("delivery", total.delivery),
        ("no answer", total.errors),
    ):
        if counts:
            out(visible(f"{label}: " + ", ".join(f"{name} {n:,}" for name, n in list(counts.items())[:8])))
    if total.placeholders:
        out(f"placeholders in place of arguments: in {total.placeholders:,} of the turns with a call")


def _example(example: Example) -> None:
    about = f"{example.emission} {example.delivery} ({example.rule})"
    screen.out(visible(f"{_place(example.place)}  {about}", 300))
    if example.text:
        screen.out("    " + visible(example.text, screen.width() - 6))


def _place(place: Any) -> str:
    where = f":{place.line}" if place.line else f" at byte {place.offset}" if place.offset is not None else ""
    return f"{place.file}{where}" + (f" {place.entry}" if place.entry else "")
