"""What every dialect shares: the source text, the drafts that readers make, the base class.

A dialect says which openers can start it and reads from one of them. Readers get a `Source` and a place,
and give a `Reading` or None ("not mine"). No reader raises on any text, and none reads a stretch that an
earlier one has read to its end without result more than a bounded number of times.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec

from truecall.schema import Tool, Toolset

# Bars and underscores that vendors' special tokens use, each replaced by one ASCII character.
_ODD = {"｜": "|", "▁": "_", "‖": "|", "│": "|", "∣": "|", "ǀ": "|", "￨": "|", "❘": "|", "ǁ": "|", "＿": "_"}


def most(size: int) -> int:
    """How many calls, reasoning blocks and fences are read: more of them per character is no model's text."""
    return min(50_000, 1000 + size // 128)


class Source:
    """A text, its marker-normalised twin of equal length, and the tools that were offered."""

    __slots__ = ("_found", "_matched", "_named", "norm", "size", "spent", "text", "tools", "unread")

    def __init__(self, text: str, tools: Toolset) -> None:
        self.text = text
        self.size = len(text)
        self.tools = tools
        norm = text
        if not text.isascii():
            for odd, plain in _ODD.items():
                if odd in norm:
                    norm = norm.replace(odd, plain)
        self.norm = norm
        self.unread = -1  # the first place that more text might make another reading of
        self.spent: dict[str, int] = {}  # readings that ran to the end of the text in vain, by kind
        self._found: dict[str, tuple[int, int]] = {}
        self._matched: dict[re.Pattern[str], tuple[int, re.Match[str] | None]] = {}
        self._named: tuple[str, ...] | None = None

    @property
    def limit(self) -> int:
        """As `most`."""
        return most(self.size)

    @property
    def named(self) -> tuple[str, ...]:
        """Those of the offered names that the text holds at all."""
        if self._named is None:
            text, tools = self.text, self.tools
            self._named = tuple([n for n in (tools.names if "_" in text else tools.bare) if n in text])
        return self._named

    def find(self, literal: str, at: int) -> int:
        """The first ``literal`` at or after ``at``, else -1; amortised linear over a text.

        Remembers the last search, so that many openers without a closer cost one scan in all.
        """
        known = self._found.get(literal)
        if known is not None:
            asked, hit = known
            if asked <= at and (hit < 0 or hit >= at):
                return hit
        hit = self.norm.find(literal, at)
        self._found[literal] = (at, hit)
        return hit

    def search(self, pattern: re.Pattern[str], at: int) -> re.Match[str] | None:
        """The first match of ``pattern`` at or after ``at``, with the last answer remembered as in `find`."""
        known = self._matched.get(pattern)
        if known is not None:
            asked, hit = known
            if asked <= at and (hit is None or hit.start() >= at):
                return hit
        hit = pattern.search(self.norm, at)
        self._matched[pattern] = (at, hit)
        return hit

    def find_first(self, literals: tuple[str, ...], at: int) -> tuple[int, str]:
        """The nearest of several literals, or (-1, "")."""
        best, which = -1, ""
        for literal in literals:
            hit = self.find(literal, at)
            if hit >= 0 and (best < 0 or hit < best):
                best, which = hit, literal
        return best, which

    def tries(self, kind: str) -> int:
        """How many readings of a kind have run to the end of the text in vain."""
        return self.spent.get(kind, 0)

    def fail(self, kind: str) -> None:
        self.spent[kind] = self.spent.get(kind, 0) + 1

    def doubt(self, at: int) -> None:
        """Note that more text might change how the text reads from ``at`` on."""
        if self.unread < 0 or at < self.unread:
            self.unread = at

    def skip(self, at: int) -> int:
        """The first place at or after ``at`` that is not white space."""
        text, size = self.text, self.size
        while at < size and text[at].isspace():
            at += 1
        return at


class Draft(msgspec.Struct, eq=False, gc=False):
    """A call as a reader understood it.

    ``repairs`` empty: the payload parsed as it stands. ``arguments`` None: they can't be read at all.
    """

    name: str | None
    arguments: dict[str, Any] | None
    start: int
    end: int
    defects: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    dialect: str = ""
    weak: bool = False  # call-shaped only: needs an offered name or a text of its own

    @property
    def formed(self) -> bool:
        return not self.repairs and self.name is not None and self.arguments is not None


class Reading(msgspec.Struct, eq=False, gc=False):
    """What one envelope, fence or bare payload holds.

    ``explicit``: markers that nothing but a call has stand around it. ``closed``: it ended by its own
    closer, so that more text can't change it.
    """

    dialect: str
    start: int
    end: int
    drafts: list[Draft]
    explicit: bool = True
    closed: bool = True
    defects: tuple[str, ...] = ()
    standing: bool = False  # addressed by a channel header: an act even inside reasoning


class Dialect:
    """One syntax in which models write calls. Subclasses set the attributes and `read`."""

    name: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    source: ClassVar[str] = ""
    """Who writes it, in a line."""
    openers: ClassVar[tuple[str, ...]] = ()
    """Literal markers that can start it, bars and underscores in ASCII."""
    example: ClassVar[str] = ""

    def read(self, src: Source, at: int) -> Reading | None:
        """Read the envelope that opens at ``at``; None when the body is not of this dialect."""
        raise NotImplementedError


def only_parameter(tool: Tool | None) -> str | None:
    return tool.only_parameter if tool else None
