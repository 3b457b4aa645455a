"""Logs in the formats whose tools can't be run here, by their documentation; and shared pieces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
"""Files that the tools' own code wrote (see ``makers/``)."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
]
ARGUMENTS = '{"city": "Oslo"}'
TEXT_CALL = f'<tool_call>\n{{"name": "get_weather", "arguments": {ARGUMENTS}}}\n</tool_call>'
HOSTILE = (
    '<script>alert(1)</script>\u202e\x00<tool_call>{"name": "\ud800", "arguments": '
    + "[" * 500
    + "</tool_call>"
    + "`" * 300
)


def call(ident: str = "c1", arguments: Any = ARGUMENTS) -> dict[str, Any]:
    return {"id": ident, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


def assistant(content: str | None, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})}


def result(ident: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": ident, "content": "sunny"}


USER = {"role": "user", "content": "Weather in Oslo?"}


def answer(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    """A chat completion as a server sends it."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


# --------------------------------------------------------------------------- whole files

TRAJECTORY = [USER, assistant(None, call()), result(), assistant("It is sunny.")]


def tau_bench() -> list[Any]:
    info = {"task": {}, "source": "user", "user_cost": None, "reward_info": None}
    return [
        {"task_id": 0, "reward": 1.0, "info": info, "traj": TRAJECTORY, "trial": 0},
        {"task_id": 1, "reward": 0.0, "info": info, "traj": [USER, assistant(TEXT_CALL), USER], "trial": 0},
        {
            "task_id": 2,
            "reward": 0.0,
            "info": {"error": "Error code: 500", "traceback": "…"},
            "traj": [],
            "trial": 0,
        },
    ]


def tau2() -> dict[str, Any]:
    leaked = answer({"role": "assistant", "content": TEXT_CALL, "tool_calls": None})
    own = {"id": "c1", "name": "get_weather", "arguments": {"city": "Oslo"}, "requestor": "assistant"}
    messages = [
        {"role": "assistant", "content": "Hi! How can I help?", "tool_calls": None, "raw_data": None},
        {"role": "user", "content": "Weather in Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": [own], "raw_data": None},
        {"id": "c1", "role": "tool", "content": "sunny", "requestor": "assistant", "error": False},
        {"role": "assistant", "content": TEXT_CALL, "tool_calls": None, "raw_data": leaked},
        {"role": "user", "content": "Sure?"},
    ]
    return {
        "timestamp": "2026-01-01",
        "info": {
            "agent_info": {"implementation": "llm_agent", "llm": "openai/m"},
            "user_info": {"implementation": "user_simulator", "llm": "u"},
            "environment_info": {"domain_name": "retail", "policy": "", "tool_defs": None},
        },
        "tasks": [],
        "simulations": [
            {"id": "a", "task_id": "0", "trial": 0, "termination_reason": "user_stop", "reward_info": {"reward": 1.0},
             "messages": messages},
            {"id": "b", "task_id": "1", "trial": 0, "termination_reason": "infrastructure_error", "messages": []},
        ],
    }  # fmt: skip


def har() -> dict[str, Any]:
    def entry(body: Any, request: Any, status: int = 200, url: str = "http://h/v1/chat/completions") -> Any:
        return {
            "request": {"method": "POST", "url": url, "postData": {"text": json.dumps(request)}},
            "response": {
                "status": status,
                "content": {"mimeType": "application/json", "text": json.dumps(body)},
            },
        }

    first = {"model": "m", "tools": TOOLS, "messages": [USER]}
    second = {"model": "m", "tools": TOOLS, "messages": [USER, assistant(None, call()), result()]}
    entries = [
        entry(answer(assistant(None, call()), "tool_calls"), first),
        entry(answer(assistant("It is sunny.")), second),
        entry(answer(assistant(TEXT_CALL)), first),
        entry({"error": {"message": "boom", "type": "server_error"}}, first, 500),
        entry({"html": 1}, {}, 200, "http://h/style.css"),
    ]
    return {"log": {"version": "1.2", "creator": {"name": "t"}, "entries": entries}}


def otel_older() -> dict[str, Any]:
    """OTLP/JSON with the numbered attributes of the time before ``gen_ai.output.messages``."""

    def attribute(key: str, value: Any) -> Any:
        kind = "intValue" if isinstance(value, int) else "stringValue"
        return {"key": key, "value": {kind: str(value)}}

    def span(*pairs: tuple[str, Any]) -> Any:
        return {"name": "openai.chat", "spanId": "1", "attributes": [attribute(*pair) for pair in pairs]}

    functions = [
        ("llm.request.functions.0.name", "get_weather"),
        ("llm.request.functions.0.parameters", json.dumps(TOOLS[0]["function"]["parameters"])),  # type: ignore[index]
        ("gen_ai.request.model", "m"),
    ]
    called = [
        ("gen_ai.completion.0.tool_calls.0.name", "get_weather"),
        ("gen_ai.completion.0.tool_calls.0.arguments", ARGUMENTS),
        ("gen_ai.completion.0.tool_calls.0.id", "c1"),
        ("gen_ai.completion.0.finish_reason", "tool_calls"),
    ]
    spans = [
        span(*functions, *called),
        span(*functions, ("gen_ai.prompt.1.tool_call_id", "c1"), ("gen_ai.completion.0.content", TEXT_CALL)),
        span(*functions, ("gen_ai.operation.name", "chat"), ("gen_ai.usage.output_tokens", 20)),
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def lines(*entries: Any) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)
