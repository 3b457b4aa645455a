"""A server that says exactly the bytes it is told to say, for failures that no HTTP server library can show."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\n"


def whole(body: bytes, *fields: str, status: str = "200 OK") -> bytes:
    """A complete response."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def says(*pieces: bytes, every: float = 0.0, then_hang: bool = False, reset: bool = False) -> Handler:
    """Writes ``pieces``, ``every`` seconds apart, then closes (or hangs, or resets the connection)."""

    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(every)
        if then_hang:
            await asyncio.sleep(30)
        if reset:
            writer.transport.abort()

    return handle


class Heard:
    """Where the server listens, and the requests that it read."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        (
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ),
        0,
    )
    return head + await reader.readexactly(length)


@asynccontextmanager
async def serving(handler: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Heard]:
    """Serves ``handler`` on a free loopback port, one request a connection."""
    heard: Heard

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        writers.append(writer)
        try:
            request = await _request(reader)
            heard.requests.append(request)
            await handler(reader, writer, request)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    tasks: set[asyncio.Task[None] | None] = set()
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(connection, "127.0.0.1", 0, ssl=tls)
    heard = Heard(server.sockets[0].getsockname()[1])
    try:
        yield heard
    finally:
        server.close()
        for task in tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
        for writer in writers:
            writer.transport.abort()  # what is still buffered for a client that has gone
        await asyncio.sleep(0)
