"""``truecall report`` on the command line."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.report.hostile import chat_log
from truecall.cli import execute
from truecall.report import reading

PREFLIGHT = Path(__file__).parent / "preflight.json"


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


def test_a_byte_order_mark_is_no_part_of_a_result(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_bytes(b"\xef\xbb\xbf" + PREFLIGHT.read_bytes())
    assert execute(["report", str(file), "--md", str(tmp_path / "p.md")]) == 0


def test_what_has_no_end_is_not_read_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reading, "_LARGEST", 1000)
    assert execute(["report", "/dev/zero", "--md", str(tmp_path / "r.md")]) == 2
    assert "larger than any result" in capsys.readouterr().err


def test_an_error_is_one_line_whatever_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", "a\nb\x1b[31m"]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and said.startswith("truecall: a\\nb\\x1b[31m: no such file")


def test_nothing_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.json").write_bytes(PREFLIGHT.read_bytes())
    os.mkfifo("pipe")
    for options in (
        ["--md", "./p.json"],
        ["--md", "r", "--csv", "./r"],
        ["--md", "pipe"],
        ["--md", "no/r.md"],
    ):
        assert execute(["report", "p.json", *options]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert Path("p.json").read_bytes() == PREFLIGHT.read_bytes()
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.json", "pipe"]


def test_a_full_disk_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stacks: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert execute(["report", str(stacks), "--figures", str(tmp_path / "figures")]) == 2
    said = capsys.readouterr().err
    assert "figures/funnel.svg: can't be written (No space left on device)" in said
    assert list((tmp_path / "figures").iterdir()) == []


def test_no_figure_makes_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", str(PREFLIGHT), "--figures", str(tmp_path / "figures")]) == 0
    assert (tmp_path / "figures").exists() == ("no figure" not in capsys.readouterr().err)


@pytest.mark.parametrize(
    "fault",
    [{"settings": 7}, {"settings": {"sample": "x"}}, {"tally": {}}, {"tally": "x"}, {"format": 99}],
)
def test_a_scan_that_no_scan_wrote(
    fault: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "scan.json"
    log = chat_log(tmp_path / "chats.jsonl")
    assert execute(["scan", str(log), "-o", str(saved), "--fail-on", "never"]) == 0
    saved.write_text(json.dumps({**json.loads(saved.read_text()), **fault}))
    capsys.readouterr()
    assert execute(["report", str(saved), "--md", str(tmp_path / "r.md")]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "internal" not in said and str(saved) in said
