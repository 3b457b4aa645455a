"""Dialects of labelled lines: ReAct, and Qwen-Agent's ✿ markers."""

from __future__ import annotations

import re

from truecall.dialects.base import Dialect, Draft, Reading, Source
from truecall.dialects.bodies import json_calls, json_value
from truecall.dialects.payload import PSEUDO, Shapes
from truecall.dialects.pytext import read_call

_ACTION = re.compile(r"(?:[*#_]{0,3})Action(?:\s*+\d{1,2})?\s*+:(?:[*_]{0,3})[ \t]*", re.IGNORECASE)
_NAME_LINE = re.compile(
    r"[`\"'\[*]*([^\n`\"'\[\]*{(<]{1,100}?)[`\"'\]*]*[ \t]*(?=\n|$|<\||,?[ \t]*Action[ _]?Input[ \t]*:)"
)
_INPUT = re.compile(
    r"\s*+,?\s*+(?:[*_]{0,3})(?:Action[ _]?Input|Action[ _]?Arguments|Input|Arguments|Args|Parameters)(?:\s*+\d{1,2})?"
    r"\s*+:(?:[*_]{0,3})[ \t]*"
)
_NEXT_LABEL = re.compile(
    r"\n[ \t]*(?:[*_]{0,3})(?:Observation|Thought|Final Answer|Action|Answer|Question|Result)[^\n:]{0,14}:"
    r"|\n[ \t]*PAUSE\b|<\|",
    re.IGNORECASE,
)
_BRACKET = re.compile(r"([^\W\d][\w.\- ]{0,80}?)\s*+\[([^\[\]\n]{0,2000})\][ \t]*+(?=\n|$)")
_COLON = re.compile(r"([^\W\d][\w.\-]{0,80})\s*+:[ \t]+(?=\S)")
_CALLED = re.compile(r"([^\W\d][\w.\-]{0,80})\s*+\(")
_FENCE = re.compile(r"\s*+```(?:json)?[ \t]*\n?")
_FENCE_END = re.compile(r"\s*+```")


class React(Dialect):
    name = "react"
    source = "anything prompted with Thought, Action and Action Input"
    openers = ("Action:",)
    aliases = ("langchain_react",)
    example = 'Thought: the weather is needed\nAction: get_weather\nAction Input: {"city": "Oslo"}'

    def read(self, src: Source, at: int) -> Reading | None:
        match = _ACTION.match(src.text, at)
        if not match:
            return None
        begin = match.end()
        return self._json(src, at, begin) or self._line(src, at, begin)

    def _json(self, src: Source, at: int, begin: int) -> Reading | None:
        """``Action:`` before a JSON object or list, fenced or not (Command-R, structured chat)."""
        fence = _FENCE.match(src.text, begin)
        inner = src.skip(fence.end() if fence else begin)
        if inner >= src.size or src.text[inner] not in "{[":
            return None
        drafts, end = json_calls(
            src, inner, Shapes(src.tools, envelope=True), ("```", "\nObservation", "\nThought")
        )
        if end == inner:
            return None
        shut = _FENCE_END.match(src.text, end) if fence else None
        listed = src.text[inner] == "[" and '"tool_name"' in src.text[inner:end]
        dialect = CommandR.name if listed else self.name
        return Reading(dialect, at, shut.end() if shut else end, drafts)

    def _line(self, src: Source, at: int, begin: int) -> Reading | None:
        text = src.text
        bracket = _BRACKET.match(text, begin)
        if bracket and bracket.group(1) in src.tools.tools:
            name = bracket.group(1)
            tool = src.tools.get(name)
            only = tool.only_parameter if tool else None
            args = {only: bracket.group(2)} if only else None
            draft = Draft(name, args, at, bracket.end(), repairs=() if only else ("plain_input",))
            return Reading(self.name, at, bracket.end(), [draft])
        plain = _COLON.match(text, begin)
        if plain and plain.group(1) in src.tools.tools:
            return self._input(src, at, plain.end(), plain.group(1))
        named = _CALLED.match(text, begin)
        call = read_call(text, begin, src.size, src.tools.get(named.group(1))) if named else None
        if call and call.arguments is not None and call.name in src.tools.tools and not call.repairs:
            draft = Draft(call.name, call.arguments, at, call.end, defects=call.defects)
            return Reading(self.name, at, call.end, [draft])
        line = _NAME_LINE.match(text, begin)
        if not line:
            return None
        name = line.group(1).strip().removesuffix("()")
        if text[begin] == "[" and name not in src.tools.tools:  # a form: ``Action: [tool name]``
            return None
        if name.lower().rstrip(".") in PSEUDO and name not in src.tools.tools:
            return None
        label = _INPUT.match(text, line.end())
        if label:
            return self._input(src, at, label.end(), name)
        if name not in src.tools.tools:
            return None
        tool = src.tools.get(name)
        needed = tool.required if tool else ()
        repairs = ("missing_arguments",) if needed else ()
        draft = Draft(name, {}, at, line.end(), defects=("missing_arguments",), repairs=repairs)
        return Reading(self.name, at, line.end(), [draft], closed=False)

    def _input(self, src: Source, at: int, begin: int, name: str) -> Reading:
        """The call whose Action Input begins at ``begin``."""
        text = src.text
        label = src.search(_NEXT_LABEL, begin)
        stop = label.start() if label else src.size
        fence = _FENCE.match(text, begin, stop)
        inner = src.skip(fence.end() if fence else begin)
        tool = src.tools.get(name)
        only = tool.only_parameter if tool else None
        raw = text[begin:stop].strip()
        closed = label is not None
        if inner < src.size and inner < max(stop, begin + 1) and text[inner] == "{":
            got = json_value(src, inner, ("\nObservation", "\nThought", "\nFinal Answer", "```"))
            if not got.failed and isinstance(got.value, dict):
                end = max(got.end, stop) if not text[got.end : stop].strip("` \n") else got.end
                closed = closed or not got.repairs
                draft = Draft(name, got.value, at, end, repairs=got.repairs)
                return Reading(self.name, at, end, [draft], closed=closed)
            return Reading(self.name, at, stop, [Draft(name, None, at, stop, repairs=("bad_json",))])
        if only is not None and (raw or not tool or not tool.required):
            value = json_value(src, inner, ("\n",), fix=False) if raw[:1] in ('"', "'") else None
            quoted = value is not None and isinstance(value.value, str) and not value.failed
            plain = value.value if quoted and value is not None else raw.strip("'") if raw[:1] == "'" else raw
            return Reading(self.name, at, stop, [Draft(name, {only: plain}, at, stop, defects=("plain_input",))],
                           closed=closed)  # fmt: skip
        if raw.lower() in ("", "none", "n/a", "null", "{}", '""'):
            repairs = ("missing_arguments",) if tool is None or tool.required else ()
            return Reading(self.name, at, stop, [Draft(name, {}, at, stop, repairs=repairs)], closed=closed)
        return Reading(
            self.name, at, stop, [Draft(name, None, at, stop, repairs=("plain_input",))], closed=closed
        )


class CommandR(React):
    """Command R's list of actions; read by `React`, which tells the two apart."""

    name = "command_r"
    aliases = ("command_r_plus",)
    source = "Command R, Command R+ (2024)"
    example = 'Action: ```json\n[{"tool_name": "get_weather", "parameters": {"city": "Oslo"}}]\n```'


class QwenFn(Dialect):
    name = "qwen_fn"
    aliases = ("qwen_agent",)
    source = "Qwen-Agent's function-call text"
    openers = ("✿FUNCTION✿",)
    example = '✿FUNCTION✿: get_weather\n✿ARGS✿: {"city": "Oslo"}'
    _head = re.compile(r"✿FUNCTION✿\s*+:?\s*+([^\s✿:{]{1,128})\s*+(?:✿ARGS✿\s*+:?\s*+)?")

    def read(self, src: Source, at: int) -> Reading | None:
        head = self._head.match(src.text, at)
        if not head:
            return None
        name = head.group(1)
        begin = head.end()
        stop, _ = src.find_first(("✿RESULT✿", "✿FUNCTION✿", "✿RETURN✿", "<|im_end|>"), begin)
        end = stop if stop >= 0 else src.size
        if begin < src.size and src.text[begin] == "{":
            got = json_value(src, begin, ("✿RESULT✿", "✿FUNCTION✿", "✿RETURN✿"))
            fine = not got.failed and isinstance(got.value, dict)
            repairs = got.repairs if fine else (*got.repairs, "bad_json")
            draft = Draft(name, got.value if fine else None, at, got.end, repairs=repairs)
            return Reading(self.name, at, got.end, [draft], closed=stop >= 0 or not repairs)
        if "ARGS" not in head.group() and end - begin > 2 and not "✿ARGS✿".startswith(src.text[begin:]):
            return None
        raw = src.text[begin:end].strip()
        tool = src.tools.get(name)
        if not raw:
            repairs = ("missing_arguments",) if tool is None or tool.required else ()
            return Reading(self.name, at, end, [Draft(name, {}, at, end, repairs=repairs)], closed=stop >= 0)
        return Reading(
            self.name, at, end, [Draft(name, None, at, end, repairs=("bad_json",))], closed=stop >= 0
        )
