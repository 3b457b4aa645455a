"""Layouts, compressions and damage: what can be read is read, the rest is counted and named."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from tests.audits.snapshots import COLUMNS, lines, results, scores, table
from truecall.audits.bfcl import Report, audit, gather
from truecall.audits.bfcl.gated import GatedCategory
from truecall.audits.overrides import Overrides, read_overrides
from truecall.errors import InputError

MODEL = "org_Tiny-1B-FC"
CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
STORED: dict[str, Any] = {
    "irrelevance_0": "No tool fits.",
    "irrelevance_1": CALL,
    "irrelevance_2": "<tool_call id=f>",
    "irrelevance_3": "",
    "irrelevance_4": {"id": "irrelevance_4", "result": "Error during inference: 503", "traceback": "T"},
    "irrelevance_5": [{"f": "{}"}],
}
STATES = {"ABSTAINED": 1, "MALFORMED": 2, "CALLED": 1, "SERVING_ERROR": 1, "EMPTY": 1}


def snapshot(root: Path) -> Path:
    results(root, MODEL, "irrelevance", STORED)
    scores(
        root,
        MODEL,
        "irrelevance",
        6,
        [{"id": "irrelevance_5", "error_type": "irrelevance_error:decoder_success"}],
    )
    return root


def read(*paths: Path) -> Report:
    return audit(gather(list(paths), installed=False))


def only(report: Report) -> GatedCategory:
    (run,) = report.runs
    (found,) = run.gated
    return found


def test_states_over_all_and_over_the_credited(tmp_path: Path) -> None:
    found = only(read(snapshot(tmp_path)))
    assert found.every.states == STATES
    assert found.credited is not None
    assert found.credited.states == {"ABSTAINED": 1, "MALFORMED": 2, "SERVING_ERROR": 1, "EMPTY": 1}
    assert found.alone == {"ABSTAINED": 1, "MALFORMED": 1, "CALLED": 2, "SERVING_ERROR": 1, "EMPTY": 1}


def reroot(root: Path, form: str) -> list[Path]:
    model = root / "result" / MODEL
    if form == "halves":
        return [root / "result", root / "score"]
    if form == "half":
        return [root / "result"]
    if form == "model":
        return [model]
    if form == "file":
        return [model / "non_live" / "BFCL_v4_irrelevance_result.json"]
    if form == "flat v3":
        for half in ("result", "score"):
            folder = root / half / MODEL
            old = folder / "non_live" / f"BFCL_v4_irrelevance_{half}.json"
            old.rename(folder / f"BFCL_v3_irrelevance_{half}.json")
            (folder / "non_live").rmdir()
    if form == "gzip":
        for path in list(root.rglob("*.json")):
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    if form == "zstd":
        for path in list(root.rglob("*.json")):
            path.with_name(path.name + ".zst").write_bytes(zstandard.compress(path.read_bytes()))
            path.unlink()
    if form == "bom":
        for path in root.rglob("*.json"):
            path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    if form == "utf-16":
        for path in root.rglob("*.json"):
            path.write_bytes(path.read_text(encoding="utf-8").encode("utf-16"))
    if form == "one list":
        for path in root.rglob("*.json"):
            path.write_text(
                json.dumps([json.loads(line) for line in path.read_text().splitlines()], indent=1)
            )
    if form == "named halves":
        (root / "result").rename(root / "my_results")
        (root / "score").rename(root / "my_scores")
    if form == "model first":
        for half in ("result", "score"):
            shutil.move(root / half / MODEL, root / MODEL / half)
    if form == "links":
        (root / "result").rename(root.parent / "elsewhere")
        (root / "result").symlink_to(root.parent / "elsewhere")
        (root / "score" / "loop").symlink_to(root / "score")
    if form == "strangers":
        (root / "result" / MODEL / "notes.txt").write_text("x")
        (root / "result" / MODEL / "non_live" / ".DS_Store").write_bytes(b"\x00")
        (root / "other_result.json").write_text("{}")
    return [root]


@pytest.mark.parametrize(
    "form",
    ["plain", "halves", "half", "model", "file", "flat v3", "gzip", "zstd", "bom", "utf-16", "one list",
     "named halves", "model first", "strangers", "links"],
)  # fmt: skip
def test_layouts(tmp_path: Path, form: str) -> None:
    report = read(*reroot(snapshot(tmp_path / "snap"), form))
    found = only(report)
    assert found.every.states == STATES
    assert found.credited is not None and found.credited.entries == 5
    assert report.bad_count == 0
    assert report.runs[0].model == MODEL


def test_without_a_score_file_credit_is_not_known(tmp_path: Path) -> None:
    shutil.rmtree(snapshot(tmp_path) / "score")
    found = only(read(tmp_path))
    assert found.credited is None and found.credit_source == "unknown"
    assert found.every.states["CALLED"] == 2  # nobody says that the scorer missed the text's call


def test_a_torn_score_file_credits_nobody_by_default(tmp_path: Path) -> None:
    path = scores(
        snapshot(tmp_path), MODEL, "irrelevance", 6, [{"id": "irrelevance_5"}, {"id": "irrelevance_1"}]
    )
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    report = read(tmp_path)
    assert only(report).credited is None
    assert report.bad_count == 1 and "score" in report.bad[0].place.file


def test_torn_and_hostile_lines_are_named_and_left_out(tmp_path: Path) -> None:
    root = snapshot(tmp_path)
    path = root / "result" / MODEL / "non_live" / "BFCL_v4_irrelevance_result.json"
    extra = [
        b'{"id": "irrelevance_6", "resu',
        b"[1, 2]",
        b'{"result": "no id"}',
        b"[" * 5000,
        b'{"id": true, "result": 1}',
    ]
    path.write_bytes(
        path.read_bytes() + b"\n".join(extra) + b'\n{"id": "irrelevance_7", "result": "caf\xe9 \\ud800"}\n'
    )
    report = read(root)
    assert report.bad_count == 6
    assert {bad.place.line for bad in report.bad} == {None, 7, 8, 9, 10, 11}
    assert only(report).every.entries == 7


def test_what_pythons_json_writes_reaches_the_report(tmp_path: Path) -> None:
    """Lone surrogates and infinite counts: nothing of them is lost, and the report can still be written."""
    root = snapshot(tmp_path)
    path = root / "result" / MODEL / "non_live" / "BFCL_v4_irrelevance_result.json"
    odd = {"id": "irrelevance_\ud800", "result": "caf\ud83d", "output_token_count": float("inf")}
    path.write_text(path.read_text() + json.dumps(odd) + "\n")
    report = read(root)
    assert report.bad_count == 0 and msgspec.json.encode(report)
    last = only(report).entries[-1]
    assert last.id == "irrelevance_\ufffd" and last.output_tokens is None


def test_doubled_ids_and_contradictions_are_noted(tmp_path: Path) -> None:
    root = snapshot(tmp_path)
    path = root / "result" / MODEL / "non_live" / "BFCL_v4_irrelevance_result.json"
    path.write_text(path.read_text() + json.dumps({"id": "irrelevance_0", "result": ""}) + "\n")
    found = only(read(root))
    assert found.every.states["EMPTY"] == 2 and "ABSTAINED" not in found.every.states
    assert any("twice" in problem for problem in found.problems)
    assert any("240" in problem for problem in found.problems)


def test_nothing_there_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no BFCL files"):
        gather([tmp_path], installed=False)
    with pytest.raises(InputError, match="no such file"):
        gather([tmp_path / "gone"], installed=False)


def test_a_run_finds_its_row_by_name(tmp_path: Path) -> None:
    root = snapshot(tmp_path)
    table(root, [
        ("Tiny-1B (Prompt)", 40.0, (40.0, 40.0, 40.0, 40.0, 40.0, 40.0), 60.0),
        ("Tiny-1B (FC)", 8.0, (0.0, 0.0, 0.0, 0.0, 0.0, 80.0), 0.0),
        ("Tiny-10B (FC)", 7.0, (0.0, 0.0, 0.0, 0.0, 0.0, 70.0), 50.0),
    ])  # fmt: skip
    report = read(root)
    assert report.runs[0].row == "Tiny-1B (FC)"
    rows = report.leaderboards[0].corrected
    assert [row.touched for row in rows] == [False, True, False]
    assert rows[1].overall.low == pytest.approx(8 - 0.1 * (80 - 100 / 6 / 2))
    assert (rows[1].best_rank, rows[1].worst_rank) == (3, 3)
    assert rows[1].block.high == pytest.approx((50 + 160 - 100 * 5 / 6) / 2)  # live: what the mean leaves
    named = audit(gather([root], installed=False), Overrides(models={MODEL: "Tiny-10B (FC)"}))
    assert named.runs[0].row == "Tiny-10B (FC)"


def test_broken_tables(tmp_path: Path) -> None:
    root = snapshot(tmp_path)
    path = table(root, [("A", 10.0, (10.0,) * 6, 10.0)])
    path.write_text(path.read_text() + "\n2,not,enough\n\n3,x,B,l,N/A,,nan,-5%,200%,,\n")
    report = read(root)
    assert len(report.leaderboards[0].table.rows) == 1
    assert any("cells" in bad.reason for bad in report.bad)
    path.write_text("a,b\n1,2\n")
    assert read(root).leaderboards == ()
    path.write_text(COLUMNS.replace("Web Search Acc,Memory Acc,", "") + "\n1,50%,A,l,1%,1%,1%,1%,1%")
    old = read(root).leaderboards[0].table
    assert old.weighted is None and "not recomputed" in old.notes[0]


def test_overrides_count_and_their_disagreements_are_shown(tmp_path: Path) -> None:
    root = snapshot(tmp_path / "snap")
    path = tmp_path / "override.json"
    path.write_text(json.dumps({"entries": [
        {"id": "irrelevance_2", "state": "ABSTAINED", "why": "a typing slip"},
        {"id": "irrelevance_0", "state": "ABSTAINED"},
        {"id": "irrelevance_99", "state": "CALLED"},
    ]}))  # fmt: skip
    report = audit(gather([root], installed=False), read_overrides(path))
    assert only(report).every.states["ABSTAINED"] == 2
    assert [(d.override.id, d.ruled) for d in report.disagreements] == [
        ("irrelevance_2", "MALFORMED"), ("irrelevance_99", None),
    ]  # fmt: skip
    path.write_text('{"entries": [{"id": "x", "state": "MAYBE"}]}')
    with pytest.raises(InputError, match="MAYBE"):
        read_overrides(path)


def test_names_offered_needs_the_functions(tmp_path: Path) -> None:
    root = snapshot(tmp_path / "snap")
    data = tmp_path / "data"
    lines(
        data / "BFCL_v4_irrelevance.json",
        [{"id": f"irrelevance_{n}", "function": [{"name": "f"}]} for n in range(6)],
    )
    found = only(audit(gather([root], data)))
    assert found.every.names_offered == (2, 4)  # of the four texts, the call and the attempt name it
    assert only(read(root)).every.names_offered is None


@pytest.mark.parametrize(
    ("relevance", "tokens", "reading"),
    [
        ([[]] * 4, 30, "lost"),
        ([[{"f": "{}"}]] * 3 + [[]], 30, "abstained"),
        ([[]] * 3 + ["prose"], 30, "undecided"),
        ([[]] * 4, 1, "model_empty"),
    ],
)
def test_empty_results_are_weighed_over_the_run(
    tmp_path: Path, relevance: list[Any], tokens: int, reading: str
) -> None:
    rows = {
        f"irrelevance_{n}": {"id": f"irrelevance_{n}", "result": [], "output_token_count": tokens}
        for n in range(5)
    }
    results(tmp_path, MODEL, "irrelevance", rows)
    results(
        tmp_path,
        MODEL,
        "live_relevance",
        {f"live_relevance_{n}": r for n, r in enumerate(relevance)},
        group="live",
    )
    assert read(tmp_path).runs[0].weighed.reading == reading


def test_the_first_versions_numbered_their_entries(tmp_path: Path) -> None:
    """V1 and V2: no ids or other ones, score files without a prefix, and ``relevance`` for irrelevance."""
    folder = tmp_path / "result-BFCL" / "old"
    stored = ["No tool fits.", "[f(x=1)]", "[f(x="]
    lines(
        folder / "gorilla_openfunctions_v1_test_relevance_result.json",
        [{"idx": n, "result": text} for n, text in enumerate(stored)],
    )
    lines(
        tmp_path / "score-BFCL" / "old" / "relevance_score.json",
        [{"accuracy": 2 / 3, "correct_count": 2, "total_count": 3}, {"id": 2, "valid": False}],
    )
    found = only(read(tmp_path))
    assert [e.id for e in found.entries] == ["relevance_0", "relevance_1", "relevance_2"]
    assert [e.credited for e in found.entries] == [True, False, True]
    assert [str(e.state) for e in found.entries][:2] == ["ABSTAINED", "CALLED"]
