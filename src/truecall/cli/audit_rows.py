"""An audit's tables as flat rows, for CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truecall.audits.bfcl import Report
    from truecall.audits.tau import TauReport

Row = Mapping[str, Any]


def rows(report: Report, table: str) -> Iterator[Row]:
    """The rows of ``rows`` (leaderboard), ``gate``, ``categories`` or ``entries``; percentages are in percent."""
    makers = {"rows": _leaderboard, "gate": _gate, "categories": _categories, "entries": _entries}
    return makers[table](report)


def _leaderboard(report: Report) -> Iterator[Row]:
    for board in report.leaderboards:
        for row, new in zip(board.table.rows, board.corrected, strict=True):
            yield {
                "table": board.table.folder,
                "rank": row.rank,
                "model": row.model,
                "published": row.overall,
                "weighted": round(row.weighted, 4),
                "unweighted": round(row.unweighted, 4),
                "irrelevance": row.blocks["irrelevance"],
                "relevance": row.relevance,
                "irrelevance_share": None if row.share is None else round(row.share, 4),
                "flags": " ".join(row.flags),
                "corrected_low": round(new.overall.low, 4),
                "corrected_high": round(new.overall.high, 4),
                "best_rank": new.best_rank,
                "worst_rank": new.worst_rank,
            }


_STATES = ("ABSTAINED", "MALFORMED", "CALLED", "SERVING_ERROR", "EMPTY")


def _gate(report: Report) -> Iterator[Row]:
    for run in report.runs:
        for found in run.gated:
            credited = found.credited
            row: dict[str, Any] = {"model": run.model, "snapshot": run.root, "category": found.category}
            row |= {
                "entries": found.every.entries,
                "credited": None if credited is None else credited.entries,
            }
            for state in _STATES:
                row[state] = found.every.states.get(state, 0)
                row[f"{state}_credited"] = None if credited is None else credited.states.get(state, 0)
            row["marked"] = found.every.marked
            row["marked_credited"] = None if credited is None else credited.marked
            yield row


def _categories(report: Report) -> Iterator[Row]:
    outcomes = ("right", "request_failed", "in_text", "rejected", "surfaced", "no_call", "empty")
    for run in report.runs:
        for found in run.categories:
            row: dict[str, Any] = {"model": run.model, "snapshot": run.root, "category": found.category}
            row["entries"] = found.entries
            row["score"] = None if found.score is None else found.score[0]
            row |= {name: found.outcomes.get(name, 0) for name in outcomes}
            row["emitted_valid"] = None if found.emitted_valid is None else found.emitted_valid[0]
            row["produced"] = found.emitted[1]
            low, high = found.if_delivered or (None, None)
            yield row | {"if_delivered_low": low, "if_delivered_high": high}


def _entries(report: Report) -> Iterator[Row]:
    for run in report.runs:
        for gated in run.gated:
            for entry in gated.entries:
                yield {
                    "model": run.model, "category": entry.category, "id": entry.id, "state": str(entry.state),
                    "credited": entry.credited, "rule": entry.rule, "tier": entry.tier,
                    "markers": " ".join(entry.markers), "valid": None, "reason": None,
                    "output_tokens": entry.output_tokens, "file": entry.file, "line": entry.line,
                }  # fmt: skip
        for category in run.categories:
            for item in category.listed:
                yield {
                    "model": run.model, "category": item.category, "id": item.id, "state": str(item.outcome),
                    "credited": item.outcome == "right", "rule": None, "tier": None, "markers": None,
                    "valid": item.valid, "reason": item.reason, "output_tokens": item.output_tokens,
                    "file": item.file, "line": item.line,
                }  # fmt: skip


def tau_rows(report: TauReport, *, entries: bool) -> Iterator[Row]:
    """The treatments of a tau report, or the simulations that it points at."""
    if not entries:
        for name, score in (("published", report.published), *report.scores.items()):
            yield {"treatment": name, "total": score.total, "n": score.n, "rate": score.rate}
        return
    for entry in report.entries:
        yield {
            "file": entry.file, "index": entry.index, "task": entry.task, "trial": entry.trial,
            "reward": entry.reward, "cause": entry.cause, "error": entry.error, "calls_left_in_text": entry.left,
        }  # fmt: skip
