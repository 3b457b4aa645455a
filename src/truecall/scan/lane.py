"""The short way for chat files: typed lines are counted without making a record of every turn.

Only what the kernel's own short cuts would tell is told here; any other turn is made and judged as usual. A test
holds both ways to the same tally.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from truecall.classify.error_texts import is_error_text
from truecall.scan.kernel import Kernel, fits
from truecall.scan.outcome import CAPS, given_outcome, prose_outcome
from truecall.scan.prefilter import Prefilter
from truecall.scan.tally import UNKNOWN, Group, Tally
from truecall.schema import Toolset
from truecall.sources import Bad, Line, Options, Place
from truecall.sources.chat import ChatReader, Model, TypedLine, shows_calls, typed_uptake

FIELDS: Final = frozenset({"model", "file", "step"})
"""Fields that the short way can group by."""

_PLAIN_ENDS: Final = frozenset({None, "stop"})
_CALL_ENDS: Final = frozenset({None, "tool_calls"})
_JUDGED, _PROSE, _CALLED = range(3)
"""How a turn is told: by a verdict, as prose, as calls that came out whole."""


class ChatLane:
    """Counts the lines of one piece of a chat file into a tally."""

    def __init__(self, tally: Tally, file: str, options: Options, kernel: Kernel) -> None:
        self._tally = tally
        self._file = file
        self._kernel = kernel
        self._reader = ChatReader(file, options)
        self._prose: Counter[Any] = Counter()
        self._given: Counter[Any] = Counter()
        self._episodes: Counter[tuple[Group, int, int, int]] = Counter()
        self._turns = 0
        self._longest = 0
        self._as_long = 0

    def count(self, lines: Iterable[Line]) -> Iterator[Bad]:
        """Counts the lines of the piece; gives nothing, but can be guarded as a reader of items can."""
        typed = self._reader.typed
        try:
            for line in lines:
                entry = typed(line.data)
                if entry is None:
                    self._tally.add(self._reader.line(line), self._kernel)
                else:
                    self._line(entry, line)
        finally:
            self._flush()
        yield from ()

    def _line(self, entry: TypedLine, line: Line) -> None:
        messages = entry.messages
        tools, listed = self._reader.tools(entry)
        known = listed or shows_calls(messages)
        short = known and (entry.tool_choice is None or entry.tool_choice == "auto")
        eligible = None if tools is None else bool(tools)
        group = self._group(entry)
        _, compiled, prefilter = self._kernel.held(tools)
        place: Place | None = None
        position = valid = produced = unknown = 0
        for index, message in enumerate(messages):
            if type(message) is not Model:
                continue
            told = _told(message, compiled, prefilter) if short else _JUDGED
            if told == _JUDGED:
                place = place or Place(file=self._file, line=line.number, offset=line.offset)
                turn = self._reader.turn(entry, index, position, place, tools, known)
                outcome = self._tally.judged(turn, self._kernel, group)
                if outcome.produced:
                    produced += 1
                    valid += outcome.valid is True
                    unknown += outcome.valid is None
            else:
                produced += 1
                size = len(message.content) if message.content else 0
                if size >= self._longest:
                    self._note_length(size)
                cap = size if size in CAPS else 0
                if told == _PROSE:
                    self._prose[group, eligible, position == 0, cap] += 1
                else:
                    valid += 1
                    uptake = typed_uptake(messages, index, True)
                    self._given[group, eligible, position == 0, cap, uptake] += 1
            position += 1
        self._turns += position
        if produced:
            self._episodes[group, valid, produced, unknown] += 1

    def _note_length(self, size: int) -> None:
        self._as_long = self._as_long + 1 if size == self._longest else 1
        self._longest = size

    def _group(self, entry: TypedLine) -> Group:
        out = []
        for field in self._tally.by:
            value: Any = self._file if field == "file" else getattr(entry, field)
            out.append(UNKNOWN if value is None else str(value)[:200])
        return tuple(out)

    def _flush(self) -> None:
        for (group, eligible, first, cap), n in self._prose.items():
            self._tally.count(group, prose_outcome(eligible, first=first, cap=cap), n)
        for (group, eligible, first, cap, uptake), n in self._given.items():
            outcome = given_outcome(eligible, *uptake, first=first, cap=cap)
            self._tally.count(group, outcome, n)
        for (group, valid, produced, unknown), n in self._episodes.items():
            self._tally.episode(group, valid, produced, unknown, n)
        if self._turns:
            self._tally.files[self._file] += self._turns
        self._tally.note_length(self._longest, self._as_long)


def _told(message: Model, tools: Toolset, prefilter: Prefilter) -> int:
    """How a turn can be told from its message alone."""
    if message.reasoning_content:
        return _JUDGED
    text = message.content
    if text and (prefilter.may_call(text) or is_error_text(text)):
        return _JUDGED
    calls = message.tool_calls
    if not calls:
        prose = text and message.finish_reason in _PLAIN_ENDS and not text.isspace()
        return _PROSE if prose else _JUDGED
    if message.finish_reason not in _CALL_ENDS:
        return _JUDGED
    for call in calls:
        function = call.function
        tool = tools.tools.get(function.name or "")
        if tool is None or not fits(tool, function.arguments):
            return _JUDGED
    return _CALLED
