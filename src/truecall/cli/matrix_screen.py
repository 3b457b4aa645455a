"""The matrix on the screen."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from truecall.cli import screen
from truecall.cli.screen import visible
from truecall.replay.matrix import TAKEN

if TYPE_CHECKING:
    from truecall.replay.matrix import Cell, Change, Interaction, Meeting, Ran
    from truecall.replay.samples import Sample
    from truecall.templates import Asked

_WIDE = 6  # parsers that fit beside each other
_MOST = 40


def show(ran: Sequence[Ran], texts: Sequence[Sample]) -> None:
    """Dialect by parser: ``canonical taken / there are``, then the malformed ones."""
    right = sum(not text.fault for text in texts)
    out = screen.out
    out(
        f"{len(texts):,} texts ({right:,} as they should be, {len(texts) - right:,} malformed or yours) through "
        f"{sum(len(one.parsers) for one in ran):,} parsers"
    )
    for one in ran:
        out()
        out(visible(one.engine))
        (_table if len(one.parsers) <= _WIDE else _list)(one)
        for idle in one.idle:
            out(visible(f"note: {idle.parser} does not work here: {idle.reason}", 300))


def show_csv(ran: Sequence[Ran]) -> None:
    """One line for each parser and text."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(["engine", "parser", "dialect", "form", "case", "fault", "outcome", "detail"])
    for one in ran:
        for cell in one.cells:
            writer.writerow(
                [
                    one.engine,
                    cell.parser,
                    cell.dialect,
                    cell.form,
                    cell.case,
                    cell.fault,
                    cell.outcome,
                    cell.detail,
                ]
            )
    screen.out(target.getvalue().rstrip("\n"))


def _counts(cells: Sequence[Cell]) -> str:
    """``4/4`` of the canonical forms' best, ``7/9`` of the malformed, and what became of the rest."""
    forms: dict[str, list[Cell]] = {}
    for cell in cells:
        if not cell.fault:
            forms.setdefault(cell.form, []).append(cell)
    best = max((sum(c.outcome == TAKEN for c in some), len(some)) for some in forms.values())
    odd = [cell for cell in cells if cell.fault]
    taken = sum(cell.outcome == TAKEN for cell in odd)
    rest = Counter(cell.outcome for cell in cells if cell.outcome not in (TAKEN, "text"))
    said = f"{best[0]}/{best[1]}" + (f" {taken}/{len(odd)}" if odd else "")
    return said + "".join(f" {name} {n}" for name, n in rest.most_common(2))


def _table(one: Ran) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("dialect")
    for parser in one.parsers:
        table.add_column(visible(parser, 24), overflow="fold")
    for dialect in dict.fromkeys(cell.dialect for cell in one.cells):
        cells = [
            [cell for cell in one.cells if cell.dialect == dialect and cell.parser == parser]
            for parser in one.parsers
        ]
        table.add_row(visible(dialect, 24), *map(_counts, cells))
    screen.console().print(table)
    screen.out(
        "canonical taken of all (the best form), malformed taken of all, and what was worse than left as text"
    )


def _list(one: Ran) -> None:
    """For each dialect the parsers that take some of its canonical texts."""
    for dialect in dict.fromkeys(cell.dialect for cell in one.cells):
        takers = []
        erasers = Counter[str]()
        for parser in one.parsers:
            cells = [c for c in one.cells if c.dialect == dialect and c.parser == parser and not c.fault]
            taken = sum(c.outcome == TAKEN for c in cells)
            if taken:
                takers.append(f"{parser} {taken}/{len(cells)}")
            elif any(c.outcome == "erased" for c in cells):
                erasers[parser] += 1
        worse = f"; ERASED by {', '.join(erasers)}" if erasers else ""
        screen.out(visible(f"  {dialect}: {', '.join(takers) or 'taken by none'}{worse}"))


def show_changes(now: Ran, before: Ran, changed: Sequence[Change]) -> None:
    """What a version does otherwise than an older one."""
    worse = sum(change.regression for change in changed)
    pairs = sum(cell.parser in before.parsers for cell in now.cells)
    screen.out()
    screen.out(
        f"{now.engine} against {before.engine}: of {pairs:,} pairs of parser and text {worse:,} are no longer taken, "
        f"{len(changed) - worse:,} changed otherwise"
    )
    for what, names in (
        ("gone", set(before.parsers) - set(now.parsers)),
        ("new, and not compared", set(now.parsers) - set(before.parsers)),
    ):
        if names:
            screen.out(visible(f"  parsers that are {what}: {', '.join(sorted(names))}"))
    groups: dict[tuple[bool, str, str, str], Counter[str]] = {}
    for one in changed:
        form = one.form if one.form.startswith(one.dialect) else f"{one.dialect}, {one.form}"
        key = (one.regression, one.parser, one.before, one.after)
        groups.setdefault(key, Counter())[form] += 1
    for (regression, parser, was, after), forms in list(groups.items())[:_MOST]:
        mark = "REGRESSION" if regression else "changed"
        told = "; ".join(f"{form} {n:,}" for form, n in forms.items())
        screen.out(visible(f"  {mark} {parser}, {was} to {after}: {told}", 300))
    if len(groups) > _MOST:
        screen.out(f"  {len(groups) - _MOST:,} more lines")
    if changed:
        screen.say("--json lists every text that changed")


def show_templates(
    asked: Sequence[Asked], meetings: Sequence[Meeting], contrasts: Sequence[Interaction]
) -> None:
    """Which dialect each template asks for, and template × parser."""
    from rich.table import Table

    for one in asked:
        screen.out(visible(_asked(one), 300))
    screen.out()
    table = Table(box=None, pad_edge=False, header_style="")
    parsers = list(dict.fromkeys(m.parser for m in meetings))
    shown = parsers if len(parsers) <= _WIDE else _taking(meetings)
    table.add_column("template", overflow="fold")
    for parser in shown[:_WIDE]:
        table.add_column(visible(parser, 40), overflow="fold")
    cells = {(m.template, m.parser): m for m in meetings}
    for one in asked:
        row = [cells.get((one.template, parser)) for parser in shown[:_WIDE]]
        table.add_row(visible(one.template, 40), *(f"{m.taken}/{m.written}" if m else "" for m in row))
    screen.console().print(table)
    if len(shown) < len(parsers):
        screen.out(f"{len(parsers) - len(shown)} parsers read none of it")
    for meeting in meetings if len(parsers) <= _WIDE else []:
        if meeting.advice:
            screen.out(visible(f"{meeting.template} × {meeting.parser}: {meeting.advice}", 300))
    for contrast in contrasts[:_MOST] if len(parsers) <= _WIDE else []:
        screen.out(
            visible(
                f"{' and '.join(contrast.templates)} × {' and '.join(contrast.parsers)}: template "
                f"{contrast.main_template:+.2f}, parser {contrast.main_parser:+.2f}, interaction "
                f"{contrast.interaction:+.2f}"
            )
        )


def _asked(one: Asked) -> str:
    if one.fault:
        return f"{one.template}: does not render ({one.fault})"
    if one.tools is False:
        return (
            f"{one.template}: does not show the tools to the model: whatever it is asked, it can't know them"
        )
    said = f"{one.template}: asks for {one.dialect or 'no dialect that is known'}"
    if one.dialect and all(text is None for text in one.writes):
        said += " (by its instruction; it can't write calls of earlier turns)"
    return said


def _taking(meetings: Sequence[Meeting]) -> list[str]:
    best: Counter[str] = Counter()
    for meeting in meetings:
        best[meeting.parser] += meeting.taken
    return [parser for parser, taken in best.most_common() if taken]
