"""``truecall detect`` on files as people have them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truecall import cli

CALL = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]


def detect(tmp_path: Path, data: bytes, *options: str) -> int:
    path = tmp_path / "text"
    path.write_bytes(data)
    return cli.execute(["detect", str(path), *options])


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\r\n"], ids=["plain", "bom", "crlf"])
def test_a_call_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str], before: bytes) -> None:
    assert detect(tmp_path, before + CALL.encode()) == 0
    out = capsys.readouterr().out
    assert "One call." in out and "get_weather" in out and '{"city": "Oslo"}' in out


def test_a_lone_surrogate_is_written_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert detect(tmp_path, CALL.replace("Oslo", "\\ud800").encode(), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["calls"][0]["arguments"] == {"city": "\ud800"}


def test_many_calls_name_their_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(f"<tool_call>\n{CALL}\n</tool_call>" for _ in range(3))
    assert detect(tmp_path, text.encode()) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if ", line " in line]
    assert [line.rsplit(" ", 1)[1] for line in lines] == ["1", "4", "7"]


def test_no_call_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert detect(tmp_path, b"\xff\x00 prose") == 0
    assert "No call in this text." in capsys.readouterr().out


def test_terminal_escapes_are_shown_not_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = json.dumps({"name": "get_weather", "arguments": {"city": "\x1b[2J\u202e"}}, ensure_ascii=False)
    assert detect(tmp_path, hostile.replace("\\u001b", "\x1b").encode()) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("[" * 200_000, "nested too deep"),
        ("{", "is no JSON"),
        ("3", "is no JSON list of tools"),
        ("[1, 2]", "entry 1 of the list is no tool"),
    ],
    ids=["deep", "cut", "number", "no tool in it"],
)
def test_bad_tools_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tools: str, said: str
) -> None:
    (tmp_path / "tools.json").write_text(tools, "utf-8")
    assert detect(tmp_path, b"x", "--tools", str(tmp_path / "tools.json")) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_tools_may_stand_in_a_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "request.json").write_text(json.dumps({"tools": TOOLS}), "utf-8")
    assert detect(tmp_path, CALL.encode(), "--tools", str(tmp_path / "request.json"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["calls"][0]["tier"] == "tight"


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.execute(["detect", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err
