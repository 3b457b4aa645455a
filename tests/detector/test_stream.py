"""Streams: the end agrees with the whole text for every split, and nothing said before is taken back."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from truecall.detector import Detector, Progress, detect

HERE = Path(__file__).parent
TOOLS = [
    {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def texts() -> list[tuple[str, Any]]:
    rows = [json.loads(line) for line in (HERE / "unseen.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(row["raw"], row["tools"]) for row in rows]


def test_nothing_is_taken_back() -> None:
    pool, draw = texts(), random.Random(7)
    settled = 0
    for _ in range(120):
        parts = draw.sample(pool, 4)
        text = "\n\n".join(raw for raw, _ in parts)
        tools = [tool for _, offered in parts for tool in offered or []]
        for reasoning in (None, False):
            detector = Detector(tools, reasoning_open=reasoning)
            said: Progress = Progress()
            for at in range(0, len(text), 11):
                now = detector.feed(text[at : at + 11])
                assert now.calls[: len(said.calls)] == said.calls
                assert now.settled >= said.settled
                said = now
            whole = detector.finish()
            assert whole == detect(text, tools, reasoning_open=reasoning)
            assert whole.calls[: len(said.calls)] == said.calls
            settled += len(said.calls)
    assert settled > 20  # the promise is not kept by saying nothing


def test_open_until_reasoning_is_decided() -> None:
    text = CALL + "\nnow more text " * 60
    assert Detector(TOOLS).feed(text).emitted is None
    progress = Detector(TOOLS, reasoning_open=False).feed(text)
    assert progress.emitted is True
    assert progress.calls[0].arguments == {"city": "Oslo"}
    # A later closing tag turns all of it into reasoning, and with an answer behind it there is no call.
    assert not detect(text + "</think>It is cold.", TOOLS).emitted
    assert detect(text + "</think>It is cold.", TOOLS, reasoning_open=False).emitted


def test_a_call_whose_value_may_go_on_stays_open() -> None:
    """A tag in a value may be the text of a whole call inside it, should closers for it come."""
    tools = [{"name": "note", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}]
    head = "<tool_call>\n<function=note>\n<parameter=text>\n"
    closers = "\n</parameter>\n</function>\n</tool_call>"
    text = f"{head}It begins with <function=x> as said.{closers}" + " and so it goes on" * 30
    assert detect(text, tools).calls[0].arguments == {"text": "It begins with <function=x> as said."}
    assert detect(text + closers, tools).calls[0].arguments != {
        "text": "It begins with <function=x> as said."
    }
    assert Detector(tools, reasoning_open=False).feed(text).emitted is None
    plain = text.replace("<function=x>", "an opener")
    assert Detector(tools, reasoning_open=False).feed(plain).emitted is True


@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_splits_agree(size: int) -> None:
    for raw, tools in texts()[::7]:
        detector = Detector(tools)
        for at in range(0, len(raw), size):
            detector.feed(raw[at : at + size])
        assert detector.finish() == detect(raw, tools)


def test_ticks_in_the_line_before_a_call_keep_it_open() -> None:
    """They quote all up to their closers, which may come much later in the same line."""
    call = CALL.replace("\n", " ")
    line = f"It said ```{call} {call}" + " and so on" * 60
    stream = Detector(TOOLS, reasoning_open=False)
    assert stream.feed(line).calls == ()
    assert stream.feed("\n" + "." * 400).calls == detect(line, TOOLS).calls != ()
    assert detect(line + "```", TOOLS).calls == ()
