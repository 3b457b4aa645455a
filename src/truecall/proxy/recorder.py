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

from truecall import __version__, wire
from truecall.client.body import Body
from truecall.errors import InputError, TruecallError
from truecall.proxy import frames
from truecall.proxy.follow import Follower, exchange_of, stored_bytes
from truecall.proxy.judging import Judging, concluded
from truecall.proxy.pen import Orders
from truecall.proxy.ring import Ring
from truecall.proxy.settings import MAX_RECORDED
from truecall.proxy.tally import summary_verdict
from truecall.records import Chunk, Exchange, Failure, FailureKind, Request, Timing
from truecall.redact import Redactor, secrets_of_header, secrets_of_url, words_of_tools
from truecall.store import Keep, RunFolder

_DECODED: Final = 4 * MAX_RECORDED  # bytes of a body after its content-encoding was undone
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
        self._known: set[tuple[str, str]] = set()
        self._path = Path(orders.folder)
        self._folder: RunFolder | None = None
        self._judging = Judging(orders.tools, orders.simulator_models)
        self._follower: Follower | None = None
        self._deferred: dict[int, dict[str, Any]] = {}
        self._judged_already: set[int] = set()
        self._recent: list[int] = []
        self._first = True
        self._draining = False
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
        except TruecallError as error:
            self._say({"fatal": str(error)})
            return 2
        self._say({"hello": True})
        while True:
            worked = self._write(64)
            if not worked and self._orders.judged and (self._drain or not self._over):
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
                self._folder.exchange(exchange, **about)
            else:
                self._folder.append(kind, value)
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
            self._frame(frames.decode(frame))
            self._ring.done(frame)
        return True

    def _frame(self, frame: frames.Frame) -> None:
        if isinstance(frame, frames.Passed):
            if not (self._first and frame.number in self._recent):
                self._exchange(frame)
            self._first = False
        elif isinstance(frame, frames.Intent):
            self._learn_url(frame.target)
            target = self._redactor.url(frame.target.decode("latin-1"))
            line = {"n": frame.number, "method": frame.method.decode("latin-1"), "target": target}
            self._append("intent", line)
        elif isinstance(frame, frames.Text):
            self._append("texts", {"n": frame.number, "texts": frame.texts if self._full else []})
        elif isinstance(frame, frames.Lost):
            self._judging.tally.lost += frame.count
            self._append("lost", {"count": frame.count})
        elif isinstance(frame, frames.Secret):
            self._redactor.add(frame.text)
        else:
            self._over, self._drain = True, frame.drain

    def _exchange(self, frame: frames.Passed) -> None:
        exchange, about = self._built(frame)
        sent = self._redactor.data(frame.sent) if frame.sent is not None else None
        if sent is not None and self._full:
            about["sent"] = sent
        if not self._append("exchange", (about, exchange)) or self._full:
            return
        if self._orders.judged:  # what is not kept is judged now
            self._conclude(exchange, about, sent)

    @property
    def _full(self) -> bool:
        return self._orders.keep == "full"

    def _built(self, frame: frames.Passed) -> tuple[Exchange, dict[str, Any]]:
        """The exchange without secrets, and what is to be known beside it."""
        self._learn_url(frame.target)
        for name, value in frame.headers:
            self._learn(name.decode("latin-1"), value.decode("latin-1"))
        headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in frame.headers)
        fields = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in frame.fields)
        encoding = next((v for n, v in fields if n.lower() == "content-encoding"), None)
        body = Body(encoding, limit=_DECODED, redactor=self._redactor)
        if frame.body:
            body.add(frame.body, 0.0)
        failure = Failure(kind=FailureKind(frame.failure), detail=frame.detail) if frame.failure else None
        data = body.finish(whole=failure is None)
        failure = failure or body.failure
        url = self._orders.base_url + frame.target.decode("latin-1")
        data, rewritten = self._in_pieces(data, url, frame.status, fields)
        request_body = self._redactor.data(frame.request)
        exchange = Exchange(
            request=Request(
                method=frame.method.decode("latin-1"),
                url=self._redactor.url(url),
                headers=self._redactor.headers(headers),
                body=request_body,
            ),
            status=frame.status,
            headers=self._redactor.headers(fields),
            body=data,
            received=frame.received,
            chunks=tuple(Chunk(at=round(at, 6), size=size) for at, size in frame.chunks),
            timing=Timing(started_at=frame.started_at, first_byte=frame.first_byte, total=frame.total),
            failure=failure,
        )
        about: dict[str, Any] = {"n": frame.number}
        if frame.role:
            about["role"] = frame.role.decode("latin-1")
        if frame.client_gone:
            about["client_gone"] = True
        if frame.added:
            about["added"] = frame.added
        if frame.superseded:
            about["superseded"] = True
        if frame.delivered:
            about["delivered"] = frame.delivered
        if frame.texts:
            about["texts"] = frame.texts
        if frame.awaits:
            about["awaits"] = True
        if rewritten:
            about["rewritten"] = rewritten
        return exchange, about

    def _in_pieces(
        self, data: bytes, url: str, status: int | None, fields: tuple[tuple[str, str], ...]
    ) -> tuple[bytes, str]:
        """A stream that repeats a secret in pieces of one event each is kept as the text it adds up to."""
        if not self._redactor or (b"data:" not in data and b"\n{" not in data):
            return data, ""
        api = wire.by_path(url)
        kind = next((v for n, v in fields if n.lower() == "content-type"), None)
        response = wire.read(data, api.value if api else "openai.chat", status=status, content_type=kind)
        text = msgspec.json.encode(response)
        if self._redactor.data(text) == text:
            return data, ""
        clean = msgspec.convert(self._redactor.value(msgspec.to_builtins(response)), type(response))
        return wire_bytes(clean), "the server repeated a secret in pieces: kept as a whole answer"

    def _learn(self, name: str, value: str) -> None:
        """New credentials that a request carries."""
        if (name, value) in self._known:
            return
        found = secrets_of_header(name, value)
        if found:
            if len(self._known) < 10_000:
                self._known.add((name, value))
            self._redactor.add(*found)

    def _learn_url(self, target: bytes) -> None:
        if b"?" in target:
            self._redactor.add(*secrets_of_url("http://h" + target.decode("latin-1")))

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
            sent = stored_bytes(self._path, line["sent"]) if "sent" in line else None
            line = {**line, "texts": [self._text(text) for text in line.get("texts") or []]}
        except (InputError, msgspec.ValidationError) as error:
            self._judging.tally.failed_to_judge += 1
            self._say({"alert": f"exchange {line.get('n')} can't be read back: {error}"})
            return
        self._conclude(exchange, line, sent)

    def _text(self, value: Any) -> str | None:
        """A text as the log has it: itself, or a blob."""
        if isinstance(value, dict):
            return stored_bytes(self._path, value).decode("utf-8", "replace")
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
        report = {
            "schema_version": 1,
            "truecall": __version__,
            "swap": self._orders.swap,
            "evidence": self._orders.evidence,
            "engine": self._orders.engine,
            "tally": snapshot,
        }
        if self._folder is not None:
            try:
                self._folder.write("report.json", report)
                self._folder.close()
            except OSError as error:
                self._say({"alert": f"NOT RECORDED: report.json: {_reason(error)}"})
        self._say({"tally": snapshot})
        self._say({"end": True})


def wire_bytes(response: Any) -> bytes:
    """A response as the body of a chat completion."""
    return msgspec.json.encode(wire.to_chat(response))


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
