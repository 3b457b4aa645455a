"""A pack: one page for one annotator. It holds texts and tools, and nothing of what the detector said.

The data stand in the page as ASCII JSON; their SHA-256 binds every answer to these bytes. Ids are random and the
order is shuffled for each pack by the system's own randomness, so that neither says anything of a text's stratum.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from random import SystemRandom
from typing import Any, Final

import msgspec
from markupsafe import Markup

from truecall.annotate import protocol
from truecall.annotate.records import FORMAT, OTHER_TOOL, UNREADABLE, Item, Passage, Toolset
from truecall.pages import one_file
from truecall.records import Record

_PACKAGE: Final = "truecall.annotate"


class Pack(Record, frozen=True):
    """A page, the digest of its data, and its ids with the numbers of the items behind them."""

    html: str
    sha256: str
    ids: dict[str, int]


def item_digest(passages: Sequence[Passage], tools: Toolset | None) -> str:
    """The digest of all that is shown of an item."""
    return protocol.digest(msgspec.to_builtins((passages, tools)))


def make_pack(
    name: str,
    items: Sequence[Item],
    chosen: Sequence[int],
    toolsets: Sequence[Toolset],
    protocol_sha256: str,
    *,
    decides: bool = False,
) -> Pack:
    """The pack of the ``chosen`` items. ``decides``: the adjudicator's, in which "unclear" is no answer."""
    order = list(chosen)
    SystemRandom().shuffle(order)
    ids = {secrets.token_hex(8): number for number in order}
    places: dict[int, int] = {}  # tool lists in the order in which this pack comes to them
    shown: list[dict[str, Any]] = []
    for ident, number in ids.items():
        item = items[number]
        place = None if item.toolset is None else places.setdefault(item.toolset, len(places))
        shown.append(
            {
                "id": ident,
                "sha256": item.sha256,
                "passages": msgspec.to_builtins(item.text.passages),
                "tools": place,
                "cut": item.text.cut,
            }
        )
    data = _ascii(
        {
            "format": FORMAT,
            "annotator": name,
            "protocol": protocol_sha256,
            "decides": decides,
            "toolsets": [msgspec.to_builtins(toolsets[number]) for number in places],
            "items": shown,
        }
    )
    html = one_file(
        _PACKAGE,
        "pack.html",
        styles=["pack.css"],
        scripts=["pack.js"],
        data=Markup(data),
        annotator=name,
        decides=decides,
        count=len(order),
        protocol=protocol,
        other=OTHER_TOOL,
        unreadable=UNREADABLE,
    )
    return Pack(html=html, sha256=hashlib.sha256(data.encode()).hexdigest(), ids=ids)


_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def _ascii(value: Any) -> str:
    """JSON of ASCII characters alone, none of which means anything to an HTML reader."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).translate(_HTML)
