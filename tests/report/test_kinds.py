"""Reports of the other kinds: replays and matrices with a parser of one's own, tau-bench, several preflights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import truecall
from tests.audits.test_tau import tau
from tests.replay import archives
from truecall.cli import execute
from truecall.report.charts.kinds import Heat, Stack
from truecall.report.data import Examples, Figure, ReportData, Section, Table
from truecall.report.html import page
from truecall.report.reading import load

HERMES = Path(truecall.__file__).parent / "data" / "hermes.jinja"
PREFLIGHT = Path(__file__).parent / "preflight.json"
"""A real report on the embedded engine with its own template; its address was replaced."""


@pytest.fixture
def parser(tmp_path: Path) -> str:
    file = tmp_path / "mine.py"
    file.write_text(archives.PARSER)
    return f"python:{file}:parse"


def printed(capsys: pytest.CaptureFixture[str], *words: str, to: Path) -> ReportData:
    """The report of what a verb printed with --json."""
    assert execute([*words, "--json"]) in (0, 1)
    to.write_text(capsys.readouterr().out, "utf-8")
    report = load([str(to)])
    assert page(report).startswith("<!doctype html>")
    return report


def figure(section: Section, name: str) -> Figure:
    return next(b for p in section.parts for b in p.blocks if isinstance(b, Figure) and b.name == name)


def test_a_replay_shows_its_layers(tmp_path: Path, parser: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs = archives.write(tmp_path, turns=8)
    words = ("replay", *map(str, logs), "--parser", parser, "--no-stream")
    report = printed(capsys, *words, to=tmp_path / "replay.json")
    data = json.loads((tmp_path / "replay.json").read_text())
    section = report.sections[0]
    chart = figure(section, "layers").chart
    assert isinstance(chart, Stack)
    drawn = sum(piece.count for piece in chart.slices)
    assert drawn == sum(row["emitted"]["calls"] for row in data["rows"]) > 0
    censored = {m.group: (m.k, m.n) for m in section.measures if m.number == "censored"}
    assert sorted(censored.values()) == sorted(
        (r.get("lost", 0), r["emitted"]["texts"]) for r in data["rows"]
    )
    lost = next(b for p in section.parts for b in p.blocks if isinstance(b, Examples))
    assert any(mark.kind == "call" for mark in lost.items[0].wrote.marks) if lost.items[0].wrote else False


def test_a_matrix_is_a_map(tmp_path: Path, parser: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = printed(capsys, "matrix", "--parser", parser, to=tmp_path / "matrix.json")
    data = json.loads((tmp_path / "matrix.json").read_text())
    chart = report.figures()[0].chart
    assert isinstance(chart, Heat)
    assert {cell.row for cell in chart.cells} == {cell["dialect"] for cell in data["engines"][0]["cells"]}
    hermes = next(cell for cell in chart.cells if cell.row == "hermes")
    own = [c for c in data["engines"][0]["cells"] if c["dialect"] == "hermes" and not c["fault"]]
    cases = len({c["case"] for c in own if c["outcome"] == "taken"})
    assert hermes.value == 1 and hermes.text == f"{cases}/{cases}"


def test_templates_met_with_parsers(tmp_path: Path, parser: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("matrix", "--parser", parser, "--template", str(HERMES))
    report = printed(capsys, *words, to=tmp_path / "templates.json")
    assert report.sections[0].answer == "0 of 1 pairs of template and parser lose every call."
    assert isinstance(report.figures()[0].chart, Heat)


def test_a_tau_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = [tau(0, 1.0), tau(1, 0.0), tau(2, 0.0, error="openai.RateLimitError: 429 Too Many Requests")]
    (tmp_path / "run.json").write_text(json.dumps(items))
    words = ("audit", "tau-bench", str(tmp_path / "run.json"), "--lock", str(tmp_path / "audit.lock"))
    by_json = printed(capsys, *words, to=tmp_path / "tau.json").sections[0]
    by_lock = load([str(tmp_path / "audit.lock")]).sections[0]
    assert by_json.measures == by_lock.measures and by_json.answer == by_lock.answer
    rates = {m.number: (m.low, m.n) for m in by_lock.measures}
    assert rates["mean reward, published"] == (1 / 3, 3)
    assert rates["mean reward, serving_errors_dropped"] == (1 / 2, 2)


def changed(path: Path, **fields: Any) -> Path:
    """A preflight's report with other fields."""
    path.write_text(json.dumps({**json.loads(PREFLIGHT.read_text()), **fields}))
    return path


def test_preflights_side_by_side(tmp_path: Path) -> None:
    data = json.loads(PREFLIGHT.read_text())
    table = {"way": "prefill", "table": {"hermes": "surfaced", "glm": "erased"}}
    loopback = {"data": table, "said": "hermes surfaced · glm ERASED"}
    probes = [{**p, **loopback} if p["name"] == "loopback" else p for p in data["probes"]]
    other = changed(tmp_path / "other.json", probes=probes)
    report = load([str(PREFLIGHT), str(other)])
    together = report.sections[0]
    assert together.answer == "The stacks differ by parser."
    rows = next(b for p in together.parts for b in p.blocks if isinstance(b, Table)).rows
    assert next(row for row in rows if row[0] == "loopback")[3] == "parser"
    chart = figure(together, "loopback").chart
    assert isinstance(chart, Heat)
    texts = {(cell.row, cell.column.partition(" ")[2]): cell.text for cell in chart.cells}
    assert len({cell.column for cell in chart.cells}) == 2 and texts["glm", "llama.cpp"] == "erased"


def test_a_newer_preflight_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newer = changed(tmp_path / "newer.json", schema_version=99)
    assert execute(["report", str(newer), "--md", str(tmp_path / "r.md")]) == 2
    assert "newer truecall" in capsys.readouterr().err


def test_a_shared_preflight_names_no_address(tmp_path: Path) -> None:
    report = load([str(PREFLIGHT)], share=True)
    assert "localhost" not in page(report) and "curl" not in page(report)
    assert "localhost" in page(load([str(PREFLIGHT)]))
