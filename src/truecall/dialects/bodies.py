"""Bodies that many envelopes share: JSON payloads, a name before JSON, Python calls."""

from __future__ import annotations

import re

from truecall.dialects.base import Draft, Source
from truecall.dialects.jsontext import Value, mend, strict
from truecall.dialects.payload import Shapes
from truecall.dialects.pytext import NAME, read_call

_NAME_FIELD = re.compile(
    r"[\"']?(?:name|tool_name|function_name)[\"']?\s*+[:=]\s*+[\"']([^\"'\n]{1,100})[\"']"
)
_SEPARATORS = re.compile(r"[\s,;]*")
_EXTRA = re.compile(r"\s*+[}\]]+")
NAMED = re.compile(
    rf"\s*+(?:functions\.)?({NAME})(?::\d+)?\s*+(?:\[CALL_ID\]\s*+\w+\s*+)?"
    r"(?:\[ARGS\]|<\|?[\w:.\-| ]{1,60}>|\s|json(?=[<{\s]))*+"
    r"\s*+:?\s*+(?:```(?:json)?\s*+)?(?=\{)"
)
_FENCE_END = re.compile(r"\s*+```")
_PY_NAME = re.compile(rf"\s*+{NAME}\s*+\(")
_PY_FORM = re.compile(r"\s*+\[\s*+")
_ITEM = re.compile(r"\{\s*+[\"'“]?(?:name|function|tool|type|id|tool_name|action)\b")
_ASSIGN = re.compile(r"\s*+(?:[^\W\d]\w*\s*+=\s*+|print\(|await\s+|return\s+){0,3}(?:default_api\.)?")
_CUT = ("cut", "cut_string")
_CUT_NAME = re.compile(r"(?:[^\W\d][\w.\-]{0,127})?$")


def json_value(src: Source, at: int, limits: tuple[str, ...], *, fix: bool = True) -> Value:
    """A JSON value at ``at``: strict, or mended up to the nearest of ``limits``.

    A limit that turns out to stand inside a string is passed over, twice at most.
    """
    got = strict(src.text, at)
    if not got.failed or not fix or got.repairs:
        return got
    limit_at = at + 1
    best = got
    for _ in range(3):
        limit, literal = src.find_first(limits, limit_at)
        end = limit if limit >= 0 else src.size
        fixed = mend(src.text, at, end)
        if fixed.failed and "too_deep" in fixed.repairs:
            return fixed
        if not fixed.failed:
            best = fixed
            if "cut_string" not in fixed.repairs:
                return _ended(fixed)
        if limit < 0 or "</" not in literal or end - at > 200_000:
            break
        limit_at = limit + len(literal)
    return best if best.failed else _ended(best)


def _ended(value: Value) -> Value:
    """Name a value that broke off ``unclosed``."""
    if any(r in _CUT for r in value.repairs):
        value.repairs = (*(r for r in value.repairs if r not in _CUT), "unclosed")
    return value


def json_calls(
    src: Source, at: int, shapes: Shapes, limits: tuple[str, ...], *, fix: bool = True
) -> tuple[list[Draft], int]:
    """All JSON payloads from ``at`` on, side by side: (calls, where the last payload ends).

    The end is ``at`` when there is none.
    """
    drafts: list[Draft] = []
    end = at
    text = src.text
    while True:
        match = _SEPARATORS.match(text, end if drafts else at)
        begin = match.end() if match else at
        if begin >= src.size or text[begin] not in "{[":
            return drafts, end
        got = json_value(src, begin, limits, fix=fix)
        found = None if got.failed else shapes.read(got.value, begin, got.end)
        if found is None or (not found and got.repairs and not drafts):
            found = _unread(src, begin, got, shapes)
        if not found:
            return drafts, max(end, got.end) if found is not None and not got.failed else end
        for draft in found:
            draft.repairs += got.repairs
        extra = _EXTRA.match(text, got.end)
        end = got.end
        if extra and not got.repairs and not got.failed:
            found[-1].repairs += ("extra_bracket",)
            end = extra.end()
        if len(found) > 1:
            _spread(src, begin, found)
        drafts += found
        if got.failed or "unclosed" in got.repairs or len(drafts) >= 1000:
            return drafts, end


def _unread(src: Source, begin: int, got: Value, shapes: Shapes) -> list[Draft] | None:
    """An attempt in an envelope whose payload is no call: what can be told of it."""
    if not shapes.envelope:
        return None
    if got.failed:
        match = _NAME_FIELD.search(src.text, begin, min(begin + 400, src.size))
        name = match.group(1) if match else None
        repairs = (*got.repairs, "bad_json")
        return [Draft(name, None, begin, got.end, repairs=repairs, weak=name not in src.tools.tools)]
    listed = isinstance(got.value, list) and all(isinstance(item, dict) for item in got.value)
    if isinstance(got.value, dict) or listed:
        return [Draft(None, None, begin, got.end, repairs=("no_name",), weak=True)]
    return None


def _spread(src: Source, begin: int, found: list[Draft]) -> None:
    """Give each call of an array the place of its own element."""
    at = src.text.find("[", begin, begin + 400) + 1
    places: list[tuple[int, int]] = []
    while at and len(places) < len(found):
        match = _SEPARATORS.match(src.text, at)
        start = match.end() if match else at
        got = strict(src.text, start) if start < src.size else Value(None, start, failed=True)
        if got.failed:
            break
        places.append((start, got.end))
        at = got.end
    end, missing = found[-1].end, len(found) - len(places)
    rest = _items(src.text, max(at, begin), end)[:missing] if missing else []
    if len(rest) < missing:  # an element holds several calls, or can't be told from the next
        places, missing = [], len(found)
        rest = _items(src.text, begin, end)[:missing]
    if len(rest) < missing:
        rest = [begin + (end - begin) * index // missing for index in range(missing)]
    places += zip(rest, [*rest[1:], end], strict=True) if rest else ()
    for draft, place in zip(found, places, strict=True):
        draft.start, draft.end = place


def _items(text: str, at: int, end: int) -> list[int]:
    """Where objects begin that look as if they named a call."""
    return [match.start() for match in _ITEM.finditer(text, at, end)]


def named_json(
    src: Source, at: int, limits: tuple[str, ...], *, dialect: str = ""
) -> tuple[list[Draft], int]:
    """``NAME{…}`` with or without separators between, one or several: (calls, end)."""
    drafts: list[Draft] = []
    end = at
    while True:
        match = NAMED.match(src.norm, end)
        if not match:
            return drafts, end
        got = json_value(src, match.end(), limits)
        name = src.text[match.start(1) : match.end(1)]
        if got.failed or not isinstance(got.value, dict):
            if got.failed:
                drafts.append(Draft(name, None, match.start(1), got.end, repairs=(*got.repairs, "bad_json")))
            return drafts, max(end, got.end if got.failed else end)
        args, defects = unwrap(src, name, got.value)
        draft = Draft(
            name, args, match.start(1), got.end, defects=defects, repairs=got.repairs, dialect=dialect
        )
        drafts.append(draft)
        end = got.end
        fence = _FENCE_END.match(src.text, end)
        if fence and "```" in match.group():
            end = fence.end()
        if got.repairs:
            return drafts, end


def unwrap(src: Source, name: str, value: dict[str, object]) -> tuple[dict[str, object], tuple[str, ...]]:
    """Arguments that repeat the call's own shape (``{"name": W, "arguments": {…}}``) taken out of it."""
    tool = src.tools.get(name)
    order = tool.order if tool else ()
    for key in ("arguments", "parameters", "args", "input"):
        inner = value.get(key)
        if not isinstance(inner, dict) or key in order or (tool is None and value.get("name") != name):
            continue
        if set(value) <= {key, "name", "type", "id"}:
            return inner, ("wrapped_arguments",)
    return value, ()


def python_calls(
    src: Source, at: int, limits: tuple[str, ...], *, listed: bool = True, json_words: bool = False
) -> tuple[list[Draft], int]:
    """Python calls at ``at``, in a list or one per line: (calls, end).

    Calls that break off are kept with ``arguments`` None.
    """
    bracket = _PY_FORM.match(src.text, at) if listed else None
    pos = bracket.end() if bracket else at
    drafts: list[Draft] = []
    end = at
    limit, _ = src.find_first(limits, at) if limits else (-1, "")
    stop = limit if limit >= 0 else src.size
    while True:
        match = _SEPARATORS.match(src.text, pos)
        begin = match.end() if match else pos
        if bracket and drafts and src.text.startswith("]", begin):
            return drafts, begin + 1
        if not _PY_NAME.match(src.text, begin):
            break
        got = read_call(src.text, begin, stop)
        if got is None:
            break
        name = got.name.removesuffix(".call") if got.name.count(".") == 1 else got.name
        tool = src.tools.get(name)
        if "positional_arguments" in got.defects and tool is not None:
            got = read_call(src.text, begin, stop, tool) or got
        arguments, repairs = got.arguments, got.repairs
        if got.cut and stop < src.size and not drafts:
            whole = read_call(src.text, begin, src.size, tool) if not src.tries("reread") else None
            src.fail("reread")
            if whole and not whole.cut:
                got, arguments, repairs = whole, whole.arguments, whole.repairs
                stop = src.size
        if json_words:
            repairs = tuple(r for r in repairs if r != "json_literal")
        drafts.append(Draft(name, arguments, begin, got.end, defects=got.defects, repairs=repairs))
        pos = end = got.end
        if "unclosed" in repairs or "bad_python" in repairs:
            return drafts, end
    if bracket and drafts:
        drafts[-1].defects += ("unclosed",)
        end = src.size if _CUT_NAME.match(src.text, begin) else end
    return drafts, end


def statements(src: Source, begin: int, stop: int, *, own: bool) -> tuple[list[Draft], int]:
    """Python statements that call tools, one per line, printed or assigned: (calls, end).

    ``own``: the block is one that only calls stand in; other statements behind a call are then left alone.
    Empty where a statement is no call, and where an assignment shows that the block is a program.
    """
    drafts: list[Draft] = []
    pos = begin
    while pos < stop and len(drafts) < 1000:
        lead = _ASSIGN.match(src.text, pos, stop)
        start = lead.end() if lead else pos
        printed = "print(" in src.text[pos:start]
        if not own and src.text[pos:start].strip() and not printed:
            return [], begin
        got = read_call(src.text, start, stop)
        if got is None or (own and drafts and got.name not in src.tools.tools):
            return (drafts, pos) if own else ([], begin)
        if "positional_arguments" in got.defects:
            got = read_call(src.text, start, stop, src.tools.get(got.name)) or got
        drafts.append(
            Draft(got.name, got.arguments, start, got.end, defects=got.defects, repairs=got.repairs)
        )
        pos = got.end
        while printed and src.text[pos : pos + 1] == ")":
            pos += 1
        pos = src.skip(pos)
        if "unclosed" in got.repairs:
            break
    return drafts, pos
