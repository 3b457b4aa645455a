"""Request bodies in a run's log without their histories stored again and again.

A body is its fields (model, tools, sampling: the same over an arm) and its messages. Fields are logged once by
digest. Messages form a chain: an intent holds only those that were added since the last request of its episode,
and the digest of the chain before them; ``head`` is the digest with them. An 800-turn episode stores each
message once. `Bodies` puts a body together again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from truecall.errors import InputError
from truecall.records import Json
from truecall.store.reading import read_log, whole

_encode = msgspec.json.Encoder().encode


class Step(msgspec.Struct, frozen=True):
    """What one request adds to its episode's chain."""

    prev: str
    messages: list[Json]
    head: str


class Chain:
    """The messages of one episode that the log holds already."""

    def __init__(self) -> None:
        self._heads = [""]  # after 0, 1, 2 … messages
        self._logged = 0

    def step(self, messages: Sequence[Json]) -> Step:
        """What is new in ``messages``, which go on from those of the last call."""
        for message in messages[len(self._heads) - 1 :]:
            state = hashlib.sha256(self._heads[-1].encode())
            state.update(_encode(message))
            self._heads.append(state.hexdigest()[:32])
        step = Step(self._heads[self._logged], list(messages[self._logged :]), self._heads[len(messages)])
        self._logged = len(messages)
        return step

    def head(self, messages: Sequence[Json]) -> str:
        """The digest of a history that is not to be logged (it is there from an earlier run)."""
        fresh = Chain()
        fresh._heads, fresh._logged = list(self._heads), self._logged
        return fresh.step(messages).head


def fields_digest(fields: dict[str, Json]) -> str:
    """The digest of a body's fields."""
    return hashlib.sha256(_encode(fields)).hexdigest()[:32]


Piece = Callable[[str], dict[str, Any]]
"""The log line, ``intent`` or ``fields``, of a digest; {} where the log has none."""


def body_of_ref(path: Path, ref: dict[str, Any], piece: Piece) -> dict[str, Json]:
    """The body of a request: fields, messages, and the fields that truecall added for evidence.

    ``ref``: what its exchange says of it.

    Raises:
        InputError: the log lacks a part of it.
    """
    parts: list[list[Json]] = []
    head = ref.get("head", "")
    while head:
        step = piece(head)
        if not isinstance(step.get("messages"), list):
            raise InputError(f"{path}: the messages of a request are missing from the log")
        parts.append(step["messages"])
        head = step.get("prev", "")
    fields = piece(ref.get("fields", "")).get("fields")
    if not isinstance(fields, dict):
        raise InputError(f"{path}: the fields of a request are missing from the log")
    messages = [message for part in reversed(parts) for message in part]
    body: dict[str, Json] = whole(path, {**fields, "messages": messages, **(ref.get("evidence") or {})})
    return body


class Bodies:
    """The request bodies of a run folder, by what an exchange's ``request.body`` says of them.

    One pass over the log is made at the beginning; messages are kept as the log has them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pieces: dict[str, dict[str, Any]] = {}
        for line in read_log(path):
            if line.get("kind") == "intent" and "head" in line:
                self._pieces.setdefault(line["head"], {name: line.get(name) for name in ("prev", "messages")})
            elif line.get("kind") == "fields":
                self._pieces.setdefault(line["digest"], {"fields": line["fields"]})

    def body(self, ref: dict[str, Any]) -> dict[str, Json]:
        """See `body_of_ref`."""
        return body_of_ref(self._path, ref, lambda digest: self._pieces.get(digest, {}))
