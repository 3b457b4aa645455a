"""The writing side of a run folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import zstandard

from truecall.errors import UsageError
from truecall.records import Exchange
from truecall.redact import Redactor
from truecall.store.files import blob_path, private_dir, write_private
from truecall.store.masks import shape_json
from truecall.wire import values

FORMAT = 1
INLINE = 4096
"""Bytes up to which a text or body stands in the log line itself."""

Keep = Literal["full", "shape", "none"]

_SYNC_EVERY = 1.0


class RunFolder:
    """One run's folder, open for its one writer.

    Args:
        path: made where it is not there yet, with everything in it for the user alone.
        redactor: replaces secrets in all that is written.
        keep: what is kept of texts: all, their shape (values masked), or nothing but digest and size.
        words: what :func:`truecall.redact.shape` leaves as it is.

    Raises:
        UsageError: another process is writing there, or the folder can't be made.
    """

    def __init__(
        self,
        path: Path,
        *,
        redactor: Redactor | None = None,
        keep: Keep = "full",
        words: set[str] | None = None,
    ) -> None:
        self.path = path
        self._redactor = redactor if redactor is not None else Redactor()
        self.keep = keep
        self._words = words or set()
        self._packer = zstandard.ZstdCompressor(level=3)
        self._synced = time.monotonic()
        try:
            private_dir(path)
            self._lock = _locked(path / "lock")
            try:
                self._log = _open_log(path / "log.jsonl")
            except OSError:
                os.close(self._lock)
                raise
        except OSError as error:
            raise UsageError(f"{path}: can't be written ({error.strerror})") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forces the log to the disk and lets go of the folder."""
        if self._log < 0:
            return
        os.fsync(self._log)
        os.close(self._log)
        os.close(self._lock)
        self._log = self._lock = -1

    def append(self, kind: str, value: Any, *, plain: bool = False) -> None:
        """Adds a log line: the fields of ``value`` (a record or a dict) beside kind, version and time.

        ``plain``: it is a dict without bytes in it, so that a short line needs no walk through its parts.
        """
        head = {"kind": kind, "v": FORMAT, "at": round(time.time(), 3)}
        data = self._short_line(head | value) if plain else None
        if data is None:
            built = value if plain else msgspec.to_builtins(value, builtin_types=(bytes, bytearray))
            fields = built if isinstance(built, dict) else {"value": built}
            data = msgspec.json.encode(head | self._fields(fields)) + b"\n"
        while data:
            data = data[os.write(self._log, data) :]
        now = time.monotonic()
        if now - self._synced > _SYNC_EVERY:
            os.fsync(self._log)
            self._synced = now

    def exchange(
        self, exchange: Exchange, *, request_body: dict[str, Any] | None = None, **about: Any
    ) -> None:
        """Logs an exchange, with what else is to be known of it (probe, attempt, verdict …).

        ``request_body``: stands in place of the request's body where that was logged in parts before
        (`truecall.store.history`), so that a history is not stored with each of its turns.
        """
        plain = msgspec.to_builtins(exchange, builtin_types=(bytes, bytearray))
        request = plain["request"]
        request["body"] = self._text(request.get("body", b"")) if request_body is None else request_body
        plain["body"] = body = self._text(plain.get("body", b""))
        text = _utf8(body) if isinstance(body, bytes) and len(body) <= INLINE else None
        if text is not None:
            plain["body"] = {"text": text}
        self.append("exchange", {**about, **plain}, plain=text is not None and request_body is not None)

    def _short_line(self, line: dict[str, Any]) -> bytes | None:
        """The line as it stands, where nothing of it is secret or long enough for the blobs; else None."""
        try:
            data = msgspec.json.encode(line)
        except UnicodeEncodeError:  # lone surrogates
            return None
        # A secret is known in its JSON form, too: what is not in the whole line is in none of its texts.
        sound = len(data) <= INLINE and self._redactor.data(data) == data
        return data + b"\n" if sound else None

    def kept(self, value: Any) -> Any:
        """A JSON value with its texts as ``keep`` has them."""
        if self.keep == "full":
            return value
        return shape_json(value, self._words) if self.keep == "shape" else {"kept": "none"}

    def write(self, name: str, value: Any) -> Path:
        """Writes ``value`` as JSON to the file ``name``, whole or not at all."""
        sound = values.plain(self._redactor.value(msgspec.to_builtins(value)))
        target = self.path / name
        write_private(target, msgspec.json.format(msgspec.json.encode(sound), indent=1) + b"\n")
        return target

    def put(self, data: bytes) -> str:
        """Keeps ``data`` (redacted) once; returns its digest."""
        data = self._redactor.data(data)
        digest = hashlib.sha256(data).hexdigest()
        target = blob_path(self.path, digest)
        if not target.exists():
            private_dir(target.parent)
            # Not forced to the disk one by one: a blob that a crash spoils is told by its digest.
            write_private(target, self._packer.compress(data), sync=False)
        return digest

    def _fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """A line's fields as they are stored; None: nested too deep to be looked through for secrets."""
        found: dict[str, Any] = {}
        for name, value in fields.items():
            try:
                found |= self._stored({name: value})
            except RecursionError:
                found[name] = None
        return found

    def _stored(self, value: Any) -> Any:
        """``value`` as it stands in a line: secrets replaced, long texts and bytes moved to the blobs."""
        if isinstance(value, dict):
            return {_sound(self._redactor.text(str(key))): self._stored(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._stored(item) for item in value]
        if isinstance(value, str):
            text = self._redactor.text(value)
            return {"blob": self.put(text.encode("utf-8", "replace"))} if len(text) > INLINE else _sound(text)
        if isinstance(value, bytes | bytearray):
            data = self._redactor.data(bytes(value))
            text_or_none = _utf8(data)
            if len(data) > INLINE or text_or_none is None:
                return {"blob": self.put(data), "size": len(data)}
            return {"text": text_or_none}
        return value

    def _text(self, body: bytes) -> Any:
        """A body by the choice of ``keep``. A stream has no shape: its pieces can't be masked one by one."""
        if self.keep == "full" or not body:
            return body
        facts = {
            "kept": self.keep,
            "size": len(body),
            "sha256": hashlib.sha256(self._redactor.data(body)).hexdigest(),
        }
        if self.keep == "none":
            return facts
        try:
            masked = shape_json(msgspec.json.decode(body), self._words)
        except (msgspec.DecodeError, RecursionError):
            return facts
        return facts | {"shape": masked}


def _locked(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise UsageError(f"{path.parent}: another truecall is writing there") from None
    return handle


def _open_log(path: Path) -> int:
    """The log, open for appending, without the torn line that a killed writer may have left."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    end = os.fstat(handle).st_size
    while end and os.pread(handle, 1, end - 1) != b"\n":
        start = max(0, end - 65536)
        end = start + os.pread(handle, end - start, start).rfind(b"\n") + 1
    os.ftruncate(handle, end)
    return handle


def _utf8(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _sound(text: str) -> str:
    """``text`` without lone surrogates, which JSON files can't hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
