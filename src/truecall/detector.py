"""Every call that a model wrote, in any dialect, from the text alone.

`detect` reads a whole text; `Detector` reads a stream. Neither needs a tokenizer or an engine, raises on any
text, or repairs silently: see `truecall.records.Call`.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import Any

import msgspec

from truecall.dialects.bare import Fence
from truecall.dialects.base import Draft, Source
from truecall.dialects.judge import Judge
from truecall.dialects.payload import is_schema
from truecall.dialects.quick import quick
from truecall.dialects.structure import Placed, Region
from truecall.dialects.sweep import Sweep
from truecall.records import Call, CallTier, Detection, Recovered, Span, SpanKind, Violation
from truecall.schema import Toolset, compile_tools

VERSION = "1"

# Members of enumerations as plain names: a look-up in the class costs more than making a span.
_CONTENT, _CALL = SpanKind.CONTENT, SpanKind.CALL
_REASONING, _FENCE = SpanKind.REASONING, SpanKind.FENCE
_START = attrgetter("start")
_TIGHT, _STRONG, _WEAK = CallTier.TIGHT, CallTier.STRONG, CallTier.WEAK

_PLACEHOLDER = re.compile(
    r"\s*(?:<[^<>]{1,80}>|\.{3}|…|\{\{?[\w .]{1,40}\}?\}|\[[A-Z][A-Z_ ]+\]|your[_ ][\w ]{1,40}|YOUR_\w+|"
    r"(?:string|value|placeholder|todo|xxx+|integer|number|boolean|object|array)|"
    r"(?:insert|enter|put) [\w ]{1,40} here)\s*\Z",
    re.IGNORECASE,
)


def detect(text: str, tools: Any = None, *, reasoning_open: bool | None = None) -> Detection:
    """Read every call in ``text``.

    ``tools`` is the request's tool list (OpenAI form; bare ``{name, parameters}`` and Anthropic's form are
    read too). None: no list is known, and ``offered`` stays None. ``reasoning_open`` False: the prompt is known
    not to end in an opened reasoning tag, so that a stray closing tag means nothing; None: not known. Never
    raises, whatever the text.
    """
    if not _may_hold_calls(text, tools):
        return _plain(text)
    src = Source(text, compile_tools(tools))
    plain = quick(src)
    if plain is None:
        return detect_in_full(src, reasoning_open)
    kept, fences = plain
    calls = _calls(kept, src) if kept else ()
    taken = [call.span for call in calls]
    if fences:
        taken = sorted(taken + fences, key=_START) if taken else fences
    return Detection(_spans(src.size, taken), calls, (), VERSION)


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
    if not kept and not sweep.regions and not sweep.fences and not sweep.notes:
        return _plain(src.text)
    calls = _calls(kept, src)
    notes = tuple(dict.fromkeys(sweep.notes))
    spans = _spans(src.size, _taken(src.size, sweep.regions, sweep.fences, calls))
    return Detection(spans, calls, notes, VERSION)


def _may_hold_calls(text: str, tools: Any) -> bool:
    if "<" in text or "[" in text or "{" in text or "`" in text:
        return True
    if (":" in text and "ction:" in text) or ("=" in text and "to=" in text) or "~" in text or "✿" in text:
        return True
    if "(" not in text or not tools:
        return False
    return any(name + "(" in text for name in compile_tools(tools).names)


def _plain(text: str) -> Detection:
    spans = (Span(kind=_CONTENT, start=0, end=len(text)),) if text else ()
    return Detection(spans=spans, calls=(), version=VERSION)


# --------------------------------------------------------------------------- calls


def _calls(kept: list[Placed], src: Source) -> tuple[Call, ...]:
    """The calls of the readings, which are let go one by one: a text full of calls is not held twice."""
    out: list[Call] = []
    tools = src.tools
    floor = 0
    kept.reverse()
    while kept:
        item = kept.pop()
        reading = item.reading
        drafts = reading.drafts
        start, last = reading.start, len(drafts) - 1
        for index, draft in enumerate(drafts):
            if index:
                start = draft.start
            if start < floor:
                start = floor
            end = reading.end if index == last else drafts[index + 1].start
            if end < start:
                end = start
            floor = end
            out.append(_call(item, draft, Span(_CALL, start, end), tools))
    return tuple(out)


def _call(item: Placed, draft: Draft, span: Span, tools: Toolset) -> Call:
    name, arguments, repairs, reading = draft.name, draft.arguments, draft.repairs, item.reading
    tool = tools.tools.get(name) if name is not None else None
    violations: tuple[Violation, ...] | None = None
    recovered = None
    formed = draft.formed
    if formed:
        tier = _STRONG
        if tool is not None:
            violations = tool.check(arguments)
            if not violations and not _placeholder(arguments):
                tier = _TIGHT
    else:
        tier = _STRONG if reading.explicit and name is not None else _WEAK
        if repairs and (name is not None or arguments is not None):
            recovered = Recovered(name=name, arguments=arguments, repairs=repairs)
        arguments = None
    defects = reading.defects + draft.defects + repairs
    return Call(
        name,
        arguments,
        draft.dialect or reading.dialect,
        formed,
        tier,
        span,
        item.region is not None,
        tool is not None if tools.known else None,
        tuple(dict.fromkeys(defects)) if defects else defects,
        violations,
        recovered,
    )


def _placeholder(arguments: dict[str, Any] | None) -> bool:
    """Whether the arguments stand for arguments: an echo of the schema, or a blank to be filled."""
    if not arguments:
        return False
    if "properties" in arguments and is_schema(arguments):
        return True
    schemas = 0
    for value in arguments.values():
        kind = type(value)
        if kind is str:
            if len(value) < 90 and _PLACEHOLDER.match(value):
                return True
        elif kind is dict:
            schemas += "type" in value and set(value) <= _SCHEMA_WORDS
    return schemas == len(arguments)


_SCHEMA_WORDS = frozenset(
    ("type", "description", "enum", "default", "title", "items", "properties", "format")
)


# --------------------------------------------------------------------------- spans


def _spans(size: int, taken: list[Span]) -> tuple[Span, ...]:
    """The spans that are given, and content between them."""
    out: list[Span] = []
    at = 0
    for span in taken:
        start, end = span.start, span.end
        if start > at:
            out.append(Span(_CONTENT, at, start))
        if end > start:
            out.append(span)
            at = end
    if at < size:
        out.append(Span(_CONTENT, at, size))
    return tuple(out)


def _taken(size: int, regions: list[Region], fences: list[Fence], calls: tuple[Call, ...]) -> list[Span]:
    """Calls first, then reasoning, then fences: where they meet, the first stands."""
    taken = [call.span for call in calls]
    if regions:
        taken = _under(taken, [(r.start, r.end if r.end >= 0 else size) for r in regions], _REASONING)
    return _under(taken, [(f.start, f.end) for f in fences], _FENCE) if fences else taken


def _under(upper: list[Span], lower: list[tuple[int, int]], kind: SpanKind) -> list[Span]:
    """Merge sorted stretches into sorted spans; where they meet, the spans that were there stand."""
    out: list[Span] = []
    index = floor = 0
    for start, end in lower:
        start = max(start, floor)
        while index < len(upper) and upper[index].start < end:
            span = upper[index]
            if span.start > start:
                out.append(Span(kind, start, span.start))
            out.append(span)
            start = floor = max(start, span.end)
            index += 1
        if end > start:
            out.append(Span(kind, start, end))
            floor = end
    out.extend(upper[index:])
    return out


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
        if not _may_hold_calls(text, self._tools):
            return
        src = Source(text, compile_tools(self._tools))
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
            calls = _calls(kept, src)[:firm]
            self._progress = Progress(calls=calls, emitted=True, settled=end)

    def _firm(self, item: Placed, sweep: Sweep, size: int) -> bool:
        """Whether no further text can change what this reading is."""
        reading = item.reading
        if 0 <= sweep.unread < reading.start:
            return False
        if item.region is not None or item.fence is not None or not (reading.explicit and reading.closed):
            return False
        if self._reasoning_open is not False and not any(0 <= r.end <= reading.start for r in sweep.regions):
            return False
        return size - reading.end > _TAIL and all(draft.formed for draft in reading.drafts)


_LOOK = 64
_TAIL = 340  # characters behind a call that its judgement may look at
