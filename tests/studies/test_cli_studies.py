"""The verbs run, compare and card: what they print, where they save, how they exit."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

import truecall
from tests.studies.player import Mode, Player
from truecall.cli import execute as cli
from truecall.run.output import CardOutput, CompareOutput, RunOutput
from truecall.run.result import find_run, read
from truecall.store import Place, new_place

Serve = Callable[[Mode], Player]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Players on a thread of their own: verbs run an event loop themselves."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    started: list[Player] = []

    def start(mode: Mode) -> Player:
        player = asyncio.run_coroutine_threadsafe(Player(mode).__aenter__(), loop).result(10)
        started.append(player)
        return player

    yield start
    for player in started:
        asyncio.run_coroutine_threadsafe(player.__aexit__(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TRUECALL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return tmp_path / "home"


def test_run_by_flags_then_card_and_compare(
    serve: Serve, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    flags = [
        "--task",
        "chain",
        "--seeds",
        "4",
        "--turns",
        "12",
        "--condition",
        "native",
        "--condition",
        "text_tools",
    ]
    server = serve("native")
    code = cli(["run", "--base-url", server.base_url, *flags])
    said = capsys.readouterr()
    assert code == 0, said
    lines = said.out.splitlines()
    assert re.match(
        r"No call was lost and no request failed: \d+ of \d+ turns surfaced a valid call\.", lines[0]
    )
    assert "observed     per seed 100.0 % [" in said.out and "(n = 4)" in said.out
    assert "funnel       sent" in said.out and "next: truecall card run/0001" in said.out
    assert find_run("1") == home / "runs" / "0001" == find_run("runs/0001")
    assert cli(["card", "1", "--arm", "native"]) in (0, 1)
    card = capsys.readouterr().out
    assert (
        "Reporting checklist, native" in card and "per-seed rate with its interval: observed fidelity" in card
    )
    assert "! the card does not know: " in card
    assert cli(["compare", "1"]) == 2  # the player tells nothing of itself: no whole card, no pass rates
    assert "N/A: native: the card does not know" in capsys.readouterr().out
    assert cli(["card", "1", "--json"]) in (0, 1)
    data = json.loads(capsys.readouterr().out)
    assert [arm["name"] for arm in data["arms"]] == ["native", "text_tools"] and data["schema_version"] == 1


WHOLE = {
    "engine_version": "1", "model_digest": "sha256:" + "0" * 64, "quantisation": "Q4", "engine": "player",
    "chat_template": "t", "tool_parser": "p",
}  # fmt: skip


def factorial_file(path: Path, serve: Serve) -> Path:
    """A 2 × 2 of template and parser in which only one combination surfaces calls."""
    cells = {
        ("old", "none"): "leaks",
        ("new", "none"): "leaks",
        ("old", "hermes"): "leaks",
        ("new", "hermes"): "native",
    }
    lines = ['name = "cross"', 'tasks = ["chain"]', "seeds = 5"]
    lines += ["[limits]", "turns = 1"]
    lines += ["[factorial]", 'a = "template"', 'a_off = "old"', 'a_on = "new"']
    lines += ['b = "parser"', 'b_off = "none"', 'b_on = "hermes"']
    for number, ((template, parser), mode) in enumerate(cells.items()):
        lines += ["[[endpoints]]", f'name = "e{number}"', f'base_url = "{serve(mode).base_url}"']  # type: ignore[arg-type]
        lines += [f'labels = {{ template = "{template}", parser = "{parser}" }}']
        declared = ", ".join(
            f'{k} = "{v}"' for k, v in WHOLE.items() if k not in ("chat_template", "tool_parser")
        )
        lines += [f"declared = {{ {declared} }}"]
    file = path / "cross.toml"
    file.write_text("\n".join(lines))
    return file


def test_a_factorial_from_a_study_file(
    serve: Serve, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = factorial_file(tmp_path, serve)
    assert cli(["run", str(file), "--out", str(tmp_path / "run")]) == 1  # calls were lost
    said = capsys.readouterr().out
    assert "Well-formed calls were lost" in said and "first requests, stack by stack:" in said
    assert "chain, native/terse: text call 5" in said and "native call 5" in said
    assert cli(["compare", str(tmp_path / "run")]) in (0, 1)
    said = capsys.readouterr().out
    assert "template alone: +0.0 points" in said and "parser alone: +0.0 points" in said
    assert "template × parser: +100.0 points" in said
    assert "template on average: +50.0 points" in said
    assert "Changed alone: template +0.0 points and parser +0.0 points." in said
    assert "e3/native against e1/native (differs in parser)" in said  # paired by the one label that differs
    assert "e3/native against e0/native" not in said
    assert "exact p" in said  # the cards are whole and differ in nothing but the factor


def test_plan_sends_nothing(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve("native")
    assert cli(["run", "--base-url", server.base_url, "--plan", "--seeds", "3", "--turns", "5"]) == 0
    said = capsys.readouterr().out
    assert "3 episodes of at most 5 turns: 15 requests, 7,680 completion tokens" in said
    assert "nothing was sent" in said and server.chats == []


def test_a_budget_ends_with_exit_two_and_resume_goes_on(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve("native")
    common = ["run", "--base-url", server.base_url]
    assert cli([*common, "--task", "chain", "--seeds", "2", "--budget", "5", "--concurrency", "1"]) == 2
    assert "truecall run --resume run/0001" in capsys.readouterr().out
    assert cli([*common, "--resume", "1", "--budget", "100", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["arms"][0]["numbers"]["ended"] == {"submitted": 2} and data["findings"] == []
    assert read(find_run("1")).arms[0].numbers.episodes == 2  # type: ignore[union-attr]


def test_silence_is_nothing_that_can_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["run", "--base-url", "http://127.0.0.1:9/v1", "--seeds", "2", "--model", "m"]) == 2
    said = capsys.readouterr().out
    assert said.startswith("2 requests failed; they are in no model's rate.")
    assert (
        "no response  unreachable 2 of 2 turns" in said and "observed     N/A: no turn was produced" in said
    )


def test_never_rendered_is_no_rate(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr("tests.studies.player.answer", _blind)
    server = serve("prose")
    code = cli(["run", "--base-url", server.base_url, "--task", "chain", "--seeds", "3"])
    said = capsys.readouterr().out
    assert code == 1 and said.startswith("In native the tools were never rendered")
    assert "observed  " not in said and "tools NEVER RENDERED" in said


def _blind(mode: Mode, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """A server whose template drops the tools."""
    message = {"role": "assistant", "content": "It is a nice day."}
    return 200, {
        "id": "x", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["run"], "no endpoint"),
        (["run", "nothing.toml"], "no bundled study"),
        (["run", "--base-url", "http://127.0.0.1:9", "--task", "beauty"], "no task 'beauty'"),
        (["run", "--base-url", "http://127.0.0.1:9", "--condition", "x"], "no condition"),
        (["run", "--base-url", "http://127.0.0.1:9", "--set", "limits.turn=3"], "unknown field"),
        (["run", "--base-url", "http://127.0.0.1:9", "--set", "turns"], "name.name=value"),
        (["run", "--resume", "7"], "no run of that id"),
        (["card", "7"], "no run of that id"),
        (["compare", "7"], "no run of that id"),
        (["compare", "7", "--outcome", "beauty"], "there are solved"),
    ],
)
def test_mistakes_are_one_line_and_exit_two(
    argv: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(argv) == 2
    said = capsys.readouterr()
    assert word in said.err and said.out == ""
    assert len(said.err.strip().splitlines()) == 1


def test_bundled_studies_plan(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(truecall.__file__).parent / "data" / "studies"
    names = sorted(file.stem for file in folder.glob("*.toml"))
    assert len(names) >= 5
    for name in names:
        assert cli(["run", name, "--plan"]) == 0, name
        assert "nothing was sent" in capsys.readouterr().out


def test_run_ids_are_counted_up(home: Path) -> None:
    assert [new_place(Place.RUN).name for _ in range(3)] == ["0001", "0002", "0003"]


KINDS = {"run": RunOutput, "compare": CompareOutput, "card": CardOutput}
SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"


@pytest.mark.parametrize("name", KINDS)
def test_published_schemas_are_up_to_date(name: str) -> None:
    made = json.loads(msgspec.json.encode(msgspec.json.schema(KINDS[name])))
    assert json.loads((SCHEMAS / f"{name}.json").read_text("utf-8")) == made


def test_what_is_printed_fits_its_schema(
    serve: Serve, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = str(tmp_path / "run")
    file = factorial_file(tmp_path, serve)
    cli(["run", str(file), "--out", run, "--json"])
    printed = {"run": json.loads(capsys.readouterr().out)}
    for verb in ("compare", "card"):
        cli([verb, run, "--json"])
        printed[verb] = json.loads(capsys.readouterr().out)
    for name, value in printed.items():
        schema = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
        jsonschema_rs.validator_for(schema).validate(value)
        assert value["schema_version"] == 1
