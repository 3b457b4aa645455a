"""Every source on older files, files that are cut off, and hostile ones; and verl's decoded responses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.sources import samples
from tests.sources.reading import source_name, told, write
from tests.sources.samples import ARGUMENTS, DATA, TEXT_CALL, TOOLS, USER, assistant, lines
from truecall.scan import judge_turn
from truecall.sources import Bad, Options, Turn, read_file, source_of
from truecall.sources.files import READ_ERRORS
from truecall.sources.verl import model_texts

CALLED, PLAIN, LEAKED = ("valid", "surfaced", True), ("no_call", "nothing"), ("valid", "leaked")


# --------------------------------------------------------------------------- older, cut off, hostile


def test_older_forms(tmp_path: Path) -> None:
    old = write(tmp_path / "spans.json", samples.otel_older())
    assert source_name(old) == "otel"
    assert [item[:2] for item in told(old)] == [("valid", "surfaced"), LEAKED, ("unknown", "unknown")]
    sample = {"doc_id": 1, "doc": {}, "target": "x", "arguments": [["prompt", {"until": []}]], "resps": [[TEXT_CALL]],
              "filtered_resps": [TEXT_CALL]}  # fmt: skip
    assert told(write(tmp_path / "samples_a.jsonl", lines(sample))) == [("valid", "unknown", None)]
    rollout = {
        "input": "p",
        "output": TEXT_CALL,
        "score": 0.0,
        "step": 1,
    }  # verl before 0.5: no gts, no request_id
    assert told(write(tmp_path / "1.jsonl", lines(rollout))) == [("valid", "unknown", None)]
    functions = {"messages": [USER, {"role": "assistant", "content": None, "function_call": {
        "name": "get_weather", "arguments": ARGUMENTS}}], "functions": [TOOLS[0]["function"]]}  # fmt: skip
    assert told(write(tmp_path / "f.jsonl", lines(functions)))[0][:2] == ("valid", "surfaced")
    log = json.loads((DATA / "inspect.json").read_text())
    for one in log["samples"]:  # logs of format 1 had no events of the model
        del one["events"], one["events_data"]
    log["version"] = 1
    assert [item[:2] for item in told(write(tmp_path / "old.json", log))][:2] == [
        ("valid", "surfaced"),
        PLAIN,
    ]


def _whole_files() -> list[tuple[str, bytes]]:
    made = [
        ("run.json", json.dumps(samples.tau_bench()).encode()),
        ("results.json", json.dumps(samples.tau2()).encode()),
        ("log.har", json.dumps(samples.har()).encode()),
        ("spans.json", json.dumps(samples.otel_older()).encode()),
        ("chat.jsonl", lines({"messages": samples.TRAJECTORY, "tools": TOOLS}).encode() * 3),
        (
            "chat.jsonl.gz",
            gzip.compress(lines({"messages": samples.TRAJECTORY, "tools": TOOLS}).encode() * 3),
        ),
        (
            "chat.jsonl.zst",
            zstandard.compress(lines({"messages": samples.TRAJECTORY, "tools": TOOLS}).encode() * 3),
        ),
    ]
    kept = sorted(path for path in DATA.rglob("*") if path.is_file())
    return made + [(path.name, path.read_bytes()) for path in kept]


@pytest.mark.parametrize(
    ("name", "data"), _whole_files(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_file_that_is_cut_off(tmp_path: Path, name: str, data: bytes) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    seen = 0
    for share in (0.97, 0.8, 0.5):
        path.write_bytes(data[: int(len(data) * share)])
        try:
            known = source_of(str(path)) is not None
        except READ_ERRORS:
            known = False
        if not known:  # the scan tells such a file as one that was not read
            seen += 1
            continue
        items = list(read_file(str(path)))
        seen += any(isinstance(item, Bad) for item in items)
        for item in items:
            if isinstance(item, Turn):
                judge_turn(item)
    assert seen, "a cut file must be told"


BAD = samples.HOSTILE
_DEEP = '{"messages": ' + "[" * 5000 + "]" * 5000 + "}"


def _hostile() -> dict[str, Any]:
    """Files of each format with wrong types and hostile texts wherever something is read."""
    calls = [3, {"function": {}}]
    event = {"event": "model", "output": {"choices": [{"message": {"content": BAD, "tool_calls": calls}}]}}
    attributes = [
        {"key": "gen_ai.output.messages", "value": {"stringValue": BAD}},
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        4,
    ]
    content = {"text": BAD, "encoding": "base64"}
    odd_messages = [USER, assistant(BAD, {"id": 5, "function": 7}), 3, None, {"role": ["x"]}]
    parts = {"role": "assistant", "content": [BAD, {"type": "text", "text": BAD}]}
    chat = lines(
        {"messages": samples.TRAJECTORY},
        {"messages": odd_messages, "tools": "x", "model": 4},
        {"messages": [assistant(BAD), parts], "tools": [None, 3]},
        {"messages": {}},
        {"request": [], "response": {"body": BAD, "status_code": "x"}},
        {"response": {"choices": [None, 4]}},
    )
    return {
        "chat.jsonl": f"{chat}{_DEEP}\n\x00\xff\n[]\n3\n",
        "1.jsonl": lines(
            {"input": "", "output": BAD, "step": "x"}, {"input": 3, "output": None}, {"output": 4}
        ),
        "samples_x.jsonl": lines({"doc": 3, "resps": [[BAD], 4, [None]]}, {"doc": {}, "resps": 5}, []),
        "t.jsonl": lines(
            {"prompt": BAD, "completion": BAD, "advantage": 1},
            {"prompt": 1, "completion": [None, 3]},
            {"prompt": 3},
        ),
        "run.json": [3, {"task_id": BAD, "reward": BAD, "info": [], "traj": [None, {"role": "assistant"}]}],
        "log.har": {
            "log": {"creator": 1, "entries": [3, {"request": {"url": BAD}, "response": {"content": content}}]}
        },
        "sim.json": {
            "task_id": BAD,
            "termination_reason": 3,
            "messages": [None, {"role": "assistant", "tool_calls": BAD, "raw_data": {"choices": BAD}}],
        },
        "otel.json": {"resourceSpans": [3, {"scopeSpans": [{"spans": [{"attributes": attributes}]}]}]},
        "eval.json": {"eval": {"eval_id": 1}, "samples": [3, {"events": [event, {"event": "model"}]}]},
    }


@pytest.mark.parametrize("name", list(_hostile()))
def test_hostile_content(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, _hostile()[name])
    assert source_of(str(path)) is not None
    items = list(read_file(str(path), Options(tools=[None, BAD])))
    assert items
    for item in items:
        if isinstance(item, Turn):
            judge_turn(item)


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truecall.sources.zips.MAX_MEMBER", 1000)
    path = tmp_path / "x.eval"
    path.write_bytes((DATA / "inspect.eval").read_bytes())
    assert all("larger than" in item for item in told(path) if isinstance(item, str)) and told(path)


def test_unknown_files_are_told(tmp_path: Path) -> None:
    for text in ("", "hello\n", '{"a": 1}\n', "[]", "\x00\x01"):
        assert source_of(str(write(tmp_path / "x", text))) is None


# --------------------------------------------------------------------------- verl's decoded responses


@pytest.mark.parametrize(
    ("output", "texts"),
    [
        ("a", [("a", None)]),
        ("", [("", None)]),
        ("a\nuser\n<tool_response>\nr\n</tool_response>\nassistant\nb", [("a", True), ("b", None)]),
        ("a\nuser\n<tool_response>\nr\n</tool_response>", [("a", True)]),
        ("a\nuser\n<tool_response>\nr", [("a", True)]),
        (
            "a\nuser\n<tool_response>\nr\n</tool_response>\n<tool_response>\ns\n</tool_response>\nassistant\nb",
            [("a", True), ("b", None)],
        ),
        (
            "a<|im_end|>\n<|im_start|>user\n<tool_response>\nr\n</tool_response><|im_end|>\n<|im_start|>assistant\nb",
            [("a", True), ("b", None)],
        ),
        ("aipython\n\nrassistant\n\nb", [("a", True), ("b", None)]),
        (
            "I write <tool_response>x</tool_response> myself",
            [("I write <tool_response>x</tool_response> myself", None)],
        ),
    ],
)
def test_the_models_own_words(output: str, texts: list[tuple[str, bool | None]]) -> None:
    assert list(model_texts(output)) == texts
