"""Every call that a model wrote, in any dialect, from the text alone.

`detect` reads a whole text; `Detector` reads a stream. Neither needs a tokenizer or an engine, raises on any
text, or repairs silently: see `truecall.records.Call`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from truecall.dialects.base import Source
from truecall.dialects.judge import Judge
from truecall.dialects.quick import quick
from truecall.dialects.results import calls_of, partition, taken_by
from truecall.dialects.structure import Placed
from truecall.dialects.sweep import Sweep
from truecall.records import Call, Detection
from truecall.schema import compile_tools

VERSION = "1"


def detect(text: str, tools: Any = None, *, reasoning_open: bool | None = None) -> Detection:
    """Read every call in ``text``.

    ``tools`` is the request's tool list (OpenAI form; bare ``{name, parameters}`` and Anthropic's form are
    read too). None: no list is known, and ``offered`` stays None. ``reasoning_open`` False: the prompt is known
    not to end in an opened reasoning tag, so that a stray closing tag means nothing; None: not known. Never
    raises, whatever the text.
    """
    known = compile_tools(tools)
    short = quick(text, known)
    if short is None:
        return detect_in_full(Source(text, known), reasoning_open)
    return Detection(short[0], short[1], (), VERSION)


def detect_in_full(src: Source, reasoning_open: bool | None = None) -> Detection:
    """As `detect`, by the sweep that knows every dialect; `detect` comes here where the short way does not reach."""
    sweep, kept = _sweep(src, reasoning_open)
    sweep.placed.clear()
    return _detection(src, sweep, kept)


def _sweep(src: Source, reasoning_open: bool | None) -> tuple[Sweep, list[Placed]]:
    """All readings of a text, and those of them that are calls."""
    sweep = Sweep(src, reasoning_open)
    sweep.run()
    return sweep, Judge(src, sweep).calls() if sweep.placed else []


def _detection(src: Source, sweep: Sweep, kept: list[Placed]) -> Detection:
    """The result of a sweep; takes ``kept`` apart."""
    calls = calls_of(kept, src)
    notes = tuple(dict.fromkeys(sweep.notes))
    spans = partition(src.size, taken_by(src.size, sweep.regions, sweep.fences, calls))
    return Detection(spans, calls, notes, VERSION)


# --------------------------------------------------------------------------- streams


class Progress(msgspec.Struct, frozen=True):
    """What is settled of a stream: ``calls`` stay whatever comes, up to character ``settled``.

    ``emitted`` True: a call is settled. None: open; only `Detector.finish` can say that there was none.
    """

    calls: tuple[Call, ...] = ()
    emitted: bool | None = None
    settled: int = 0


class Detector:
    """Reads a stream piece by piece.

    `feed` says what no continuation can change; `finish` gives what `detect` gives for the whole text, however
    it was split. Unless ``reasoning_open`` is False, nothing is settled before reasoning has been closed, for a
    later closing tag could turn all that came before it into reasoning.
    """

    def __init__(self, tools: Any = None, *, reasoning_open: bool | None = None) -> None:
        self._tools = tools
        self._reasoning_open = reasoning_open
        self._pieces: list[str] = []
        self._size = 0
        self._next = _LOOK
        self._progress = Progress()

    def feed(self, piece: str) -> Progress:
        """Take the next piece of text; the progress so far."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size >= self._next:
            # Looking again only after the text has grown by an eighth keeps the whole stream linear.
            self._next = self._size + max(_LOOK, self._size // 8)
            self._look()
        return self._progress

    def finish(self) -> Detection:
        """The detection of the whole text."""
        return detect("".join(self._pieces), self._tools, reasoning_open=self._reasoning_open)

    def _look(self) -> None:
        text = "".join(self._pieces)
        self._pieces = [text]
        known = compile_tools(self._tools)
        short = quick(text, known)
        if short is not None and not short[1]:
            return
        src = Source(text, known)
        sweep, kept = _sweep(src, self._reasoning_open)
        firm = 0
        end = 0
        acts = {id(item) for item in kept}
        for item in sweep.placed:
            if not self._firm(item, sweep, len(text)):
                break
            if id(item) in acts:
                firm += len(item.reading.drafts)
                end = item.reading.end
        if firm > len(self._progress.calls):
            calls = calls_of(kept, src)[:firm]
            self._progress = Progress(calls=calls, emitted=True, settled=end)

    def _firm(self, item: Placed, sweep: Sweep, size: int) -> bool:
        """Whether no further text can change what this reading is."""
        reading = item.reading
        if 0 <= sweep.src.unread < reading.end:
            return False
        if item.region is not None or item.fence is not None or not (reading.explicit and reading.closed):
            return False
        if self._reasoning_open is not False and not any(0 <= r.end <= reading.start for r in sweep.regions):
            return False
        return size - reading.end > _TAIL and all(draft.formed and not draft.weak for draft in reading.drafts)


_LOOK = 64
_TAIL = 340  # characters behind a call that its judgement may look at
