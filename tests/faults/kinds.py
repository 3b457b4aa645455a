"""What a scenario is made of, and short builders for OpenAI and Ollama bodies."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

STATE = web.AppKey("state", dict[str, Any])
"""What a handler remembers from one request to the next, new for each server."""

Handler = Callable[[web.Request, bytes], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Answer:
    """A whole answer. ``body``: bytes and text go out as they are, anything else as JSON."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    def raw(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()

    def content_type(self) -> str:
        if "content-type" in self.headers:
            return self.headers["content-type"]
        if isinstance(self.body, str | bytes):
            return "text/html" if self.raw().lstrip()[:1] == b"<" else "text/plain"
        return "application/json"


@dataclass(frozen=True)
class Stream:
    """A streamed answer: ``payloads`` in order, each sent by itself. ``ndjson``: lines instead of SSE events."""

    payloads: tuple[str, ...]
    ndjson: bool = False
    headers: dict[str, str] = field(default_factory=dict)

    def pieces(self) -> list[bytes]:
        if self.ndjson:
            return [f"{p}\n".encode() for p in self.payloads]
        return [f"data: {p}\n\n".encode() for p in self.payloads]


@dataclass(frozen=True)
class Scenario:
    """What the server does with a chat request; other paths answer from ``seen`` (path -> Answer).

    ``answers`` are used up in order, the last one repeats. A request with ``"stream": true`` gets ``stream``
    where there is one. ``handler`` stands instead of both, ``raw`` instead of HTTP altogether.
    """

    name: str
    about: str
    answers: tuple[Answer, ...] = ()
    stream: Stream | None = None
    seen: dict[str, Answer] = field(default_factory=dict)
    handler: Handler | None = None
    raw: Callable[..., Awaitable[None]] | None = None


TOOL_CALL: dict[str, Any] = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Oslo", "days": 2}'},
}


def error(message: str, kind: str | None = "BadRequestError", code: Any = 400) -> dict[str, Any]:
    """An error body as OpenAI and vLLM write it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def completion(
    content: str | None,
    calls: Sequence[dict[str, Any]] = (),
    *,
    finish: str | None = "stop",
    usage: tuple[int, int] | None = (150, 20),
    **more: Any,
) -> dict[str, Any]:
    """A chat answer; ``usage`` is prompt and completion tokens."""
    message: dict[str, Any] = {"role": "assistant", "content": content, "tool_calls": list(calls)}
    body: dict[str, Any] = {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        **more,
    }
    if usage:
        body["usage"] = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        }
    return body


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
    """One payload of a chat stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    return json.dumps({**head, "choices": [choice], **more})


def call_delta(index: int | None, name: str | None = None, arguments: str | None = None, **more: Any) -> str:
    """One payload with a piece of a tool call; fields that are None are left out."""
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    call: dict[str, Any] = {**more, "function": function}
    if index is not None:
        call["index"] = index
    if name is not None:
        call.setdefault("id", f"call_{index or 0}")
        call.setdefault("type", "function")
    return chunk({"tool_calls": [call]})


DONE = "[DONE]"
START = chunk({"role": "assistant", "content": ""})


def stream(*payloads: str, finish: str | None = "stop", done: bool = True) -> Stream:
    """A stream with its usual start and end around ``payloads``."""
    end = [chunk({}, finish)] if finish is not None else []
    return Stream((START, *payloads, *end, *([DONE] if done else [])))


def text_stream(text: str, size: int = 7, finish: str | None = "stop") -> Stream:
    """A text in pieces of ``size`` characters."""
    return stream(*(chunk({"content": text[i : i + size]}) for i in range(0, len(text), size)), finish=finish)
