"""HAR 1.2 files: the requests to a model's API that a browser or proxy recorded, with their responses.

Source: the HTTP Archive 1.2 specification. Entries of other traffic are passed over.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final

from truecall import wire
from truecall.records import Json
from truecall.sources.base import Bad, Head, Item, Options, Place, Turn, wanted
from truecall.sources.exchanges import result_ids, turn_of
from truecall.sources.files import elements, fields, read_whole
from truecall.wire.values import decode, integer, obj, text, word

NAME: Final = "har"


class HarSource:
    """See the module."""

    name = NAME
    lines = False

    def sniff(self, head: Head) -> bool:
        """Whether the file begins as a HAR file: an object with ``log`` that has entries or a creator."""
        start = head.data[:4096].lstrip()
        return (
            start.startswith(b"{")
            and b'"log"' in start[:200]
            and (b'"entries"' in head.data or b'"creator"' in start)
        )

    def read(self, data: Any, file: str, options: Options) -> Iterator[Item]:
        """The turns of one file."""
        log = fields(read_whole(str(data))).get("log")
        entries = fields(log).get("entries")
        if entries is None:
            yield Bad(place=Place(file=file), reason="is no HAR file: cut off or damaged")
            return
        results = result_ids(obj(decode(_posted(entry))) for entry in elements(entries))
        for number, entry in enumerate(elements(entries)):
            place = Place(file=file, entry=f"entry {number}")
            if not isinstance(entry, dict):
                yield Bad(place=place, reason="is no JSON object")
                continue
            found = _turn(entry, obj(decode(_posted(entry))), place, options, results)
            if found is not None:
                yield found


def _posted(entry: Json) -> str:
    return text(obj(obj(obj(entry).get("request")).get("postData")).get("text")) or ""


def _turn(
    entry: dict[str, Json], request: dict[str, Json], place: Place, options: Options, results: frozenset[str]
) -> Turn | None:
    url = word(obj(entry.get("request")).get("url"))
    response = obj(entry.get("response"))
    content = obj(response.get("content"))
    body = _body(content)
    api = wire.sniff(body, word(content.get("mimeType")), url) if body is not None else wire.by_path(url)
    if api is None or not (
        request.get("messages") or wire.by_path(url) or "choices" in obj(decode(body or b""))
    ):
        return None
    status = integer(response.get("status"))
    return turn_of(
        place=place,
        api=str(api),
        request=request,
        body=body,
        status=status or None,
        error=None if status else word(response.get("_error")) or "no response was recorded",
        results=results,
        tools=options.tools,
        fields=wanted(entry, options),
    )


def _body(content: dict[str, Json]) -> bytes | None:
    found = text(content.get("text"))
    if found is None:
        return None
    if content.get("encoding") != "base64":
        return found.encode("utf-8", "replace")
    try:
        return base64.b64decode(found)
    except (binascii.Error, ValueError):
        return found.encode("utf-8", "replace")
