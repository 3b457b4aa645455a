"""Request bodies in a run's log without their histories stored again and again.

A body is its fields (model, tools, sampling: the same over an arm) and its messages. Fields are logged once by
digest. Messages form a chain: an intent holds only those that were added since the last request of its episode,
and the digest of the chain before them; ``head`` is the digest with them. An 800-turn episode stores each
message once. `Bodies` puts a body together again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from truecall.errors import InputError
from truecall.records import Json
from truecall.store import read_log, whole

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


class Bodies:
    """The request bodies of a run folder, by what an exchange's ``request.body`` says of them.

    One pass over the log is made at the beginning; messages are kept as the log has them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._steps: dict[str, tuple[str, list[Json]]] = {}
        self._fields: dict[str, dict[str, Json]] = {}
        for line in read_log(path):
            if line.get("kind") == "intent" and isinstance(line.get("messages"), list):
                self._steps.setdefault(line["head"], (line["prev"], line["messages"]))
            elif line.get("kind") == "fields":
                self._fields.setdefault(line["digest"], line["fields"])

    def body(self, ref: dict[str, Any]) -> dict[str, Json]:
        """The body of a request: fields, messages, and the fields that truecall added for evidence.

        Raises:
            InputError: the log lacks a part of it.
        """
        parts: list[list[Json]] = []
        head = ref.get("head", "")
        while head:
            step = self._steps.get(head)
            if step is None:
                raise InputError(f"{self._path}: the messages of a request are missing from the log")
            parts.append(step[1])
            head = step[0]
        fields = self._fields.get(ref.get("fields", ""))
        if fields is None:
            raise InputError(f"{self._path}: the fields of a request are missing from the log")
        messages = [message for part in reversed(parts) for message in part]
        body: dict[str, Json] = whole(self._path, {**fields, "messages": messages, **ref.get("evidence", {})})
        return body
