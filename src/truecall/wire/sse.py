"""Server-sent events and NDJSON, bytes to payloads, at any cut.

Source: WHATWG HTML, "Server-sent events" (parsing an event stream). Beyond it: an event that the end of
the stream cuts short is given too, a bare JSON line is a payload (NDJSON, and servers that write an error
into an event stream as plain JSON), and the field ``error:`` of older llama.cpp servers is read as data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from truecall.records import Record

MAX_PAYLOAD: Final = 64 * 1024 * 1024
"""Default bound of one line or event, in bytes."""

DONE: Final = "[DONE]"
"""The payload with which OpenAI's streams end."""

_EOL = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_FIELDS = frozenset({b"data", b"event", b"id", b"retry", b"error"})


class Payload(Record, frozen=True, kw_only=True):
    """One event of a stream. ``bare``: it came as a JSON line of its own, not in a ``data:`` field."""

    text: str
    event: str | None = None
    bare: bool = False


class LineSplitter:
    """Bytes to lines (without their ends), at CRLF, CR or LF.

    Memory is bounded by ``limit`` bytes of pending line; a longer line is dropped up to its end and
    ``overflow`` set. Time is linear in the bytes fed, however they are cut.
    """

    def __init__(self, limit: int = MAX_PAYLOAD) -> None:
        self.overflow = False
        self._limit = limit
        self._pending: list[bytes] = []
        self._size = 0
        self._dropping = False
        self._after_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete."""
        if self._after_cr and data:
            self._after_cr = False
            if data[:1] == b"\n":
                data = data[1:]
        if not data:
            return []
        if data[-1:] == b"\r":
            self._after_cr = True  # an LF to come belongs to this CR
        head, *rest = _EOL.split(data)
        self._keep(head)
        lines: list[bytes] = []
        for piece in rest:
            lines.extend(self._line())
            self._keep(piece)
        return lines

    def finish(self) -> list[bytes]:
        """The last line when no line end followed it."""
        return self._line() if self._size else []

    def _keep(self, piece: bytes) -> None:
        if self._dropping or not piece:
            return
        self._size += len(piece)
        if self._size > self._limit:
            self.overflow = self._dropping = True
            self._pending.clear()
            self._size = 0
        else:
            self._pending.append(piece)

    def _line(self) -> list[bytes]:
        if self._dropping:
            self._dropping = False
            return []
        line = b"".join(self._pending)
        self._pending.clear()
        self._size = 0
        return [line]


class PayloadParser:
    """Bytes of an event stream or of NDJSON to payloads.

    ``invalid_utf8``: some bytes had to be replaced. ``overflow``: something longer than ``limit`` bytes
    was dropped. ``odd_lines``: lines that are neither fields, comments nor JSON.
    """

    def __init__(self, limit: int = MAX_PAYLOAD) -> None:
        self.invalid_utf8 = False
        self.odd_lines = 0
        self._limit = limit
        self._lines = LineSplitter(limit)
        self._first = True
        self._data: list[str] = []
        self._size = 0
        self._event: str | None = None
        self._dropped = False

    @property
    def overflow(self) -> bool:
        """Whether a line or an event passed the bound."""
        return self._dropped or self._lines.overflow

    def feed(self, data: bytes) -> list[Payload]:
        """The payloads that these bytes complete."""
        return self._take(self._lines.feed(data))

    def finish(self) -> list[Payload]:
        """What the end of the stream completes: an event without its blank line, a line without its end."""
        return self._take(self._lines.finish()) + self._dispatch()

    def _take(self, lines: Iterable[bytes]) -> list[Payload]:
        out: list[Payload] = []
        for line in lines:
            if self._first:
                self._first = False
                line = line.removeprefix(_BOM)
            if not line.strip():
                out += self._dispatch()
            elif line.lstrip()[:1] in (b"{", b"["):
                out += self._dispatch()
                out.append(Payload(text=self._text(line), bare=True))
            else:
                out += self._field(line)
        return out

    def _field(self, line: bytes) -> list[Payload]:
        name, _, value = line.partition(b":")
        if not name:
            return []  # a comment
        if name not in _FIELDS:
            self.odd_lines += 1
            return []
        value = value.removeprefix(b" ")
        if name == b"event":
            self._event = self._text(value)
        elif name in (b"data", b"error"):
            if name == b"error":
                self._event = "error"
            self._size += len(value)
            if self._size > self._limit:
                self._dropped = True
                self._data.clear()
            else:
                self._data.append(self._text(value))
        return []

    def _dispatch(self) -> list[Payload]:
        data, event = self._data, self._event
        self._data, self._event, self._size = [], None, 0
        return [Payload(text="\n".join(data), event=event)] if data else []

    def _text(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.invalid_utf8 = True
            return line.decode("utf-8", "replace")


def looks_like_events(head: bytes) -> bool:
    """Whether a body begins as an event stream does."""
    line = _EOL.split(head.removeprefix(_BOM).lstrip(), maxsplit=1)[0]
    name, colon, value = line.partition(b":")
    if name == b"error":  # else any plain text of an error would do
        return value.lstrip()[:1] == b"{"
    return bool(colon) and (not name or name in _FIELDS)


def frame(payloads: Iterable[str]) -> bytes:
    """Payload texts as the bytes of an event stream."""
    out: list[str] = []
    for payload in payloads:
        out.extend(f"data: {line}\n" for line in payload.split("\n"))
        out.append("\n")
    return "".join(out).encode("utf-8", "replace")
