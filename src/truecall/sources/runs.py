"""truecall's own run folders: ``log.jsonl`` with its blobs. Format: `truecall.store`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from truecall import wire
from truecall.errors import InputError
from truecall.evidence import without_end
from truecall.records import Failure, FailureKind, Json
from truecall.sources.base import Bad, Head, Item, Options, Place, Turn, wanted
from truecall.sources.exchanges import result_ids, turn_of
from truecall.sources.files import filled, lines
from truecall.store import body_of, whole
from truecall.store.history import Bodies
from truecall.wire.values import decode, integer, obj, word

NAME: Final = "truecall"
_Key = tuple[str, ...]


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
        """The exchanges of one run; not those that were only refused because of a field of ours."""
        folder = Path(str(data)).parent
        bodies = Bodies(folder)
        texts: dict[_Key, Json] = {}
        results = result_ids(_requests(str(data), folder, bodies, texts))
        for line in filled(lines(str(data))):
            place = Place(file=file, line=line.number, offset=line.offset)
            entry = decode(line.data)
            if not isinstance(entry, dict):
                yield Bad(place=place, reason="is no JSON object")
            elif entry.get("kind") == "exchange" and not entry.get("superseded"):
                try:
                    yield _turn(entry, folder, place, options, results, bodies, texts.get(_key(entry)))
                except InputError as error:
                    yield Bad(place=place, reason=str(error))


def _key(entry: dict[str, Json]) -> _Key:
    """Which exchange a line speaks of: a proxy's number, or the place in a study."""
    return tuple(repr(entry.get(name)) for name in ("n", "arm", "item", "seed", "sample", "turn", "attempt"))


def _requests(path: str, folder: Path, bodies: Bodies, texts: dict[_Key, Json]) -> Iterator[dict[str, Json]]:
    """All requests; ``texts`` gets what the first answers' token ids say, which the log learns after the exchange."""
    for line in filled(lines(path)):
        entry = obj(decode(line.data))
        try:
            if entry.get("kind") == "exchange":
                yield _request(obj(entry.get("request")).get("body"), folder, bodies)
            elif entry.get("kind") == "detokenized":
                texts[_key(entry)] = whole(folder, entry.get("text"))
            elif entry.get("kind") == "texts" and isinstance(several := entry.get("texts"), list):
                texts[_key(entry)] = whole(folder, several[0]) if several else None
        except InputError:
            continue


def _request(stored: Json, folder: Path, bodies: Bodies) -> dict[str, Json]:
    """A request's body: a study keeps its messages once and names them, a proxy keeps what it saw."""
    named = obj(stored)
    if "head" in named and "fields" in named:
        return bodies.body(named)
    return obj(decode(body_of(folder, stored)))


def _turn(
    entry: dict[str, Json],
    folder: Path,
    place: Place,
    options: Options,
    results: frozenset[str],
    bodies: Bodies,
    wrote: Json,
) -> Turn:
    sent = obj(entry.get("request"))
    request = _request(sent.get("body"), folder, bodies)
    body = body_of(folder, entry.get("body"))
    api = word(entry.get("api")) or wire.sniff(body, None, word(sent.get("url"))) or "openai.chat"
    turn = turn_of(
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
        position=None if (number := integer(entry.get("turn"))) is None else number - 1,
        fields=wanted(entry, options),
    )
    if not isinstance(wrote, str):
        return turn
    return msgspec.structs.replace(turn, text=without_end(wrote), raw=True, content=turn.text)


def _failure(value: dict[str, Json]) -> Failure | None:
    kind = value.get("kind")
    if kind not in set(FailureKind):
        return None
    return Failure(kind=FailureKind(kind), detail=word(value.get("detail")) or "")
