"""What a report keeps back when it is shared: prompts, values, addresses and paths. Verdicts are made before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

from truecall.records import Json
from truecall.redact import shape, words_of_tools
from truecall.store import shape_json

KEPT_BACK: Final = "[kept back]"


class Mask:
    """How foreign texts go into a report. With ``on`` False they go in as they are.

    A masked text has the length of the text, so that marks keep their places.
    """

    def __init__(self, on: bool = False) -> None:
        self.on = on

    def text(self, text: str, tools: Iterable[Json] = (), *, keep: Iterable[str] = ()) -> str:
        """A text with the letters and digits of values replaced; markup, the tools' own words and ``keep`` stay."""
        return shape(text, {*words_of_tools(tools), *keep}) if self.on and text else text

    def json(self, value: Json, tools: Iterable[Json] = ()) -> Json:
        """A JSON value with its texts masked."""
        return shape_json(value, words_of_tools(tools)) if self.on else value

    def address(self, url: str) -> str:
        """Where a server stands."""
        return KEPT_BACK if self.on and url else url

    def path(self, path: str) -> str:
        """A file: its own name alone."""
        return PurePath(path).name if self.on else path
