"""The commonest texts by the shortest way: prose, code blocks and plain hermes calls.

A short sweep over nothing but ``<`` and fences, with the dialects' own readers and the judge's own rules; None
where the text holds anything else that could start a call. The tests hold it to the full sweep.
"""

from __future__ import annotations

import re

from truecall.dialects.bare import NAME_WORDS, OWN_BLOCKS
from truecall.dialects.base import Source
from truecall.dialects.judge import WINDOW, explicit_act
from truecall.dialects.registry import HERMES
from truecall.dialects.structure import Placed
from truecall.records import Span, SpanKind

_FENCE = SpanKind.FENCE
_OPEN = "<tool_call>\n"
_LONG = 8000  # characters; a shorter text can't hold more than `Source.limit`
_COMPARED = frozenset((" ", "\n", "\t", "=", *"0123456789", "'", '"', ")", ""))
"""What follows "<" where it only compares."""
_BLOCK = re.compile(r"([A-Za-z0-9]*+)[ \t]*(?:\n|\Z)")
"""The rest of a code block's first line: nothing but its language."""


def quick(src: Source) -> tuple[list[Placed], list[Span]] | None:
    """The calls and code blocks of a text that holds nothing else that could start a call."""
    text, size = src.text, src.size
    if (":" in text and "ction:" in text) or "✿" in text or ("=" in text and "to=functions" in text):
        return None
    if "~" in text and "~~~" in text:
        return None
    if size > _LONG and text.count("<tool_call>") + text.count("```") > src.limit:
        return None
    found: list[Placed] = []
    fences: list[Span] = []
    find, pos = text.find, 0
    while pos < size:
        less = find("<", pos)
        while less >= 0 and not text.startswith(_OPEN, less):
            if text[less + 1 : less + 2] not in _COMPARED:
                return None
            less = find("<", less + 1)
        part = text[pos:less] if less >= 0 else text[pos:]
        if part and part != "\n":
            names = src.tools.names
            if "```" in part:
                if not _blocks(part, pos, names, fences):
                    return None
            elif not _prose(part, names):
                return None
        if less < 0:
            break
        reading = HERMES.plain(src, less, less + 12)
        if reading is None:
            return None
        found.append(Placed(reading))
        pos = reading.end
    return (_acts(src, found) if found else found), fences


def _blocks(text: str, at: int, names: tuple[str, ...], fences: list[Span]) -> bool:
    """Whether a text is prose and closed code blocks in which nothing can start a call; notes the blocks."""
    parts = ("\n" + text if at == 0 else text).split("\n```")
    inside, outside = "\n".join(parts[1::2]), "\n".join(parts[::2])
    if len(parts) % 2 == 0 or not _prose(outside, names) or "[TOOL_" in inside:
        return False
    if "`" in outside and ("```" in outside or "\n`" in outside):
        return False  # ticks inside a line, or a longer fence
    for name in names or NAME_WORDS:
        if name in inside:
            return False
    at -= at == 0
    for index in range(1, len(parts), 2):
        before, part = parts[index - 1], parts[index]
        block = _BLOCK.match(part) if part else None
        if block is None or block[1].lower() in OWN_BLOCKS:
            return False
        if names and part.startswith("{", block.end()) and _named(before, names):
            return False
        at += len(before) + 1
        end = at + len(part) + 7
        fences.append(Span(_FENCE, at, end))
        at = end
    return True


def _named(before: str, names: tuple[str, ...]) -> bool:
    """Whether the line above a block ends in an offered name: then the block may be its arguments."""
    return before.rpartition("\n")[2].strip().endswith(names)


def _prose(part: str, names: tuple[str, ...]) -> bool:
    """Whether text outside of code blocks holds neither JSON nor a call of an offered tool."""
    if "{" in part or "[" in part:
        return False
    if names and "(" in part:
        for piece in part.split("("):
            if piece.endswith(names):
                return False
    return True


def _acts(src: Source, found: list[Placed]) -> list[Placed]:
    """Those of the calls that the words around them leave an act."""
    kept: list[Placed] = []
    text, before = src.text, 0
    places = [item.reading.start for item in found[1:]]
    places.append(src.size)
    for item, after in zip(found, places, strict=True):
        reading = item.reading
        start, end = reading.start, reading.end
        lead = text[before if before > start - WINDOW else start - WINDOW : start]
        tail = text[end : after if after < end + WINDOW else end + WINDOW]
        if explicit_act(src, reading, lead, tail):
            kept.append(item)
        before = end
    return kept
