"""A stream changed on its way: evidence taken out, calls surfaced or hidden.

Events pass as they come. With ``surface`` they are held back from the first that may open a call on, and in any
case from the one on that says how the answer ended; with ``hide`` from the first of a call on. What was held goes
out as it came unless a call is delivered or hidden.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from truecall.proxy.forms import Event, Form, New
from truecall.proxy.strip import says_nothing, strip
from truecall.proxy.swap import hidden_text, plan
from truecall.records import Json, Response
from truecall.schema import compile_tools
from truecall.wire import RequestView, StreamReader

_BLANK_LINE: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE: Final = re.compile(rb"\n")
_SURE: Final = (  # what can open a call in some dialect, as the detector's sweep has it
    r"<(?=[A-Za-z_/|｜✿]|\Z)|\[(?=[A-Z{\"]|[A-Za-z_][\w.]*\(|[A-Za-z_][\w.]*\Z|\s*\Z)"
    r"|\{(?=\s*(?:\"|\Z))|`{3}|`{1,2}\Z|~~~|~{1,2}\Z|ction:|✿|to=functions"
)
_PARTIAL: Final = ("ction:", "to=functions.")


class StreamSwap:
    """One stream. ``changed``: the client gets other bytes than came; ``calls``: how many were swapped."""

    def __init__(self, form: Form, swap: str, view: RequestView, added: tuple[str, ...], engine: str) -> None:
        self.calls = 0
        self.changed = False
        self._form = form
        self._swap = swap
        self._view = view
        self._added = added
        self._engine = engine
        self._reader = StreamReader(view.api)
        self._buffer = b""
        self._end = _LINE if form.lines else _BLANK_LINE
        self._held: list[Event] = []
        self._holding = False
        self._given = 0  # characters of content that the client has
        self._out: list[bytes] = []
        names = compile_tools(view.tools).names
        self._names = tuple(f"{name}(" for name in names)
        marks = [re.escape(name) for name in self._names]
        self._opener = re.compile("|".join((_SURE, *marks)))

    def feed(self, piece: bytes) -> list[bytes]:
        """Takes bytes; what may go out now."""
        self._reader.feed(piece)
        self._buffer += piece
        out: list[bytes] = []
        at = 0
        for match in self._end.finditer(self._buffer):
            out += self._event(self._buffer[at : match.end()])
            at = match.end()
        self._buffer = self._buffer[at:]
        self._out += out
        return out

    def response(self) -> Response:
        """The stream read to its end."""
        return self._reader.finish()

    def held(self) -> list[bytes]:
        """What is held back, as it came."""
        held = [event.raw for event in self._held] + ([self._buffer] if self._buffer else [])
        self._held, self._buffer = [], b""
        self._out += held
        return held

    def last(self, response: Response, texts: list[str | None], number: int) -> list[bytes]:
        """What goes out at the end."""
        text = texts[0] if texts else None
        choice = response.choices[0] if response.choices else None
        view, given = self._view, self._given
        new: New | None = None
        if choice is None or self._swap == "none":
            return self.held()
        content = choice.content or ""
        if self._swap == "surface":
            found = plan(response, 0, view, text, given=given)
            if found is not None:
                new = New(content[:given] + found.rest, found.rest, found.calls, False, number)
        elif choice.tool_calls:
            rest = _after(hidden_text(choice, view, text), content, given)
            new = New(content[:given] + rest, rest, [], True, number)
        if new is None:
            return self.held()
        self.calls = len(new.calls) or len(choice.tool_calls)
        self.changed = True
        out = self._form.tail(self._held, new)
        self._held = []
        if self._buffer:
            out.append(self._buffer)
            self._buffer = b""
        self._out += out
        return out

    def sent(self) -> bytes:
        """All that went out."""
        return b"".join(self._out)

    # ------------------------------------------------------------- events

    def _event(self, raw: bytes) -> list[bytes]:
        value = self._payload(raw)
        if value is not None and self._added and strip(value, self._added, self._engine):
            self.changed = True
            if says_nothing(value):
                return []
            raw = self._form.frame(value)
        if self._swap == "none":
            return [raw]
        event = Event(raw, value, "" if value is None else self._form.content(value))
        self._held.append(event)
        if not self._holding:
            calls = self._swap == "hide" and value is not None and self._form.calls(value)
            self._holding = calls or self._form.ends(event)
        return [] if self._holding else self._release()

    def _release(self) -> list[bytes]:
        """The held events before the first that may open a call."""
        at = self._may_open("".join(event.content for event in self._held)) if self._swap == "surface" else -1
        size = count = 0
        while count < len(self._held):
            size += len(self._held[count].content)
            if 0 <= at < size:
                break
            count += 1
        while count and (value := self._held[count - 1].value) is not None and self._form.opens(value):
            count -= 1
        out = self._held[:count]
        del self._held[:count]
        for event in out:
            self._given += len(event.content)
            if event.value is not None:
                self._form.passed(event.value)
        return [event.raw for event in out]

    def _may_open(self, text: str) -> int:
        match = self._opener.search(text)
        at = match.start() if match else -1
        for literal in (*_PARTIAL, *self._names):  # one that is cut by the end of what has come
            for size in range(min(len(literal) - 1, len(text)), 0, -1):
                if text.endswith(literal[:size]):
                    at = len(text) - size if at < 0 else min(at, len(text) - size)
                    break
        return at

    def _payload(self, raw: bytes) -> dict[str, Json] | None:
        lines = [raw]
        if not self._form.lines:
            fields = [line for line in re.split(rb"\r\n|\n|\r", raw) if line.startswith(b"data:")]
            lines = [line[5:] for line in fields]
        if len(lines) != 1:
            return None
        try:
            value = msgspec.json.decode(lines[0])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
        return value if isinstance(value, dict) else None


def _after(calls: str, content: str, given: int) -> str:
    """The hidden calls as they follow what the client has of the content."""
    joint = "\n" if content.strip() and not content.endswith("\n") else ""
    return content[given:] + joint + calls
