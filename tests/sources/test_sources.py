"""Every source: a file of its own tool, an older one, one that is cut off, one with hostile content."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.sources import samples
from tests.sources.reading import source_name, told, turns, write
from tests.sources.samples import (
    DATA,
    TEXT_CALL,
    TOOLS,
    USER,
    answer,
    assistant,
    call,
    lines,
    result,
)
from truecall.records import Exchange, Failure, FailureKind, Request, Timing
from truecall.replay import texts
from truecall.sources import Options, read_file
from truecall.store import RunFolder

CALLED, PLAIN, LEAKED = ("valid", "surfaced", True), ("no_call", "nothing"), ("valid", "leaked")


# --------------------------------------------------------------------------- written by the tools themselves


@pytest.mark.parametrize("name", ["inspect.eval", "inspect.json"])
def test_inspect_ai(name: str) -> None:
    path = DATA / name
    assert source_name(path) == "inspect_ai"
    assert told(path) == [
        ("valid", "surfaced", True),
        ("no_call", "nothing", False),
        ("valid", "leaked", False),
        ("invalid_arguments", "surfaced", True),
        ("no_call", "nothing", False),
    ]
    found = turns(path)
    assert [turn.executed for turn in found] == [True, False, False, False, False]
    assert found[0].model == "mockllm/model"
    assert found[0].episode == "1/1" and found[2].episode == "2/1"
    assert found[0].tools[0]["name"] == "get_weather"


def test_otel_from_the_sdk() -> None:
    path = DATA / "otel_sdk.json"
    assert source_name(path) == "otel"
    assert [item[:2] for item in told(path)] == [
        ("valid", "surfaced"),
        PLAIN,
        LEAKED,
        ("unknown", "server_error"),
    ]
    assert turns(path)[0].observed is True  # its result stands in the second span's input
    assert turns(path)[0].usage is not None and turns(path)[0].usage.completion_tokens == 20


def test_lm_eval() -> None:
    path = DATA / "my-model" / "samples_weather_2026-11-30.jsonl"
    assert source_name(path) == "lm-eval"
    assert told(path) == [
        ("valid", "unknown", None),
        ("no_call", "nothing", None),
        ("valid", "unknown", None),
    ]
    assert {turn.model for turn in turns(path)} == {"my-model"}
    assert all(turn.surfaced is None for turn in turns(path))


def test_verl() -> None:
    path = DATA / "verl_400.jsonl"
    assert source_name(path) == "verl"
    assert told(path) == [
        CALLED,
        ("no_call", "nothing", None),
        ("valid", "unknown", None),
        ("no_call", "nothing", None),
        ("valid", "unknown", None),
        CALLED,
        CALLED,
        ("no_call", "nothing", None),
        ("valid", "unknown", None),
    ]
    found = turns(path)
    assert {turn.step for turn in found} == {400}
    assert all(turn.raw and turn.stripped and turn.surfaced is None for turn in found)
    assert [turn.position for turn in found] == [0, 1, 0, 0, 0, 0, 1, 2, 0]
    assert found[0].text == TEXT_CALL  # the role and the result are not the model's words
    assert found[0].tools[0]["function"]["name"] == "get_weather"  # from the rendered prompt


def test_trl_tables() -> None:
    pytest.importorskip("pyarrow")
    assert source_name(DATA / "trl_text.parquet") == "parquet"
    options = Options(tools=TOOLS)
    assert told(DATA / "trl_text.parquet", options) == [
        ("valid", "unknown", None),
        ("no_call", "nothing", None),
    ]
    assert told(DATA / "trl_plain.parquet", options) == [
        ("valid", "unknown", None),
        ("no_call", "nothing", None),
    ]
    assert told(DATA / "trl_parsed.parquet", options)[:2] == [CALLED, ("no_call", "nothing", None)]
    assert [turn.step for turn in turns(DATA / "trl_parsed.parquet")] == [10, 10, 10]


# --------------------------------------------------------------------------- by the documentation


def test_tau_bench(tmp_path: Path) -> None:
    path = write(tmp_path / "run.json", samples.tau_bench())
    assert source_name(path) == "tau-bench"
    assert told(path) == [
        CALLED,
        ("no_call", "nothing", None),
        ("valid", "leaked", False),
        ("unknown", "server_error", None),
    ]
    assert [turn.solved for turn in turns(path)] == [True, True, False, None]


def test_tau2_asks_the_raw_response_first(tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", samples.tau2())
    assert source_name(path) == "tau2"
    assert [item[:2] for item in told(path)] == [
        PLAIN,
        ("valid", "surfaced"),
        LEAKED,
        ("unknown", "server_error"),
    ]
    found = turns(path)
    assert found[2].body is not None and found[1].observed is True
    assert found[0].model == "openai/m"


def test_tau2_folder(tmp_path: Path) -> None:
    (tmp_path / "simulations").mkdir()
    path = write(tmp_path / "simulations" / "a.json", samples.tau2()["simulations"][0])
    assert source_name(path) == "tau2"
    assert len(turns(path)) == 3


def test_har(tmp_path: Path) -> None:
    path = write(tmp_path / "log.har", samples.har())
    assert source_name(path) == "har"
    assert told(path) == [
        CALLED,
        ("no_call", "nothing", None),
        ("valid", "leaked", None),
        ("unknown", "server_error", None),
    ]


def test_own_run_folders(tmp_path: Path) -> None:
    first = {"model": "m", "tools": TOOLS, "messages": [USER]}
    second = {**first, "messages": [USER, assistant(None, call()), result()]}
    long = assistant("It is sunny. " * 2000)
    with RunFolder(tmp_path / "run") as folder:
        folder.append("intent", {"item": "a"})
        for request, body in ((first, answer(assistant(None, call()), "tool_calls")), (second, answer(long))):
            folder.exchange(_exchange(request, json.dumps(body).encode()))
        folder.exchange(_exchange(first, b"", FailureKind.TIMEOUT_TOTAL))
    path = tmp_path / "run" / "log.jsonl"
    assert source_name(path) == "truecall"
    assert told(path) == [CALLED, ("no_call", "nothing", None), ("unknown", "timeout", None)]
    assert turns(path)[1].text == long["content"]  # from a blob


def test_a_runs_first_turns_and_what_its_token_ids_say(tmp_path: Path) -> None:
    """A study counts turns from 1, and the text of token ids is logged after the answer."""
    request = {"model": "m", "tools": TOOLS, "messages": [USER]}
    erased = json.dumps(answer({"role": "assistant", "content": None})).encode()
    place = {"arm": "native", "item": "chain", "seed": 0, "sample": None, "attempt": 1}
    with RunFolder(tmp_path / "run") as folder:
        for turn in (1, 2):
            folder.exchange(_exchange(request, erased), **place, turn=turn)
        folder.append("detokenized", {**place, "turn": 1, "text": f"{TEXT_CALL}<|im_end|>"})
        for number in (1, 2, 3):
            refused = {"superseded": True} if number == 3 else {}
            folder.exchange(_exchange(request, erased), n=number, **refused)
        folder.append("texts", {"n": 2, "texts": [TEXT_CALL, None]})
    path = tmp_path / "run" / "log.jsonl"
    assert [turn.position for turn in turns(path)] == [0, 1, None, None]
    assert [(turn.text, turn.raw) for turn in turns(path)] == [
        (TEXT_CALL, True),
        (None, False),
        (None, False),
        (TEXT_CALL, True),
    ]
    assert [found[:2] for found in told(path)][::3] == [("valid", "erased"), ("valid", "erased")]
    skipped: Counter[str] = Counter()
    found = list(texts.read([str(path)], skipped))
    assert [(one.text, one.raw) for one in found] == [(TEXT_CALL, True), (TEXT_CALL, True)]
    assert skipped == {"not a first turn": 1, "the log holds no text of it": 1}


def _exchange(request: Any, body: bytes, failure: FailureKind | None = None) -> Exchange:
    return Exchange(
        request=Request(method="POST", url="http://h/v1/chat/completions", body=json.dumps(request).encode()),
        timing=Timing(started_at=0.0),
        status=None if failure else 200,
        headers=(("content-type", "application/json"),),
        body=body,
        failure=Failure(kind=failure) if failure else None,
    )


# --------------------------------------------------------------------------- chat files


def test_chat_conversations(tmp_path: Path) -> None:
    path = write(
        tmp_path / "chat.jsonl",
        lines(
            {"messages": samples.TRAJECTORY, "tools": TOOLS, "model": "a", "id": 7},
            {"messages": [USER, assistant(TEXT_CALL), USER], "tools": TOOLS},
            {"messages": [USER, assistant(TEXT_CALL)]},
        ),
    )
    assert source_name(path) == "chat"
    assert told(path) == [
        CALLED,
        ("no_call", "nothing", None),
        ("valid", "leaked", False),
        ("valid", "unknown", None),  # nothing in the entry shows whether calls would have been kept
    ]
    assert turns(path)[0].episode == "7"


def test_chat_pairs_batches_and_responses(tmp_path: Path) -> None:
    request = {"model": "m", "tools": TOOLS, "messages": [USER]}
    body = answer(assistant(TEXT_CALL))
    path = write(
        tmp_path / "pairs.jsonl",
        lines(
            {"request": request, "response": body},
            {"custom_id": "1", "response": {"status_code": 200, "body": body}, "error": None},
            {"custom_id": "2", "response": {"status_code": 400, "body": {"error": {"message": "no"}}}, "error": None},
            body,
            {"type": "message", "role": "assistant", "content": [
                {"type": "tool_use", "id": "t", "name": "get_weather", "input": {"city": "Oslo"}}]},
        ),
    )  # fmt: skip
    assert [item[:2] for item in told(path)] == [
        LEAKED,
        LEAKED,
        ("not_run", "rejected"),
        LEAKED,
        ("valid", "surfaced"),
    ]


def test_a_text_harness_shows_what_came_back(tmp_path: Path) -> None:
    observed = {"role": "user", "content": "Observation: sunny"}
    path = write(
        tmp_path / "react.jsonl", lines({"messages": [USER, assistant(TEXT_CALL), observed], "tools": TOOLS})
    )
    assert [turn.observed for turn in turns(path)] == [True]


def test_both_ways_of_reading_a_chat_line_agree(tmp_path: Path) -> None:
    entries = [
        {"messages": samples.TRAJECTORY, "tools": TOOLS, "model": "a", "step": 3, "id": "x"},
        {
            "messages": [USER, assistant(TEXT_CALL), USER, assistant("Yes.")],
            "tools": TOOLS,
            "tool_choice": "none",
        },
        {"messages": [USER, assistant("x", call(arguments={"city": "Oslo"}))]},
        {
            "messages": [
                USER,
                assistant("a"),
                {"role": "user", "content": "Observation: b"},
                assistant(None),
            ],
            "tools": [],
        },
        {
            "messages": [
                USER,
                {"role": "assistant", "content": "a", "reasoning_content": "hm", "finish_reason": "length"},
            ]
        },
    ]
    path = write(tmp_path / "chat.jsonl", lines(*entries))
    general = Options(fields=("nothing",))  # a field that is asked for takes the general way
    assert list(read_file(str(path))) == list(read_file(str(path), general))


def test_a_first_line_of_a_long_conversation_still_tells_the_format(tmp_path: Path) -> None:
    long = {"messages": [{"role": "user", "content": "x" * (1 << 20)}, assistant(TEXT_CALL)], "tools": TOOLS}
    path = write(
        tmp_path / "log.jsonl", "\n" + lines(long, {"messages": [USER, assistant("No.")], "tools": TOOLS})
    )
    assert [item[:2] for item in told(path)] == [LEAKED, PLAIN]
