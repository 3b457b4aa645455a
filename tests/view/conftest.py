"""A viewer in a thread of its own, and a client that says exactly what a test wants."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from truecall.view import Shelf, serving
from truecall.view.door import Door

Serve = Callable[..., "Viewer"]


class Answer(NamedTuple):
    """What the viewer said. Header names in lower case; each once."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Viewer:
    """A running viewer."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.host = f"127.0.0.1:{door.port}"
        self.origin = f"http://{self.host}"
        self.cookie = {"Cookie": f"{door.cookie}={door.token}"}

    def ask(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answer:
        """One request; with ``headers`` None the reader has the cookie."""
        client = http.client.HTTPConnection("127.0.0.1", self.door.port, timeout=30)
        client.putrequest(method, path, skip_host=True)
        fields = {"Host": self.host, **(self.cookie if headers is None else headers)}
        for name, value in fields.items():
            client.putheader(name, value)
        client.endheaders()
        answer = client.getresponse()
        made = Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        client.close()
        return made


@contextmanager
def viewing(*runs: str | Path) -> Iterator[Viewer]:
    """Serves these runs."""
    loop, ready, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    doors: list[Door] = []

    async def work() -> None:
        with Shelf([str(run) for run in runs]) as shelf:
            async with serving(shelf) as door:
                doors.append(door)
                ready.set()
                await over.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(work())
            finally:
                ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(60)
    try:
        yield Viewer(doors[0])
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts viewers: ``viewer = serve(folder, …)``; they end with the test."""
    with ExitStack() as stack:
        yield lambda *runs: stack.enter_context(viewing(*runs))
