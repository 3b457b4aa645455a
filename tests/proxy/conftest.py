"""A proxy in the test's own event loop, with a record in memory or a real recorder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.proxy.upstream import Answer, Upstream, serving, standard
from truecall.config import resolve
from truecall.proxy import Hub, Orders, Pen, Settings
from truecall.proxy.frames import Passed


class Proxied:
    """A running proxy before a deterministic server."""

    def __init__(self, upstream: Upstream, hub: Hub, port: int, frames: list[Any]) -> None:
        self.upstream = upstream
        self.hub = hub
        self.port = port
        self.frames = frames

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def passed(self) -> list[Passed]:
        return [frame for frame in self.frames if isinstance(frame, Passed)]

    async def raw(self, data: bytes, *, eof: bool = False, wait: float = 5.0) -> bytes:
        """What the proxy says to these bytes until it closes or ``wait`` is over."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        if eof:
            writer.write_eof()
        got = b""
        try:
            async with asyncio.timeout(wait):
                while piece := await reader.read(65536):
                    got += piece
        except (TimeoutError, ConnectionError):
            pass
        writer.close()
        return got


Start = Callable[..., Any]


@asynccontextmanager
async def running(answer: Answer = standard, **options: Any) -> AsyncIterator[Proxied]:
    """A proxy whose frames are kept in a list."""
    frames: list[Any] = []
    async with serving(answer) as upstream:
        path = options.pop("path", "/v1")
        connection = resolve(upstream.url + path, environ={}, headers=options.pop("headers", ()))
        hub = Hub(Settings(upstream=connection, **options), frames.append)
        async with hub.serving("127.0.0.1", 0) as port:
            yield Proxied(upstream, hub, port, frames)


@asynccontextmanager
async def recording(folder: Path, answer: Answer = standard, **options: Any) -> AsyncIterator[Proxied]:
    """A proxy with a real recorder. ``alerts`` and ``news`` are on the pen, as ``proxied.pen``."""
    alerts: list[str] = []
    async with serving(answer) as upstream:
        connection = resolve(upstream.url + "/v1", environ={})
        orders = {k: options.pop(k) for k in ("secrets", "keep", "tools", "simulator_models") if k in options}
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        pen = Pen(
            Orders(
                folder=str(folder),
                base_url=connection.root(),
                swap=options.get("swap", "none"),
                **orders,
            ),
            alert=alerts.append,
            news=lambda _: None,
        )
        await pen.start()
        await pen.up()
        hub = Hub(Settings(upstream=connection, **options), pen.put)
        async with hub.serving("127.0.0.1", 0) as port:
            proxied = Proxied(upstream, hub, port, [])
            proxied.pen, proxied.alerts = pen, alerts  # type: ignore[attr-defined]
            yield proxied
        await pen.finish(patience=120)


@pytest_asyncio.fixture
async def proxy() -> AsyncIterator[Start]:
    """Starts proxies: ``proxied = await proxy(answer, **settings)``."""
    async with AsyncExitStack() as stack:

        async def start(answer: Answer = standard, **options: Any) -> Proxied:
            return await stack.enter_async_context(running(answer, **options))

        yield start
