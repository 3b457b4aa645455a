"""What a parser is asked, and what came of it."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from truecall.records import Json, Record, ToolCall

State = Literal["parsed", "raised", "no_stream", "crashed", "hung", "too_large", "unasked"]
"""``parsed``: the parser gave an answer; ``raised`` an exception; ``no_stream``: it has no way of streaming.

``crashed``: it took the worker's process down; ``hung``: no answer in time; ``too_large``: the text was not sent.
``unasked``: it could not be made to read this text (a model that was to repeat it wrote another).
"""


NOT_ASKED: Final = frozenset({"too_large", "unasked"})
"""States after which nothing is known of the parser."""


class Job(NamedTuple):
    """One text for one parser. ``cuts`` None: whole; else streamed, cut at these places (characters)."""

    parser: str
    text: str
    tools: list[Json]
    cuts: tuple[int, ...] | None = None


class Parse(Record, frozen=True):
    """What came of a job. ``seconds`` is the parser's own time; ``content`` the text that it left, None: none."""

    state: State
    calls: tuple[ToolCall, ...] = ()
    content: str | None = None
    detail: str = ""
    seconds: float = 0.0


class Hello(Record, frozen=True):
    """What a worker says of itself when it is ready."""

    engine: str
    version: str
    parsers: tuple[str, ...]
    network: str = ""


class Launch(Record, frozen=True):
    """How a worker is started: the engine's Python, the script and its words, and folders beside it."""

    engine: str
    python: str
    script: str
    words: tuple[str, ...] = ()
    folder: str | None = None

    @property
    def command(self) -> tuple[str, ...]:
        """The whole command line."""
        return (self.python, self.script, *self.words)


class Health(NamedTuple):
    """What became of workers over a run. ``noise``: lines that were no answer."""

    started: int = 0
    crashed: int = 0
    hung: int = 0
    noise: int = 0
    too_large: int = 0

    def __add__(self, other: object) -> Health:
        if not isinstance(other, Health):
            return NotImplemented
        return Health(*(a + b for a, b in zip(self, other, strict=True)))
