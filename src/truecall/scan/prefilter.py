"""Texts that can hold no call, told by a few native searches, before the detector is asked.

`may_call` is allowed to be wrong in one way only: True for a text without a call. It asks for the characters that
every dialect needs beside the words that every payload without tags needs: a key that names a tool or its
arguments, or an offered tool's name. A test holds it to the detector on all texts that the tests have.
"""

from __future__ import annotations

import re
from typing import Final

import ahocorasick_rs

from truecall.dialects.quick import quick
from truecall.schema import Toolset

_WORDS: Final = (
    *(
        "name",
        "Name",
        "tool",
        "Tool",
        "func",
        "Func",
        "ction",
        "api",
        "call:",
        "args",
        "Args",
        "rgument",
        "aram",
    ),
    *("nput", "ecipient", "nvoke", "to="),
)
"""Parts of the keys by which a payload names its tool or its arguments (`dialects.payload`)."""

_SQUARE: Final = re.compile(r"\[\s*(?:[{\"'\[]|/?[A-Z][A-Z_]{3,}|[^\W\d][\w.\-]{0,127}\s*\()")
_CURLY: Final = re.compile(r"\{\s*(?:[\"'“\\}]|[^\W\d]|$)")


_FEW: Final = 6
"""Names up to which searching for each is faster than an automaton."""

_BEFORE: Final = 400
"""Characters before an object in which a dialect may name the tool."""


class Prefilter:
    """The searches for one tool list."""

    __slots__ = ("_bare", "_finder", "_known", "_named", "_names", "_tools")

    def __init__(self, tools: Toolset) -> None:
        names = [name for name in tools.names if name and _encodes(name)]
        self._known = tools.known and len(names) == len(tools.names)
        self._tools = tools
        self._names = names
        self._bare = [name for name in tools.bare if name in names]  # most prose has no low line
        self._finder = ahocorasick_rs.AhoCorasick([*_WORDS, *names])
        self._named = ahocorasick_rs.AhoCorasick(names) if len(names) > _FEW else None

    def may_call(self, text: str) -> bool:
        """False: `detect` finds no call in ``text`` and has nothing to note of it."""
        if "`" in text and "```" in text:
            found = quick(text, self._tools)
            if found is not None:
                return bool(found[1])
        if "<" in text or "~" in text or "✿" in text or "＜" in text:
            return True
        if ":" in text and "ction:" in text:
            return True
        if "=" in text and "to=" in text:
            return True
        if "{" in text:
            brace = _CURLY.search(text)
            if brace and (not self._known or self._worded(text[max(0, brace.start() - _BEFORE) :])):
                return True
        if "[" in text and _SQUARE.search(text, text.find("[")):
            return True
        if "(" in text:
            return ("`" in text and not self._known) or self._named_in(text)
        return False

    def _worded(self, text: str) -> bool:
        return _found(self._finder, text)

    def _named_in(self, text: str) -> bool:
        names = self._names if "_" in text else self._bare
        if names and self._named is not None:
            return _found(self._named, text)
        for name in names:  # noqa: SIM110 - any() costs more than the search
            if name in text:
                return True
        return False


def _encodes(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _found(finder: ahocorasick_rs.AhoCorasick, text: str) -> bool:
    try:
        return bool(finder.find_matches_as_indexes(text))
    except UnicodeEncodeError:  # lone surrogates: the finder takes only what encodes to UTF-8
        return True
