"""Servers for tests of the command line, which runs a loop of its own: a faulty server in a thread, TLS or not."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from tests.fault_server import HOST, STATE, FaultServer, Running
from tests.faults.engine import Profile
from tests.faults.kinds import Scenario


class TlsFaultServer(FaultServer):
    """The same server, spoken to by https."""

    def __init__(self, what: str | Scenario | Profile, tls: ssl.SSLContext) -> None:
        super().__init__(what)
        self._tls = tls

    async def _start_http(self) -> int:
        app = web.Application(client_max_size=1 << 30)
        app[STATE] = {}
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, HOST, 0, ssl_context=self._tls).start()
        self._stop = runner.cleanup
        return int(runner.addresses[0][1])


@contextmanager
def served(what: str | Scenario | Profile, tls: ssl.SSLContext | None = None) -> Iterator[Running]:
    """A running server in a thread of its own; its base URL is https where ``tls`` is given."""
    server = FaultServer(what) if tls is None else TlsFaultServer(what, tls)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    running = asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(30)
    if tls is not None:
        running.base_url = running.base_url.replace("http:", "https:")
    try:
        yield running
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
