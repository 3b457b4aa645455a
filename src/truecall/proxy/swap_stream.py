"""A chat stream changed on its way: evidence taken out, calls surfaced or hidden.

Events pass as they come. With ``surface`` they are held back from the first that may open a call on, and in any
case from the finish_reason on; with ``hide`` from the first tool-call delta on. What was held goes out as it came
unless a call is delivered or hidden.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from truecall.proxy.strip import says_nothing, strip
from truecall.proxy.swap import Plan, hidden_text, plan, structured
from truecall.records import Api, Choice, Json, Response
from truecall.schema import compile_tools
from truecall.wire import RequestView, StreamReader
from truecall.wire.values import objects

_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_HEAD: Final = ("id", "object", "created", "model", "system_fingerprint")
_SURE: Final = (  # what can open a call in some dialect, as the detector's sweep has it
    r"<(?=[A-Za-z_/|｜✿]|\Z)|\[(?=[A-Z{\"]|[A-Za-z_][\w.]*\(|[A-Za-z_][\w.]*\Z|\s*\Z)"
    r"|\{(?=\s*(?:\"|\Z))|`{3}|`{1,2}\Z|~~~|~{1,2}\Z|ction:|✿|to=functions"
)
_PARTIAL: Final = ("ction:", "to=functions.")


class _Event(NamedTuple):
    raw: bytes
    value: dict[str, Json] | None
    content: str


class StreamSwap:
    """One stream. ``changed``: the client gets other bytes than came; ``calls``: how many were swapped."""

    def __init__(self, swap: str, view: RequestView | None, added: tuple[str, ...], engine: str) -> None:
        self.calls = 0
        self.changed = False
        self._swap = swap if view is not None and (view.n or 1) == 1 else "none"
        self._view = view
        self._added = added
        self._engine = engine
        self._reader = StreamReader(Api.OPENAI_CHAT.value)
        self._buffer = b""
        self._held: list[_Event] = []
        self._holding = False
        self._given = 0  # characters of content that the client has
        self._out: list[bytes] = []
        names = compile_tools(view.tools if view is not None else None).names
        self._names = tuple(f"{name}(" for name in names)
        marks = [re.escape(name) for name in self._names]
        self._opener = re.compile("|".join((_SURE, *marks)))

    def feed(self, piece: bytes) -> list[bytes]:
        """Takes bytes; what may go out now."""
        self._reader.feed(piece)
        self._buffer += piece
        out: list[bytes] = []
        at = 0
        for match in _END.finditer(self._buffer):
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
        view = self._view
        if view is None or choice is None or self._swap == "none":
            return self.held()
        found: Plan | None = None
        if self._swap == "surface":
            found = plan(response, 0, view, text, given=self._given)
        elif choice.tool_calls:
            found = Plan([], _after(hidden_text(choice, view, text), choice, self._given))
        if found is None:
            return self.held()
        self.calls = len(found.calls) or len(choice.tool_calls)
        self.changed = True
        out = self._rewritten(found, number, len(choice.tool_calls))
        self._out += out
        return out

    def sent(self) -> bytes:
        """All that went out."""
        return b"".join(self._out)

    # ------------------------------------------------------------- events

    def _event(self, raw: bytes) -> list[bytes]:
        value = _payload(raw)
        if value is not None and self._added and strip(value, self._added, self._engine, chunk=True):
            self.changed = True
            if says_nothing(value):
                return []
            raw = b"data: " + msgspec.json.encode(value) + b"\n\n"
        if self._swap == "none":
            return [raw]
        event = _Event(raw, value, _content(value))
        self._held.append(event)
        if not self._holding:
            self._holding = self._ends(event) or (self._swap == "hide" and _has_calls(value))
        if self._holding:
            return []
        return self._release()

    def _release(self) -> list[bytes]:
        """The held events before the first that may open a call."""
        at = self._may_open("".join(event.content for event in self._held)) if self._swap == "surface" else -1
        out: list[bytes] = []
        while self._held and (at < 0 or len(self._held[0].content) <= at):
            event = self._held.pop(0)
            if at >= 0:
                at -= len(event.content)
            self._given += len(event.content)
            out.append(event.raw)
        return out

    def _may_open(self, text: str) -> int:
        match = self._opener.search(text)
        at = match.start() if match else -1
        for literal in (*_PARTIAL, *self._names):  # one that is cut by the end of what has come
            for size in range(min(len(literal) - 1, len(text)), 0, -1):
                if text.endswith(literal[:size]):
                    at = len(text) - size if at < 0 else min(at, len(text) - size)
                    break
        return at

    def _ends(self, event: _Event) -> bool:
        if event.value is None:
            return b"[DONE]" in event.raw
        choices = objects(event.value.get("choices"))
        return any(choice.get("finish_reason") is not None for choice in choices)

    def _rewritten(self, found: Plan, number: int, first: int) -> list[bytes]:
        """The held events with the content replaced and the calls put before the finish_reason."""
        base = next((event.value for event in self._held if event.value is not None), {})
        head: dict[str, Json] = {key: base[key] for key in _HEAD if key in base}
        new: list[bytes] = []
        if found.rest:
            new.append(_chunk(head, {"content": found.rest}))
        for index, call in enumerate(structured(found.calls, number, 0, first), first):
            new.append(_chunk(head, {"tool_calls": [{"index": index, **call}]}))
        finish, gone = ("tool_calls", ("content",)) if found.calls else ("stop", ("content", "tool_calls"))
        out: list[bytes] = []
        placed = False
        for event in self._held:
            value = event.value
            ends = self._ends(event)
            if not placed and ends:
                out += new
                placed = True
            if value is None:
                out.append(event.raw)
                continue
            kept = _emptied(value, finish, gone)
            if kept is not None:
                out.append(kept if kept != b"" else event.raw)
        self._held = []
        if not placed:
            out += new
        if self._buffer:
            out.append(self._buffer)
            self._buffer = b""
        return out


def _payload(raw: bytes) -> dict[str, Json] | None:
    lines = [line for line in re.split(rb"\r\n|\n|\r", raw) if line.startswith(b"data:")]
    if len(lines) != 1:
        return None
    try:
        value = msgspec.json.decode(lines[0][5:])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return value if isinstance(value, dict) else None


def _deltas(value: dict[str, Json] | None) -> list[dict[str, Json]]:
    choices = objects((value or {}).get("choices"))
    return [delta for choice in choices if isinstance(delta := choice.get("delta"), dict)]


def _content(value: dict[str, Json] | None) -> str:
    return "".join(d["content"] for d in _deltas(value) if isinstance(d.get("content"), str))


def _has_calls(value: dict[str, Json] | None) -> bool:
    return any(delta.get("tool_calls") for delta in _deltas(value))


def _emptied(value: dict[str, Json], finish: str, gone: tuple[str, ...]) -> bytes | None:
    """A held chunk without the delta fields in ``gone``; None: nothing is left of it; b"": nothing of it changes."""
    changed = left = False
    for choice in objects(value.get("choices")):
        delta = choice.get("delta")
        if isinstance(delta, dict):
            for key in gone:
                changed |= delta.pop(key, None) is not None
            left |= any(item is not None for item in delta.values())
        if choice.get("finish_reason") is not None:
            left = True
            if choice["finish_reason"] in ("stop", "tool_calls", "length"):
                changed |= choice["finish_reason"] != finish
                choice["finish_reason"] = finish
    if not changed:
        return b""
    if not left and value.get("usage") is None:
        return None
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def _chunk(head: dict[str, Json], delta: dict[str, Json]) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return b"data: " + msgspec.json.encode({**head, "choices": [choice]}) + b"\n\n"


def _after(calls: str, choice: Choice, given: int) -> str:
    """The hidden calls as they follow what the client has of the content."""
    content = choice.content or ""
    rest = content[given:]
    joint = "\n" if content.strip() and not content.endswith("\n") else ""
    return rest + joint + calls
