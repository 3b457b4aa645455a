"""``truecall replay`` and ``truecall matrix`` from the command line, with a parser of one's own."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import truecall
from truecall.cli import execute, matrix_screen
from truecall.engines import Launch, Spec, registry
from truecall.replay import matrix
from truecall.replay.samples import MALFORMED, samples

from . import archives
from .conftest import FAKE

HERMES = Path(truecall.__file__).parent / "data" / "hermes.jinja"
SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"
CODER = """{{ tools | tojson }}
{%- for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}
<tool_call>
<function={{ c.function.name }}>
{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>
{{ v if v is string else v | tojson }}
</parameter>
{% endfor %}</function>
</tool_call>{% endfor %}{% endfor %}"""


@pytest.fixture
def parser(tmp_path: Path) -> str:
    file = tmp_path / "mine.py"
    file.write_text(archives.PARSER)
    return f"python:{file}:parse"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = execute(list(words))
    return code, capsys.readouterr().out


def report(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """The exit code and the JSON, which has to be as the published schema says."""
    code, out = run(capsys, *words, "--json")
    found = json.loads(out)
    name = "matrix-templates" if "--template" in words else words[0]
    schema = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
    jsonschema_rs.validator_for(schema).validate(found)
    assert set(found) == set(schema["$defs"][schema["$ref"].rpartition("/")[2]]["properties"])
    return code, found


def test_two_archives_of_one_model(tmp_path: Path, parser: str, capsys: pytest.CaptureFixture[str]) -> None:
    mismatched, matched = map(str, archives.write(tmp_path, 40))
    code, found = report(capsys, "replay", mismatched, matched, "--parser", parser)
    assert code == 1
    assert found["texts"] == 80 and found["skipped"] == {"not a first turn": 80}
    bad, good = found["rows"]
    assert bad["group"] == mismatched and good["group"] == matched
    assert bad["parsed"] == bad["returned"] == 0
    assert bad["emitted"] == {"texts": 40, "tight": 30, "strong": 31, "weak": 32, "calls": 32}
    assert bad["layers"] == {"no_envelope": 32} and bad["lost"] == 31
    assert good["parsed"] == good["returned"] == 32 and good["lost"] == 0
    for row in (bad, good):
        assert row["returned"] + sum(row["layers"].values()) == row["emitted"]["calls"]


def test_the_screen_says_it_first(tmp_path: Path, parser: str, capsys: pytest.CaptureFixture[str]) -> None:
    mismatched, matched = map(str, archives.write(tmp_path, 10))
    code, out = run(capsys, "replay", mismatched, "--parser", parser)
    assert code == 1
    assert out.splitlines()[0].startswith("python:mine returned 0 of 8 emitted calls")
    assert "no_envelope: the parser does not look for this form" in out
    assert "not a first turn 10" in out
    code, out = run(capsys, "replay", matched, "--parser", parser)
    assert code == 0 and "returned 8 of 8" in out


def test_rows_as_csv_and_every_call_as_lines(
    tmp_path: Path, parser: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mismatched, _ = map(str, archives.write(tmp_path, 10))
    entries = tmp_path / "entries.jsonl"
    code, out = run(
        capsys,
        "replay",
        mismatched,
        "--parser",
        parser,
        "--csv",
        "--entries",
        str(entries),
        "--fail-on",
        "never",
    )
    assert code == 0
    (row,) = csv.DictReader(io.StringIO(out))
    assert (row["calls"], row["returned"], row["no_envelope"]) == ("8", "0", "8")
    lines = [json.loads(line) for line in entries.read_text().splitlines()]
    assert len(lines) == 8
    assert lines[0]["turn"] == f"{mismatched}:1" and lines[0]["whole"]["layer"] == "no_envelope"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--parser", "vllm"], "is no ENGINE:PARSER"),
        (["--parser", "python:absent.py:f"], "no such file"),
        (["--parser", "PARSER", "--pieces", "3", "--tokenizer", "SOURCE"], "choose one"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_line(
    tmp_path: Path, parser: str, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    source, _ = map(str, archives.write(tmp_path, 5))
    made = [{"PARSER": parser, "SOURCE": source}.get(word, word) for word in words]
    assert execute(["replay", source, *made]) == 2
    assert said in capsys.readouterr().err


def test_a_log_without_tools_can_be_given_some(
    tmp_path: Path, parser: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source, _ = archives.write(tmp_path, 5)
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(rows[0]["tools"]))
    source.write_text("".join(json.dumps({**row, "tools": None}) + "\n" for row in rows))
    assert execute(["replay", str(source), "--parser", parser]) == 2
    assert "no tool list" in capsys.readouterr().err
    _, found = report(capsys, "replay", str(source), "--parser", parser, "--tools", str(tools))
    assert found["texts"] == 5


# --------------------------------------------------------------------------- matrix


def test_every_text_of_the_matrix_is_of_its_dialect() -> None:
    made = list(samples())
    for sample in made:
        if not sample.fault:
            assert {call.dialect for call in sample.material.found.calls} == {sample.dialect}, (
                sample.material.id
            )
    assert {sample.fault for sample in made} == {"", *MALFORMED}
    assert len({sample.material.id for sample in made}) == len(made)


def test_a_parser_in_the_matrix(parser: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = report(capsys, "matrix", "--parser", parser)
    assert code == 0
    cells = found["engines"][0]["cells"]
    taken = {cell["dialect"] for cell in cells if cell["outcome"] == "taken"}
    assert taken == {"hermes"}
    by = {(cell["form"], cell["case"], cell["fault"]): cell["outcome"] for cell in cells}
    assert by["hermes", "two", ""] == "taken"
    assert by["hermes, no line ends", "one", ""] == "text"
    assert by["hermes", "typed", "one brace too many"] == "text"
    assert by["hermes", "typed", "single quotes"] == "text"
    code, out = run(capsys, "matrix", "--parser", parser)
    assert "hermes" in out and "python:mine" in out


def test_the_users_own_texts(tmp_path: Path, parser: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text(
        json.dumps({"text": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "X"}}\n</tool_call>'})
    )
    _, found = report(capsys, "matrix", "--parser", parser, "--texts", str(file))
    mine = [cell for cell in found["engines"][0]["cells"] if cell["form"] == "yours"]
    assert [(cell["dialect"], cell["outcome"]) for cell in mine] == [("hermes", "taken")]
    file.write_text('{"tools": []}')
    assert execute(["matrix", "--parser", parser, "--texts", str(file)]) == 2
    assert "has no text" in capsys.readouterr().err


def test_versions_against_each_other(fake: Spec, capsys: pytest.CaptureFixture[str]) -> None:
    made = [sample for sample in samples() if sample.dialect == "hermes"]
    now = matrix.run(fake, made)
    worse = matrix.Ran(
        engine="fake==0.9",
        parsers=now.parsers,
        cells=tuple(
            matrix.Cell(**{**{f: getattr(c, f) for f in c.__struct_fields__}, "outcome": "erased"})
            if (c.parser, c.case, c.fault) == ("plain", "one", "")
            else c
            for c in now.cells
        ),
    )
    assert matrix.changes(now, now) == []
    gained = matrix.changes(now, worse)
    assert gained and not any(change.regression for change in gained)
    lost = matrix.changes(worse, now)
    assert len(lost) == len(gained) and all(change.regression for change in lost)
    assert {change.parser for change in lost} == {"plain"}
    assert {change.id for change in lost} <= {f"{c.dialect}/{c.form}/one" for c in now.cells}
    matrix_screen.show_changes(worse, now, lost)
    head, line, *_ = capsys.readouterr().out.strip().splitlines()
    assert f"of {len(now.cells)} pairs of parser and text {len(lost)} are no longer taken, 0 changed" in head
    assert line.startswith("  REGRESSION plain, taken to erased: hermes")
    fewer = matrix.Ran(engine="fake==0.8", parsers=("plain", "old"), cells=())
    matrix_screen.show_changes(now, fewer, [])
    out = capsys.readouterr().out
    assert "parsers that are gone: old" in out and "new, and not compared: blind, split" in out


def test_templates_and_parsers_and_their_interaction(
    tmp_path: Path, parser: str, capsys: pytest.CaptureFixture[str]
) -> None:
    coder = tmp_path / "coder.jinja"
    coder.write_text(CODER)
    other = tmp_path / "other.py"
    other.write_text(CODER_PARSER)
    words = ["matrix", "--template", str(HERMES), "--template", str(coder), "--parser", parser]
    code, found = report(capsys, *words, "--parser", f"python:{other}:parse")
    assert code == 0
    assert [one["dialect"] for one in found["templates"]] == ["hermes", "qwen3_coder"]
    table = {
        (m["template"], m["parser"].rpartition(":")[0]): (m["taken"], m["written"]) for m in found["meetings"]
    }
    assert table["hermes.jinja", "python:mine"] == (4, 4)
    assert table["hermes.jinja", "python:other"] == (0, 4)
    assert table["coder.jinja", "python:mine"] == (0, 4)
    assert table["coder.jinja", "python:other"] == (4, 4)
    (contrast,) = found["interactions"]
    assert contrast["interaction"] == 2
    assert contrast["main_template"] == contrast["main_parser"] == 0
    code, out = run(capsys, *words)
    assert code == 1
    assert "coder.jinja: asks for qwen3_coder" in out
    assert "the template asks for qwen3_coder, which parse does not read" in out


CODER_PARSER = """
import json, re

def parse(text, tools):
    kinds = {t["function"]["name"]: t["function"]["parameters"]["properties"] for t in tools}
    calls = []
    for name, body in re.findall(r"<function=(.*?)>(.*?)</function>", text, re.DOTALL):
        pairs = re.findall(r"<parameter=(.*?)>\\n(.*?)\\n</parameter>", body, re.DOTALL)
        number = lambda key, value: json.loads(value) if kinds[name][key]["type"] == "integer" else value
        calls.append((name, {key: number(key, value) for key, value in pairs}))
    return calls, "" if calls else text
"""


# --------------------------------------------------------------------------- engines


def test_engines_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRUECALL_HOME", str(tmp_path))
    for name in ("VLLM", "SGLANG", "VERL"):
        monkeypatch.delenv(f"TRUECALL_ENGINES_{name}", raising=False)
    code, out = run(capsys, "engines", "list")
    assert code == 0 and "no engine is here" in out
    assert execute(["engines", "remove", "verl"]) == 2
    assert execute(["engines", "add", "ollama"]) == 2
    assert execute(["engines", "add", "verl==x y"]) == 2
    assert execute(["engines", "add", "verl", "--python", "/nowhere/python"]) == 2
    assert "can't be run" in capsys.readouterr().err


def test_the_list_says_which_engine_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRUECALL_HOME", str(tmp_path))
    for name in ("VLLM", "SGLANG", "VERL"):
        monkeypatch.delenv(f"TRUECALL_ENGINES_{name}", raising=False)
    fake = registry.Engine(name="verl", version="1.0", python=sys.executable, ready=True)
    registry.write(registry.folder_of("verl", "1.0"), fake)
    half = registry.Engine(name="vllm", version="0.1", python="/nowhere", done=("environment",))
    registry.write(registry.folder_of("vllm", "0.1"), half)
    launch = Launch(engine="verl==1.0", python=sys.executable, script=str(FAKE))
    monkeypatch.setattr(registry.Engine, "launch", lambda _: launch)
    code, found = report(capsys, "engines", "list", "--check")
    works, begun = found["engines"]
    assert code == 0 and found["folder"] == str(tmp_path / "engines")
    assert works["working"] + len(works["idle"]) == works["parsers"] and "fault" not in works
    assert begun["ready"] is False and "working" not in begun
    monkeypatch.setattr(
        registry.Engine, "launch", lambda _: Launch(engine="verl", python="/nowhere/python", script="")
    )
    code, found = report(capsys, "engines", "list", "--check")
    assert code == 1 and "can't be run" in found["engines"][0]["fault"]


def test_dialects_are_listed_as_published(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = report(capsys, "dialects")
    names = [one["name"] for one in found["dialects"]]
    assert code == 0 and len(names) == len(set(names)) > 40
    _, found = report(capsys, "dialects", "kimi_k2")
    assert [one["name"] for one in found["dialects"]] == ["kimi"]
