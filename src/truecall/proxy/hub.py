"""What all connections of a proxy share, and the proxy's life."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from truecall.errors import UsageError
from truecall.proxy.editing import Edit, Editing
from truecall.proxy.flow import Flow
from truecall.proxy.frames import Intent, Passed, Text
from truecall.proxy.gate import Gate, Refused
from truecall.proxy.inbound import Inbound
from truecall.proxy.outbound import Outbound
from truecall.proxy.settings import Address, Injected, Settings, tls_context

Keep = Callable[[Intent | Passed | Text], None]
"""Takes what is to be recorded; never waits."""

_BUFFER: Final = 1 << 18  # bytes written and not yet taken, after which the other side is read no further


class Hub:
    """A running proxy: its connections, its settings, and where its record goes."""

    def __init__(self, settings: Settings, keep: Keep) -> None:
        self.settings = settings
        self.address = Address(settings.upstream)
        self.injected = Injected.of(settings.upstream)
        self.gate = Gate(0, settings.hosts, settings.token)
        self.editing = Editing(settings)
        self.open: set[Inbound] = set()
        self.refusals: Counter[str] = Counter()
        self.troubles: deque[str] = deque(maxlen=20)
        self.stopped = ""  # why nothing is served any more
        self.exchanges = 0
        self.bytes_passed = 0
        self._keep = keep
        self._numbers = 0
        self._tls: ssl.SSLContext | None = tls_context(settings.upstream) if self.address.tls else None
        self._tasks: set[asyncio.Task[Any]] = set()

    def count_from(self, number: int) -> None:
        """The next exchange gets the number after this one."""
        self._numbers = number

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    # ------------------------------------------------------------- for connections

    def edit(self, flow: Flow) -> Edit | None:
        """How the exchange is changed on its way; None: not at all."""
        return self.editing.edit(flow) if self.editing.active else None

    def intent(self, flow: Flow) -> None:
        self._keep(flow.intent())

    def record(self, flow: Flow) -> None:
        """Hands the exchange to the recorder."""
        if flow.ended:
            return
        flow.ended = True
        self.exchanges += 1
        self.bytes_passed += flow.received
        self._keep(flow.passed())
        if flow.edit is not None and flow.edit.awaits:
            self._spawn(self._text(flow.number, flow.edit, b"".join(flow.pieces)))

    def repeat(self, flow: Flow) -> None:
        """The flow goes to the upstream once more, without what was added; the refusal is recorded."""
        refused = flow.passed()
        refused.superseded = True
        self._keep(refused)
        self.exchanges += 1
        body = b"".join(flow.body)
        flow.number = self.number()
        flow.edit = self.editing.without_evidence(flow)
        flow.status, flow.first_byte, flow.received = None, None, 0
        flow.fields, flow.pieces, flow.chunks = [], [], []
        if flow.edit is None:
            flow.unsent = [flow.head_up(self.address, self.injected)]
            flow.unsent += [b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if flow.chunked else body]
        else:
            flow.unsent = [flow.head_up(self.address, self.injected), *flow.edit.request(body)]

    def refusal(self, refused: Refused) -> None:
        self.refusals[refused.text] += 1

    def trouble(self, text: str) -> None:
        self.troubles.append(text)

    async def connect(self, inbound: Inbound) -> Outbound:
        """A new connection to the upstream. Raises OSError."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self.settings.limits.connect):
            transport, up = await loop.create_connection(
                lambda: Outbound(inbound), self.address.host, self.address.port, ssl=self._tls
            )
        transport.set_write_buffer_limits(_BUFFER)
        return up

    def connect_failure(self, error: OSError) -> tuple[str, str]:
        """(FailureKind value, text) of a connection that did not come about."""
        where = f"{self.address.host}:{self.address.port}"
        if isinstance(error, TimeoutError):
            return "timeout_connect", f"no connection to {where} in {self.settings.limits.connect:g} s"
        if isinstance(error, ssl.SSLError):
            return "tls", f"TLS with {where} failed: {error.reason or error}"
        if isinstance(error, socket.gaierror):
            return "dns", f"{self.address.host} does not resolve"
        if error.errno == errno.ECONNREFUSED or isinstance(error, ConnectionRefusedError):
            return "refused", f"{where} refused the connection"
        return "unreachable", f"{where} can't be reached ({error.strerror or error})"

    # ------------------------------------------------------------- life

    @asynccontextmanager
    async def serving(self, host: str, port: int) -> AsyncIterator[int]:
        """Listens for as long as the block lasts; yields the port.

        Raises:
            UsageError: nothing can listen there.
        """
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(self._accept, host, port, backlog=1024)
        except OSError as error:
            raise UsageError(f"{host}:{port}: can't listen there ({error.strerror})") from None
        bound = int(server.sockets[0].getsockname()[1])
        self.gate = Gate(bound, self.settings.hosts, self.settings.token)
        sweeper = loop.create_task(self._sweep())
        try:
            async with self.editing:
                yield bound
                await self._settle()
        finally:
            sweeper.cancel()
            server.close()
            for inbound in list(self.open):
                inbound.abort()
            await asyncio.sleep(0)  # so that what was cut off is recorded

    def _accept(self) -> Inbound:
        return Inbound(self)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            now = time.perf_counter()
            for inbound in list(self.open):
                inbound.sweep(now)

    async def _text(self, number: int, edit: Edit, body: bytes) -> None:
        self._keep(Text(number=number, texts=await edit.detokenized(body)))

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self) -> None:
        """Waits a little for texts that were asked for."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=5.0)
