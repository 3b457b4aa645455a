"""GLM's key and value tags inside ``<tool_call>``, and the vendors who took them over."""

from __future__ import annotations

import re
from typing import ClassVar

from truecall.dialects.base import Dialect, Draft, Reading, Source
from truecall.dialects.bodies import json_value
from truecall.dialects.hermes import Hermes, close, mirror
from truecall.dialects.payload import PSEUDO
from truecall.dialects.values import typed
from truecall.schema import Tool

_TAG = r"(?:[\w]{1,12}[|:])?"
_SUFFIX = r"(?::[\w\-]{1,40})?"
_KEY = re.compile(
    rf"(?:\s|\\n)*<{_TAG}arg_key{_SUFFIX}(?:\s[^<>\n]{{0,80}})?>(.{{0,200}}?)</{_TAG}arg_key{_SUFFIX}>(?:\s|\\n)*"
    rf"(?:<{_TAG}arg_type>\s*+(\w{{0,20}})\s*+</{_TAG}arg_type>\s*+)?<{_TAG}arg_value{_SUFFIX}([^<>\n]{{0,80}})>",
    re.DOTALL,
)
_END = re.compile(rf"</{_TAG}arg_value{_SUFFIX}>")
_NEXT = re.compile(rf"(?:\s|\\n)*(?:$|<{_TAG}arg_key|</?[\w|:]{{0,24}}tool_calls?|<\||</s>)")
_BREAK = re.compile(rf"\s*+(?:<{_TAG}arg_key>|</[\w|:]{{0,24}}tool_call[\w:]*>)")
_NAME = re.compile(r"(?:\s|\\n)*([^\W\d][\w.\-:/]{0,127}?)(?:\s|\\n|<[\w|]*tool_sep[\w:]*>)*(?=<|\{|$)")
_OUTER = re.compile(r"<tool_calls[\w:\-]*>$")
_LAST_NAME = re.compile(r"(?:^|[\n>])\s*+([^\W\d][\w.\-]{0,127})\s*+$")
_GAP = re.compile(r"(?:\s|\\n)*")
_CUT_KEY = re.compile(
    rf"<(?:[\w|:]{{0,20}}$|{_TAG}arg_key[^<>]{{0,40}}(?:>[^<]{{0,200}}(?:<[^<>]{{0,60}}(?:>\s*+(?:<[^<>]{{0,60}})?)?)?)?$)"
)
_FUSED = re.compile(rf"\s*+([\w.\-]{{2,200}})</{_TAG}arg_key>\s*+<{_TAG}arg_value>")
_TYPE = re.compile(r"type\s*+=\s*+[\"']?(\w+)")


class Glm(Dialect):
    name = "glm"
    aliases: ClassVar[tuple[str, ...]] = ("glm45", "glm47", "glm5", "ling3", "spark25", "poolside_v1")
    source = "GLM-4.5 to 5, Ling 3, Laguna, Spark 2.5, IQuest"
    openers: ClassVar[tuple[str, ...]] = ("<tool_call>",)
    closers: ClassVar[tuple[str, ...]] = ("</tool_call>",)
    example = "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>"
    opening = Hermes.opening

    def read(self, src: Source, at: int) -> Reading | None:
        match = self.opening.match(src.norm, at)
        if not match:
            return None
        begin = match.end()
        fused = _FUSED.match(src.norm, begin)
        if fused:
            return self._fused(src, at, fused)
        head = _NAME.match(src.norm, begin)
        if not head:
            return None
        name = src.text[head.start(1) : head.end(1)]
        pos = head.end()
        if name.lower() in PSEUDO and name not in src.tools.tools:
            return Reading(self.name, at, pos, [])
        before = src.norm[max(0, at - 60) : at].rstrip()
        hunyuan = "tool_sep" in head.group() or _OUTER.search(before)
        dialect = HunyuanV3.name if hunyuan and type(self) is Glm else ""
        if src.text.startswith("{", pos):
            return self._json(src, at, pos, name)
        draft, end = self._pairs(src, at, pos, name)
        if draft is None:
            return None
        draft.dialect = dialect
        return self._finish(src, at, end, draft)

    def headless(self, src: Source, at: int) -> Reading | None:
        """A name and its pairs whose ``<tool_call>`` is missing; ``at`` is the first key's tag."""
        before = _LAST_NAME.search(src.text, max(0, at - 160), at)
        if not before or before.group(1) not in src.tools.tools:
            return None
        draft, end = self._pairs(src, before.start(1), at, before.group(1))
        if draft is None:
            return None
        reading = self._finish(src, before.start(1), end, draft)
        reading.defects += ("missing_opener",)
        return reading

    def _finish(self, src: Source, at: int, end: int, draft: Draft) -> Reading:
        after, defects, closed = close(src, end, (*self.closers, *mirror(src, at)), self.openers)
        return Reading(self.name, at, after, [draft], closed=closed, defects=defects)

    def _pairs(self, src: Source, at: int, pos: int, name: str) -> tuple[Draft | None, int]:
        tool = src.tools.get(name)
        arguments: dict[str, object] = {}
        repairs: dict[str, None] = {}
        while len(arguments) < 1000:
            pair = _KEY.match(src.norm, pos)
            if not pair:
                break
            key = src.text[pair.start(1) : pair.end(1)].strip()
            stop, pos, repair = self._value(src, pair.end())
            attribute = _TYPE.search(pair.group(3) or "")
            stated = pair.group(2) or (attribute.group(1) if attribute else None)
            value, more = read_value(src.text[pair.end() : stop], key, tool, stated)
            arguments[key] = value
            repairs.update(dict.fromkeys((repair, *more) if repair else more))
        gap = _GAP.match(src.text, pos)
        here = gap.end() if gap else pos
        shut = src.norm.startswith("</", here)
        if not arguments and not shut:
            # A name alone is a call only where the envelope ends with it or the text does.
            if _CUT_KEY.match(src.norm, here) and (not src.tools.known or name in src.tools.tools):
                return Draft(name, None, at, src.size, repairs=("unclosed",)), src.size
            if here < src.size or (src.tools.known and name not in src.tools.tools):
                return None, pos
            repairs["unclosed"] = None
        elif not shut and here < src.size and not src.norm.startswith("<", here):
            repairs["text_between"] = None
        elif not shut and here < src.size and _CUT_KEY.match(src.norm, here):
            repairs["unclosed"] = None
        if not arguments and src.tools.known and name not in src.tools.tools and tool is None:
            plausible = re.fullmatch(r"[a-z_][\w.\-]*", name) is not None
            if not plausible:
                return None, pos
        return Draft(name, arguments, at, pos, repairs=tuple(repairs)), here if shut else pos

    def _value(self, src: Source, start: int) -> tuple[int, int, str | None]:
        """Where a value ends, where reading goes on, and the repair it took."""
        pos = start
        first: re.Match[str] | None = None
        for _ in range(200):
            end = src.search(_END, pos)
            if not end:
                break
            if _NEXT.match(src.norm, end.end()):
                cut = _BREAK.search(src.norm, start, end.start()) if first is None else None
                if cut and "arg_key" in cut.group():
                    return cut.start(), cut.start(), "missing_closer"
                return end.start(), end.end(), None
            first = first or end
            pos = end.end()
        if first:
            return first.start(), first.end(), None
        cut = src.search(_BREAK, start)
        if cut:
            return cut.start(), cut.start(), "missing_closer"
        return src.size, src.size, "unclosed"

    def _json(self, src: Source, at: int, pos: int, name: str) -> Reading | None:
        got = json_value(src, pos, (*self.closers, *self.openers))
        if got.failed or not isinstance(got.value, dict):
            draft = Draft(name, None, at, got.end, repairs=(*got.repairs, "bad_json"))
            return self._finish(src, at, got.end, draft) if name in src.tools.tools else None
        draft = Draft(name, got.value, at, got.end, repairs=(*got.repairs, "json_in_tag"))
        return self._finish(src, at, got.end, draft)

    def _fused(self, src: Source, at: int, fused: re.Match[str]) -> Reading | None:
        """Name and first key run together; the tool list says where to part them."""
        word = src.text[fused.start(1) : fused.end(1)]
        names = [n for n in src.tools.names if word.startswith(n) and len(word) > len(n)]
        if not names:
            return None
        name = max(names, key=len)
        key = word[len(name) :].strip("_-:. ") or word[len(name) :]
        stop, pos, _ = self._value(src, fused.end())
        rest, end = self._pairs(src, at, pos, name)
        value, more = read_value(src.text[fused.end() : stop], key, src.tools.get(name), None)
        arguments: dict[str, object] = {key: value}
        if rest is not None and rest.arguments:
            arguments.update(rest.arguments)
            pos = end
        draft = Draft(name, arguments, at, pos, repairs=("fused_name", *more))
        return self._finish(src, at, pos, draft)


def read_value(raw: str, key: str, tool: Tool | None, stated: str | None) -> tuple[object, tuple[str, ...]]:
    """A value between the tags, typed; framing line ends go only with types other than text."""
    value, repairs = typed(raw, key, tool, stated=stated, python=True)
    if isinstance(value, str) and value == raw and "\n" in raw:
        stripped = raw[1:] if raw.startswith("\n") else raw
        value = stripped[:-1] if raw.startswith("\n") and stripped.endswith("\n") else raw
    return value, repairs


class K2Horizon(Glm):
    name = "k2_horizon"
    aliases: ClassVar[tuple[str, ...]] = ("ifm",)
    source = "K2 Horizon (IFM)"
    openers: ClassVar[tuple[str, ...]] = ("<ifm|tool_call>",)
    closers: ClassVar[tuple[str, ...]] = ("</ifm|tool_call>",)
    example = (
        "<ifm|tool_calls><ifm|tool_call>get_weather<ifm|arg_key>city</ifm|arg_key>"
        "<ifm|arg_value>Oslo</ifm|arg_value></ifm|tool_call></ifm|tool_calls>"
    )


class HunyuanV3(Glm):
    name = "hunyuan_v3"
    aliases: ClassVar[tuple[str, ...]] = ("hy_v3",)
    source = "Hunyuan (HY) V3"
    example = (
        "<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Oslo</arg_value>"
        "</tool_call></tool_calls>"
    )
