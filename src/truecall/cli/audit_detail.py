"""The smaller screens of an audit: tau-bench and tau2, a verified lock, an entry explained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from truecall.cli import screen
from truecall.cli.audit_screen import bad_lines, counts, grid_of, out
from truecall.cli.screen import visible

if TYPE_CHECKING:
    from truecall.audits.explain import Explained
    from truecall.audits.lock import Difference, Lock
    from truecall.audits.tau import Score, TauReport


def show_tau(report: TauReport, answer: str, kept: Path | None, *, entries: bool) -> None:
    """A tau-bench or tau2 report on stdout."""
    out(visible(answer))
    where = f", sha256 in {kept}" if kept else ""
    out(f"{report.simulations} simulations, {report.tasks} tasks, {len(report.files)} files{where}")
    out(f"rules {report.rules} · detector {report.detector}")
    if not report.simulations:
        bad_lines(report.bad, len(report.bad))
        return
    if report.errors:
        out(f"errors by cause: {counts(report.errors)}")
    grid = grid_of("treatment", "mean reward", "n", "pass^k")
    names = {"published": "as published", "errors_as_failures": "errors counted as failures",
             "errors_dropped": "every error left out", "serving_errors_dropped": "serving errors left out"}  # fmt: skip
    for name, score in (("published", report.published), *report.scores.items()):
        grid.add_row(names[name], _rate(score), str(score.n), _pass(score))
    screen.console().print(grid)
    if report.low != report.high and report.low is not None and report.high is not None:
        out(
            f"errors of unknown cause leave it between {100 * report.low:.1f} % and {100 * report.high:.1f} %"
        )
    if report.left:
        out(
            f"{report.left_replies} replies in {report.left} simulations hold a call that was left in the text"
        )
    if report.unrewarded:
        out(f"{report.unrewarded} simulations without a reward are counted as 0")
    for entry in report.entries if entries else ():
        out(f"  {visible(entry.file)}[{entry.index}] task {visible(entry.task)} trial {visible(entry.trial)} "
             f"{entry.cause or 'call left in text'} {visible(entry.error, 100)}")  # fmt: skip
    bad_lines(report.bad, len(report.bad))
    out("not knowable from these files: " + "; ".join(report.not_knowable))
    if kept:
        out(f"next: truecall audit verify {kept}")


def _rate(score: Score) -> str:
    return "unknown" if score.rate is None else f"{100 * score.rate:.1f} % ({score.total:g}/{score.n})"


def _pass(score: Score) -> str:
    return "  ".join(f"{k}: {100 * value:.1f}" for k, value in score.pass_k.items())


def show_verified(locked: Lock, now: Lock, differences: Iterable[Difference]) -> None:
    """Whether a repeated audit is what its lock says."""
    found = list(differences)
    if not found:
        out(f"Identical: {len(locked.files)} files and the report are what the lock says.")
    else:
        out(f"Different in {len(found)} points:")
        for item in found:
            out(f"  {visible(item.what)}: locked {visible(item.locked, 300)}; now {visible(item.found, 300)}")
    if locked.detector != now.detector or locked.truecall != now.truecall:
        made = f"locked with truecall {locked.truecall}, detector {locked.detector}"
        out(f"{made}; this is {now.truecall}, {now.detector}")


def show_explained(found: Sequence[Explained]) -> None:
    """Entries in full: the stored text line by line, with the kind of each stretch."""
    from truecall.audits.explain import marked

    for index, item in enumerate(found):
        if index:
            out()
        entry, judged = item.gated, item.judged
        state = (
            f"{entry.state}, rule {entry.rule}" if entry else str(judged.outcome) if judged else "not audited"
        )
        out(f"{visible(item.id)} of {visible(item.model)} ({item.category}): {state}")
        if item.rule_says:
            out(f"  {item.rule_says}")
        if judged is not None and judged.reason:
            out(f"  rejected: {visible(judged.reason)}")
        line = f":{item.line}" if item.line else ""
        out(f"  scorer: {visible(item.scorer, 300)} · {visible(item.file)}{line}")
        if item.functions is not None:
            out(f"  offered: {visible(', '.join(item.functions), 300)}")
        for call in item.detection.calls if item.detection else ():
            formed = "well formed" if call.well_formed else "malformed"
            defects = f" ({', '.join(call.defects)})" if call.defects else ""
            place = f"characters {call.span.start}-{call.span.end}"
            out(
                f"  call {visible(call.name or '(no name)')}: {call.dialect}, {formed}, {call.tier}, {place}{defects}"
            )
        out("  stored:")
        parts = marked(item.raw, item.detection) if item.is_text and item.detection else [("", item.raw)]
        for kind, part in parts:
            for text in part.split("\n"):
                out(f"    {kind:<9}| {visible(text)}" if kind else f"    {visible(text)}")
        if item.traceback:
            out(f"  traceback: {visible(item.traceback.strip().splitlines()[-1], 300)}")
