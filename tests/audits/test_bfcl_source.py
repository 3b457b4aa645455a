"""BFCL result files as a scan's source."""

from __future__ import annotations

import json
from typing import Any

import pytest

from truecall.sources.base import Bad, Head, Item, Line, Options, Turn
from truecall.sources.bfcl import BfclSource


def turns(*values: Any) -> list[Item]:
    raw = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    lines = [Line(number, 0, data) for number, data in enumerate(raw, 1)]
    return list(BfclSource().read(lines, "x_result.json", Options(fields=("latency",))))


@pytest.mark.parametrize(
    ("name", "first", "is_ours"),
    [
        ("BFCL_v4_irrelevance_result.json", {"id": "irrelevance_0", "result": []}, True),
        ("renamed.jsonl", {"id": "irrelevance_0", "result": "x", "output_token_count": 3}, True),
        ("chat.jsonl", {"id": "1", "messages": []}, False),
        ("other.jsonl", {"id": "1", "result": "x"}, False),
        ("BFCL_v4_irrelevance_result.json", None, False),
    ],
)
def test_sniff(name: str, first: Any, is_ours: bool) -> None:
    assert BfclSource().sniff(Head(name, b"", first)) is is_ours


def test_text_calls_and_errors() -> None:
    text, calls, empty, failed = turns(
        {"id": "a", "result": "<tool_call>", "output_token_count": 7, "latency": 1.5},
        {"id": "b", "result": [{"f": "{}"}]},
        {"id": "c", "result": [], "output_token_count": 40},
        {"id": "d", "result": "Error during inference: x", "traceback": "T"},
    )
    assert (
        isinstance(text, Turn)
        and isinstance(calls, Turn)
        and isinstance(empty, Turn)
        and isinstance(failed, Turn)
    )
    assert (text.text, text.surfaced, text.fields) == ("<tool_call>", None, {"latency": 1.5})
    assert text.usage is not None and text.usage.completion_tokens == 7
    assert calls.text is None and calls.surfaced is not None and calls.surfaced[0].name == "f"
    assert empty.surfaced == () and empty.usage is not None and empty.usage.completion_tokens == 40
    assert failed.error == "Error during inference: x" and failed.text is None


def test_conversations_give_a_turn_a_step() -> None:
    found = turns(
        {"id": "m", "result": [[[{"ls": "{}"}], "done"], ["bye"]], "output_token_count": [[1, 2], [3]]}
    )
    assert all(isinstance(turn, Turn) for turn in found)
    steps = [(turn.position, turn.text, turn.usage) for turn in found if isinstance(turn, Turn)]
    assert steps == [(0, None, None), (1, "done", None), (2, "bye", None)]


def test_bad_lines_are_bad() -> None:
    found = turns(b'{"id": "a", "res', [1], {"result": "no id"}, {"id": "z", "result": "ok"})
    assert [isinstance(item, Bad) for item in found] == [True, True, True, False]
