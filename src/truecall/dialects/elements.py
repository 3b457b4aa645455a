"""Calls whose parameters are elements or tokens of their own: Cline, MiniMax M3, Kimi K3."""

from __future__ import annotations

import re
from typing import Any

from truecall.dialects.base import Dialect, Draft, Reading, Source
from truecall.dialects.bodies import json_value
from truecall.dialects.tagtext import stated_value
from truecall.dialects.values import typed, unframe
from truecall.schema import Tool

_FIELD = re.compile(r"\s*+<([^\W\d][\w.\-]{0,80})>")
_CUT_TAG = re.compile(r"</?[\w.\-|]{0,40}$")
_ATTRIBUTES = re.compile(r"\s*+((?:[\w\-]{1,60}\s*+=\s*+\"[^\"<>]{0,2000}\"\s*+){0,20})(/?)>")
_PAIR = re.compile(r"([\w\-]+)\s*+=\s*+\"([^\"]*)\"")


class Cline(Dialect):
    """``<tool_name><param>value</param></tool_name>`` with an offered name."""

    name = "cline_xml"
    aliases = ("roo", "cline")
    source = "agent prompts of the Cline kind"
    openers = ("<NAME>",)
    example = "<get_weather>\n<city>Oslo</city>\n</get_weather>"

    def read(self, src: Source, at: int) -> Reading | None:
        stop = at + 1
        while stop < src.size and (src.text[stop].isalnum() or src.text[stop] in "_-.:") and stop - at < 130:
            stop += 1
        name = src.text[at + 1 : stop]
        tool = src.tools.get(name)
        head = _ATTRIBUTES.match(src.text, stop)
        if tool is None or not head:
            return None
        arguments: dict[str, Any] = {}
        for key, raw in _PAIR.findall(head.group(1)):
            arguments[key], _ = typed(raw, key, tool)
        if head.group(2):
            return Reading(self.name, at, head.end(), [Draft(name, arguments, at, head.end())])
        return self._body(src, at, head.end(), name, tool, arguments)

    def _body(
        self, src: Source, at: int, pos: int, name: str, tool: Tool, arguments: dict[str, Any]
    ) -> Reading | None:
        closer = f"</{name}>"
        inner = src.skip(pos)
        repairs: dict[str, None] = {}
        if src.text.startswith("{", inner):
            got = json_value(src, inner, (closer,))
            if got.failed or not isinstance(got.value, dict):
                return None
            shut = src.skip(got.end)
            end = shut + len(closer) if src.text.startswith(closer, shut) else got.end
            draft = Draft(name, got.value, at, end, repairs=got.repairs)
            return Reading(self.name, at, end, [draft], closed=end > got.end)
        while len(arguments) < 200:
            field = _FIELD.match(src.text, pos)
            if not field:
                break
            key = field.group(1)
            if tool.order and key not in tool.properties and key not in ("args", "arguments"):
                if not arguments:
                    return None
                break
            stop, pos, repair = self._value(src, field.end(), key, closer, tool)
            value, more = typed(unframe(src.text[field.end() : stop]), key, tool)
            arguments[key] = value
            repairs.update(dict.fromkeys((repair, *more) if repair else more))
            if repair == "unclosed":
                break
        shut = src.skip(pos)
        closed = src.text.startswith(closer, shut)
        end = shut + len(closer) if closed else pos
        if not arguments and not closed:
            plain = self._plain(src, at, pos, name, tool)
            cut = src.skip(pos) >= src.size or _CUT_TAG.match(src.text, src.skip(pos))
            if plain is not None or not cut or not _begins_line(src, at):
                return plain
            repairs["unclosed"] = None
        elif not arguments and tool.required:
            repairs["missing_arguments"] = None
        elif not closed and not repairs and src.find(closer, pos) < 0:
            repairs["unclosed"] = None
        draft = Draft(
            name, arguments, at, end, repairs=tuple(repairs), defects=() if closed else ("unclosed",)
        )
        return Reading(self.name, at, end, [draft], closed=closed)

    def _plain(self, src: Source, at: int, pos: int, name: str, tool: Tool) -> Reading | None:
        """Text instead of parameters fills the only one, where the tag has its line to itself."""
        stop = src.find(f"</{name}>", pos)
        only = tool.only_parameter
        if only is None or stop < 0 or stop - pos > 20_000 or not _begins_line(src, at):
            return None
        body = src.text[pos:stop]
        end = stop + len(name) + 3
        if not body.strip() or "<" in body or src.text[end : end + 1].strip():
            return None
        draft = Draft(name, {only: unframe(body)}, at, end, repairs=("plain_input",))
        return Reading(self.name, at, end, [draft])

    def _value(
        self, src: Source, start: int, key: str, closer: str, tool: Tool
    ) -> tuple[int, int, str | None]:
        """The value ends at the closing tag before another parameter or the end of the call."""
        shut = f"</{key}>"
        first = at = src.find(shut, start)
        for _ in range(50):
            if at < 0:
                break
            after = at + len(shut)
            inner = src.skip(after)
            follow = _FIELD.match(src.text, after)
            if src.text.startswith(closer, inner) or inner >= src.size or (
                follow and (follow.group(1) in tool.properties or not tool.order)
            ):  # fmt: skip
                return at, after, None
            at = src.find(shut, after)
        if first >= 0:
            return first, first + len(shut), None
        end = src.find(closer, start)
        return (src.size, src.size, "unclosed") if end < 0 else (end, end, "missing_closer")


def _begins_line(src: Source, at: int) -> bool:
    back = src.text[max(0, at - 80) : at].rstrip(" \t")
    return not back or back[-1] == "\n"


class LangChainXml(Dialect):
    """``<tool>NAME</tool><tool_input>…</tool_input>``."""

    name = "langchain_xml"
    aliases = ("xml_agent",)
    source = "LangChain's XML agent and prompts like it"
    openers = ("<tool>", "<tool_name>")
    example = '<tool>get_weather</tool>\n<tool_input>{"city": "Oslo"}</tool_input>'
    _head = re.compile(
        r"<(tool|tool_name|function_name)>\s*+([\w.\-]{1,128})\s*+</\1>\s*+"
        r"<(tool_input|input|args|arguments|parameters|tool_args)>\s*+"
    )

    def read(self, src: Source, at: int) -> Reading | None:
        head = self._head.match(src.text, at)
        if not head or (src.tools.known and head.group(2) not in src.tools.tools):
            return None
        name, closer = head.group(2), f"</{head.group(3)}>"
        tool = src.tools.get(name)
        stop = src.find(closer, head.end())
        if src.text.startswith("{", head.end()):
            got = json_value(src, head.end(), (closer,))
            fine = not got.failed and isinstance(got.value, dict)
            repairs = got.repairs if fine else (*got.repairs, "bad_json")
            end = stop + len(closer) if stop >= got.end else got.end
            draft = Draft(name, got.value if fine else None, at, end, repairs=repairs)
            return Reading(self.name, at, end, [draft], closed=stop >= got.end)
        if src.text.startswith("<", head.end()):
            return self._fields(src, at, head.end(), name, closer)
        end = stop + len(closer) if stop >= 0 else src.size
        raw = src.text[head.end() : stop if stop >= 0 else src.size].strip()
        only = tool.only_parameter if tool else None
        if not raw and stop >= 0:
            return Reading(self.name, at, end, [Draft(name, {}, at, end)])
        repairs = () if only and stop >= 0 else ("plain_input",) if stop >= 0 else ("unclosed",)
        args = {only: raw} if only else None
        return Reading(self.name, at, end, [Draft(name, args, at, end, repairs=repairs)], closed=stop >= 0)

    def _fields(self, src: Source, at: int, pos: int, name: str, closer: str) -> Reading | None:
        """Every parameter an element of its own."""
        tool = src.tools.get(name)
        arguments: dict[str, Any] = {}
        while len(arguments) < 200:
            field = _FIELD.match(src.text, pos)
            if not field:
                break
            shut = f"</{field.group(1)}>"
            stop = src.text.find(shut, field.end())
            if stop < 0:
                draft = Draft(name, arguments, at, src.size, repairs=("unclosed",))
                return Reading(self.name, at, src.size, [draft], closed=False)
            arguments[field.group(1)], _ = typed(src.text[field.end() : stop], field.group(1), tool)
            pos = stop + len(shut)
        here = src.skip(pos)
        closed = src.text.startswith(closer, here)
        end = here + len(closer) if closed else pos
        return Reading(self.name, at, end, [Draft(name, arguments, at, end)], closed=closed)


class MiniMaxM3(Dialect):
    """Every tag behind ``]<]minimax[>[``; objects and arrays are nested elements."""

    name = "minimax_m3"
    source = "MiniMax-M3"
    openers = ("]<]minimax[>[",)
    example = (
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Oslo'
        "]<]minimax[>[</city>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>"
    )
    _tag = re.compile(r"\]<\]minimax\[>\[\s*+<(/?)([\w.\-:]+)(?:\s+name=\"?([^\"<>]*)\"?)?\s*+>")

    def read(self, src: Source, at: int) -> Reading | None:
        begin = at - 1 if at and src.text[at - 1] == "]" else at
        tag = self._tag.match(src.text, begin)
        if not tag or tag.group(1) or tag.group(2) not in ("tool_call", "tool_calls", "invoke"):
            return None
        drafts: list[Draft] = []
        pos = begin
        closed = False
        while tag:
            if tag.group(1):
                closed = tag.group(2).startswith("tool_call")
                pos = tag.end()
                break
            if tag.group(2) == "invoke":
                draft, pos = self._invoke(src, tag)
                drafts.append(draft)
            else:
                pos = tag.end()
            tag = self._tag.match(src.text, src.skip(pos))
        if not drafts:
            return None
        drafts[0].start = begin
        return Reading(self.name, begin, pos, drafts, closed=closed, defects=() if closed else ("unclosed",))

    def _invoke(self, src: Source, head: re.Match[str]) -> tuple[Draft, int]:
        name = head.group(3) or ""
        tool = src.tools.get(name)
        stack: list[list[Any]] = [["", []]]
        pos = head.end()
        repairs: dict[str, None] = {}
        while True:
            tag = src.search(self._tag, pos)
            if not tag:
                repairs["unclosed"] = None
                pos = src.size
                break
            between = src.text[pos : tag.start()]
            pos = tag.end()
            if not tag.group(1):
                if len(stack) > 60:
                    repairs["bad_body"] = None
                    break
                stack.append([tag.group(2), []])
                continue
            if tag.group(2) == "invoke":
                if len(stack) > 1:
                    repairs["missing_closer"] = None
                break
            label, children = stack.pop() if len(stack) > 1 else ("", [])
            if label != tag.group(2):
                repairs["bad_body"] = None
                break
            stack[-1][1].append((label, children or between))
        arguments = {key: _tree(value, key, tool) for key, value in stack[0][1]}
        return Draft(name or None, arguments, head.start(), pos, repairs=tuple(repairs)), pos


def _tree(value: Any, key: str, tool: Tool | None) -> Any:
    """Nested elements as an object or array, text as the schema's type."""
    if isinstance(value, str):
        return typed(value, key, tool)[0]
    labels = {label for label, _ in value}
    kinds = tool.types(key) if tool else frozenset()
    if "array" in kinds or (labels == {"item"} and "object" not in kinds):
        items = tool.properties.get(key, {}).get("items") if tool else None
        inner = Tool("", {"properties": {"item": items}}) if items else None
        return [_tree(child, "item", inner) for _, child in value]
    schema = tool.properties.get(key) if tool else None
    nested = Tool("", schema) if isinstance(schema, dict) else None
    return {label: _tree(child, label, nested) for label, child in value}


class KimiK3(Dialect):
    name = "kimi_k3"
    source = "Kimi K3"
    openers = ("<|open|>",)
    example = (
        '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" '
        'type="string"<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
    )
    _call = re.compile(r"\s*+<\|open\|>call\s+tool=\"([^\"<>]*)\"[^<>]{0,80}<\|sep\|>")
    _argument = re.compile(
        r"\s*+<\|open\|>argument\s+key=\"([^\"<>]*)\"(?:\s+type=\"(\w+)\")?[^<>]{0,80}<\|sep\|>"
    )

    def read(self, src: Source, at: int) -> Reading | None:
        pos = at
        if src.norm.startswith("<|open|>tools<|sep|>", at):
            pos = at + len("<|open|>tools<|sep|>")
        drafts: list[Draft] = []
        while len(drafts) < 1000:
            call = self._call.match(src.norm, pos)
            if not call:
                break
            draft, pos = self._arguments(src, call)
            drafts.append(draft)
        if not drafts:
            return None
        drafts[0].start = at
        shut = re.compile(r"\s*+<\|close\|>tools<\|sep\|>").match(src.norm, pos)
        return Reading(self.name, at, shut.end() if shut else pos, drafts, closed=bool(shut))

    def _arguments(self, src: Source, call: re.Match[str]) -> tuple[Draft, int]:
        name = _unescape(src.text[call.start(1) : call.end(1)])
        tool = src.tools.get(name)
        pos = call.end()
        arguments: dict[str, Any] = {}
        repairs: dict[str, None] = {}
        while True:
            found = self._argument.match(src.norm, pos)
            if not found:
                break
            stop = src.find("<|close|>argument<|sep|>", found.end())
            ended = src.find("<|close|>call<|sep|>", found.end())
            following = src.find("<|open|>argument ", found.end())
            if 0 <= following < stop or (stop < 0 <= following and following < ended):
                repairs["missing_closer"] = None
                stop = pos = following
            elif ended >= 0 and (stop < 0 or ended < stop):
                repairs["missing_closer"] = None
                stop = pos = ended
            elif stop < 0:
                repairs["unclosed"] = None
                stop = pos = src.size
            else:
                pos = stop + len("<|close|>argument<|sep|>")
            key = _unescape(found.group(1))
            stated = found.group(2)
            value, more = stated_value(src.text[found.end() : stop], key, tool, stated, False)
            arguments[key] = value
            repairs.update(dict.fromkeys(more))
        shut = re.compile(r"\s*+<\|close\|>call<\|sep\|>").match(src.norm, pos)
        if not shut and not src.norm.startswith("<|c", pos):
            repairs["unclosed"] = None
        end = shut.end() if shut else pos
        defects = () if shut else ("unclosed",)
        return Draft(name, arguments, call.start(), end, defects=defects, repairs=tuple(repairs)), end


def _unescape(text: str) -> str:
    for code, char in (("&quot;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(code, char)
    return text
