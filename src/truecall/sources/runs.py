"""truecall's own run folders: ``log.jsonl`` with its blobs. Format: `truecall.store`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from truecall import wire
from truecall.errors import InputError
from truecall.records import Failure, FailureKind, Json
from truecall.run.history import Bodies
from truecall.sources.base import Bad, Head, Item, Options, Place, Turn, wanted
from truecall.sources.exchanges import result_ids, turn_of
from truecall.sources.files import filled, lines
from truecall.store import read_blob
from truecall.wire.values import decode, integer, obj, text, word

NAME: Final = "truecall"


class RunSource:
    """See the module. A whole folder is one piece of work: later requests tell what became of earlier calls."""

    name = NAME
    lines = False

    def sniff(self, head: Head) -> bool:
        """Whether the first line is one of a run folder's log."""
        first = head.first
        return (
            isinstance(first, dict) and isinstance(first.get("kind"), str) and "v" in first and "at" in first
        )

    def read(self, data: Any, file: str, options: Options) -> Iterator[Item]:
        """The exchanges of one run."""
        folder = Path(str(data)).parent
        bodies = Bodies(folder)
        results = result_ids(_requests(str(data), folder, bodies))
        for line in filled(lines(str(data))):
            place = Place(file=file, line=line.number, offset=line.offset)
            entry = decode(line.data)
            if not isinstance(entry, dict):
                yield Bad(place=place, reason="is no JSON object")
            elif entry.get("kind") == "exchange":
                try:
                    yield _turn(entry, folder, place, options, results, bodies)
                except InputError as error:
                    yield Bad(place=place, reason=str(error))


def _requests(path: str, folder: Path, bodies: Bodies) -> Iterator[dict[str, Json]]:
    for line in filled(lines(path)):
        entry = obj(decode(line.data))
        if entry.get("kind") == "exchange":
            try:
                yield _request(obj(entry.get("request")).get("body"), folder, bodies)
            except InputError:
                continue


def _request(stored: Json, folder: Path, bodies: Bodies) -> dict[str, Json]:
    """A request's body: a study keeps its messages once and names them, a proxy keeps what it saw."""
    named = obj(stored)
    if "head" in named and "fields" in named:
        return bodies.body(named)
    return obj(decode(_bytes(stored, folder)))


def _bytes(stored: Json, folder: Path) -> bytes:
    """A body as the log keeps it: in place, or in a blob; nothing where the run kept only its shape."""
    if isinstance(stored, str):
        return stored.encode("utf-8", "replace")
    digest = word(obj(stored).get("blob"))
    if digest is not None:
        return read_blob(folder, digest)
    return (text(obj(stored).get("text")) or "").encode("utf-8", "replace")


def _turn(
    entry: dict[str, Json],
    folder: Path,
    place: Place,
    options: Options,
    results: frozenset[str],
    bodies: Bodies,
) -> Turn:
    sent = obj(entry.get("request"))
    request = _request(sent.get("body"), folder, bodies)
    body = _bytes(entry.get("body"), folder)
    api = word(entry.get("api")) or wire.sniff(body, None, word(sent.get("url"))) or "openai.chat"
    return turn_of(
        place=place,
        api=api,
        request=request,
        body=body,
        status=integer(entry.get("status")),
        error=None,
        failure=_failure(obj(entry.get("failure"))),
        results=results,
        tools=options.tools,
        step=integer(entry.get("step")),
        episode=word(entry.get("episode")) or word(entry.get("item")),
        position=integer(entry.get("turn")),
        fields=wanted(entry, options),
    )


def _failure(value: dict[str, Json]) -> Failure | None:
    kind = value.get("kind")
    if kind not in set(FailureKind):
        return None
    return Failure(kind=FailureKind(kind), detail=word(value.get("detail")) or "")
