"""Calls written as tags with a name and one tag per parameter.

One grammar with many spellings: ``<function=W><parameter=k>v</parameter></function>``,
``<invoke name="W"><parameter name="k">v</parameter></invoke>``, with any vendor prefix on the tags.
A value ends at the closing tag that is followed by what can follow a value; the same tag elsewhere is text
of the value's own.
"""

from __future__ import annotations

import re
from typing import Any

from truecall.dialects.base import Draft, Source
from truecall.dialects.bodies import json_value, unwrap
from truecall.dialects.values import typed, unframe
from truecall.schema import Tool

_PREFIX = r"(?:[\w.\-]{1,24}:|\|{1,2} ?[\w.]{1,24} ?\|{1,2} ?)?"
_HEAD = r"(?:invoke|function|tool_call|function_call|tool|call)"
_PARAM = r"(?:parameter|param|argument|arg)"
HEAD = re.compile(
    rf"<({_PREFIX})({_HEAD})(?:\s+(?:name|tool|function)\s*+=\s*+|\s*+=\s*+)[\"']?([^\s\"'<>{{(\[]{{1,128}})[\"']?"
)
_QUOTED_HEAD = re.compile(rf"<{_PREFIX}{_HEAD}=[\"']")
_HEAD_END = re.compile(r"[^\n<>{]{0,200}?(>)|[\s>(\[\],:]*(?=\{)|[ \t]*+(?=\n|$)")
_PARAM_OPEN = re.compile(
    rf"<{_PREFIX}{_PARAM}(?:\s+(?:name|key)\s*+=\s*+|\s*+=\s*+|\s+)[\"']?([^\s\"'<>=]{{1,128}})[\"']?([^<>\n]{{0,200}})(>|(?=\n))"
)
_TOKEN = re.compile(
    rf"<(/?){_PREFIX}({_HEAD}|{_PARAM}|tool_calls|toolcalls|function_calls|calls|dots_function_call)"
    r"(?=[\s=>]|$)"
)
_ATTRIBUTE = re.compile(r"(\w+)\s*+=\s*+[\"']([^\"']*)[\"']")
_FIELD = re.compile(r"<([^\W\d][\w\-]{0,80})>")
_CDATA = re.compile(r"\s*+<!\[CDATA\[(.*?)\]\]>\s*+$", re.DOTALL)
_LITERAL = re.compile(rf"<{_PREFIX}{_PARAM}(?:\s[^<>\n]{{0,200}})?>")
_NESTED_TRIES = 8  # readings that ran to the end of the text in vain before nesting is given up
_HEAD_WORDS = frozenset(("invoke", "function", "tool_call", "function_call", "tool", "call"))
_PARAM_WORDS = frozenset(("parameter", "param", "argument", "arg"))


class Element:
    """One ``<invoke …>`` being read: its parameters, and how it ended."""

    __slots__ = ("closed", "defects", "end", "params", "repairs")

    def __init__(self) -> None:
        self.params: list[tuple[str, str, str]] = []
        self.defects: dict[str, None] = {}
        self.repairs: dict[str, None] = {}
        self.end = 0
        self.closed = False


def read_element(src: Source, at: int, *, python: bool = False, trim: bool = True) -> Draft | None:
    """The call whose head tag opens at ``at``; None when no head does.

    The draft's ``dialect`` is ``functionary`` for a JSON body behind ``<function=``, else "".
    """
    head = HEAD.match(src.norm, at)
    if not head:
        return None
    name = src.text[head.start(3) : head.end(3)]
    word = head.group(2)
    tail = _HEAD_END.match(src.norm, head.end())
    body = tail.end() if tail else head.end()
    tool = src.tools.get(name)
    inside = src.skip(body)
    if src.text.startswith("{", inside):
        return _json_element(src, at, inside, name, word, closed_head=bool(tail and tail.group(1)))
    element = Element()
    if _QUOTED_HEAD.match(src.norm, at):
        element.repairs["bad_header"] = None
    if not (tail and tail.group(1)):
        element.repairs["bad_header"] = None
    _walk(src, body, word, tool, element)
    return _draft(name, tool, at, element, python=python, trim=trim)


def _json_element(src: Source, at: int, inside: int, name: str, word: str, closed_head: bool) -> Draft:
    closer = f"</{word}>"
    got = json_value(src, inside, (closer, "</", f"<{word}"))
    dialect = "functionary" if word == "function" else ""
    defects: tuple[str, ...] = () if closed_head else ("bad_header",)
    end = got.end
    close = re.compile(rf"[\s)>\]]*</{_PREFIX}{word}>?").match(src.norm, end)
    if close:
        end = close.end()
    else:
        defects += ("unclosed",)
    if got.failed or not isinstance(got.value, dict):
        return Draft(name, None, at, end, defects=defects, repairs=("bad_json",), dialect=dialect)
    args, more = unwrap(src, name, got.value)
    return Draft(name, args, at, end, defects=defects + more, repairs=got.repairs, dialect=dialect)


def _walk(src: Source, at: int, word: str, tool: Tool | None, element: Element) -> None:
    """Collect the parameters from ``at`` up to the end of the element."""
    norm = src.norm
    pos = at
    while True:
        param = _PARAM_OPEN.match(norm, src.skip(pos))
        if param:
            pos = _parameter(src, param, word, tool, element)
            if pos < 0:
                element.end = src.size
                return
            continue
        field = _FIELD.match(norm, src.skip(pos)) if tool is not None else None
        if field and tool is not None and field.group(1) in tool.properties:
            stop = norm.find(f"</{field.group(1)}>", field.end())
            if stop >= 0:
                element.params.append((field.group(1), src.text[field.end() : stop], ""))
                pos = stop + len(field.group(1)) + 3
                continue
        token = src.search(_TOKEN, pos)
        if not token:
            rest = norm[pos:].strip()
            element.end = src.size if not rest or (rest.startswith("<") and len(rest) < 60) else src.skip(pos)
            element.defects["unclosed"] = None
            if (not element.params and tool is not None and tool.required) or (
                element.params and _CUT_TAG.match(rest)
            ):
                element.repairs["unclosed"] = None  # more parameters could have followed
            return
        between = norm[pos : token.start()].strip()
        if token.group(2) in _PARAM_WORDS:
            # A doubled closer, or an opener that is none.
            element.repairs["doubled_closer" if token.group(1) else "bad_header"] = None
            pos = norm.find(">", token.end()) + 1 or src.size
            continue
        if between:
            element.defects["text_between"] = None
        ends = bool(token.group(1)) and token.group(2) == word
        element.closed = ends
        if ends:
            close = norm.find(">", token.end(), token.end() + 4)
            element.end = close + 1 if close >= 0 else token.end()
        else:
            element.defects["unclosed"] = None
            element.end = pos
        return


def _parameter(src: Source, param: re.Match[str], word: str, tool: Tool | None, element: Element) -> int:
    """Read one value; the place after it, or -1 when the text ended inside."""
    key = src.text[param.start(1) : param.end(1)]
    attributes = param.group(2) or ""
    if param.group(3) != ">":
        element.repairs["bad_header"] = None
    start = param.end()
    nested = src.tries("nested") + src.tries("closers") < _NESTED_TRIES
    stop, after, repair = _value_end(src, start, word, tool, nested)
    if after < 0 and nested:
        src.fail("nested")
        src.doubt(start)
        stop, after, repair = _value_end(src, start, word, tool, False)
    raw = src.text[start:stop]
    element.params.append((key, raw.rstrip() if repair == "missing_closer" else raw, attributes))
    if repair:
        element.repairs[repair] = None
    return after


def _value_end(
    src: Source, start: int, word: str, tool: Tool | None, nested: bool
) -> tuple[int, int, str | None]:
    """Where a value ends and reading goes on: (end of value, next place or -1, repair).

    ``nested``: a call written out inside the value belongs to the value.
    """
    norm = src.norm
    depth = literal = 0
    fallback = -1
    pos = start
    while True:
        token = src.search(_TOKEN, pos)
        if not token:
            if fallback >= 0:
                src.fail("closers")
                return fallback, norm.find(">", fallback) + 1 or src.size, "text_between"
            return src.size, -1, "unclosed"
        pos = token.end()
        closing, what = bool(token.group(1)), token.group(2)
        if what in _PARAM_WORDS:
            if depth:
                continue
            if not closing:
                if _PARAM_OPEN.match(norm, token.start()):
                    if fallback >= 0 and (src.tries("closers") or _knows(src, token.start(), tool)):
                        return fallback, norm.find(">", fallback) + 1 or src.size, "text_between"
                    if _opens(src, token.start(), tool, start):
                        return token.start(), token.start(), "missing_closer"
                elif _LITERAL.match(norm, token.start()):
                    literal += 1
                continue
            after = norm.find(">", pos, pos + 3) + 1 or pos
            verdict = _follows(norm, after, word)
            if verdict == "ends":
                return token.start(), after, None
            if verdict == "again" and literal > 0:
                literal -= 1
            elif verdict == "again":
                return token.start(), after, None
            elif fallback < 0:
                fallback = token.start()
            continue
        if what not in _HEAD_WORDS:
            continue
        if not closing:
            if HEAD.match(norm, token.start()):
                if nested and what == word:
                    depth += 1
                elif not nested and _begins_line(norm, token.start()):
                    return token.start(), token.start(), "missing_closer"
            elif not nested and what == "tool_call" and HEAD.match(norm, src.skip(pos + 1)):
                return token.start(), token.start(), "missing_closer"
            continue
        if what == word:
            if depth:
                depth -= 1
            elif _closes_call(norm, pos):
                return token.start(), token.start(), "missing_closer"


def _begins_line(norm: str, at: int) -> bool:
    back = norm[max(0, at - 60) : at].rstrip(" \t")
    return not back or back[-1] in "\n>"


def _knows(src: Source, at: int, tool: Tool | None) -> bool:
    """Whether the parameter tag at ``at`` names a parameter that the tool has, as far as is known."""
    if tool is None or not tool.order:
        return True
    match = _PARAM_OPEN.match(src.norm, at)
    return match is not None and match.group(1) in tool.properties


def _opens(src: Source, at: int, tool: Tool | None, start: int) -> bool:
    """Whether a parameter tag inside an open value begins the next parameter."""
    if not _knows(src, at, tool):
        return False
    line = src.text.rfind("\n", start, at)
    return tool is not None or (line >= 0 and src.text[line + 1 : at].isspace()) or line == at - 1


_AFTER_VALUE = re.compile(
    rf"\s*+(?:$|</?[^<>\s]{{0,40}}$|</{_PREFIX}(?:{_HEAD}|tool_calls|toolcalls|function_calls|calls)\b|<{_PREFIX}{_PARAM}(?:\s|=)"
    rf"|<{_PREFIX}(?:{_HEAD})[\s=>]|<\||</s>|<end_of_turn>)"
)
_CUT_TAG = re.compile(r"(?:<(?!/)[^<>]*)?$")  # nothing, or an opening tag that the end of the text cut
_AGAIN = re.compile(rf"\s*+</{_PREFIX}{_PARAM}>")
_AFTER_CALL = re.compile(
    rf">?\s*+(?:$|</?{_PREFIX}(?:{_HEAD}|tool_calls|toolcalls|function_calls|calls)\b|<\||</s>|<end_of_turn>)"
)


def _follows(norm: str, at: int, word: str) -> str:
    """What stands after a value's closing tag: "ends" the value, the tag "again", or text ("")."""
    if _AFTER_VALUE.match(norm, at):
        return "ends"
    return "again" if _AGAIN.match(norm, at) else ""


def _closes_call(norm: str, at: int) -> bool:
    return _AFTER_CALL.match(norm, at) is not None


def _stated(attributes: str) -> str | None:
    """The type that a parameter's own attributes give (DSML ``string=``, Kimi ``type=``)."""
    for key, value in _ATTRIBUTE.findall(attributes):
        if key == "string":
            return "string" if value == "true" else "json"
        if key == "type" and value:
            return str(value)
    return None


def stated_value(raw: str, key: str, tool: Tool | None, stated: str | None, python: bool) -> Any:
    """A value by the type in the markup, or by the schema where the markup says only "JSON"."""
    if stated == "json":
        value, repairs = typed(raw, key, None, python=python)
        if isinstance(value, str) and raw.strip()[:1] in ("{", "["):
            return typed(raw, key, None, python=python, stated="object" if raw.strip()[0] == "{" else "array")
        return value, repairs
    return typed(raw, key, tool, python=python, stated=stated)


def _draft(name: str, tool: Tool | None, at: int, element: Element, *, python: bool, trim: bool) -> Draft:
    arguments: dict[str, Any] = {}
    repairs = dict(element.repairs)
    for key, raw, attributes in element.params:
        raw = unframe(raw) if trim else raw
        cdata = _CDATA.match(raw)
        if cdata:
            raw = cdata.group(1)
        value, more = stated_value(raw, key, tool, _stated(attributes), python)
        arguments[key] = value
        repairs.update(dict.fromkeys(more))
    defects = tuple(element.defects)
    if len(arguments) == 1:
        (key,) = arguments
        inner = arguments[key]
        own = tool is not None and key in tool.properties
        if isinstance(inner, dict) and not own and key in ("arguments", "input", "args", "parameters"):
            arguments = inner
            repairs["wrapped_arguments"] = None
    return Draft(name, arguments, at, element.end, defects=defects, repairs=tuple(repairs))
