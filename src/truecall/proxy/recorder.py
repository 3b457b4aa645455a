"""The recorder: a process of its own that writes and judges what the proxy has passed.

It takes frames from the shared ring, writes them to the run folder first, and judges them from the log when
nothing waits to be written. It outlives the proxy until all that was passed is written.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import time
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from truecall import __version__
from truecall.errors import InputError, TruecallError
from truecall.funnel import measure
from truecall.proxy import frames
from truecall.proxy.cleaning import Cleaner
from truecall.proxy.follow import Follower
from truecall.proxy.judging import Judging, concluded
from truecall.proxy.pen import Orders
from truecall.proxy.ring import Ring
from truecall.records import Exchange
from truecall.redact import Redactor, words_of_tools
from truecall.store import Keep, RunFolder, body_of, exchange_of, summary_verdict
from truecall.store.chains import Chains, stored_part

_RECENT: Final = 512  # exchanges that a frame left over by a killed recorder may be one of
_TELL_EVERY: Final = 0.25
_RETRY_DISK: Final = 1.0


class Recorder:
    """Writes, judges and tells. One for each run folder."""

    def __init__(self, orders: Orders, talk: socket.socket, ring: Ring) -> None:
        self._orders = orders
        self._talk = talk
        self._ring = ring
        self._redactor = Redactor(orders.secrets)
        self._cleaner = Cleaner(self._redactor, orders.base_url)
        self._path = Path(orders.folder)
        self._folder: RunFolder | None = None
        self._chains = Chains()
        self._judging = Judging(orders.tools, orders.simulator_models, swap=orders.swap != "none")
        self._follower: Follower | None = None
        self._deferred: dict[int, dict[str, Any]] = {}
        self._judged_already: set[int] = set()
        self._recent: list[int] = []
        self._first = True
        self._over = False
        self._drain = True
        self._disk_failed_at = 0.0
        self._told = 0.0
        self._told_state = ""

    def run(self) -> int:
        """Works until the proxy has ended and all is written and judged."""
        try:
            self._open()
            self._catch_up()
            while self._ring.tail < self._orders.left:
                self._write(64)
        except TruecallError as error:
            self._say({"fatal": str(error)})
            return 2
        self._say({"hello": True})
        while True:
            worked = self._write(64)
            if not worked and (self._drain or not self._over):
                worked = self._judge(8)
            self._tell()
            if worked:
                continue
            if self._over:
                break
            self._sleep()
        self._finish()
        return 0

    # ------------------------------------------------------------- the folder

    def _open(self) -> None:
        keep = cast(Keep, self._orders.keep)
        words = words_of_tools(self._orders.tools or ())
        self._folder = RunFolder(self._path, redactor=self._redactor, keep=keep, words=words)
        self._follower = Follower(self._path)

    def _catch_up(self) -> None:
        """What an earlier recorder wrote in this folder: its verdicts are not written again."""
        early = Follower(self._path)
        while (line := early.next()) is not None:
            if line.get("kind") == "verdict":
                self._judged_already.add(int(line.get("n", 0)))
            elif line.get("kind") == "exchange":
                self._recent = [*self._recent[-_RECENT:], int(line.get("n", 0))]
        early.close()

    def _append(self, kind: str, value: Any) -> bool:
        """Writes a line; False where the disk does not take it. A torn line is cut off before the next."""
        if self._disk_failed_at:
            if time.monotonic() - self._disk_failed_at < _RETRY_DISK and not self._over:
                self._judging.tally.lost += kind == "exchange"
                return False
            if self._folder is not None:
                with contextlib.suppress(OSError):
                    self._folder.close()
            self._folder = None
        try:
            if self._folder is None:
                keep = cast(Keep, self._orders.keep)
                self._folder = RunFolder(self._path, redactor=self._redactor, keep=keep)
            if kind == "exchange":
                about, exchange = value
                body = None
                if self._full:
                    body = self._chains.stored(self._folder, exchange.request.body)
                    if "sent" in about:
                        about = {**about, "sent": stored_part(self._folder, about["sent"])}
                self._folder.exchange(exchange, request_body=body, **about)
            else:
                self._folder.append(kind, value, plain=True)
        except (OSError, TruecallError) as error:
            if not self._disk_failed_at:
                self._say({"alert": f"NOT RECORDED: {self._path}: {_reason(error)}; bytes still pass"})
            self._disk_failed_at = time.monotonic()
            self._judging.tally.lost += kind == "exchange"
            return False
        if self._disk_failed_at:
            self._disk_failed_at = 0.0
            self._say({"alert": f"recording again; {self._judging.tally.lost} exchanges were not kept"})
        return True

    # ------------------------------------------------------------- writing

    def _write(self, most: int) -> bool:
        """Takes up to ``most`` frames from the ring."""
        for count in range(most):
            frame = self._ring.peek()
            if frame is None:
                return count > 0
            decoded = frames.decode(frame)
            # An end that was left over belongs to a run that is over.
            if not isinstance(decoded, frames.End) or self._ring.tail >= self._orders.left:
                self._frame(decoded)
            self._ring.done(frame)
        return True

    def _frame(self, frame: frames.Frame) -> None:
        if isinstance(frame, frames.Passed):
            if not (self._first and frame.number in self._recent):
                self._exchange(frame)
            self._first = False
        elif isinstance(frame, frames.Intent):
            self._append("intent", self._cleaner.intent(frame))
        elif isinstance(frame, frames.Text):
            self._append("texts", {"n": frame.number, "texts": frame.texts if self._full else []})
        elif isinstance(frame, frames.Lost):
            self._judging.tally.lost += frame.count
            self._append("lost", {"count": frame.count})
        else:
            self._over, self._drain = True, frame.drain

    def _exchange(self, frame: frames.Passed) -> None:
        exchange, about = self._cleaner.exchange(frame)
        sent = self._redactor.data(frame.sent) if frame.sent is not None else None
        if sent is not None and self._full:
            about["sent"] = sent
        if self._append("exchange", (about, exchange)) and not self._full:  # what is not kept is judged now
            self._conclude(exchange, about, sent)

    @property
    def _full(self) -> bool:
        return self._orders.keep == "full"

    # ------------------------------------------------------------- judging

    def _judge(self, most: int) -> bool:
        """Judges up to ``most`` lines of the log."""
        assert self._follower is not None
        for count in range(most):
            line = self._follower.next()
            if line is None:
                if self._over and self._deferred:  # texts that never came
                    self._judge_line(self._deferred.pop(next(iter(self._deferred))))
                    return True
                return count > 0
            number = line.get("n")
            if line.get("kind") == "texts" and number in self._deferred:
                self._judge_line({**self._deferred.pop(number), "texts": line.get("texts")})
            elif line.get("kind") == "exchange" and self._full:
                if line.get("awaits") and not line.get("texts"):
                    self._deferred[int(number or 0)] = line
                else:
                    self._judge_line(line)
        return True

    def _judge_line(self, line: dict[str, Any]) -> None:
        try:
            exchange = exchange_of(self._path, line)
            sent = body_of(self._path, line["sent"]) if "sent" in line else None
            line = {**line, "texts": [self._text(text) for text in line.get("texts") or []]}
        except (InputError, msgspec.ValidationError) as error:
            self._judging.tally.failed_to_judge += 1
            self._say({"alert": f"exchange {line.get('n')} can't be read back: {error}"})
            return
        self._conclude(exchange, line, sent)

    def _text(self, value: Any) -> str | None:
        """A text as the log has it: itself, or a blob."""
        if isinstance(value, dict):
            return body_of(self._path, value).decode("utf-8", "replace")
        return value if isinstance(value, str) else None

    def _conclude(self, exchange: Exchange, about: dict[str, Any], sent: bytes | None) -> None:
        try:
            judged = self._judging.take(exchange, about, sent)
        except Exception as error:  # a fault of ours must not end the record
            self._judging.tally.failed_to_judge += 1
            self._say(
                {"alert": f"exchange {about.get('n')} can't be judged ({type(error).__name__}: {error})"}
            )
            return
        if judged.role == "other" or judged.n in self._judged_already:
            return
        line = concluded(judged)
        if not self._full:
            line["verdicts"] = [summary_verdict(verdict) for verdict in judged.verdicts]
        self._append("verdict", line)

    # ------------------------------------------------------------- the line to the proxy

    def _sleep(self) -> None:
        """Waits for frames, or for the proxy's end."""
        self._ring.sleeping = True
        if self._ring.waiting:
            self._ring.sleeping = False
            return
        ready, _, _ = select.select([self._talk], [], [], 0.2)
        self._ring.sleeping = False
        if ready:
            try:
                if not self._talk.recv(4096):
                    self._over = True  # the proxy has gone; what it passed is in the ring
            except BlockingIOError:
                return
            except OSError:
                self._over = True

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._told < _TELL_EVERY:
            return
        self._told = now
        snapshot = self._judging.tally.snapshot()
        state = msgspec.json.encode(snapshot).decode()
        if state != self._told_state:
            self._told_state = state
            self._say({"tally": snapshot})

    def _say(self, message: dict[str, Any]) -> None:
        """One line to the proxy; nobody there is no reason to stop."""
        data = msgspec.json.encode(message) + b"\n"
        with contextlib.suppress(OSError):
            self._talk.setblocking(True)
            self._talk.settimeout(2.0)
            self._talk.sendall(data)
        with contextlib.suppress(OSError):
            self._talk.setblocking(False)

    def _finish(self) -> None:
        snapshot = self._judging.tally.snapshot()
        episodes = self._judging.conversations.episodes()
        numbers = measure(episodes) if episodes else None
        report = {
            "schema_version": 1,
            "truecall": __version__,
            "swap": self._orders.swap,
            "evidence": self._orders.evidence,
            "engine": self._orders.engine,
            "tally": snapshot,
            "numbers": numbers,
        }
        if self._folder is not None:
            try:
                self._folder.write("report.json", report)
                self._folder.close()
            except OSError as error:
                self._say({"alert": f"NOT RECORDED: report.json: {_reason(error)}"})
        if self._orders.memory:
            Path(self._orders.memory).unlink(missing_ok=True)
        self._say({"tally": snapshot})
        self._say({"end": True, "numbers": numbers})


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def main() -> int:
    """Reads its orders from standard input."""
    orders = msgspec.json.decode(sys.stdin.buffer.read(), type=Orders)
    with contextlib.suppress(OSError):
        os.nice(5)  # passing comes first
    talk = socket.socket(fileno=orders.talk)
    talk.setblocking(False)
    return Recorder(orders, talk, Ring(orders.ring)).run()


if __name__ == "__main__":
    sys.exit(main())
