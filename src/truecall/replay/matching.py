"""Emitted calls held against what a parser returned."""

from __future__ import annotations

from typing import Final

import msgspec

from truecall.classify import judge_response
from truecall.classify.pool import frozen
from truecall.engines import Parse
from truecall.records import Call, Choice, Delivery, Json, Record, Response, ToolCall
from truecall.replay.texts import Material

RETURNED, MANGLED, LOST = "returned", "mangled", "lost"

_STATE: Final = {
    Delivery.SURFACED: RETURNED,
    Delivery.MANGLED: MANGLED,
    Delivery.CUT_OFF: MANGLED,
}


class Match(Record, frozen=True):
    """What became of each emitted call (``returned``, ``mangled`` or ``lost``), in the order of the text.

    ``gone``: a lost call's text is not in what the parser left. ``became``: what a call was mangled to.
    ``phantom``: calls that nobody emitted.
    """

    calls: tuple[str, ...] = ()
    gone: tuple[bool, ...] = ()
    became: tuple[ToolCall | None, ...] = ()
    phantom: int = 0


def match(material: Material, parse: Parse) -> Match:
    """Holds a parser's answer against the calls that stand in the text. A parser that failed returned nothing."""
    calls = material.found.calls
    if parse.state != "parsed" or not parse.calls:
        gone = _gone(material, parse.content) if parse.state == "parsed" else [True] * len(calls)
        return Match(calls=(LOST,) * len(calls), gone=tuple(gone))
    if not calls:
        return Match(phantom=len(parse.calls))
    if len(calls) == len(parse.calls) and all(map(same, parse.calls, calls)):
        return Match(calls=(RETURNED,) * len(calls), gone=(False,) * len(calls))
    return _judged(material, parse)


def same(returned: ToolCall, call: Call) -> bool:
    """Whether the returned call is the emitted one: its name, and its arguments as they were read."""
    reading = call.reading()
    return returned.name == call.name and reading is not None and arguments_of(returned) == reading


def holds(parse: Parse, call: Call) -> bool:
    """Whether the call is among those returned."""
    return any(same(returned, call) for returned in parse.calls)


def arguments_of(returned: ToolCall) -> Json:
    """The arguments as an interface would deliver them, decoded; None where they do not parse."""
    if not isinstance(returned.arguments, str):
        return returned.arguments
    try:
        return msgspec.json.decode(returned.arguments)
    except (msgspec.DecodeError, RecursionError):
        return None


def readable(parse: Parse) -> tuple[object, ...]:
    """The returned calls in a form that compares equal when a client would get the same."""
    return tuple(
        (call.name, frozen(decoded) if (decoded := arguments_of(call)) is not None else call.arguments)
        for call in parse.calls
    )


def _judged(material: Material, parse: Parse) -> Match:
    """The verdict's own matching, told for the calls of the text in order."""
    choice = Choice(content=parse.content, tool_calls=parse.calls, raw_text=material.text)
    verdict = judge_response(Response(api="openai.chat", choices=(choice,)), material.tools)
    fate: dict[tuple[int, int], tuple[str, ToolCall | None]] = {}
    phantom = 0
    for one in verdict.calls:
        if one.delivery is Delivery.PHANTOM or one.emitted is None:
            phantom += 1
            continue
        state = _STATE.get(one.delivery, LOST)
        if state == RETURNED and one.surfaced and not isinstance(arguments_of(one.surfaced), dict):
            state = MANGLED  # a client can execute nothing with arguments that are no object
        span = one.emitted.span
        fate[span.start, span.end] = state, one.surfaced if state == MANGLED else None
    met = [fate.get((call.span.start, call.span.end), (LOST, None)) for call in material.found.calls]
    return Match(
        calls=tuple(state for state, _ in met),
        gone=tuple(_gone(material, parse.content)),
        became=tuple(became for _, became in met),
        phantom=phantom,
    )


def _gone(material: Material, content: str | None) -> list[bool]:
    """For each call, whether its text is missing from what the parser left.

    A name that also stands elsewhere in the text shows nothing: it has to occur more often than that.
    """
    left = content or ""
    calls = material.found.calls
    if left == material.text:
        return [False] * len(calls)
    outside = material.text
    for call in reversed(calls):
        outside = outside[: call.span.start] + outside[call.span.end :]
    bare = "".join(left.split())
    out = []
    for call in calls:
        own = "".join(material.text[call.span.start : call.span.end].split())
        shown = own in bare
        if not shown and call.name:
            shown = left.count(call.name) > outside.count(call.name)
        out.append(not shown)
    return out
