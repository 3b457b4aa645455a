"""What every source gives: turns, each with its place; what can't be read is a counted bad entry.

A source reads one log format of one tool. It tells the format from the content, keeps raw text and tools, and
fills in nothing: a field that the log does not hold is None, which means "unknown".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import msgspec

from truecall.records import Failure, Json, Record, ToolCall, Usage


class Place(Record, frozen=True):
    """Where a turn stands. ``line`` counts from 1, ``offset`` is in bytes; ``entry`` names it inside the file.

    ``line`` is relative to the block that was read until the scan has added the blocks before it.
    """

    file: str
    line: int | None = None
    offset: int | None = None
    entry: str = ""


class Bad(Record, frozen=True):
    """Something in a log that can't be read as what it should be. Counted and named, never fatal."""

    place: Place
    reason: str


class Turn(Record, frozen=True):
    """One model response in somebody's log. None is unknown; an empty string, list or tuple is what stood there.

    ``text`` is what the model wrote: before the stack's parser where ``raw`` is True, else the interface's
    content. ``content`` is the interface's content beside a raw text. ``surfaced``: the structured calls; None
    where the log does not say. ``error`` stands for a response that never came (``status`` is HTTP's).
    ``executed`` / ``observed``: a call of this turn was run / its result came back to the model. ``capped``: the
    log itself cut the text. ``stripped``: special tokens were left out of it. ``body`` (of the API ``api``) is
    the response as received, ``request`` the request body, where the log kept them; they are then asked first;
    ``failure``: how the transport broke.
    ``position`` counts the model's turns in an episode from 0. ``role``: ``agent``, or ``user`` / ``judge`` for a
    simulator's or grader's turn, which is never eligible. ``fields`` holds what else can be grouped by.
    """

    place: Place
    text: str | None = None
    raw: bool = False
    content: str | None = None
    reasoning: str | None = None
    tools: Json = None
    tool_choice: Json = None
    surfaced: tuple[ToolCall, ...] | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    error: str | None = None
    status: int | None = None
    executed: bool | None = None
    observed: bool | None = None
    solved: bool | None = None
    model: str | None = None
    step: int | None = None
    episode: str | None = None
    position: int | None = None
    role: str = "agent"
    capped: bool = False
    stripped: bool = False
    body: Json = None
    api: str | None = None
    request: dict[str, Json] | None = None
    failure: Failure | None = None
    fields: dict[str, Json] = msgspec.field(default_factory=dict)


Item = Turn | Bad


class Head(NamedTuple):
    """The beginning of a file, for telling its format: what it is called, and up to 256 kB of its content.

    ``first`` is the first JSON value of the content (of a JSON-lines file: its first line), or None where it
    ends neither inside the head nor with a first line of up to 8 MB.
    """

    name: str
    data: bytes
    first: Json


class Unit(NamedTuple):
    """A piece of work: a whole file, or the lines that begin in the bytes [start, end) of a file of lines.

    ``keep`` is the share of entries to read, ``salt`` what the choice depends on beside their place.
    """

    path: str
    source: str
    start: int = 0
    end: int | None = None
    keep: float = 1.0


class Source(Protocol):
    """One log format. ``lines``: the file is a sequence of lines that can be read in blocks."""

    @property
    def name(self) -> str: ...

    @property
    def lines(self) -> bool: ...

    def sniff(self, head: Head) -> bool:
        """Whether a file that begins so is of this format. Never raises."""
        ...

    def read(self, data: Any, file: str, options: Options) -> Iterator[Item]:
        """The turns of a file. ``data``: an iterable of `Line` for a source of lines, else a path."""
        ...


class Line(NamedTuple):
    """One line of a file without its end: number from 1, byte offset, bytes."""

    number: int
    offset: int
    data: bytes


class Options(Record, frozen=True):
    """What the user adds to a log. ``tools``: the tools of turns whose log holds none. ``fields``: asked for."""

    tools: Json = None
    fields: tuple[str, ...] = ()


KNOWN_FIELDS = frozenset({"model", "file", "step", "episode", "position", "role", "finish_reason", "status"})
"""Fields that every turn can be grouped by; others are looked up in the entry's own top level."""


def wanted(entry: Any, options: Options) -> dict[str, Json]:
    """The entry's own values of the fields that were asked for; ``a.b`` reaches into objects."""
    found: dict[str, Json] = {}
    for name in options.fields:
        value = entry
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found[name] = value
    return found
