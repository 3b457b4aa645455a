"""``truecall report`` on the command line."""

from __future__ import annotations

import importlib.util
import stat
from pathlib import Path
from typing import Any

import pytest

from truecall.cli import execute


def test_everything_at_once(stacks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, md, table, figures = (tmp_path / n for n in ("r.html", "deep/r.md", "r.csv", "figures"))
    md.parent.mkdir()
    options = ["-o", str(page), "--md", str(md), "--csv", str(table), "--figures", str(figures)]
    assert execute(["report", str(stacks), *options]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Well-formed calls were lost") and err.startswith("written: ")
    names = sorted(path.name for path in figures.iterdir())
    assert "funnel.svg" in names and "funnel.pdf" in names and len(names) == 14
    assert "![Funnel](<../figures/funnel.svg>)" in md.read_text()
    assert (md.parent / "../figures/funnel.svg").is_file()
    for path in (page, md, table, figures / "funnel.pdf"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_page_has_a_name_of_its_own(
    stacks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(["report", str(stacks)]) == 0
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_without_the_extra(
    stacks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec

    def missing(name: str, *rest: Any) -> Any:
        return None if name in ("altair", "vl_convert") else real(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", missing)
    monkeypatch.chdir(tmp_path)
    assert execute(["report", str(stacks)]) == 2
    said = capsys.readouterr().err
    assert "pip install 'truecall[report]'" in said and len(said.splitlines()) == 1
    assert execute(["report", str(stacks), "--figures", "f"]) == 2
    assert execute(["report", str(stacks), "--md", "r.md", "--csv", "r.csv"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "r.md"]


def test_md_and_csv_load_no_drawing_library(stacks: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from truecall.cli import execute; "
        f"code = execute(['report', {str(stacks)!r}, '--md', 'r.md', '--csv', 'r.csv']); "
        "sys.exit(code or ('altair' in sys.modules) + ('vl_convert' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0


def test_a_place_that_cannot_be_written(
    stacks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["report", str(stacks), "-o", str(tmp_path / "no" / "r.html")]) == 2
    assert "can't be written" in capsys.readouterr().err


def test_what_is_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", str(tmp_path), "--md", str(tmp_path / "r.md")]) == 2
    said = capsys.readouterr().err
    assert "no finished result in this folder" in said and len(said.splitlines()) == 1
    assert not (tmp_path / "r.md").exists()
