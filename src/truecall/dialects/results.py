"""From readings to the records that are given out: calls with their tier, spans that partition the text."""

from __future__ import annotations

import re
from typing import Any

from truecall.dialects.bare import Fence
from truecall.dialects.base import Draft, Source
from truecall.dialects.payload import is_schema
from truecall.dialects.structure import Placed, Region
from truecall.records import Call, CallTier, Recovered, Span, SpanKind, Violation
from truecall.schema import Tool, Toolset

# Members of enumerations as plain names: a look-up in the class costs more than making a span.
_CONTENT, _CALL, _REASONING, _FENCE = SpanKind.CONTENT, SpanKind.CALL, SpanKind.REASONING, SpanKind.FENCE
_TIGHT, _STRONG, _WEAK = CallTier.TIGHT, CallTier.STRONG, CallTier.WEAK
_PLACEHOLDER = re.compile(
    r"\s*(?:<[^<>]{1,80}>|\.{3}|…|\{\{?[\w .]{1,40}\}?\}|\[[A-Z][A-Z_ ]+\]|your[_ ][\w ]{1,40}|YOUR_\w+|"
    r"(?:string|value|placeholder|todo|xxx+|integer|number|boolean|object|array)|"
    r"(?:insert|enter|put) [\w ]{1,40} here)\s*\Z",
    re.IGNORECASE,
)
_SCHEMA_WORDS = frozenset(
    ("type", "description", "enum", "default", "title", "items", "properties", "format")
)


def calls_of(kept: list[Placed], src: Source) -> tuple[Call, ...]:
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
    if formed and arguments is not None and tool is not None:
        tier, violations = weigh(arguments, tool)
    elif formed:
        tier = _STRONG
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


def weigh(arguments: dict[str, Any], tool: Tool) -> tuple[CallTier, tuple[Violation, ...]]:
    """The tier of a well-formed call of an offered tool, and how its arguments break the schema."""
    violations = tool.check(arguments)
    return (_STRONG if violations or _placeholder(arguments) else _TIGHT), violations


def _placeholder(arguments: dict[str, Any]) -> bool:
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


def partition(size: int, taken: list[Span]) -> tuple[Span, ...]:
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


def taken_by(size: int, regions: list[Region], fences: list[Fence], calls: tuple[Call, ...]) -> list[Span]:
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
