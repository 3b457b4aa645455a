"""A deterministic server: the same bytes for the same request, no date, and every request kept as it came."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
LEAK = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
CALL = {
    "id": "call_abc123",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
}


def completion(content: str | None = "Hello.", calls: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = calls
    finish = "tool_calls" if calls else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, **more}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30},
    }


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, **more}
    value = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def text_stream(text: str, size: int = 5, finish: str = "stop") -> list[bytes]:
    pieces = [chunk({"content": text[i : i + size]}) for i in range(0, len(text), size)]
    return [chunk({"role": "assistant", "content": ""}), *pieces, chunk({}, finish), b"data: [DONE]\n\n"]


def whole(body: bytes, *fields: str, status: str = "200 OK", kind: str = "application/json") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def chunked(pieces: list[bytes], kind: str = "text/event-stream", *fields: str) -> list[bytes]:
    head = "\r\n".join(
        [
            "HTTP/1.1 200 OK",
            f"content-type: {kind}",
            "transfer-encoding: chunked",
            "x-request-id: r1",
            *fields,
        ]
    )
    framed = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
    return [head.encode() + b"\r\n\r\n", *framed, b"0\r\n\r\n"]


@dataclass
class Request:
    """A request as it came, transfer coding undone."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return next((v for n, v in self.headers if n.lower() == name), None)


Writer = asyncio.StreamWriter
Answer = Callable[[Request, Writer], Awaitable[None]]


@dataclass
class Upstream:
    """The running server. ``answer`` may be replaced between requests."""

    port: int
    answer: Answer
    requests: list[Request] = field(default_factory=list)
    gone: int = 0  # clients that left before their answer was written

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


async def say(writer: Writer, *pieces: bytes, every: float = 0.0) -> None:
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        if every:
            await asyncio.sleep(every)


async def standard(request: Request, writer: Writer) -> None:
    """What a plain, good server does on each API."""
    path = request.target.partition("?")[0]
    if path.endswith("/models"):
        await say(writer, whole(b'{"object":"list","data":[{"id":"m","object":"model","owned_by":"me"}]}'))
    elif path.endswith("/chat/completions"):
        await _chat(request, writer)
    elif path.endswith("/messages"):
        await _anthropic(request, writer)
    elif path.endswith("/api/chat"):
        await _ollama(request, writer)
    elif path.endswith("/echo"):
        await say(writer, whole(request.body, kind="application/octet-stream"))
    elif path.endswith("/gzip"):
        await say(writer, whole(gzip.compress(b'{"packed": true}', mtime=0), "Content-Encoding: gzip"))
    else:
        await say(writer, whole(b'{"error":{"message":"no such path"}}', status="404 Not Found"))


async def _chat(request: Request, writer: Writer) -> None:
    body = request.json
    model = body.get("model")
    if model == "missing":
        error = b'{"error":{"message":"The model does not exist","type":"invalid_request_error","code":404}}'
        await say(writer, whole(error, status="404 Not Found"))
    elif model == "flaky" and request.header("x-stainless-retry-count") in (None, "0"):
        error = b'{"error":{"message":"overloaded","type":"server_error","code":503}}'
        await say(writer, whole(error, "Retry-After: 0", status="503 Service Unavailable"))
    elif body.get("stream"):
        call = {"index": 0, **CALL, "function": {"name": "get_weather", "arguments": ""}}
        part = {"index": 0, "function": {"arguments": '{"city": "Oslo"}'}}
        calls = [chunk({"tool_calls": [call]}), chunk({"tool_calls": [part]})]
        tail = [chunk({}, "tool_calls"), b"data: [DONE]\n\n"]
        pieces = [chunk({"role": "assistant", "content": ""}), *calls, *tail] if body.get("tools") else []
        await say(writer, *chunked(pieces or text_stream("Hello, wörld.")), every=0.002)
    else:
        answer = completion(None, [CALL]) if body.get("tools") else completion("Hello, wörld.")
        await say(writer, whole(json.dumps(answer).encode()))


async def _anthropic(request: Request, writer: Writer) -> None:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 20},
    }
    if not request.json.get("stream"):
        await say(writer, whole(json.dumps(message).encode()))
        return
    block = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"city": "Oslo"}'}
    events = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    ]
    pieces = [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events]
    await say(writer, *chunked(pieces), every=0.002)


async def _ollama(request: Request, writer: Writer) -> None:
    call = {"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    head = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    if request.json.get("stream") is False:
        body = {**head, "message": message, "done": True, "done_reason": "stop", "eval_count": 20}
        await say(writer, whole(json.dumps(body).encode()))
        return
    end = {**head, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    lines = [json.dumps({**head, "message": message, "done": False}), json.dumps(end)]
    pieces = [line.encode() + b"\n" for line in lines]
    await say(writer, *chunked(pieces, "application/x-ndjson"), every=0.002)


@asynccontextmanager
async def serving(answer: Answer = standard) -> AsyncIterator[Upstream]:
    """Serves on a free loopback port, connections kept alive."""
    running: Upstream

    async def connection(reader: asyncio.StreamReader, writer: Writer) -> None:
        tasks.add(asyncio.current_task())
        try:
            while (request := await _read(reader)) is not None:
                running.requests.append(request)
                await running.answer(request, writer)
                await writer.drain()
                if writer.is_closing():
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            running.gone += 1
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            writer.close()

    tasks: set[asyncio.Task[None] | None] = set()
    server = await asyncio.start_server(connection, "127.0.0.1", 0, limit=1 << 26)
    running = Upstream(server.sockets[0].getsockname()[1], answer)
    try:
        yield running
    finally:
        server.close()
        for task in tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(t for t in tasks if t is not None), return_exceptions=True)
        await asyncio.sleep(0)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = [(n, v.strip()) for n, _, v in (line.partition(":") for line in lines)]
    named = {name.lower(): value for name, value in headers}
    body = b""
    if named.get("transfer-encoding", "").lower() == "chunked":
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    elif "content-length" in named:
        body = await reader.readexactly(int(named["content-length"]))
    return Request(method, target, headers, body)
