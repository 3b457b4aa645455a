"""Request bodies of a recorded harness without their histories stored again and again.

A turn's request repeats the requests before it, byte for byte, and goes on. A long body is cut where its messages
begin. What stands before the last cut is a chain of links, each a blob: the digest of the link before it, a line
feed, and the bytes that it adds. So a loop of 800 turns stores each message once, and every body comes back as it
was. `truecall.store.body_of` puts it together.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from typing import Any, Final

from truecall.store.folder import INLINE, RunFolder

_CUTS: Final = re.compile(rb'"(?:role|call_id)"\s*:')  # in a message, or an item of the responses API
_TOOLS: Final = re.compile(rb'"tools"\s*:')  # the same at each turn: kept apart from the last message
_KNOWN: Final = 20_000  # links that are remembered; a body that goes on from an older one starts a new chain


class Chains:
    """The writing side. ``stored`` gives what stands for a body in its line."""

    def __init__(self) -> None:
        self._links: OrderedDict[bytes, str] = OrderedDict()  # digest of a body's beginning -> its link

    def stored(self, folder: RunFolder, body: bytes) -> dict[str, Any]:
        """Keeps a body of the run, secrets already replaced. Raises OSError where the disk does not take it."""
        cuts = [match.start() for match in _CUTS.finditer(body)] if len(body) > INLINE else []
        if not cuts:
            return stored_part(folder, body)
        state = hashlib.sha256()
        before, start, at = "", 0, 0
        for cut in cuts:
            state.update(body[at:cut])
            at = cut
            link = self._links.get(state.digest())
            if link is not None:
                before, start = link, cut
        if start < at or not before:
            before = folder.put(before.encode() + b"\n" + body[start:at])
            self._links[state.digest()] = before
            while len(self._links) > _KNOWN:
                self._links.popitem(last=False)
        tools = _TOOLS.search(body, at)
        end = tools.start() if tools else len(body)
        parts = [part for part in (body[at:end], body[end:]) if part]
        return {"chain": before, "rest": [stored_part(folder, part) for part in parts], "size": len(body)}


def stored_part(folder: RunFolder, part: bytes) -> dict[str, Any]:
    """Bytes as a line has them: the text itself where it is short, else a blob."""
    try:
        if len(part) <= INLINE:
            return {"text": part.decode()}
    except UnicodeDecodeError:
        pass
    return {"blob": folder.put(part), "size": len(part)}
