"""A tau-bench or tau2 audit as a section."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from truecall.audits.tau import Score, TauReport
from truecall.report.charts.kinds import Slice, Stack
from truecall.report.data import Block, Figure, Measure, Note, Part, Section, Table, columns
from truecall.report.share import Mask
from truecall.report.unread import MOST, unread
from truecall.report.words import many

_TREATMENTS: Final = {
    "published": "as published",
    "errors_as_failures": "errors counted as failures",
    "errors_dropped": "every error left out",
    "serving_errors_dropped": "serving errors left out",
}


def section(report: TauReport, answer: str, name: str, mask: Mask, notes: Sequence[str]) -> Section:
    """A tau-bench or tau2 audit."""
    scores = {"published": report.published, **report.scores}
    heads = columns("treatment", "#mean reward", "#simulations", "pass^k")
    table = Table(
        caption="The score with each treatment of errors",
        columns=heads,
        rows=tuple((_TREATMENTS.get(key, key), *_score(score)) for key, score in scores.items()),
    )
    blocks: list[Block] = [Note(text=text, tone="warn") for text in notes]
    blocks.append(table)
    if report.low is not None and report.high is not None and report.low != report.high:
        blocks.append(
            Note(
                text=f"Errors of unknown cause leave it between {100 * report.low:.1f} and {100 * report.high:.1f} %."
            )
        )
    if report.left:
        where = f"{report.left_replies} replies in {many(report.left, 'simulation')}"
        blocks.append(Note(text=f"{where} hold a call that was left in the text."))
    blocks.append(Note(text=f"Not knowable from these files: {'; '.join(report.not_knowable)}.", tone="warn"))
    parts = [Part(title="Scores", blocks=tuple(blocks))]
    if report.errors:
        slices = tuple(
            Slice(group=report.kind, kind=cause, count=count) for cause, count in report.errors.items()
        )
        figure = Figure(
            name="errors",
            title="Errors by cause",
            says="Simulations that ended in an error.",
            chart=Stack(slices=slices, unit="errors"),
        )
        parts.append(Part(title="Errors", blocks=(figure, _entries(report, mask))))
    parts += unread(report.bad, len(report.bad), mask)
    return Section(
        kind="audit",
        name=name,
        title=f"Audit of {report.kind} results",
        subtitle=f"{many(report.simulations, 'simulation')} · {many(report.tasks, 'task')} · rules {report.rules}",
        answer=answer,
        parts=tuple(parts),
        measures=tuple(
            Measure(
                group=report.kind,
                number=f"mean reward, {key}",
                average="pooled",
                low=score.rate,
                high=score.rate,
                unit="simulations",
                n=score.n,
                reason="" if score.n else "no simulation counts",
            )
            for key, score in scores.items()
        ),
    )


def _score(score: Score) -> tuple[str, str, str]:
    rate = "N/A" if score.rate is None else f"{100 * score.rate:.1f} %"
    return (
        rate,
        f"{score.total:g} of {score.n}",
        "  ".join(f"{k}: {100 * v:.1f} %" for k, v in score.pass_k.items()),
    )


def _entries(report: TauReport, mask: Mask) -> Table:
    rows = tuple(
        (
            f"{mask.path(e.file)} [{e.index}] task {e.task}",
            e.cause or "call left in the text",
            mask.text(e.error)[:200],
        )
        for e in report.entries[:MOST]
    )
    heads = columns("simulation", "cause", "error")
    return Table(
        caption="Simulations that the audit points at",
        columns=heads,
        rows=rows,
        left_out=len(report.entries) - len(rows),
    )
