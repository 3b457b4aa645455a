"""Bodies as received: encodings, limits, chunk timings, and what is sent."""

from __future__ import annotations

import asyncio
import gzip
import sys
import time
import zlib
from itertools import pairwise

import pytest
import zstandard
from rawserver import OK, says, serving, whole

from truecall.client import Client
from truecall.client.body import MAX_CHUNKS, Body
from truecall.client.decode import DecodeError, decoder
from truecall.config import Connection, resolve
from truecall.errors import UsageError
from truecall.records import Exchange, FailureKind
from truecall.redact import Redactor

TEXT = ("Ünïcode and more. " * 4000).encode()


def raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "identity": bytes,
}


async def get(answer: bytes, **options) -> Exchange:
    async with serving(says(answer)) as heard, Client(resolve(heard.url, environ={})) as client:
        return await client.send("GET", "/x", **options)


@pytest.mark.parametrize("encoding", ENCODERS)
async def test_content_encoding_is_undone_and_the_wire_counted(encoding: str) -> None:
    packed = ENCODERS[encoding](TEXT)
    exchange = await get(whole(packed, f"Content-Encoding: {encoding}"))
    assert exchange.failure is None and exchange.body == TEXT and exchange.received == len(packed)


@pytest.mark.parametrize(("kind", "packed"), [
    ("gzip", gzip.compress(TEXT)), ("gzip", gzip.compress(TEXT[:999]) + gzip.compress(TEXT[999:])),
    ("deflate", zlib.compress(TEXT)), ("deflate", raw_deflate(TEXT)),
    ("zstd", zstandard.ZstdCompressor().compress(TEXT)),
])  # fmt: skip
@pytest.mark.parametrize("step", [1, 7, 4096, 1 << 20])
def test_decoders_take_any_pieces(kind: str, packed: bytes, step: int) -> None:
    engine = decoder(kind)
    out = b"".join(engine.feed(packed[at : at + step], 1 << 20) for at in range(0, len(packed), step))
    engine.finish()
    assert out == TEXT


@pytest.mark.parametrize("kind", ["gzip", "deflate", "zstd"])
def test_a_cut_encoding_is_told(kind: str) -> None:
    engine = decoder(kind)
    engine.feed(ENCODERS[kind](TEXT)[:-9], 1 << 20)
    with pytest.raises(DecodeError):
        engine.finish()


async def test_an_encoding_that_breaks_keeps_what_was_decoded() -> None:
    packed = bytearray(gzip.compress(bytes(range(256)) * 999, 1))
    packed[-4000:] = b"\xff" * 4000
    exchange = await get(whole(bytes(packed[:200]) + b"\xff" * 4000, "Content-Encoding: gzip"))
    assert exchange.failure is not None and exchange.failure.kind is FailureKind.BAD_ENCODING
    assert exchange.status == 200 and exchange.body


FETCH = """
import asyncio, re, sys
from truecall.client import Client
from truecall.config import resolve

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])  # kB

async def fetch(url):
    async with Client(resolve(url, environ={})) as client:
        before = peak()
        exchange = await client.send("GET", "/x", max_bytes=1 << 20)
    print(exchange.failure.kind, len(exchange.body), peak() - before)

asyncio.run(fetch(sys.argv[1]))
"""


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
async def test_a_bomb_ends_at_the_limit_in_bounded_memory(encoding: str) -> None:
    """In a process of its own: the peak of one that did other things before says nothing."""
    packed = ENCODERS[encoding](bytes(64 << 20))
    async with serving(says(whole(packed, f"Content-Encoding: {encoding}"))) as heard:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", FETCH, heard.url, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
    kind, size, grown = out.split()
    assert kind == b"too_large" and int(size) == 1 << 20
    assert int(grown) < 16 << 10


async def test_an_endless_body_ends_at_the_limit() -> None:
    async with (
        serving(says(OK + b"Content-Length: 1000000000\r\n\r\n", *[bytes(1 << 16)] * 2000)) as heard,
        Client(resolve(heard.url, environ={})) as client,
    ):
        exchange = await client.send("GET", "/x", max_bytes=1 << 20)
    assert exchange.failure is not None and exchange.failure.kind is FailureKind.TOO_LARGE
    assert exchange.status == 200 and len(exchange.body) == 1 << 20 and exchange.received < 3 << 20


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "identity"])
async def test_a_body_of_exactly_the_limit_is_whole(encoding: str) -> None:
    exchange = await get(
        whole(ENCODERS[encoding](TEXT), f"Content-Encoding: {encoding}"), max_bytes=len(TEXT)
    )
    assert exchange.failure is None and exchange.body == TEXT


def test_timings_do_not_grow_without_end() -> None:
    body = Body(None, limit=1 << 20, redactor=Redactor(), timed=True)
    for at in range(MAX_CHUNKS + 500):
        body.add(b"x", float(at))
    chunks = body.chunks()
    assert len(chunks) == MAX_CHUNKS and sum(chunk.size for chunk in chunks) == MAX_CHUNKS + 500


async def test_chunk_times_and_live_pieces() -> None:
    events = [b"data: %d\n\n" % number for number in range(4)]
    pieces = [b"%x\r\n%s\r\n" % (len(event), event) for event in events] + [b"0\r\n\r\n"]
    seen: list[bytes] = []
    async with (
        serving(says(OK + b"Transfer-Encoding: chunked\r\n\r\n", *pieces, every=0.03)) as heard,
        Client(resolve(heard.url, environ={})) as client,
    ):
        exchange = await client.send("GET", "/x", stream=True, on_chunk=seen.append)
    assert seen == events and exchange.body == b"".join(events)
    times = [chunk.at for chunk in exchange.chunks]
    assert len(times) == 4 and all(0.015 < b - a < 0.3 for a, b in pairwise(times))
    assert exchange.timing.first_byte is not None and exchange.timing.first_byte <= times[0]


@pytest.mark.parametrize("body", [b"\xff\xfe\x00invalid utf-8", b"<html>no</html>", b'{"a":', b""])
async def test_any_body_is_kept_as_it_came(body: bytes) -> None:
    for status in ("200 OK", "404 Not Found", "500 Internal Server Error"):
        exchange = await get(whole(body, "Content-Type: text/event-stream", status=status))
        assert exchange.failure is None and exchange.body == body and exchange.status == int(status[:3])


async def test_a_redirect_is_data_and_goes_nowhere() -> None:
    async with serving(says(whole(b"{}"))) as elsewhere:
        answer = whole(b"", f"Location: {elsewhere.url}/steal?token=abc", status="307 Temporary Redirect")
        exchange = await get(answer)
        assert (
            exchange.status == 307
            and exchange.header("location") == f"{elsewhere.url}/steal?token=[redacted]"
        )
        assert elsewhere.requests == []


async def test_what_is_sent() -> None:
    async with serving(says(whole(b"{}"))) as heard:
        connection = resolve(
            heard.url + "/v1", headers=["X-Team: blue"], environ={"OPENAI_API_KEY": "sk-1234567890"}
        )
        async with Client(connection) as client:
            exchange = await client.chat({"model": "m", "messages": []})
            await client.send("GET", "/props?x=1", headers={"x-team": "red"})
            await client.send("POST", "/v1/models", body=b"raw")
        first, second, third = heard.requests
    head, body = first.split(b"\r\n\r\n", 1)
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1") and body == b'{"model":"m","messages":[]}'
    for field in (b"Authorization: Bearer sk-1234567890", b"X-Team: blue", b"Content-Type: application/json"):
        assert field in head
    assert (
        second.startswith(b"GET /props?x=1 HTTP/1.1") and b"x-team: red" in second and b"blue" not in second
    )
    assert (
        third.startswith(b"POST /v1/models HTTP/1.1")
        and third.endswith(b"raw")
        and b"application/json\r\nContent" not in third
    )
    assert exchange.request.body == body
    assert ("Authorization", "Bearer [redacted]") in exchange.request.headers


async def test_apis_have_paths_and_others_are_refused() -> None:
    async with serving(says(whole(b"{}"))) as heard, Client(resolve(heard.url + "/v1", environ={})) as client:
        for api in ("openai.completions", "ollama.chat", "anthropic.messages", "openai.responses"):
            await client.chat({}, api=api)
        lines = [request.split(b" ")[1] for request in heard.requests]
        assert lines == [b"/v1/completions", b"/api/chat", b"/v1/messages", b"/v1/responses"]
        with pytest.raises(UsageError):
            await client.chat({}, api="no.such")


@pytest.mark.parametrize(("keep", "connections"), [(None, 2), (True, 1)])
async def test_connections_are_kept_where_asked(keep: bool | None, connections: int) -> None:
    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: bytes) -> None:
        writer.write(whole(b"{}"))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(whole(b"{}"))

    async with serving(twice) as heard, Client(resolve(heard.url, environ={}), keep_alive=keep) as client:
        exchanges = [await client.send("GET", "/x") for _ in range(2)]
    assert all(exchange.body == b"{}" and exchange.failure is None for exchange in exchanges)
    assert len(heard.requests) == connections


@pytest.mark.parametrize("headers", [{"X": "a\r\nY: b"}, {"a b": "c"}, {"": "c"}, {"X": "\x00"}])
async def test_a_header_that_cannot_be_sent_is_the_users_mistake(headers: dict[str, str]) -> None:
    async with Client(resolve("http://127.0.0.1:9", environ={})) as client:
        with pytest.raises(UsageError, match="header"):
            await client.send("GET", "/x", headers=headers)
        with pytest.raises(UsageError, match="URL"):
            await client.send("GET", "http://127.0.0.1:99999/")


async def test_a_client_without_endpoint_says_so() -> None:
    async with Client(Connection()) as client:
        with pytest.raises(UsageError, match="--base-url"):
            await client.send("GET", "/x")


async def test_an_exchange_costs_little_of_our_own_time() -> None:
    answer = whole(b'{"choices":[]}' + b" " * 4000)
    async with (
        serving(says(answer)) as heard,
        Client(resolve(heard.url, environ={"OPENAI_API_KEY": "sk-" + "0a1b2c3d" * 5})) as client,
    ):
        await client.send("GET", "/x")
        began = time.process_time()
        for _ in range(100):
            await client.chat({"model": "m", "messages": [{"role": "user", "content": "x" * 4000}]})
        spent = (time.process_time() - began) / 100
    assert spent < 0.005  # the server's share included
