"""The verb: exit codes, outputs, lock, verify and explain."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.audits.snapshots import BFCL, needs_published, table
from tests.audits.test_bfcl_folders import MODEL, STATES, snapshot
from tests.audits.test_tau import tau, tau_file
from truecall.cli import execute as run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a snapshot in it."""
    monkeypatch.chdir(tmp_path)
    table(snapshot(tmp_path / "snap"), [("Tiny-1B (FC)", 8.0, (0.0, 0.0, 0.0, 0.0, 0.0, 80.0), 0.0)])
    return tmp_path


def out(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> str:
    assert run(["audit", *words]) == code
    return capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> Any:
    return json.loads(out(capsys, *words, "--json", code=code))


def test_the_screen_answers_first(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "bfcl", "snap", code=1)
    assert text.startswith(
        "One of 1 rows has relevance 0 and gets 100 % of its score from irrelevance; in it (Tiny"
    )
    for needed in (
        "credited 5/6",
        "MALFORMED 2",
        "not knowable",
        "sha256 in audit.lock",
        "signature",
        "audit explain",
    ):
        assert needed in text
    assert "irrelevance_2  MALFORMED (markup_only)" in out(capsys, "bfcl", "snap", "--entries", code=1)


def test_json_and_csv(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = as_json(capsys, "bfcl", "snap", code=1)
    assert report["schema_version"] == 1 and report["runs"][0]["gated"][0]["every"]["states"] == STATES
    assert "entries" not in report["runs"][0]["gated"][0]
    full = as_json(capsys, "bfcl", "snap", "--entries", code=1)
    assert len(full["runs"][0]["gated"][0]["entries"]) == 6
    gate = list(csv.DictReader(io.StringIO(out(capsys, "bfcl", "snap", "--csv", code=1))))
    assert (gate[0]["MALFORMED"], gate[0]["MALFORMED_credited"], gate[0]["SERVING_ERROR_credited"]) == (
        "2",
        "2",
        "1",
    )
    rows = list(csv.DictReader(io.StringIO(out(capsys, "bfcl", "snap", "--csv", "--entries", code=1))))
    assert [row["state"] for row in rows].count("MALFORMED") == 2
    board = list(csv.DictReader(io.StringIO(out(capsys, "bfcl", "snap", "--csv", "--table", "rows", code=1))))
    assert board[0]["flags"] == "signature"


def test_exit_codes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out(capsys, "bfcl", "snap", "--fail-on", "never", code=0)
    assert not (here / "none.lock").exists()
    out(capsys, "bfcl", "snap", "--no-lock", "--lock", "none.lock", code=1)
    assert not (here / "none.lock").exists()
    out(capsys, "bfcl", "gone", code=2)
    out(capsys, "verify", "gone.lock", code=2)


def test_verify_and_what_changed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out(capsys, "bfcl", "snap", code=1)
    assert out(capsys, "verify", code=0).startswith("Identical: 3 files")
    (here / "snap").rename(here / "moved")
    out(capsys, "verify", code=2)
    out(capsys, "verify", "--at", "moved", code=0)
    path = here / "moved" / "result" / MODEL / "non_live" / "BFCL_v4_irrelevance_result.json"
    path.write_text(path.read_text().replace("No tool fits.", "No tool fits!"))
    changed = as_json(capsys, "verify", "audit.lock", "--at", "moved", code=1)
    assert [d["what"] for d in changed["differences"]] == [f"result/{MODEL}/non_live/{path.name}"]
    path.write_text(path.read_text().replace("No tool fits!", ""))
    changed = as_json(capsys, "verify", "--at", "moved", code=1)
    assert "report_sha256" in [d["what"] for d in changed["differences"]]


def test_a_file_that_is_no_lock_is_left_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "audit.lock").write_text("precious")
    assert run(["audit", "bfcl", "snap"]) == 1
    assert "no lock was kept" in capsys.readouterr().err
    assert (here / "audit.lock").read_text() == "precious"


def test_explain(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out(capsys, "bfcl", "snap", code=1)
    text = out(capsys, "explain", "tiny", "irrelevance_1", code=0)
    assert (
        "MALFORMED, rule text_call_unread" in text
        and "call     | <tool_call>" in text
        and "scorer: right" in text
    )
    text = out(capsys, "explain", "irrelevance_4", "--in", "snap", code=0)
    assert "SERVING_ERROR, rule error_text" in text and "traceback: T" in text
    found = as_json(capsys, "explain", "irrelevance_5", code=0)
    assert found["entries"][0]["gated"]["state"] == "CALLED"
    out(capsys, "explain", "irrelevance_77", code=2)
    out(capsys, "explain", "a", "b", "c", code=2)


def test_hostile_text_cannot_steer_the_terminal(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "snap" / "result" / MODEL / "non_live" / "BFCL_v4_irrelevance_result.json"
    path.write_text(
        path.read_text() + json.dumps({"id": "x\x1b[2J", "result": "\x1b]0;owned\x07 \u202e"}) + "\n"
    )
    text = out(capsys, "bfcl", "snap", "--entries", code=1) + out(capsys, "explain", "x\x1b[2J", code=0)
    assert "\x1b" not in text and "\u202e" not in text
    rows = here / "snap" / "result" / "=cmd()" / "non_live" / "BFCL_v4_irrelevance_result.json"
    rows.parent.mkdir(parents=True)
    rows.write_text('{"id": "irrelevance_0", "result": ""}\n')
    assert "\n=cmd" not in out(capsys, "bfcl", "snap", "--csv", code=1)


def test_an_archive_is_read_as_its_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile("snap.zip", "w") as archive:
        for path in sorted((here / "snap").rglob("*.*")):
            if path.is_file():
                archive.write(path, path.relative_to(here))
        archive.writestr("../../evil_result.json", "{}")
        archive.writestr("BFCL-1/readme.txt", "x")
    report = as_json(capsys, "bfcl", "snap.zip", code=1)
    assert report["runs"][0]["gated"][0]["every"]["states"] == STATES
    assert not (here.parent / "evil_result.json").exists()
    out(capsys, "verify", code=0)
    Path("bad.zip").write_bytes(b"PK\x03\x04 torn")
    out(capsys, "bfcl", "bad.zip", code=2)


def test_narrowed_down(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert as_json(capsys, "bfcl", "snap", "--model", "other", code=1)["runs"] == []
    assert as_json(capsys, "bfcl", "snap", "--category", "live_relevance", code=1)["runs"] == []
    out(capsys, "bfcl", "snap", "--category", "irrelevance", code=1)
    out(capsys, "verify", code=0)


def test_nothing_readable_is_no_clean_bill(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (here / "snap").rglob("*.*"):
        if path.is_file():
            path.write_text("torn {\n" * 3)
    assert out(capsys, "bfcl", "snap", code=2).startswith("Can't tell: no entry")


def test_tau(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tau_file(here, [tau(0, 1), tau(1, 0, error="Error code: 500 - x")])
    text = out(capsys, "tau-bench", str(path), "--entries", code=1)
    assert text.startswith("1 of 2 simulations ended in an error") and "server_error" in text
    assert as_json(capsys, "tau-bench", str(path), code=1)["published"]["rate"] == 0.5
    assert "errors_dropped,1.0,1,1.0" in out(capsys, "tau-bench", str(path), "--csv", code=1)
    out(capsys, "verify", code=0)
    out(capsys, "explain", "irrelevance_0", code=2)
    out(capsys, "tau2", str(here / "snap"), code=2)


@needs_published
def test_one_command_over_the_published_data(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "bfcl", str(BFCL), code=1)
    for figure in (
        "fits all within 0.007", "mean gap 15.07, least 2.06", "27.10 published, 51.14 computed", "10.94-13.39 %",
        "62.50-93.75", "90.09 %", "78.79 %", "100.00 %", "credited 229/240, 11 wrong",
        "stands in 239 of 240, 228 of the 229 credited", "17 of the 228", "EMPTY with 11-111", "EMPTY with 20-299",
        "live_irrelevance_292-72-1", "2 end at 4,096", "stands in 16 of 16", "ABSTAINED: irrelevance_227",
    ):  # fmt: skip
        assert figure in text, figure
