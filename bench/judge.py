"""What `judge` costs on typical responses, beside the floor: msgspec decoding the same bytes.

    python bench/judge.py [--seconds 1.0]

Both run in turns, round by round, in one thread; the table gives the median of the rounds in microseconds, with the
lowest and the highest.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from truecall import judge

ROUNDS = 15
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": f"{name}_weather", "description": "Weather.", "parameters": SCHEMA},
    }
    for name in ("get", "set", "old", "new")
]
ARGUMENTS = '{"city": "Oslo", "days": 2}'
HERMES = f'<tool_call>\n{{"name": "get_weather", "arguments": {ARGUMENTS}}}\n</tool_call>'
PROSE = "The weather in Oslo is cold today, with some snow in the north and a light wind from the sea. " * 6
REQUEST = {"model": "m", "tools": TOOLS, "tool_choice": "auto", "max_tokens": 512, "messages": []}


def body(content: str | None, *, called: bool = False, **more: Any) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if called:
        function = {"name": "get_weather", "arguments": ARGUMENTS}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if called else "stop"}
    usage = {"prompt_tokens": 210, "completion_tokens": 40, "total_tokens": 250}
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [choice],
        "usage": usage,
        **more,
    }
    return json.dumps(answer).encode()


def stream(pieces: int) -> bytes:
    step = max(1, len(PROSE) // pieces)
    parts = [PROSE[i : i + step] for i in range(0, len(PROSE), step)]
    chunks = [
        {"id": "c", "choices": [{"index": 0, "delta": {"content": part}, "finish_reason": None}]}
        for part in parts
    ]
    chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return ("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n").encode()


BODIES = {
    "surfaced call": body(None, called=True),
    "prose, 570 characters": body(PROSE),
    "hermes call left in the text": body(HERMES),
    "surfaced, with raw text": body(None, called=True, __verbose={"content": HERMES}),
    "refusal": json.dumps({"error": {"message": "m does not support tools", "code": 400}}).encode(),
    "stream of 100 chunks": stream(100),
}


def decode(data: bytes) -> None:
    """The floor: every JSON value of the body, nothing done with it."""
    if data[:5] != b"data:":
        msgspec.json.decode(data)
        return
    for line in data.split(b"\n\n"):
        if line[6:7] == b"{":
            msgspec.json.decode(line[6:])


def timed(work: Callable[[], object], seconds: float) -> float:
    """Microseconds a call, over about ``seconds``."""
    count, spent = 0, 0.0
    while spent < seconds:
        begun = time.perf_counter()
        for _ in range(50):
            work()
        spent += time.perf_counter() - begun
        count += 50
    return spent / count * 1e6


def rounds(data: bytes, status: int, each: float) -> tuple[list[float], list[float]]:
    """Microseconds of judge and of the floor, in turns."""
    judging, decoding = [], []
    for _ in range(ROUNDS):
        judging.append(timed(lambda: judge(status, data, TOOLS, request=REQUEST), each))
        decoding.append(timed(lambda: decode(data), each))
    return judging, decoding


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each cell of the table")
    each = parser.parse_args().seconds / ROUNDS
    print(f"{'response':32}{'bytes':>7}{'judge µs':>24}{'decode µs':>22}{'ratio':>8}")
    for name, data in BODIES.items():
        judging, decoding = rounds(data, 400 if name == "refusal" else 200, each)
        ratio = statistics.median(first / second for first, second in zip(judging, decoding, strict=True))
        print(f"{name:32}{len(data):>7}{spread(judging):>24}{spread(decoding):>22}{ratio:>8.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
