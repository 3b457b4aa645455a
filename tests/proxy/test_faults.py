"""Every fault of the fault server is seen through the proxy as it is without it, and is recorded."""

from __future__ import annotations

import asyncio

import pytest

from tests.fault_server import SCENARIOS, FaultServer
from tests.proxy.upstream import WEATHER
from truecall.client import Client
from truecall.config import Timeouts, resolve
from truecall.proxy import Hub, Settings
from truecall.proxy.frames import Passed
from truecall.records import Exchange, FailureKind

BODY = {"model": "m", "messages": [{"role": "user", "content": "Weather?"}], "tools": [WEATHER]}
SHORT = Timeouts(connect=1.0, first_byte=0.6, between=0.6, total=1.5)
NOT_HTTP_STATUS = 502  # what the proxy says where a client could read no answer at all


async def ask(base_url: str, stream: bool) -> Exchange:
    async with Client(resolve(base_url, environ={})) as client:
        return await client.chat({**BODY, "stream": stream}, timeout=SHORT, max_bytes=1 << 20)


def outcome(exchange: Exchange) -> tuple[object, ...]:
    kind = exchange.failure.kind if exchange.failure else None
    ended = kind in (FailureKind.CLOSED_MID_STREAM, FailureKind.CLOSED_BEFORE_RESPONSE)
    cut = kind in (FailureKind.TIMEOUT_TOTAL, FailureKind.TIMEOUT_BETWEEN_BYTES, FailureKind.TOO_LARGE)
    # How much of an endless or broken answer has come when it ends is a matter of timing.
    body = exchange.body[:32] if ended or cut else exchange.body
    return exchange.status, "ended" if ended else kind, body


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", sorted(SCENARIOS))
async def test_a_fault_is_the_same_through_the_proxy(name: str, stream: bool) -> None:
    async with FaultServer(name) as server:
        direct = await ask(server.base_url, stream)
    frames: list[object] = []
    async with FaultServer(name) as server:
        hub = Hub(Settings(upstream=resolve(server.base_url, environ={})), frames.append)
        async with hub.serving("127.0.0.1", 0) as port:
            through = await ask(f"http://127.0.0.1:{port}/v1", stream)
            await asyncio.sleep(0.02)
    assert any(isinstance(frame, Passed) for frame in frames)
    if through.status == NOT_HTTP_STATUS and b"truecall record" in through.body:
        assert direct.status is None or direct.failure is not None
        return
    if name == "bad-chunks":  # the head is passed on before the framing breaks; a client may see both at once
        assert direct.failure is not None and through.failure is not None
        return
    assert outcome(through) == outcome(direct)
