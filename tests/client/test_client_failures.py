"""Every way in which an exchange can fail, from real sockets, told apart and with what came before it kept."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import time
from types import SimpleNamespace

import aiohttp
import pytest
import trustme
from aiohttp.base_protocol import BaseProtocol
from rawserver import OK, Handler, says, serving, whole

from truecall.client import Client
from truecall.client.body import Body
from truecall.client.clock import Clock
from truecall.client.session import _read
from truecall.config import Timeouts, resolve
from truecall.records import Exchange, FailureKind
from truecall.redact import Redactor

QUICK = Timeouts(connect=5.0, first_byte=0.4, between=0.4, total=5.0)


def connection(url: str, **options: object):
    return resolve(url, environ={}, **options)


async def ask(url: str, limits: Timeouts = QUICK, **options: object) -> Exchange:
    async with Client(connection(url, **options)) as client:
        return await client.send("POST", "chat/completions", json={"a": 1}, timeout=limits, stream=True)


async def meet(handler: Handler) -> Exchange:
    async with serving(handler) as heard:
        return await ask(heard.url)


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

FAILURES = {
    "hangs": (says(then_hang=True), FailureKind.TIMEOUT_FIRST_BYTE, None, b""),
    "hangs inside the head": (says(OK + b"Cont", then_hang=True), FailureKind.TIMEOUT_FIRST_BYTE, None, b""),
    "closes at once": (says(), FailureKind.CLOSED_BEFORE_RESPONSE, None, b""),
    "resets at once": (says(reset=True), FailureKind.CLOSED_BEFORE_RESPONSE, None, b""),
    "closes inside the head": (says(OK + b"Cont"), FailureKind.CLOSED_BEFORE_RESPONSE, None, b""),
    "speaks SSH": (says(b"SSH-2.0-OpenSSH_9.9\r\n"), FailureKind.NOT_HTTP, None, b""),
    "speaks bytes": (says(b"\x16\x03\x01\x00\xff" * 9), FailureKind.NOT_HTTP, None, b""),
    "breaks the framing": (
        says(CHUNKED + b"5\r\nhello\r\n", b"ZZ\r\n", every=0.05), FailureKind.NOT_HTTP, 200, b"hello"
    ),
    "stops in the body": (
        says(OK + b"Content-Length: 9\r\n\r\nhel", then_hang=True), FailureKind.TIMEOUT_BETWEEN_BYTES, 200, b"hel"
    ),
    "closes in the body": (says(OK + b"Content-Length: 9\r\n\r\nhel"), FailureKind.CLOSED_MID_STREAM, 200, b"hel"),
    "closes in a stream": (says(CHUNKED + b"5\r\nhello\r\n"), FailureKind.CLOSED_MID_STREAM, 200, b"hello"),
    "closes in a chunk": (says(CHUNKED + b"10\r\nhello"), FailureKind.CLOSED_MID_STREAM, 200, b"hello"),
    "resets in a stream": (
        says(CHUNKED + b"5\r\nhello\r\n", every=0.25, reset=True), FailureKind.CLOSED_MID_STREAM, 200, b"hello"
    ),
    "long header field": (says(OK + b"X: " + b"a" * 99_999 + b"\r\n\r\n"), FailureKind.TOO_LARGE, None, b""),
    "lies about gzip": (says(whole(b"hello", "Content-Encoding: gzip")), FailureKind.BAD_ENCODING, 200, b"hello"),
    "unknown encoding": (says(whole(b"hello", "Content-Encoding: rot13")), FailureKind.BAD_ENCODING, 200, b"hello"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_is_typed_and_keeps_what_came(name: str) -> None:
    handler, kind, status, body = FAILURES[name]
    exchange = await meet(handler)
    assert exchange.failure is not None
    assert (exchange.failure.kind, exchange.status, exchange.body) == (kind, status, body)
    assert exchange.failure.detail and "\n" not in exchange.failure.detail


async def test_dripping_bytes_end_at_the_total() -> None:
    async with serving(says(OK + b"Content-Length: 999\r\n\r\n", *[b"x"] * 400, every=0.05)) as heard:
        exchange = await ask(heard.url, Timeouts(connect=5, first_byte=5, between=5, total=0.6))
    assert exchange.failure is not None and exchange.failure.kind is FailureKind.TIMEOUT_TOTAL
    assert 3 <= len(exchange.body) < 40 and exchange.body == b"x" * exchange.received
    assert exchange.timing.total is not None and 0.5 < exchange.timing.total < 2


async def test_dripping_head_ends_too() -> None:
    exchange = await meet(says(OK, *[b"X-A: b\r\n"] * 40, every=0.05))
    assert exchange.failure is not None and exchange.failure.kind is FailureKind.TIMEOUT_FIRST_BYTE


async def test_refused_dns_and_no_answer_to_connect() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            refused = await ask(f"http://{host}:{port}")
            assert refused.failure is not None and refused.failure.kind is FailureKind.REFUSED
    lost = await ask("http://no-such-host.invalid")
    assert lost.failure is not None and lost.failure.kind is FailureKind.DNS


async def test_a_handshake_that_never_ends_is_a_connect_timeout() -> None:
    with socket.socket() as listening:  # the system takes the connection, nobody ever answers
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        exchange = await ask(url, Timeouts(connect=0.2, first_byte=9, between=9, total=9))
    assert exchange.failure is not None and exchange.failure.kind is FailureKind.TIMEOUT_CONNECT


async def test_tls_trust(tmp_path) -> None:
    authority = trustme.CA()
    own, other = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(own)
    authority.issue_cert("else.example").configure_cert(other)
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    limits = Timeouts(connect=5, first_byte=5, between=5, total=5)
    async with serving(says(whole(b"{}")), tls=own) as heard:
        url = heard.url.replace("http:", "https:")
        distrusted = await ask(url, limits)
        assert distrusted.failure is not None and distrusted.failure.kind is FailureKind.TLS
        assert "certificate" in distrusted.failure.detail
        assert (await ask(url, limits, ca_bundle=str(bundle))).status == 200
        assert (await ask(url, limits, insecure=True)).status == 200
    async with serving(says(whole(b"{}")), tls=other) as heard:
        wrong_name = await ask(heard.url.replace("http:", "https:"), limits, ca_bundle=str(bundle))
        assert wrong_name.failure is not None and wrong_name.failure.kind is FailureKind.TLS


async def test_https_to_a_plain_server_is_a_tls_failure() -> None:
    server = await asyncio.start_server(_plain, "127.0.0.1", 0)
    exchange = await ask(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    server.close()
    assert exchange.failure is not None and exchange.failure.kind is FailureKind.TLS


async def _plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


async def test_the_phase_that_ran_out_is_named_however_long_the_others_are() -> None:
    async with serving(says(OK + b"Content-Length: 9\r\n\r\nhel", then_hang=True)) as heard:
        slow_head = Timeouts(connect=9, first_byte=9, between=0.2, total=9)
        exchange = await ask(heard.url, slow_head)
        assert exchange.failure is not None and exchange.failure.kind is FailureKind.TIMEOUT_BETWEEN_BYTES
    async with serving(says(OK + b"Content-Length: 9\r\n\r\nhel", then_hang=True)) as heard:
        exchange = await ask(heard.url, Timeouts(connect=9, first_byte=0.2, between=9, total=0.4))
        assert exchange.failure is not None and exchange.failure.kind is FailureKind.TIMEOUT_TOTAL


async def test_what_the_library_still_holds_when_it_raises_is_kept() -> None:
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(BaseProtocol(loop), 1 << 16, loop=loop)
    content.feed_data(b"hello")
    content.set_exception(aiohttp.ClientPayloadError("Not enough data"))
    body, clock = Body(None, limit=99, redactor=Redactor()), Clock(QUICK)
    async with clock.timer:
        clock.begin()
        with pytest.raises(aiohttp.ClientPayloadError):
            await _read(SimpleNamespace(content=content, connection=None), body, clock)
    assert body.finish(whole=False) == b"hello"


async def test_cancellation_passes_through_and_leaves_nothing_open() -> None:
    async with serving(says(then_hang=True)) as heard, Client(connection(heard.url)) as client:
        task = asyncio.create_task(client.send("GET", "/x"))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 0.2


async def test_an_outer_timeout_is_the_callers_own() -> None:
    async with serving(says(then_hang=True)) as heard, Client(connection(heard.url)) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.send("GET", "/x")


async def test_a_proxy_that_refuses_is_no_answer_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(says(whole(b"", status="407 Proxy Authentication Required"))) as heard:
        monkeypatch.setenv("HTTPS_PROXY", heard.url)
        exchange = await ask("https://llm.example/v1")
        assert heard.requests[0].startswith(b"CONNECT llm.example:443")
    assert exchange.failure is not None and exchange.failure.kind is FailureKind.UNREACHABLE
    assert "proxy" in exchange.failure.detail and "407" in exchange.failure.detail


async def test_a_proxy_from_the_environment_is_used_but_not_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(says(whole(b'{"via":"proxy"}'))) as proxy, serving(says(whole(b"{}"))) as direct:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert (await ask("http://llm.example/v1")).body == b'{"via":"proxy"}'
        assert proxy.requests[0].startswith(b"POST http://llm.example/v1/chat/completions")
        assert (await ask(direct.url)).body == b"{}"
        monkeypatch.setenv("no_proxy", "llm.example")
        bypassed = await ask("http://llm.example/v1")
        assert bypassed.failure is not None and bypassed.failure.kind is FailureKind.DNS


SEEDS = (
    OK + b"Content-Type: application/json\r\nContent-Length: 5\r\nSet-Cookie: a=b\r\n\r\nhello",
    CHUNKED + b"5;x=y\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
    OK + b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0",
    b"HTTP/1.1 302 Found\r\nLocation: //[x\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.0 500 \xff\r\nContent-Type: text/html; charset=\xe4\r\n\r\n<html>",
)


async def test_nothing_that_a_server_says_is_raised() -> None:
    dice = random.Random(7)
    said = b""

    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter, __: bytes) -> None:
        writer.write(said)

    async with serving(handle) as heard, Client(connection(heard.url)) as client:
        for _ in range(200):
            answer = bytearray(dice.choice(SEEDS))
            for _ in range(dice.randrange(1, 5)):
                at = dice.randrange(len(answer))
                answer[at : at + dice.randrange(3)] = dice.choice(
                    [b"", b"\r\n", b":", b"\0", b"\xff", b"9", b" ", b";"]
                )
            said = bytes(answer)
            exchange = await client.send("GET", "/x", timeout=QUICK)
            assert exchange.status is not None or exchange.failure is not None
