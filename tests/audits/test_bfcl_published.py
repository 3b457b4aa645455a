"""The published data beside the project: every figure that they can give (skipped where they are absent)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audits.snapshots import BFCL, needs_published
from truecall.audits.bfcl import Report, RunAudit, audit, gather
from truecall.audits.bfcl.answer import answer
from truecall.audits.bfcl.gated import GatedCategory

pytestmark = needs_published


@pytest.fixture(scope="module")
def report() -> Report:
    return audit(gather([BFCL], installed=False))


def run(report: Report, name: str) -> RunAudit:
    return next(run for run in report.runs if name in run.model)


def gated(report: Report, model: str, category: str) -> GatedCategory:
    return next(found for found in run(report, model).gated if found.category == category)


def test_nothing_is_bad(report: Report) -> None:
    assert report.bad_count == 0
    assert report.others == 1  # the data's README


def test_all_rows_fit_the_weighted_sum_and_none_the_mean(report: Report) -> None:
    table = report.leaderboards[0].table
    assert table.weighted and table.unweighted
    assert (table.weighted.within, table.weighted.rows) == (109, 109)
    assert round(table.weighted.largest, 3) == 0.007
    assert table.unweighted.within == 0
    assert round(table.unweighted.mean, 2) == 15.07
    assert round(table.unweighted.least, 2) == 2.06
    assert "27.10 published, 51.14 computed" in table.unweighted.worst
    assert "Nova-2-Lite" in table.unweighted.worst


def test_three_rows_bear_the_signature(report: Report) -> None:
    rows = [row for row in report.leaderboards[0].table.rows if "signature" in row.flags]
    assert [row.rank for row in rows] == [105, 106, 108]
    assert [round(row.share or 0, 2) for row in rows] == [90.09, 78.79, 100.0]
    assert all(row.relevance == 0 for row in rows)


def test_the_controls(report: Report) -> None:
    controls = report.leaderboards[0].table.controls
    assert controls and controls.share and controls.relevance
    assert [round(value, 2) for value in controls.share] == [10.94, 13.39]
    assert controls.relevance == (62.5, 93.75)


def test_falcon(report: Report) -> None:
    found = gated(report, "Falcon3-1B", "irrelevance")
    assert found.credited and found.credit_source == "score file"
    assert (found.every.entries, found.credited.entries) == (240, 229)
    assert (found.every.markers["<tool_call"], found.credited.markers["<tool_call"]) == (239, 228)
    assert found.every.states == {"ABSTAINED": 1, "MALFORMED": 228, "CALLED": 11}
    assert found.credited.states == {"ABSTAINED": 1, "MALFORMED": 228}
    assert found.credited.without_name_key == 17
    assert (found.cap, found.every.at_cap) == (4096, 2)
    assert [e.id for e in found.entries if e.credited and "<tool_call" not in e.markers] == [
        "irrelevance_227"
    ]
    # The literal marker is counted apart from what the detector reads.
    assert sum(found.credited.tiers.values()) >= 228
    assert found.credited.tiers.get("none", 0) < 10


def test_falcon_relevance(report: Report) -> None:
    found = gated(report, "Falcon3-1B", "live_relevance")
    assert found.credit_source == "table"
    assert found.credited is not None and found.credited.entries == 0
    assert found.every.markers == {"<tool_call": 16}
    assert found.every.states == {"MALFORMED": 16}


def test_nemotron(report: Report) -> None:
    irrelevance = gated(report, "nemotron", "irrelevance")
    relevance = gated(report, "nemotron", "live_relevance")
    assert irrelevance.every.states == {"EMPTY": 240} and irrelevance.every.empty_tokens == (11, 111)
    assert relevance.every.states == {"EMPTY": 16} and relevance.every.empty_tokens == (20, 299)
    assert irrelevance.credited is not None and irrelevance.credited.entries == 240
    assert run(report, "nemotron").weighed.reading == "lost"


def test_gpt_oss_is_a_control_with_one_stored_error(report: Report) -> None:
    found = gated(report, "gpt-oss", "live_irrelevance")
    assert found.credited is not None
    assert (found.credited.entries, found.credited.states) == (720, {"SERVING_ERROR": 1, "EMPTY": 719})
    errors = [entry.id for entry in found.entries if entry.state == "SERVING_ERROR"]
    assert errors == ["live_irrelevance_292-72-1"]
    assert run(report, "gpt-oss").weighed.reading == "abstained"
    parallel = run(report, "gpt-oss").categories[0]
    assert (parallel.score, parallel.most_calls, parallel.want_several) == ((0, 200), 1, 200)
    assert parallel.outcomes == {"rejected": 195, "empty": 5}


def test_corrected_only_as_bounds(report: Report) -> None:
    board = report.leaderboards[0]
    touched = {row.model: row for row in board.corrected if row.touched}
    assert len(touched) == 3 and len(board.corrected) == 109
    falcon = touched["Falcon3-1B-Instruct (FC)"]
    # 1 of 240 is an abstention; live irrelevance, whose files are not here, keeps 0 to what was published.
    assert falcon.examined == ("irrelevance",)
    assert falcon.block.low == pytest.approx(100 / 240 / 2)
    assert falcon.overall.high < falcon.published
    assert falcon.overall.low == pytest.approx(11.08 - 0.1 * (87.30 - 100 / 240 / 2))
    assert (falcon.best_rank, falcon.worst_rank) == (107, 109)
    gemma = next(row for row in board.corrected if row.rank == 109)
    assert gemma.best_rank < 109 and not gemma.touched


def test_the_answer(report: Report) -> None:
    assert answer(report) == (
        "Three of 109 rows have relevance 0 and get 79-100 % of their score from irrelevance; in one of them "
        "(Falcon3-1B-Instruct (FC)) 228 of its 229 credits carry call markup."
    )


def test_a_part_of_the_snapshot_gives_the_same_counts(report: Report) -> None:
    whole = gated(report, "Falcon3-1B", "irrelevance")
    folder = BFCL / "2025-12-16"
    model = "tiiuae_Falcon3-1B-Instruct-FC"
    for part in ([folder], [folder / "result"], [folder / "result" / model], [folder / "score" / model]):
        found = gated(audit(gather(list(map(Path, part)), installed=False)), "Falcon3-1B", "irrelevance")
        assert (found.every, found.credited) == (whole.every, whole.credited)
