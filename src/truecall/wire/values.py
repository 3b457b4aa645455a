"""Decoding of hostile JSON, and readings of single fields that never raise.

A getter gives None for a value of the wrong type; it coerces only where the meaning is beyond doubt
(``"12"`` and ``12.0`` are the integer 12).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from truecall.records import Json


class _Nothing:
    """The type of ``NOTHING``: what a text that is no JSON decodes to (``null`` decodes to None)."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()

_MAX_INT = 1 << 63
_LENIENT = json.JSONDecoder(strict=False)


def decode(text: str | bytes) -> Json | _Nothing:
    """The JSON value of a text, or ``NOTHING``.

    Takes what lenient clients take beside strict JSON: NaN and Infinity, raw control characters in
    strings, lone surrogates. Bytes that are no UTF-8 are read with replacement characters.
    """
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):  # msgspec's errors and UnicodeError are ValueErrors
        pass
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = text.lstrip("\ufeff")
    if not text.lstrip()[:1]:
        return NOTHING
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return NOTHING


def first_json(text: str, begin: int) -> Json:
    """The JSON value that begins at ``begin``, whatever follows it; None where there is none."""
    try:
        return _LENIENT.raw_decode(text, begin)[0]
    except (ValueError, RecursionError):
        return None


def is_json(text: str) -> bool:
    """Whether the whole text is one JSON value."""
    return not isinstance(decode(text), _Nothing)


def encode(value: Json) -> str:
    """A decoded JSON value as compact text, whatever it holds."""
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, TypeError, RecursionError, OverflowError):
        pass
    try:
        return json.dumps(value, default=str)
    except (ValueError, TypeError, RecursionError):
        return "null"


def obj(value: Json) -> dict[str, Json]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Json) -> list[Json]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def objects(value: Json) -> Iterator[dict[str, Json]]:
    """The objects of an array, other elements left out; an object alone counts as an array of one."""
    if isinstance(value, dict):
        yield value
    for item in items(value):
        if isinstance(item, dict):
            yield item


def text(value: Json) -> str | None:
    """A string, free of lone surrogates."""
    return join((value,)) if isinstance(value, str) else None


def word(value: Json) -> str | None:
    """A string that says something: not empty."""
    return text(value) or None


def integer(value: Json) -> int | None:
    """An integer of 64 bits, also when it came as an integral float or as digits."""
    if isinstance(value, bool):
        return None
    digits = isinstance(value, str) and len(value) < 20 and value.isascii() and value.isdigit()
    if digits or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    return value if isinstance(value, int) and -_MAX_INT <= value < _MAX_INT else None


def count(value: Json) -> int | None:
    """A count: an integer that is not negative."""
    number = integer(value)
    return number if number is not None and number >= 0 else None


def ids(value: Json) -> tuple[int, ...] | None:
    """A list of token ids; None when it is no list or holds anything else."""
    if not isinstance(value, list) or not all(
        type(item) is int and -_MAX_INT <= item < _MAX_INT for item in value
    ):
        return None
    return tuple(value)


def join(pieces: Iterable[str]) -> str:
    """The pieces as one text. Surrogate pairs cut between pieces are made whole, lone ones replaced."""
    whole = "".join(pieces)
    if whole.isascii():
        return whole
    try:
        whole.encode()
    except UnicodeEncodeError:
        return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole


def plain(value: Json) -> Json:
    """The value with lone surrogates in its strings replaced, so that it can be written as UTF-8."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return _scrub(value)
    except (ValueError, TypeError, RecursionError, OverflowError):
        return encode(value)
    return value


def _scrub(value: Json) -> Json:
    if isinstance(value, str):
        return join((value,))
    if isinstance(value, list | tuple):
        return [_scrub(item) for item in value]
    if isinstance(value, dict):
        return {join((key,)): _scrub(item) for key, item in value.items()}
    return value
