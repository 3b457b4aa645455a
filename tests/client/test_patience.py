"""Waiting as told: Retry-After in its forms, within bounds, all attempts kept."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate

import pytest
from rawserver import serving, whole

from truecall.client import Client, parse_retry_after, send_patiently
from truecall.config import resolve
from truecall.records import Exchange, Request, Timing


def answer(status: int | None, **fields: str) -> Exchange:
    headers = tuple((name.replace("_", "-"), value) for name, value in fields.items())
    return Exchange(
        request=Request(method="GET", url="/"), status=status, headers=headers, timing=Timing(started_at=0)
    )


NOW = 1_800_000_000.0


@pytest.mark.parametrize(("fields", "seconds"), [
    ({}, None), ({"retry_after": "3"}, 3.0), ({"Retry_After": " 0.5 "}, 0.5), ({"retry_after": "0"}, 0.0),
    ({"retry_after": formatdate(NOW + 7, usegmt=True)}, 7.0), ({"retry_after": formatdate(NOW - 7, usegmt=True)}, 0.0),
    ({"retry_after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0), ({"retry_after": "soon"}, None),
    ({"retry_after": "-1"}, None), ({"retry_after": "nan"}, None), ({"retry_after": "1e999"}, None),
    ({"retry_after_ms": "250", "retry_after": "9"}, 0.25), ({"retry_after": "Sun, 99 Nov 9999999 08:49:37 GMT"}, None),
])  # fmt: skip
def test_what_the_server_asks_for(fields: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(answer(429, **fields), now=NOW) == seconds


class Server:
    """Gives the answers in turn, the last one for ever."""

    def __init__(self, *answers: Exchange) -> None:
        self.answers = answers
        self.sent = 0

    async def __call__(self) -> Exchange:
        self.sent += 1
        return self.answers[min(self.sent, len(self.answers)) - 1]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("truecall.client.patience.asyncio.sleep", sleep)
    return waited


async def test_all_attempts_are_kept_and_the_wait_is_as_told(waits: list[float]) -> None:
    server = Server(answer(429, retry_after="3"), answer(503, retry_after="2"), answer(200))
    told: list[float] = []
    exchanges = await send_patiently(server, on_wait=lambda seconds, _: told.append(seconds))
    assert [exchange.status for exchange in exchanges] == [429, 503, 200] and waits == told == [3, 2]


async def test_without_a_time_the_wait_doubles(waits: list[float]) -> None:
    exchanges = await send_patiently(Server(answer(429)), attempts=4)
    assert len(exchanges) == 4
    assert all(base <= wait <= base * 1.25 for base, wait in zip([1, 2, 4], waits, strict=True))


@pytest.mark.parametrize(
    "last", [answer(200), answer(500), answer(503), answer(400, retry_after="1"), answer(None)]
)
async def test_nothing_else_is_repeated(last: Exchange, waits: list[float]) -> None:
    assert await send_patiently(Server(last)) == (last,) and waits == []


async def test_waits_are_bounded(waits: list[float]) -> None:
    assert len(await send_patiently(Server(answer(429, retry_after="3600")))) == 1
    assert len(await send_patiently(Server(answer(429, retry_after="25")), attempts=9)) == 3
    assert waits == [25, 25]


async def test_on_a_real_server() -> None:
    answers = iter([whole(b"slow down", "Retry-After: 0.05", status="429 Too Many Requests"), whole(b"{}")])

    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter, __: bytes) -> None:
        writer.write(next(answers))

    async with serving(handle) as heard, Client(resolve(heard.url, environ={})) as client:
        began = time.monotonic()
        exchanges = await send_patiently(lambda: client.chat({"model": "m"}))
    assert [exchange.status for exchange in exchanges] == [429, 200] and exchanges[0].body == b"slow down"
    assert 0.05 <= time.monotonic() - began < 1
