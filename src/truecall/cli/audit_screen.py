"""An audit on a terminal: the answer first, then the tables, the runs and what can't be known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from truecall.cli import screen
from truecall.cli.screen import visible

if TYPE_CHECKING:
    from truecall.audits.bfcl import LeaderboardAudit, Report, RunAudit
    from truecall.audits.bfcl.categories import CategoryAudit
    from truecall.audits.bfcl.corrected import Bounds, CorrectedRow
    from truecall.audits.bfcl.gated import GatedCategory, GatedEntry
    from truecall.sources.base import Bad

_MAX_SHOWN = 12
_FEW = 4  # entries of a state that are named without being asked for


def out(text: str = "") -> None:
    """One line on stdout, in glyphs that the terminal has."""
    screen.out(screen.plain(text))


def show(report: Report, answer: str, kept: Path | None, *, entries: bool) -> None:
    """The whole report on stdout."""
    out(visible(answer))
    where = f", sha256 in {kept}" if kept else ""
    out(f"sources {len(report.files)} files{where} · rules {report.rules} · detector {report.detector}")
    for board in report.leaderboards:
        _leaderboard(board, entries)
    for run in report.runs:
        _run(run, entries)
    for item in report.disagreements:
        override = item.override
        ruled = f"the rules say {item.ruled}" if item.ruled else "no entry fits it"
        out(f"override {visible(item.model or override.model)} {visible(override.id)}: {override.state}; {ruled}"
             + (f" ({visible(override.why, 120)})" if override.why else ""))  # fmt: skip
    bad_lines(report.bad, report.bad_count)
    if report.doubled:
        out(f"not read, their category had been read: {visible(', '.join(report.doubled[:5]), 200)}")
    out()
    out("not knowable from these files: " + "; ".join(report.not_knowable))
    if any(run.gated for run in report.runs):
        out("corrected overall only as bounds where an entry can't be settled")
    _next(report, kept)


def _next(report: Report, kept: Path | None) -> None:
    listed = [e for run in report.runs for found in run.gated for e in found.entries]
    entry = min(listed, key=_telling, default=None)
    if entry is not None:
        at = "" if kept and kept == Path("audit.lock") else f" --lock {kept}" if kept else " --in DIR"
        out(f"next: truecall audit explain {visible(entry.model)} {visible(entry.id)}{at}")
    if kept:
        out(f"      truecall audit verify {kept}")
    if any("in_text" in found.outcomes for run in report.runs for found in run.categories):
        from truecall.cli import VERBS

        if "record" in VERBS:
            out(
                "      truecall record --upstream URL --surface -- bfcl generate ...   (delivers calls left in text)"
            )


def _telling(entry: GatedEntry) -> tuple[bool, int]:
    """Orders entries by how much there is to explain: unread calls that were credited first."""
    order = ("MALFORMED", "SERVING_ERROR", "EMPTY", "CALLED", "ABSTAINED")
    return not entry.credited, order.index(entry.state)


def bad_lines(bad: Sequence[Bad], count: int) -> None:
    """What could not be read, the first of it with its place."""
    if not count:
        return
    out()
    out(f"left out, bad lines: {count:,}")
    for item in bad[:_MAX_SHOWN]:
        place = item.place
        line = f":{place.line}" if place.line else f"[{visible(place.entry)}]" if place.entry else ""
        out(f"  {visible(place.file)}{line} {visible(item.reason, 120)}")
    if count > _MAX_SHOWN:
        out(f"  … and {count - _MAX_SHOWN} more (--json lists them)")


# --------------------------------------------------------------------------- leaderboard


def _leaderboard(board: LeaderboardAudit, entries: bool) -> None:
    table = board.table
    out()
    fit, plain = table.weighted, table.unweighted
    of = "" if table.folder == "." else f" of {visible(table.folder)}"
    text = f"{len(table.rows)} rows{of}" if len(table.rows) != 1 else f"1 row{of}"
    if fit is not None and plain is not None:
        all_fit = "all" if fit.within == fit.rows else f"{fit.within} of {fit.rows}"
        none_fit = "none" if not plain.within else str(plain.within)
        text += (
            f": the weighted sum fits {all_fit} within {max(fit.largest, 0):.3f}, the unweighted mean fits {none_fit} "
            f"(mean gap {plain.mean:.2f}, least {plain.least:.2f}; worst {visible(plain.worst)})"
        )
    out(text)
    for note in table.notes:
        out(f"  {note}")
    controls = table.controls
    if controls is not None and controls.rows > 1:
        out(f"control: the first {controls.rows} rows get {_range(controls.share)} % of their score from "
             f"irrelevance and have relevance {_range(controls.relevance)}")  # fmt: skip
    shown = [
        (row, new)
        for row, new in zip(table.rows, board.corrected, strict=True)
        if entries or row.flags or new.touched
    ]
    if not shown:
        return
    grid = grid_of("rank", "model", "overall", "corrected", "ranks", "irrel.", "relev.", "share", "flag")
    for row, new in shown:
        grid.add_row(
            str(row.rank), visible(row.model), f"{row.overall:.2f}",
            _bounds(new.overall) if new.touched else "", _ranks(new), f"{row.blocks['irrelevance']:.2f}",
            "N/A" if row.relevance is None else f"{row.relevance:.2f}",
            "" if row.share is None else f"{row.share:.2f} %", " ".join(row.flags),
        )  # fmt: skip
    screen.console().print(grid)
    for fixed in board.corrected:
        if fixed.as_weighed is not None:
            out(
                f"  {visible(fixed.model)}: {_bounds(fixed.as_weighed)} with EMPTY taken as the run speaks for"
            )
    out(
        "  the other rows stand as published; a row with the signature but no result files keeps 0 to its whole block"
    )


def _range(span: tuple[float, float] | None) -> str:
    return "unknown" if span is None else f"{span[0]:.2f}-{span[1]:.2f}"


def _bounds(span: Bounds) -> str:
    low, high = f"{span.low:.2f}", f"{span.high:.2f}"
    return low if low == high else f"{low} to {high}"


def _ranks(row: CorrectedRow) -> str:
    return str(row.best_rank) if row.best_rank == row.worst_rank else f"{row.best_rank}-{row.worst_rank}"


def grid_of(*names: str) -> Table:
    """An empty table with these columns."""
    from rich import box
    from rich.table import Table

    grid = Table(
        box=box.SIMPLE_HEAD if screen.glyphs().unicode else box.ASCII, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for name in names:
        grid.add_column(name, overflow="fold")
    return grid


if TYPE_CHECKING:
    from rich.table import Table


# --------------------------------------------------------------------------- runs


def _run(run: RunAudit, entries: bool) -> None:
    out()
    row = f" = {visible(run.row)}" if run.row and run.row != run.model else ""
    at = "" if run.root == "." else f" ({visible(run.root)})"
    relevance = "" if run.relevance is None else f" · relevance {run.relevance:.2f}"
    out(f"{visible(run.model)}{row}{at}{relevance}")
    for found in run.gated:
        _gated(found, entries)
    if run.weighed.empty:
        words = {
            "lost": "as a run, the signature of lost calls", "abstained": "as a run, most likely abstentions",
            "model_empty": "empty from the model", "undecided": "undecided as a run, too",
        }  # fmt: skip
        out(f"  {run.weighed.empty} EMPTY: can't be settled per entry; {words.get(run.weighed.reading, '')} "
             f"({run.weighed.why})")  # fmt: skip
    for category in run.categories:
        _category(category, entries, "stack" if _calls_tools(run) else "stack or harness")


def counts(states: dict[str, int]) -> str:
    """Names with their counts on one line."""
    return " · ".join(f"{name} {count}" for name, count in states.items()) or "none"


def _gated(found: GatedCategory, entries: bool) -> None:
    every, credited = found.every, found.credited
    known = "credit not known" if credited is None else f"credited {credited.entries}/{every.entries}"
    source = {"table": ", by the table", "unknown": "", "score file": ""}[found.credit_source]
    wrong = "" if credited is None else f", {every.entries - credited.entries} wrong"
    out(f"  {found.category}: {known}{wrong}{source}")
    out(f"    all       {counts(every.states)}")
    if credited is not None and credited.entries:
        out(f"    credited  {counts(credited.states)}")
    for state in every.states:
        named = [entry.id for entry in found.entries if entry.state == state]
        if state != "CALLED" and len(named) <= _FEW:
            out(f"    {state}: {visible(' '.join(named))}")
    for marker, count in every.markers.items():
        right = ""
        if credited is not None and credited.entries:
            right = f", {credited.markers.get(marker, 0)} of the {credited.entries} credited"
        out(f"    {marker} stands in {count} of {every.entries}{right}")
    if every.marked:
        base = credited if credited is not None and credited.marked else every
        of = "credited with markup" if base is credited else "with markup"
        text = f"{base.without_name_key} of the {base.marked} {of} have no name key"
        if base.names_offered:
            text += f"; {base.names_offered[0]} of {base.names_offered[1]} name an offered function"
        out(f"    {text}")
        out(f"    detector tiers: all {counts(every.tiers)}"
             + ("" if credited is None or not credited.entries else f"; credited {counts(credited.tiers)}")
             + f"; by the text alone {counts(found.alone)}")  # fmt: skip
    if found.cap and every.at_cap:
        out(f"    {every.at_cap} end at {found.cap:,} output tokens")
    if every.empty_tokens is not None:
        low, high = every.empty_tokens
        out(f"    EMPTY with {low:g}-{high:g} output tokens")
    for problem in found.problems:
        out(f"    note: {problem}")
    if entries:
        for entry in found.entries:
            _entry(entry)


def _entry(entry: GatedEntry) -> None:
    credit = {True: "credited", False: "wrong", None: "credit unknown"}[entry.credited]
    tier = f" {entry.tier}" if entry.tier else ""
    tokens = "" if entry.output_tokens is None else f" {entry.output_tokens:g} tokens"
    line = f":{entry.line}" if entry.line else ""
    out(
        f"      {visible(entry.id)}  {entry.state} ({entry.rule}){tier} {credit}{tokens}  {visible(entry.file)}{line}"
    )


_LABELS = (
    ("request_failed", "request failed, stored as a result", "stack"),
    ("in_text", "emitted, left in the text", ""),
    ("rejected", "emitted, scorer rejected", "harness or model"),
    ("surfaced", "emitted, not scored here", ""),
    ("right", "emitted, scored right", ""),
    ("no_call", "no call", "model"),
    ("empty", "empty: nothing was stored", "not knowable"),
)


def _failed_part(found: CategoryAudit) -> str:
    """Whose failed requests were."""
    from truecall.audits.failures import HARNESS_CAUSES

    causes = found.reasons.get("request_failed", {})
    own = sum(causes.get(name, 0) for name in HARNESS_CAUSES)
    return "harness" if own == sum(causes.values()) else "stack and harness" if own else "stack"


def _calls_tools(run: RunAudit) -> bool:
    """Whether the run used an interface's tool calls ("FC"); a prompted one is parsed by the harness itself."""
    return run.model.lower().endswith("-fc") or "(fc" in (run.row or "").lower()


def _category(found: CategoryAudit, entries: bool, text_parser: str) -> None:
    score = "no score" if found.score is None else f"{found.score[0]}/{found.score[1]} right"
    percent = (
        ""
        if found.score is None or not found.score[1]
        else f" ({100 * found.score[0] / found.score[1]:.1f} %)"
    )
    out(f"  {found.category}: {score}{percent}")
    for name, label, part in _LABELS:
        count = found.outcomes.get(name, 0)
        if not count:
            continue
        valid = f", {found.valid[name]} valid" if name in found.valid and name != "right" else ""
        examples = [item.id for item in found.listed if item.outcome == name][:3]
        shown = f"  {visible(' '.join(examples), 60)} …" if name not in ("right",) and not entries else ""
        part = {"in_text": text_parser, "request_failed": _failed_part(found)}.get(name, part)
        out(f"    {label + valid:<44} {count:>5}   {part}{shown}")
    for outcome, label in (("request_failed", "failed"), ("in_text", "not valid"), ("rejected", "rejected")):
        if outcome in found.reasons:
            out(f"    {label}: {counts(found.reasons[outcome])}")
    if found.emitted_valid is not None and found.interval is not None:
        k, n = found.emitted_valid
        out(f"    emitted fidelity {k}/{n} = {100 * k / n:.1f} % [{100 * found.interval.low:.1f}, "
             f"{100 * found.interval.high:.1f}]" + _delivered(found))  # fmt: skip
    elif found.emitted[1]:
        out(f"    a call in {found.emitted[0]} of {found.emitted[1]} produced{_delivered(found)}")
    for note in found.notes:
        out(f"    note: {note}")
    if entries:
        for item in found.listed:
            line = f":{item.line}" if item.line else ""
            out(f"      {visible(item.id)}  {item.outcome} {item.reason}  {visible(item.file)}{line}")


def _delivered(found: CategoryAudit) -> str:
    if found.if_delivered is None:
        return ""
    low, high = found.if_delivered
    span = f"{low}" if low == high else f"{low} to {high}"
    return f" · if delivered, {span}/{found.entries} right (an upper bound, not a score)"
