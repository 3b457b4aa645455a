"""Waits as a server asks: ``Retry-After`` on 429 and 503, within bounds. 429 stays a cause of its own."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime

from truecall.records import Exchange

LONGEST_WAIT = 60.0
"""Seconds: a server that asks for more is not waited for."""

ATTEMPTS = 4


def parse_retry_after(exchange: Exchange, *, now: float | None = None) -> float | None:
    """Seconds that the response asks to wait: ``Retry-After-Ms``, or ``Retry-After`` as seconds or HTTP date.

    None where it does not say so in a form that can be read. Never negative; not capped.
    """
    millis = _number(exchange.header("retry-after-ms"))
    if millis is not None:
        return millis / 1000
    text = (exchange.header("retry-after") or "").strip()
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        when = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, when - (time.time() if now is None else now))


async def send_patiently(
    send: Callable[[], Awaitable[Exchange]],
    *,
    attempts: int = ATTEMPTS,
    longest: float = LONGEST_WAIT,
    on_wait: Callable[[float, Exchange], None] | None = None,
) -> tuple[Exchange, ...]:
    """Calls ``send`` until it is not told to come back later; returns all attempts, the last one deciding.

    Waits after a 429, and after a 503 that says how long: as told, or 1, 2, 4 … seconds (with up to a quarter
    more, so that parallel senders spread). Ends early where all waits together would pass ``longest``.
    """
    done: list[Exchange] = []
    waited = 0.0
    while True:
        exchange = await send()
        done.append(exchange)
        told = parse_retry_after(exchange)
        asked = exchange.status == 429 or (exchange.status == 503 and told is not None)
        if not asked or len(done) >= attempts:
            return tuple(done)
        pause = told if told is not None else 2.0 ** (len(done) - 1)
        pause *= 1 + random.random() / 4 if told is None else 1
        if waited + pause > longest:
            return tuple(done)
        waited += pause
        if on_wait is not None:
            on_wait(pause, exchange)
        await asyncio.sleep(pause)


def _number(text: str | None) -> float | None:
    """A finite number from 0 up, or None."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
