"""Small bodies for the verdict tests, in OpenAI chat's shape unless said otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RECORDED = HERE.parent / "recorded"

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}},
    {
        "type": "function",
        "function": {"name": "clock_now", "parameters": {"type": "object", "properties": {}}},
    },
]
ARGUMENTS = {"city": "Oslo", "days": 2}
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>'
CUT = HERMES[: HERMES.index(', "days"')]


def call(name: str | None = "get_weather", arguments: Any = ARGUMENTS, **more: Any) -> dict[str, Any]:
    """A structured call; arguments that are no text are encoded."""
    text = arguments if isinstance(arguments, str | None) else json.dumps(arguments)
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": text}, **more}


def chat(
    content: str | None = None,
    *calls: dict[str, Any],
    finish: str | None = "stop",
    tokens: int | None = None,
    thought: int | None = None,
    **message: Any,
) -> dict[str, Any]:
    """A whole answer; ``tokens`` and ``thought`` are its completion and reasoning counts."""
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": content,
                    **({"tool_calls": list(calls)} if calls else {}),
                    **message,
                },
                "finish_reason": finish,
            }
        ],
    }
    if tokens is not None:
        body["usage"] = {"prompt_tokens": 50, "completion_tokens": tokens}
        if thought is not None:
            body["usage"]["completion_tokens_details"] = {"reasoning_tokens": thought}
    return body


def raw(text: str, content: str | None = None, *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An answer of llama.cpp with ``verbose``: what the model wrote stands beside it."""
    return {**chat(content, *calls, **more), "__verbose": {"content": text}}


def chunks(*deltas: dict[str, Any], finish: str | None = "stop", done: bool = True) -> list[str]:
    """A stream of deltas as its payloads."""
    out = [json.dumps({"choices": [{"index": 0, "delta": d, "finish_reason": None}]}) for d in deltas]
    if finish is not None:
        out.append(json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
    return [*out, "[DONE]"] if done else out


def cases(name: str) -> list[dict[str, Any]]:
    """The rows of a file of cases in this folder."""
    lines = (HERE / name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]
