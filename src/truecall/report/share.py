"""What a report keeps back when it is shared: prompts, values, addresses and paths. Verdicts are made before."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from truecall.records import Json
from truecall.redact import shape, words_of_tools
from truecall.store import shape_json

KEPT_BACK: Final = "[kept back]"

_PLACE: Final = re.compile(
    r"\b[a-zA-Z][\w+.-]*://[^\s\"'<>]+"  # an address
    r"|(?<![\w/\\.<])(?:~|[A-Za-z]:)?(?:[/\\][^\s/\\\"'<>,;:]+){2,}[/\\]?"  # a path from the root or home
)


class Mask:
    """How foreign texts go into a report. With ``on`` False they go in as they are.

    A masked text has the length of the text, so that marks keep their places.
    """

    def __init__(self, on: bool = False) -> None:
        self.on = on
        self._named: dict[str, str] = {}

    def text(self, text: str, tools: Iterable[Json] = (), *, keep: Iterable[str] = ()) -> str:
        """A text with the letters and digits of values replaced; markup, the tools' own words and ``keep`` stay."""
        return shape(text, {*words_of_tools(tools), *keep}) if self.on and text else text

    def json(self, value: Json, tools: Iterable[Json] = ()) -> Json:
        """A JSON value with its texts masked."""
        return shape_json(value, words_of_tools(tools)) if self.on else value

    def address(self, url: str) -> str:
        """Where a server stands."""
        return KEPT_BACK if self.on and url else url

    def path(self, path: str, word: str = "file") -> str:
        """A file or folder: a number in place of its name, the same one wherever it comes again."""
        return self._named.setdefault(path, f"{word} {len(self._named) + 1}") if self.on else path

    def places(self, text: str) -> str:
        """Our own words, or a fact of a card, without the addresses and paths in them."""
        return _PLACE.sub(KEPT_BACK, text) if self.on else text
