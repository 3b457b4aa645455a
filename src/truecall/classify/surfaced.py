"""Structured calls as the interface gave them, read without trust: marks of a stack's own damage are named."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from truecall.classify.tools import emission
from truecall.detector import detect
from truecall.records import Emission, Json, Record, ToolCall, Violation
from truecall.schema import Toolset
from truecall.wire.calls import CallDraft
from truecall.wire.values import plain

_decode = json.JSONDecoder().raw_decode
_MAX_RETRIES: Final = 32  # places tried when a broken argument text is searched for its last whole object
_MAX_DEPTH: Final = 200
_MARKUP: Final = re.compile(r"[<>{}\n]")


class Surfaced(Record, frozen=True):
    """One call read from the interface.

    ``mark`` is the rule of the damage that shows (``call.mangled.…``, ``call.cut_off.…``) or None. With
    ``call.mangled.concatenated`` one entry of the interface gives several of these.
    """

    call: ToolCall
    name: str | None
    arguments: dict[str, Json] | None
    emission: Emission
    mark: str | None = None
    defects: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()


def read(
    calls: Sequence[ToolCall],
    tools: Toolset,
    offered: Sequence[Json] | None,
    *,
    cut: str | None,
    stream: bool,
    prefilled: bool = False,
    twice: bool = False,
) -> list[Surfaced]:
    """Every surfaced call. ``cut``: what ended the answer early (``budget``, ``stream``, ``filter``), or None.

    In a stream, calls that came under one index are marked: clients join what has the same index. A stream
    that goes on from a prefill sends only what comes after it: arguments without their beginning are marked.
    ``twice``: pieces of some arguments were seen to come twice.
    """
    if stream and prefilled:
        return [_unbegun(s) for s in read(calls, tools, offered, cut=None, stream=True)]
    if twice:
        return [_doubled(s, tools) for s in read(calls, tools, offered, cut=cut, stream=stream)]
    shared = _shared_indices(calls) if stream and len(calls) > 1 else frozenset()
    entries = list(_join_nameless(calls))
    last = len(entries) - 1
    out: list[Surfaced] = []
    for place, (call, nameless) in enumerate(entries):
        around = None
        if nameless:
            around = "call.mangled.nameless"
        elif call.index in shared:
            around = "call.mangled.concatenated"
        read_entry = _entry(call, around, tools, offered, cut if place == last else None)
        out.extend(_unfilled(s, cut if place == last else None, stream=stream) for s in read_entry)
    return out


def _unfilled(s: Surfaced, cut: str | None, *, stream: bool) -> Surfaced:
    """Arguments that never came, or came in part as an object, told by the parameters that are missing.

    A stream's arguments begin empty, and an API that gives objects gives what it has when the budget ends.
    """
    missing = bool(s.violations) and all(violation.kind == "missing" for violation in s.violations)
    if s.mark or not missing:
        return s
    if cut is not None and isinstance(s.call.arguments, Mapping):
        mark = f"call.cut_off.{cut}"
    elif stream and "no_arguments" in s.defects:
        mark = "call.mangled.cut"
    else:
        return s
    return structs.replace(s, mark=mark, arguments=None, emission=Emission.MALFORMED, violations=())


def _unbegun(s: Surfaced) -> Surfaced:
    faulty = s.arguments is None or "no_arguments" in s.defects
    if s.mark or not faulty:
        return s
    return structs.replace(
        s, mark="call.mangled.cut", arguments=None, emission=Emission.MALFORMED, violations=()
    )


def _doubled(s: Surfaced, tools: Toolset) -> Surfaced:
    """Arguments that do not parse because a piece came twice; what stands before the second is the call."""
    if s.mark or s.arguments is not None or not isinstance(s.call.arguments, str):
        return s
    values, _ = _objects(s.call.arguments)
    arguments = _clean(values[0]) if values and isinstance(values[0], dict) else None
    kind, violations = emission(tools, s.name, arguments)
    return structs.replace(
        s, mark="call.mangled.doubled", arguments=arguments, emission=kind, violations=violations
    )


def _shared_indices(calls: Sequence[ToolCall]) -> frozenset[int]:
    counts = Counter(call.index for call in calls if call.index is not None)
    return frozenset(index for index, count in counts.items() if count > 1)


def _entry(
    call: ToolCall, around: str | None, tools: Toolset, offered: Sequence[Json] | None, cut: str | None
) -> Iterator[Surfaced]:
    """``around``: the mark that the entry has from its place among the others."""
    names, name_mark, payload = _names(call.name, tools, offered)
    readings = iter([(payload, None, ())]) if payload is not None else _arguments(call.arguments, cut)
    for place, (arguments, mark, defects) in enumerate(readings):
        name = names[min(place, len(names) - 1)]
        mark = around or name_mark or mark
        kind, violations = emission(tools, name, arguments)
        yield Surfaced(
            call=call,
            name=name,
            arguments=arguments,
            emission=kind,
            mark=mark,
            defects=defects,
            violations=violations,
        )


def _join_nameless(calls: Sequence[ToolCall]) -> Iterator[tuple[ToolCall, bool]]:
    """An entry without a name belongs to the entry before it, while that one's arguments are not whole."""
    entries: list[list[ToolCall]] = []
    so_far = CallDraft(None)
    for call in calls:
        if entries and not call.name and call.arguments and not so_far.full():
            entries[-1].append(call)
        else:
            entries.append([call])
            so_far = CallDraft(None)
        so_far.add_arguments(call.arguments)
    for first, *others in entries:
        yield (_joined(first, others) if others else first), bool(others)


def _joined(first: ToolCall, others: Sequence[ToolCall]) -> ToolCall:
    whole = CallDraft(first.index)
    for call in (first, *others):
        if call.arguments:
            whole.add_arguments(call.arguments)
    return structs.replace(first, arguments=whole.finish(set()).arguments)


# --------------------------------------------------------------------------- names

_NAME_HEAD: Final = re.compile(r"(?:functions?[.:])?([^\s<>\[\]|{}()\"']+?)(?::\d+)?(?=[\s<>\[\]|{}()\"']|$)")

_LONGEST_JOINED: Final = 512  # characters of a name in which several are looked for

_Names = tuple[tuple[str | None, ...], str | None, dict[str, Json] | None]


def _names(name: str | None, tools: Toolset, offered: Sequence[Json] | None) -> _Names:
    """The name that was meant (or the names), the damage on it, the arguments where the name holds them too."""
    if not name:
        return (None,), "call.mangled.nameless", None
    if tools.offered(name):
        return (name,), None, None
    joined = _offered_in(name, tools)
    if joined:
        alike = len(set(joined)) == 1
        return joined, "call.mangled.doubled" if alike else "call.mangled.concatenated", None
    head = _NAME_HEAD.match(name.lstrip())
    if head and head[1] != name and tools.offered(head[1]):
        return (head[1],), "call.mangled.name", None
    if not _MARKUP.search(name):
        return (name,), None, None
    inside = detect(name, offered).calls
    if inside and inside[0].name:
        return (inside[0].name,), "call.mangled.name", inside[0].reading()
    return (head[1] if head else name,), "call.mangled.name", None


def _offered_in(name: str, tools: Toolset) -> tuple[str, ...]:
    """The offered names, two or more, of which ``name`` is made; none where it is not."""
    if len(name) > _LONGEST_JOINED:
        return ()
    ways: dict[int, tuple[str, ...]] = {0: ()}
    for at in range(len(name)):
        if at in ways:
            for known in tools.names:
                if known and name.startswith(known, at):
                    ways.setdefault(at + len(known), (*ways[at], known))
    return ways.get(len(name), ())


# --------------------------------------------------------------------------- arguments

_TAIL: Final = re.compile(r"(?:\s*(?:</?[\w:.-]{1,40}>|<\|[\w:./-]{1,40}\|>))+\s*")  # tags, control tokens
_BRACKETS: Final = re.compile(r"[\]}]*")

_Reading = tuple[dict[str, Json] | None, str | None, tuple[str, ...]]


def _arguments(value: Json, cut: str | None) -> Iterator[_Reading]:
    """(arguments or None, mark, defects) for each call whose arguments stand in ``value``."""
    if isinstance(value, Mapping):
        yield dict(value), None, ()
    elif value is None or (isinstance(value, str) and not value.strip()):
        yield (None, f"call.cut_off.{cut}", ("no_arguments",)) if cut else ({}, None, ("no_arguments",))
    elif not isinstance(value, str):
        yield None, None, ("not_object",)
    else:
        yield from _from_text(value, cut)


def _from_text(text: str, cut: str | None) -> Iterator[_Reading]:
    if text.count("{") + text.count("[") > _MAX_DEPTH and _depth(text) > _MAX_DEPTH:
        yield None, None, ("too_deep",)
        return
    values, rest = _objects(text)
    if values and not rest:
        yield from _whole(values)
    elif values and isinstance(values[0], dict) and (mark := _mark_of_tail(text)):
        yield _clean(values[0]), mark, ("trailing_text",)
    elif is_cut_json(text):
        yield None, f"call.cut_off.{cut}" if cut else "call.mangled.cut", ("cut_json",)
    elif text.lstrip()[:1] == '"' and _parses("{" + text):  # the beginning is what is missing
        yield None, "call.mangled.cut", ("cut_json",)
    elif (found := _last_object(text)) is not None:
        yield found, "call.mangled.doubled", ("bad_json",)
    else:
        yield None, None, ("trailing_text" if values and isinstance(values[0], dict) else "bad_json",)


def _mark_of_tail(text: str) -> str | None:
    """What follows the object at the beginning of ``text``: markup, or its own end again (not brackets alone)."""
    text = text.strip()
    end = _decode(text)[1]
    tail = text[end:].strip()
    if _TAIL.fullmatch(tail):
        return "call.mangled.markup"
    return "call.mangled.doubled" if text.endswith(tail, 0, end) and not _BRACKETS.fullmatch(tail) else None


def _whole(values: list[Json]) -> Iterator[_Reading]:
    first, *others = values
    filled = [value for value in values if value != {}]
    if others and len(filled) == 1 and isinstance(filled[0], dict):  # a stream that began or ended with {}
        yield _clean(filled[0]), "call.mangled.doubled", ()
        return
    if others and all(isinstance(value, dict) for value in values):
        if all(value == first for value in others):
            yield _clean(first), "call.mangled.doubled", ()
        else:
            yield from ((_clean(value), "call.mangled.concatenated", ()) for value in values)
        return
    defects: tuple[str, ...] = ()
    if isinstance(first, str):  # double encoded: decode once more before judging the schema
        inner, rest = _objects(first)
        if len(inner) == 1 and not rest:
            first, defects = inner[0], ("double_encoded",)
    if first is None:
        yield {}, None, ("null_arguments",)
    elif isinstance(first, dict) and not others:
        yield _clean(first), None, defects
    else:
        yield None, None, ("not_object",)


def _objects(text: str) -> tuple[list[Json], str]:
    """The JSON values that stand one after another in ``text``, and what follows them."""
    values: list[Json] = []
    at, end = 0, len(text)
    while True:
        while at < end and text[at] in " \t\r\n":
            at += 1
        if at == end:
            return values, ""
        try:
            value, at = _decode(text, at)
        except (ValueError, RecursionError):
            return values, text[at:]
        values.append(value)


def _last_object(text: str) -> dict[str, Json] | None:
    """A whole object at the end of a text that began with a piece of it (a stream joined twice)."""
    begun = text.lstrip()[1:].lstrip()
    at = len(text)
    for _ in range(_MAX_RETRIES):
        at = text.rfind("{", 1, at)
        if at < 1:
            return None
        try:
            value, end = _decode(text, at)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and value and not text[end:].strip():
            first_key = json.dumps(next(iter(value)), ensure_ascii=False)
            return _clean(value) if begun.startswith(first_key) else None
    return None


def _clean(value: dict[str, Json]) -> dict[str, Json]:
    """The arguments without lone surrogates, so that they can be written as UTF-8."""
    found = plain(value)
    return found if isinstance(found, dict) else {}


# --------------------------------------------------------------------------- cut JSON

_PIECES: Final = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[{}\[\]]', re.DOTALL)
_PARTIAL_END: Final = re.compile(r"[-+.\w]+$")
_PARTIAL_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")


def _depth(text: str) -> int:
    """How deep brackets are nested in ``text``, strings left out."""
    depth = deepest = 0
    for piece in _PIECES.finditer(text):
        if piece[0] in ("{", "["):
            depth += 1
            deepest = max(deepest, depth)
        elif piece[0] in ("}", "]"):
            depth -= 1
    return deepest


def is_cut_json(text: str) -> bool:
    """True when ``text`` is a proper beginning of a JSON object or array, and nothing else is wrong with it."""
    closers: list[str] = []
    in_string = False
    for piece in _PIECES.finditer(text):
        mark = piece[0]
        if mark[0] == '"':
            in_string = not piece[1]
        elif mark in "{[":
            closers.append("}" if mark == "{" else "]")
        elif not closers or closers.pop() != mark:
            return False
    if not closers:
        return False
    if in_string:
        body = _PARTIAL_ESCAPE.sub("", text)
        candidates = [body + '"', body + '":null']
    else:
        body = text.rstrip()
        candidates = [body, body.rstrip(","), body + "null", body + ":null", _PARTIAL_END.sub("0", body)]
    end = "".join(reversed(closers))
    return any(_parses(candidate + end) for candidate in candidates)


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
