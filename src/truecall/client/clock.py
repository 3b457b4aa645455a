"""The time limits of one exchange: which one runs, and which one ran out."""

from __future__ import annotations

import asyncio
import time

from truecall.config import Timeouts
from truecall.records import Failure, FailureKind

_TIMEOUT_TEXT = {
    FailureKind.TIMEOUT_CONNECT: "no connection in {:g} s",
    FailureKind.TIMEOUT_FIRST_BYTE: "connected, but no response head in {:g} s",
    FailureKind.TIMEOUT_BETWEEN_BYTES: "the body stood still for {:g} s",
    FailureKind.TIMEOUT_TOTAL: "not at its end after {:g} s",
}


class Clock:
    """One timer for an exchange: which limit runs now, and the total over all."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeouts = timeouts
        self.started_at = time.time()
        self._origin = self._loop.time()
        self.connected = False
        self.timer: asyncio.Timeout = asyncio.timeout(None)
        self.kind = FailureKind.TIMEOUT_CONNECT
        self._limit = timeouts.connect

    def now(self) -> float:
        """Seconds since the exchange began."""
        return self._loop.time() - self._origin

    def phase(self, kind: FailureKind, limit: float) -> None:
        """Begins a limit; the total wins where it ends first."""
        end, total = self.now() + limit, self._timeouts.total
        if end <= total or kind is not FailureKind.TIMEOUT_BETWEEN_BYTES:
            self.kind, self._limit = kind, min(limit, total)
        else:
            self.kind, self._limit = FailureKind.TIMEOUT_TOTAL, total
        self.timer.reschedule(self._origin + min(end, total))

    def begin(self) -> None:
        self.phase(FailureKind.TIMEOUT_CONNECT, self._timeouts.connect)

    def on_connected(self) -> None:
        self.connected = True
        self.phase(FailureKind.TIMEOUT_FIRST_BYTE, self._timeouts.first_byte)

    def on_bytes(self) -> None:
        self.phase(FailureKind.TIMEOUT_BETWEEN_BYTES, self._timeouts.between)

    def failure(self) -> Failure:
        """The failure of the limit that ran out."""
        return Failure(kind=self.kind, detail=_TIMEOUT_TEXT[self.kind].format(self._limit))
