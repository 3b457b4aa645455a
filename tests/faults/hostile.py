"""Servers that misbehave on purpose: slow, endless, broken, or after the key.

Each writes at most what its client still reads; a client that goes away ends it.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
from collections.abc import AsyncIterator, Callable

from aiohttp import web

from tests.faults.kinds import (
    DONE,
    START,
    STATE,
    TOOL_CALL,
    Answer,
    Handler,
    Scenario,
    Stream,
    call_delta,
    chunk,
    completion,
)

OK = completion(None, [TOOL_CALL], finish="tool_calls")
OK_BYTES = json.dumps(OK).encode()
MEGABYTE = b"x" * 1_000_000
SSE = {"content-type": "text/event-stream"}
BOMB_SIZE = 1_000_000_000


async def hang(request: web.Request, body: bytes) -> web.StreamResponse:
    """No byte, ever."""
    await asyncio.sleep(3600)
    return web.Response()


def streaming(make: Callable[[], AsyncIterator[bytes]], headers: dict[str, str] | None = None) -> Handler:
    """A handler that sends the pieces that ``make`` yields, new for each request."""

    async def handler(request: web.Request, body: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers or {"content-type": "application/json"})
        await response.prepare(request)
        async for piece in make():
            await response.write(piece)
        return response

    return handler


async def stall() -> AsyncIterator[bytes]:
    yield OK_BYTES[:10]
    await asyncio.sleep(3600)


async def drip() -> AsyncIterator[bytes]:
    for byte in OK_BYTES:
        yield bytes([byte])
        await asyncio.sleep(1)


async def huge() -> AsyncIterator[bytes]:
    yield OK_BYTES[:-1] + b', "padding": "'
    for _ in range(1000):
        yield MEGABYTE
    yield b'"}'


async def endless_line() -> AsyncIterator[bytes]:
    yield b'data: {"choices": [{"delta": {"content": "'
    while True:
        yield MEGABYTE


async def endless_index() -> AsyncIterator[bytes]:
    for index in itertools.count():
        yield f"data: {call_delta(index, 'get_weather', '{}')}\n\n".encode()


async def endless_words() -> AsyncIterator[bytes]:
    event = f"data: {chunk({'content': 'and so on '})}\n\n".encode()
    while True:
        yield event


def gzip_bomb() -> bytes:
    """A gigabyte of blanks, packed: about a megabyte on the wire."""
    member = gzip.compress(b" " * 10_000_000, 9)
    return member * (BOMB_SIZE // 10_000_000)  # gzip members may follow one another


async def bomb(request: web.Request, body: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "application/json", "content-encoding": "gzip"})
    await response.prepare(request)
    await response.write(gzip_bomb())
    return response


async def broken_gzip(request: web.Request, body: bytes) -> web.StreamResponse:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    await response.write(gzip.compress(OK_BYTES)[:-20] + b"\xff" * 20)
    return response


async def echo_key(request: web.Request, body: bytes) -> web.StreamResponse:
    """The key in a header, in the body and in the error's words."""
    key = request.headers.get("authorization", "none")
    words = {
        "error": {"message": f"Incorrect API key provided: {key}", "code": "invalid_api_key", "echo": [key]}
    }
    return web.json_response(words, status=401, headers={"x-echo": key})


async def redirect(request: web.Request, body: bytes) -> web.StreamResponse:
    """To a host that does not exist; the ``.invalid`` domain is reserved for that (RFC 2606)."""
    headers = {"location": f"http://elsewhere.invalid{request.path}"}
    return web.Response(status=307, headers=headers)


async def slow_start(request: web.Request, body: bytes) -> web.StreamResponse:
    """The first request takes as long as a model that is being loaded, later ones do not."""
    state = request.app[STATE]
    if "loaded" not in state:
        await asyncio.sleep(0.6)
        state["loaded"] = True
    return web.json_response(OK)


Writer = asyncio.StreamWriter
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


async def not_http(writer: Writer) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\x00\x01\x02\x03garbage\r\n")


async def close_at_once(writer: Writer) -> None:
    """Nothing is written."""


async def close_mid_body(writer: Writer) -> None:
    writer.write(HEAD + b"content-length: %d\r\n\r\n" % len(OK_BYTES) + OK_BYTES[: len(OK_BYTES) // 2])


async def close_mid_stream(writer: Writer) -> None:
    event = f"data: {START}\n\ndata: {call_delta(0, 'get_weather', '{')}\n\ndata: {{".encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    writer.write(head + b"%x\r\n" % len(event) + event + b"\r\n")


async def reset_mid_body(writer: Writer) -> None:
    writer.write(HEAD + b"content-length: 100000\r\n\r\n" + OK_BYTES)
    await writer.drain()
    writer.transport.abort()


async def bad_chunks(writer: Writer) -> None:
    writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + OK_BYTES)


async def huge_headers(writer: Writer) -> None:
    writer.write(
        HEAD + b"".join(b"x-fill-%d: %s\r\n" % (i, b"y" * 8000) for i in range(200)) + b"\r\n" + OK_BYTES
    )


async def two_lengths(writer: Writer) -> None:
    writer.write(HEAD + b"content-length: 5\r\ncontent-length: 50\r\n\r\n" + OK_BYTES)


def _plain(name: str, about: str, answer: Answer) -> Scenario:
    return Scenario(name, about, (answer,))


_500 = {"error": {"message": "internal error", "type": "server_error", "code": 500}}
_LIES = completion("ok", usage=(-5, 10**12), system_fingerprint="vllm-0.32.0-lie")
_LIES["usage"]["prompt_tokens"] = "many"

SCENARIOS = (
    Scenario("hang", "no byte, ever", handler=hang),
    Scenario("hang-after-headers", "ten bytes, then nothing", handler=streaming(stall)),
    Scenario("drip", "a byte a second", handler=streaming(drip)),
    Scenario("huge-body", "a gigabyte of JSON", handler=streaming(huge)),
    Scenario("endless-line", "an SSE event without end", handler=streaming(endless_line, SSE)),
    Scenario("endless-index", "new tool calls for ever", handler=streaming(endless_index, SSE)),
    Scenario("endless-words", "content for ever", handler=streaming(endless_words, SSE)),
    Scenario("gzip-bomb", "a gigabyte in a megabyte", handler=bomb),
    Scenario("gzip-broken", "gzip that can't be undone", handler=broken_gzip),
    Scenario("echo-key", "the key in header, body and error", handler=echo_key),
    Scenario("redirect", "to another host", handler=redirect),
    Scenario("slow-start", "slow at first, then fine", handler=slow_start),
    Scenario("not-http", "bytes of another protocol", raw=not_http),
    Scenario("close-at-once", "closed before the response", raw=close_at_once),
    Scenario("close-mid-body", "closed in mid-body", raw=close_mid_body),
    Scenario("close-mid-stream", "closed in mid-stream", raw=close_mid_stream),
    Scenario("reset-mid-body", "reset in mid-body", raw=reset_mid_body),
    Scenario("bad-chunks", "a chunk size that is no number", raw=bad_chunks),
    Scenario("huge-headers", "1.6 MB of headers", raw=huge_headers),
    Scenario("two-lengths", "two content lengths", raw=two_lengths),
    _plain(
        "invalid-utf8",
        "bytes that are no UTF-8",
        Answer(200, OK_BYTES.replace(b"Oslo", b"Os\xff\xfelo"), {"content-type": "application/json"}),
    ),
    _plain("html-200", "a login page", Answer(200, "<!DOCTYPE html><html><body>Sign in</body></html>")),
    _plain("error-with-call", "500 with a call in it", Answer(500, {**_500, **OK})),
    _plain(
        "wrong-content-type",
        "JSON that says it is an image",
        Answer(200, OK_BYTES, {"content-type": "image/png"}),
    ),
    _plain("empty-body", "200 without a body", Answer(200, b"", {"content-type": "application/json"})),
    _plain(
        "not-json",
        "200 with JSON that was cut",
        Answer(200, OK_BYTES[:-30], {"content-type": "application/json"}),
    ),
    _plain(
        "deep-json",
        "a hundred thousand brackets",
        Answer(200, b"[" * 100_000, {"content-type": "application/json"}),
    ),
    _plain("lying-usage", "usage that can't be", Answer(200, _LIES)),
    Scenario(
        "stream-odd-events",
        "a stream with a lone surrogate, null, a list and words for events",
        (Answer(200, OK),),
        Stream((START, "not json", "null", "[]", '{"choices": null}', chunk({"content": "\udcff"}), DONE)),
    ),
)
