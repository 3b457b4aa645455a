"""What is refused: foreign hosts and origins, other kinds of targets, shapes that smuggle a request."""

from __future__ import annotations

import pytest

from tests.proxy.conftest import Start
from truecall.proxy.gate import Gate, Refused

BAD = {
    "absolute form": (b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "connect": (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    "authority form": (b"GET evil.example HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "rebinding": (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
    "rebinding with port": (b"GET / HTTP/1.1\r\nHost: evil.example:8000\r\n\r\n", 421),
    "loopback name as a prefix": (b"GET / HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 421),
    "other port": (b"GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 421),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "origin": (b"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 403),
    "origin null": (b"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n", 403),
    "length and chunked": (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "two lengths": (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        400,
    ),
    "list of lengths": (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1, 1\r\n\r\na", 400),
    "signed length": (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\na", 400),
    "odd coding": (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        501,
    ),
    "two codings": (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        501,
    ),
    "coding hidden by a tab": (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "chunked in 1.0": (
        b"POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        501,
    ),
    "folded line": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n", 400),
    "bare line feed": (b"GET / HTTP/1.1\nHost: localhost\n\n", 400),
    "bare carriage return": (b"GET / HTTP/1.1\r\nHost: localhost\rX: y\r\n\r\n", 400),
    "nul": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", 400),
    "bad chunk size": (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
        400,
    ),
    "bare feed in a chunk": (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\na\n0\n\n",
        400,
    ),
    "upgrade": (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 501),
    "http/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "head without end": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000, 431),
}


@pytest.mark.parametrize("name", BAD)
async def test_refused_and_never_passed_on(proxy: Start, name: str) -> None:
    data, status = BAD[name]
    proxied = await proxy()
    got = await proxied.raw(data, wait=3)
    assert got.startswith(b"HTTP/1.1 %d " % status), got[:200]
    assert got.count(b"HTTP/1.1") == 1
    assert proxied.upstream.requests == []
    assert sum(proxied.hub.refusals.values()) == 1


async def test_what_hides_behind_a_refused_request_is_not_served(proxy: Start) -> None:
    proxied = await proxy()
    smuggled = b"GET /secret HTTP/1.1\r\nHost: localhost\r\n\r\n"
    bad, _ = BAD["length and chunked"]
    assert (await proxied.raw(bad + smuggled, wait=1)).count(b"HTTP/1.1") == 1
    assert proxied.upstream.requests == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST", "dev.localhost", "127.0.0.1:{port}"]
)
async def test_loopback_names_are_served(proxy: Start, host: str) -> None:
    proxied = await proxy()
    line = f"Host: {host.format(port=proxied.port)}\r\nOrigin: http://localhost:3000"
    got = await proxied.raw(f"GET /v1/models HTTP/1.1\r\n{line}\r\nConnection: close\r\n\r\n".encode())
    assert got.startswith(b"HTTP/1.1 200")


def test_a_further_host_name() -> None:
    gate = Gate(8000, ("host.docker.internal",), None)
    assert gate.check(b"GET", b"/a", "1.1", [(b"Host", b"host.docker.internal:8000")]) == b"/a"


def test_beyond_loopback_the_path_holds_a_token() -> None:
    gate = Gate(8000, (), "t0ken")
    headers = [(b"Host", b"10.0.0.5:8000")]
    assert gate.check(b"GET", b"/t0ken/v1/models", "1.1", headers) == b"/v1/models"
    for target in (b"/v1/models", b"/t0ken2/v1", b"/"):
        with pytest.raises(Refused) as refused:
            gate.check(b"GET", target, "1.1", headers)
        assert refused.value.status == 401
