"""Shared reports: no file, folder, address or path of the user's stays, and results are still told apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report.hostile import chat_log
from tests.report.made import played
from truecall.cli import execute
from truecall.errors import InputError
from truecall.report import examples
from truecall.report.data import ReportData
from truecall.report.markdown import markdown
from truecall.report.reading import load
from truecall.report.share import KEPT_BACK, Mask
from truecall.report.table import table

PREFLIGHT = Path(__file__).parent / "preflight.json"


def words(report: ReportData) -> str:
    """All that a reader could read, as one text."""
    return markdown(report) + table(report)


def test_no_file_or_folder_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "secret-project"
    folder.mkdir()
    (folder / "notes.txt").write_text("no log")
    log = chat_log(folder / "customer.jsonl")
    saved = tmp_path / "acme.json"
    assert execute(["scan", str(folder), "--by", "file", "-o", str(saved), "--fail-on", "never"]) == 0
    assert str(log) in words(load([str(saved)]))
    report = load([str(saved)], share=True)
    shared = words(report)
    assert report.sections[0].name == "result 1" and "file 2" in shared
    assert not [word for word in ("secret-project", "customer", "acme", "notes") if word in shared]


def test_results_are_told_apart_without_their_names(tmp_path: Path) -> None:
    one, two = (str(played(tmp_path / "secret-project" / name / "run", "leaks")) for name in ("a", "b"))
    both = load([one, two, one], share=True)
    assert [s.name for s in both.sections] == ["", "result 1", "result 2", "result 1 (2)"]
    assert len({m.group for s in both.sections for m in s.measures}) == 1
    assert "secret-project" not in words(both)


def test_facts_of_a_preflight_lose_their_places(tmp_path: Path) -> None:
    data = json.loads(PREFLIGHT.read_text())
    data["endpoint"]["facts"]["model_path"]["value"] = "/srv/alice/model.gguf"
    data["compared_with"] = "/srv/bob/before.json"
    data["changes"] = [{"id": "call-leaked", "change": "new"}]
    file = tmp_path / "p.json"
    file.write_text(json.dumps(data))
    open_ = words(load([str(file)]))
    assert "alice" in open_ and "bob" in open_
    shared = words(load([str(file)], share=True))
    assert "alice" not in shared and "bob" not in shared and "kept back" in shared


def test_a_damaged_log_is_told_without_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = played(tmp_path / "secret-project", "leaks")

    def damaged(path: Path) -> None:
        raise InputError(f"{path / 'log.jsonl'}: line 3 is no JSON")

    monkeypatch.setattr(examples, "open_index", damaged)
    assert "secret-project" in words(load([str(run)]))
    shared = words(load([str(run)], share=True))
    assert "secret-project" not in shared and "line 3 is no JSON" in shared


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("--model /home/a/m.gguf --jinja", f"--model {KEPT_BACK} --jinja"),
        ("C:\\models\\m.gguf", KEPT_BACK),
        ("~/models/m", KEPT_BACK),
        ("see http://10.0.0.1:8000/v1?key=x now", f"see {KEPT_BACK} now"),
        ("<tool_call>{}</tool_call> and/or 3/4", "<tool_call>{}</tool_call> and/or 3/4"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
    ],
)
def test_places_in_our_own_words(text: str, masked: str) -> None:
    assert Mask(True).places(text) == masked
    assert Mask(False).places(text) == text
