"""The proxy's end of the recorder: frames go out without waiting, news comes back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from truecall.proxy import frames
from truecall.proxy.ring import Ring, memory
from truecall.records import Record

HELD: Final = 256 << 20
"""Bytes that wait in memory when the ring is full; what comes on top is passed on and not recorded."""

_RESTARTS = 3


class Orders(Record, frozen=True):
    """What the recorder is started with; it goes through a pipe, for it holds the secrets.

    ``memory``: the name of the ring's memory, "" without one. ``left``: how far the ring was written by then.
    """

    folder: str
    ring: int = -1
    memory: str = ""
    left: int = 0
    talk: int = -1
    secrets: tuple[str, ...] = ()
    keep: str = "full"
    tools: tuple[Any, ...] | None = None
    simulator_models: tuple[str, ...] = ()
    base_url: str = ""
    swap: str = "none"
    evidence: bool = False
    engine: str = ""


class Pen:
    """Starts the recorder, feeds it, and starts it again where it dies.

    Args:
        orders: without the handles, which are made here. The ring may hold what a killed run left.
        alert: is told, in one line, of everything that is not recorded as it should be.
        news: gets every snapshot of the funnel.

    Raises:
        UsageError: another run records in this folder.
    """

    def __init__(
        self, orders: Orders, *, alert: Callable[[str], None], news: Callable[[dict[str, Any]], None]
    ) -> None:
        self._orders = orders
        self._alert = alert
        self._news = news
        self._memory, self._name = memory(Path(orders.folder))
        self.ring = Ring(self._memory)
        self.ring.secrets = tuple(dict.fromkeys((*self.ring.secrets, *orders.secrets)))
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        self.lost = 0
        self._told_lost = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._talk: asyncio.StreamWriter | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._starts = 0
        self._ended = asyncio.Event()
        self._up = asyncio.Event()
        self._finishing = False
        self._end: frames.End | None = None
        self.broken = ""  # why nothing is recorded any more
        self.latest: dict[str, Any] = {}
        self.numbers: Any = None  # an ArmNumbers as plain data, once the recorder has ended

    # ------------------------------------------------------------- frames

    def put(self, frame: frames.Frame) -> None:
        """Takes a frame. Never waits, never raises."""
        data = frames.encode(frame)
        if self._held or not self.ring.push(data):
            self._hold(data)
        if self.ring.sleeping:
            self._wake()

    def _hold(self, data: bytes) -> None:
        if self.broken or self._held_bytes + len(data) > HELD or not self.ring.fits(data):
            self.lost += 1
            if self.lost == 1:
                self._alert(
                    f"NOT RECORDED: {self.broken or 'the recorder does not keep up'}; bytes still pass"
                )
            return
        self._held.append(data)
        self._held_bytes += len(data)

    def refill(self) -> None:
        """Moves what was held in memory to the ring, as far as there is room."""
        while self._held and self.ring.push(self._held[0]):
            self._held_bytes -= len(self._held.popleft())
        new = self.lost - self._told_lost
        if new and not self._held and self.ring.push(frames.encode(frames.Lost(count=new))):
            self._told_lost = self.lost
        if self.ring.waiting and self.ring.sleeping:
            self._wake()

    def _wake(self) -> None:
        self.ring.sleeping = False
        if self._talk is not None:
            self._talk.write(b".")

    # ------------------------------------------------------------- the process

    async def start(self) -> None:
        """Starts the recorder's process."""
        self._starts += 1
        ours, theirs = socket.socketpair()
        orders = msgspec.structs.replace(
            self._orders,
            ring=self._memory,
            memory=str(self._name or ""),
            left=self.ring.head,
            talk=theirs.fileno(),
            secrets=self.ring.secrets,
        )
        self._process = await asyncio.to_thread(_spawn, orders)
        theirs.close()
        reader, self._talk = await asyncio.open_unix_connection(sock=ours, limit=1 << 20)
        self._hearing = asyncio.get_running_loop().create_task(self._hear(reader))
        if self._end is not None:  # the one before may have taken it with it
            self.put(self._end)

    async def up(self, seconds: float = 60.0) -> None:
        """Waits until the recorder has written what a killed run left, or has said that it can't."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._up.wait()

    @property
    def pid(self) -> int:
        """The recorder's process id."""
        return self._process.pid if self._process is not None else 0

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        """Takes the recorder's lines until its end of the line closes."""
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                self._take(msgspec.json.decode(line))
        await self._gone()

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("hello"):
            self._up.set()
        if alert := message.get("alert"):
            self._alert(str(alert))
        if fatal := message.get("fatal"):
            self.broken = str(fatal)
            self._up.set()
            self._alert(f"NOT RECORDED: {fatal}; bytes still pass")
        if snapshot := message.get("tally"):
            self.latest = snapshot
            self._news(snapshot)
        if message.get("end"):
            self._finishing = True
            self.numbers = message.get("numbers")

    async def _gone(self) -> None:
        assert self._talk is not None and self._process is not None
        self._talk.close()
        self._talk = None
        code = await asyncio.to_thread(self._process.wait)
        if self._finishing or self.broken:
            self._ended.set()
        elif self._starts > _RESTARTS:
            self.broken = f"the recorder died {self._starts} times (exit code {code})"
            self._alert(f"NOT RECORDED: {self.broken}; bytes still pass")
            self._ended.set()
        else:
            self._alert(f"the recorder died (exit code {code}); it is started again, nothing is lost so far")
            await self.start()

    async def finish(self, *, drain: bool = True, patience: float | None = None) -> None:
        """Lets the recorder write and judge what is there, and end."""
        if not self._held:
            self.refill()
        while self._held and not self.broken and not self._ended.is_set():
            self.refill()
            await asyncio.sleep(0.02)
        self.refill()
        self._end = frames.End(drain=drain)
        self.put(self._end)
        self._wake()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._ended.wait()
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
        if self.broken and self._name is not None:  # else the recorder did, when all was written
            self._name.unlink(missing_ok=True)
        self.ring.close()
        os.close(self._memory)

    @property
    def folder(self) -> Path:
        return Path(self._orders.folder)


def _spawn(orders: Orders) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "truecall.proxy.recorder"],
        stdin=subprocess.PIPE,
        pass_fds=(orders.ring, orders.talk),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        start_new_session=True,  # a Ctrl-C for the proxy is not for the recorder
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(msgspec.json.encode(orders))
        process.stdin.close()
    return process
