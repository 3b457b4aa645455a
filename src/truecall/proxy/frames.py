"""What the passing side hands to the recorder: one frame an event, as msgpack."""

from __future__ import annotations

from typing import Final

import msgspec

RawHeaders = list[tuple[bytes, bytes]]
Pieces = list[tuple[float, int]]


class Intent(msgspec.Struct, array_like=True, tag="i", frozen=True):
    """A request is about to be passed on. ``at``: POSIX time."""

    number: int
    at: float
    method: bytes
    target: bytes


class Passed(msgspec.Struct, array_like=True, tag="x"):
    """An exchange that has ended, as it was passed.

    Bodies are as received, their transfer coding undone and nothing else. ``received`` counts the response's
    body bytes even where not all of them are kept. ``failure`` is a ``FailureKind`` value or "". ``sent``:
    what the client was given instead of ``body``, where that differs. ``added``: fields that were put into the
    request to get evidence. ``delivered``: calls that truecall put into the answer (-n: took out of it).
    ``unswapped``: why the interface could not be swapped here, though that was asked for.
    """

    number: int
    started_at: float
    method: bytes
    target: bytes
    headers: RawHeaders
    request: bytes
    status: int | None
    fields: RawHeaders
    body: bytes
    received: int
    chunks: Pieces
    first_byte: float | None
    total: float
    failure: str = ""
    detail: str = ""
    client_gone: bool = False
    role: bytes = b""
    sent: bytes | None = None
    added: dict[str, object] | None = None
    delivered: int = 0
    texts: list[str | None] | None = None  # the choices' token ids as text
    awaits: bool = False  # the text of the token ids comes with a later frame
    superseded: bool = False  # refused because of ``added``; the request was sent again without it
    unswapped: str = ""


class Text(msgspec.Struct, array_like=True, tag="t", frozen=True):
    """The text of the token ids of an exchange's choices, special tokens kept."""

    number: int
    texts: list[str | None]


class Lost(msgspec.Struct, array_like=True, tag="l", frozen=True):
    """Exchanges that were passed and could not be kept."""

    count: int


class End(msgspec.Struct, array_like=True, tag="e", frozen=True):
    """Nothing more comes. ``drain`` False: leave judging for later."""

    drain: bool = True


Frame = Intent | Passed | Text | Lost | End

encode: Final = msgspec.msgpack.Encoder().encode
decode: Final = msgspec.msgpack.Decoder(Frame).decode
