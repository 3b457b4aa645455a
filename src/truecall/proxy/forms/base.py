"""What a swap has to know of an API's answers: where content and calls stand, whole and in a stream."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import msgspec

from truecall.records import Call, Json
from truecall.stacks.base import Stack


class Event(NamedTuple):
    """One event of a stream: its bytes, its payload (None: no JSON object), the content that it adds."""

    raw: bytes
    value: dict[str, Json] | None
    content: str


class New(NamedTuple):
    """What an answer is to say instead.

    ``content`` is its whole text; ``rest`` what of it follows the text that a stream's client has already.
    ``calls`` are added; with ``hide`` those that the answer has are taken out. ``number``: of the exchange.
    """

    content: str
    rest: str
    calls: list[Call]
    hide: bool
    number: int

    def ident(self, place: int, choice: int = 0) -> str:
        """The id of the call at this place: 24 hexadecimal digits, the same for the same exchange."""
        return hashlib.sha256(f"{self.number}.{choice}.{place}".encode()).hexdigest()[:24]


class Form(ABC):
    """One API's way to write an answer. One object for one exchange: it follows the events of its stream."""

    lines: ClassVar[bool] = False
    """Whether a stream is JSON lines; else it is server-sent events."""

    def asks(self, stack: Stack, body: dict[str, Json]) -> dict[str, Json]:
        """Fields to put into the request so that the answer carries what the model wrote."""
        return {}

    # ------------------------------------------------------------- whole answers

    @abstractmethod
    def blank(self, text: str, model: str | None) -> dict[str, Json]:
        """A whole answer that says this text and nothing else."""

    @abstractmethod
    def whole(self, value: dict[str, Json], choice: int, new: New) -> None:
        """Changes a decoded answer in place."""

    # ------------------------------------------------------------- streams

    @abstractmethod
    def content(self, value: dict[str, Json]) -> str:
        """The content that an event adds."""

    @abstractmethod
    def calls(self, value: dict[str, Json]) -> bool:
        """Whether an event holds a call or a part of one."""

    @abstractmethod
    def ends(self, event: Event) -> bool:
        """Whether an event says how the answer ended, or comes after that."""

    def opens(self, value: dict[str, Json]) -> bool:
        """Whether an event only announces content: it is held back with the content that follows."""
        return False

    def passed(self, value: dict[str, Json]) -> None:  # noqa: B027 - most APIs need not follow
        """An event has gone to the client."""

    @abstractmethod
    def tail(self, held: list[Event], new: New) -> list[bytes]:
        """The events that take the place of those held."""

    def frame(self, value: dict[str, Json]) -> bytes:
        """A payload as the bytes of an event."""
        return b"data: " + msgspec.json.encode(value) + b"\n\n"


def named_event(value: dict[str, Json]) -> bytes:
    """A payload as an event that is named by the payload's type."""
    name = "".join(str(value.get("type")).split()).encode("utf-8", "replace")
    return b"event: %b\ndata: %b\n\n" % (name, msgspec.json.encode(value))


def arguments_text(call: Call) -> str:
    """A call's arguments as JSON text."""
    return msgspec.json.encode(call.arguments or {}).decode()
