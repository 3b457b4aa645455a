"""Bytes go through as they come, both ways, and are recorded as they were."""

from __future__ import annotations

import asyncio
import io
import json

import aiohttp
import pytest

from tests.proxy.conftest import Start
from tests.proxy.upstream import Request, Writer, chunked, completion, say, text_stream, whole


def post(body: bytes, path: str = "/v1/chat/completions", *fields: str, host: str = "127.0.0.1") -> bytes:
    head = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        f"Content-Length: {len(body)}",
        *fields,
        "Connection: close",
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


async def test_a_whole_answer_comes_byte_for_byte(proxy: Start) -> None:
    body = json.dumps(completion("héllo")).encode()
    answer = whole(
        body, "X-Odd-CASE:   spaced  ", "Set-Cookie: a=1", "Set-Cookie: b=2", "Keep-Alive: timeout=5"
    )

    async def given(_: Request, writer: Writer) -> None:
        await say(writer, answer)

    proxied = await proxy(given)
    sent = b'{"model": "m",  "messages": []}'
    got = await proxied.raw(
        post(sent, "/v1/chat/completions?x=%20a&y", "X-Mine: 1", "Connection: X-Hop", "X-Hop: 2")
    )
    head, _, got_body = got.partition(b"\r\n\r\n")
    assert got_body == body
    lines = head.split(b"\r\n")
    assert b"X-Odd-CASE: spaced  " in lines and lines.count(b"Set-Cookie: a=1") == 1
    assert b"Connection: close" in lines and not any(line.startswith(b"Keep-Alive") for line in lines)
    seen = proxied.upstream.requests[0]
    assert (seen.target, seen.body) == ("/v1/chat/completions?x=%20a&y", sent)
    assert seen.header("x-mine") == "1" and seen.header("x-hop") is None
    assert seen.header("host") == f"127.0.0.1:{proxied.upstream.port}"
    frame = proxied.passed[0]
    assert (frame.request, frame.body, frame.status, frame.failure) == (sent, body, 200, "")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "POST", "PROPFIND"])
async def test_any_method_and_path(proxy: Start, method: str) -> None:
    proxied = await proxy()
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"{proxied.url}/deep/er/echo?a=b", data=b"x" * 10) as response,
    ):
        assert (response.status, await response.read()) == (200, b"x" * 10)
    assert proxied.upstream.requests[0].method == method


async def test_head_has_no_body_and_the_connection_goes_on(proxy: Start) -> None:
    proxied = await proxy(lambda r, w: say(w, whole(b"") if r.method == "HEAD" else whole(b"body")))
    request = b"HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n"
    request += b"GET /b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    got = await proxied.raw(request)
    assert got.count(b"HTTP/1.1 200 OK") == 2 and got.endswith(b"\r\n\r\nbody")


async def test_pipelined_requests_are_answered_in_order(proxy: Start) -> None:
    async def slow_first(request: Request, writer: Writer) -> None:
        await asyncio.sleep(0.05 if request.target == "/0" else 0)
        await say(writer, whole(request.target.encode()))

    proxied = await proxy(slow_first)
    requests = [f"GET /{i} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for i in range(20)]
    got = await proxied.raw(
        b"".join(requests) + b"GET /end HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    assert [part.rpartition(b"\r\n\r\n")[2] for part in got.split(b"HTTP/1.1 200 OK")[1:-1]] == [
        b"/%d" % i for i in range(20)
    ]


async def test_a_stream_is_not_held_back(proxy: Start) -> None:
    pieces = text_stream("one two three four")
    gate = asyncio.Event()

    async def dripping(_: Request, writer: Writer) -> None:
        first, *rest = chunked(pieces)
        await say(writer, first, rest[0])
        await gate.wait()  # nothing more comes until the client has the first piece
        await say(writer, *rest[1:])

    proxied = await proxy(dripping)
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{proxied.url}/v1/chat/completions", json={"stream": True}) as response,
    ):
        first = await asyncio.wait_for(response.content.readany(), 5)
        assert first == pieces[0]
        gate.set()
        rest = await response.read()
    assert first + rest == b"".join(pieces)
    assert len(proxied.passed[0].chunks) >= 2


@pytest.mark.parametrize("size", [0, 1, 65_536, 10 << 20])
async def test_bodies_of_any_size_both_ways(proxy: Start, size: int) -> None:
    proxied = await proxy()
    body = bytes(range(256)) * (size // 256) + b"z" * (size % 256)

    async def pieces():  # type: ignore[no-untyped-def]
        for start in range(0, len(body), 70_001):
            yield body[start : start + 70_001]

    async with aiohttp.ClientSession() as session:
        for data in (io.BytesIO(body), pieces()):
            async with session.post(f"{proxied.url}/echo", data=data) as response:
                assert await response.read() == body
    assert all(frame.request == frame.body == body for frame in proxied.passed)


async def test_a_slow_reader_holds_the_upstream_back(proxy: Start) -> None:
    total = 40 << 20
    written = 0

    async def flood(_: Request, writer: Writer) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        for _n in range(total >> 16):
            writer.write(b"x" * 65536)
            await writer.drain()
            written += 65536

    proxied = await proxy(flood)
    reader, writer = await asyncio.open_connection("127.0.0.1", proxied.port, limit=65536)
    writer.write(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(0.5)
    assert written < total // 2  # it waits: what is under way fits into socket buffers
    got = 0
    while got < total:
        got += len(await reader.read(1 << 20))
    writer.close()
    assert got == total
    frame = proxied.passed[0]
    assert frame.failure == "too_large" and frame.received == total and len(frame.body) <= 24 << 20


async def test_a_client_that_leaves_is_seen_upstream(proxy: Start) -> None:
    left = asyncio.Event()

    async def endless(_: Request, writer: Writer) -> None:
        await say(writer, *chunked([b"data: {}\n\n"])[:2])
        while not writer.is_closing():
            await asyncio.sleep(0.01)
            writer.write(b"1\r\nx\r\n")
            try:
                await writer.drain()
            except ConnectionError:
                break
        left.set()

    proxied = await proxy(endless)
    reader, writer = await asyncio.open_connection("127.0.0.1", proxied.port)
    writer.write(post(b"{}", host="localhost").replace(b"Connection: close\r\n", b""))
    await reader.readuntil(b"\r\n\r\n")
    writer.close()
    await asyncio.wait_for(left.wait(), 5)
    frame = proxied.passed[0]
    assert frame.client_gone and frame.failure == "closed_mid_stream" and frame.body


@pytest.mark.parametrize(
    ("said", "failure", "client_gets"),
    [
        (b"", "closed_before_response", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "closed_mid_stream", b"half"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
            "closed_mid_stream",
            b"4\r\nhalf\r\n",
        ),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "not_http", b"502"),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", "", b"until the end"),
    ],
)
async def test_broken_answers_end_as_they_would_without_a_proxy(
    proxy: Start, said: bytes, failure: str, client_gets: bytes
) -> None:
    async def broken(_: Request, writer: Writer) -> None:
        writer.write(said)
        writer.close()

    proxied = await proxy(broken)
    got = await proxied.raw(post(b"{}"))
    assert client_gets in got and (client_gets or not got)
    assert not got.endswith(b"0\r\n\r\n")
    assert proxied.passed[0].failure == failure


async def test_an_upstream_that_is_not_there_is_told(proxy: Start) -> None:
    proxied = await proxy()
    proxied.hub.address.port = 9  # nobody listens
    got = await proxied.raw(post(b"{}"))
    assert got.startswith(b"HTTP/1.1 502") and b"refused the connection" in got
    assert proxied.passed[0].failure == "refused" and proxied.hub.troubles


async def test_interim_answers_and_expect(proxy: Start) -> None:
    proxied = await proxy(lambda r, w: say(w, b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", whole(r.body)))
    got = await proxied.raw(post(b"abc", "/x", "Expect: 100-continue"))
    assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK") and got.endswith(b"abc")
    assert proxied.upstream.requests[0].header("expect") is None


async def test_headers_of_the_user_replace_the_clients(proxy: Start) -> None:
    proxied = await proxy(headers=["Authorization: Bearer mine", "X-Team: a"], path="/base/v1?k=v")
    await proxied.raw(post(b"{}", "/v1/echo", "authorization: Bearer theirs"))
    seen = proxied.upstream.requests[0]
    assert [v for n, v in seen.headers if n.lower() == "authorization"] == ["Bearer mine"]
    assert seen.header("x-team") == "a" and seen.target == "/base/v1/echo?k=v"
