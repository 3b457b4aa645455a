"""Dialects with a tag per parameter: Qwen3-Coder, Seed-OSS, MiniMax M2, DSML, Anthropic and their kin."""

from __future__ import annotations

import re
from typing import ClassVar

from truecall.dialects.base import Dialect, Draft, Reading, Source
from truecall.dialects.elements import LangChainXml
from truecall.dialects.hermes import Hermes
from truecall.dialects.tagtext import HEAD, read_element

_OUTER_END = re.compile(
    r"\s*+</(?:[\w.\-]{1,24}:|\|{1,2} ?[\w.]{1,24} ?\|{1,2} ?)?"
    r"(?:tool_calls?|toolcalls?|function_calls?|calls|tool|dots_function_call)[\w:]*>"
)


_CLOSED_BY = (("minimax:", "minimax"), ("seed:", "seed_oss"), ("dots_", "dots"), ("DSML", "deepseek_dsml"))
"""What a closing tag tells of a call whose opener is missing."""


class Tagged(Dialect):
    """An outer tag, or none, around one or more call tags."""

    outer = re.compile(r"(?!)")
    """The outer opener; a head tag may also stand alone."""
    python = False
    trim = True

    def read(self, src: Source, at: int) -> Reading | None:
        match = self.outer.match(src.norm, at)
        pos = src.skip(match.end()) if match else at
        drafts: list[Draft] = []
        end = pos
        while len(drafts) < 1000:
            draft = read_element(src, pos, python=self.literals(src, pos), trim=self.trim)
            if draft is None:
                break
            drafts.append(draft)
            end = draft.end
            pos = src.skip(end)
            if not HEAD.match(src.norm, pos):
                break
        if not drafts:
            return None
        drafts[0].start = at
        shut = _OUTER_END.match(src.norm, end)
        defects = () if match else self.unopened(bool(shut))
        if match and not shut:
            defects = ("unclosed",)
        end = shut.end() if shut else end
        dialect = next((d.dialect for d in drafts if d.dialect), "") if not match else ""
        if shut and not match and not dialect:
            dialect = next((name for mark, name in _CLOSED_BY if mark in shut.group()), "")
        done = bool(shut) or (not match and "unclosed" not in drafts[-1].defects)
        return Reading(dialect or self.name, at, end, drafts, closed=done, defects=defects)

    def literals(self, src: Source, at: int) -> bool:
        """Whether Python's way of writing values is this dialect's own."""
        return self.python

    def unopened(self, shut: bool) -> tuple[str, ...]:
        return ("missing_opener",) if shut else ()


class Qwen3Coder(Tagged):
    name = "qwen3_coder"
    aliases: ClassVar[tuple[str, ...]] = (
        "qwen3_coder_xml",
        "qwen3_xml",
        "step3p5",
        "mimo",
        "nemotron3",
        "nanbeige",
    )
    source = "Qwen3-Coder, Qwen3.5/3.6, Nemotron 3, Step-3.5, MiMo, Nanbeige"
    openers: ClassVar[tuple[str, ...]] = ("<tool_call>", "<function=")
    outer = Hermes.opening
    example = (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"
    )

    def read(self, src: Source, at: int) -> Reading | None:
        reading = super().read(src, at)
        if reading and any(d.dialect == "functionary" for d in reading.drafts):
            reading.dialect = "functionary"
        return reading


class Functionary31(Tagged):
    name = "functionary"
    aliases: ClassVar[tuple[str, ...]] = ("functionary_v31", "llama31_custom")
    source = "Functionary v3.1, Llama 3.1's custom format, Groq"
    openers: ClassVar[tuple[str, ...]] = ("<function=",)
    example = '<function=get_weather>{"city": "Oslo"}</function>'

    def literals(self, src: Source, at: int) -> bool:
        return not src.norm.startswith("<function=", at)

    def read(self, src: Source, at: int) -> Reading | None:
        """A head tag without an outer one: JSON inside is Functionary's, parameters are another's."""
        reading = super().read(src, at)
        if reading and not any(d.dialect for d in reading.drafts):
            plain = src.norm.startswith("<function=", at) and "<param " not in src.norm[at : at + 300]
            reading.dialect = Qwen3Coder.name if plain else MiniCpm5.name
        return reading


class SeedOss(Tagged):
    name = "seed_oss"
    aliases: ClassVar[tuple[str, ...]] = ("seed",)
    source = "Seed-OSS: Python literals are its own way of writing values"
    openers: ClassVar[tuple[str, ...]] = ("<seed:tool_call>",)
    outer = re.compile(r"<seed:tool_call>")
    python = True
    example = (
        "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n</function>\n"
        "</seed:tool_call>"
    )


class MiniCpm5(Tagged):
    name = "minicpm5"
    source = "MiniCPM 5"
    openers: ClassVar[tuple[str, ...]] = ("<function name=",)
    example = '<function name="get_weather"><param name="city">Oslo</param></function>'


class MiniMax(Tagged):
    name = "minimax"
    aliases: ClassVar[tuple[str, ...]] = ("minimax_m2",)
    source = "MiniMax-M2"
    openers: ClassVar[tuple[str, ...]] = ("<minimax:tool_call>",)
    outer = re.compile(r"<minimax:tool_calls?>")
    example = (
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n'
        "</invoke>\n</minimax:tool_call>"
    )


class Anthropic(Tagged):
    name = "anthropic_xml"
    aliases: ClassVar[tuple[str, ...]] = ("claude_xml",)
    source = "Claude's text form, and models trained on its output"
    openers: ClassVar[tuple[str, ...]] = ("<function_calls>", "<invoke ")
    outer = re.compile(r"<(?:antml:)?function_calls>")
    example = (
        '<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n'
        "</function_calls>"
    )
    _old = re.compile(r"(?:<(?:antml:)?function_calls>\s*+)?<invoke>\s*+(?=<tool_name>)")
    _old_end = re.compile(r"\s*+</invoke>(?:\s*+</(?:antml:)?function_calls>)?")

    def read(self, src: Source, at: int) -> Reading | None:
        """Claude 2's form, where the name and every parameter are elements, is read too."""
        old = self._old.match(src.norm, at)
        if not old:
            return super().read(src, at)
        reading = LangChainXml().read(src, old.end())
        if reading is None:
            return None
        end = self._old_end.match(src.norm, reading.end)
        reading.start = reading.drafts[0].start = at
        reading.dialect = self.name
        if end:
            reading.end = end.end()
        else:
            reading.closed = False
        return reading


class Dsml(Tagged):
    name = "deepseek_dsml"
    aliases: ClassVar[tuple[str, ...]] = ("deepseek_v32", "deepseek_v4", "deepseek_v41")
    source = "DeepSeek V3.2, V4, V4.1"
    openers: ClassVar[tuple[str, ...]] = ("<|DSML|",)
    outer = re.compile(r"<\|{1,2} ?DSML ?\|{1,2} ?(?:function_calls|tool_calls|toolcalls|calls|tools?)>")
    trim = False
    example = (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>"
    )


class GigaChat35(Dsml):
    name = "gigachat35"
    aliases: ClassVar[tuple[str, ...]] = ()
    source = "GigaChat 3.5"
    openers: ClassVar[tuple[str, ...]] = ("<|GCML|",)
    outer = re.compile(r"<\|{1,2} ?GCML ?\|{1,2} ?(?:function_calls|tool_calls|calls)>")
    example = Dsml.example.replace("DSML", "GCML").replace("function_calls", "tool_calls")


class Step3(Tagged):
    name = "step3"
    source = "Step-3"
    openers: ClassVar[tuple[str, ...]] = ("<|tool_calls_begin|>", "<|tool_call_begin|>", "<steptml:invoke ")
    outer = re.compile(
        r"(?:<\|tool_calls_begin\|>\s*+)?(?:<\|tool_call_begin\|>\s*+)(?:function\s*+)?(?:<\|tool_sep\|>)?\s*+"
        r"(?=<steptml:)"
    )
    example = (
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">'
        '<steptml:parameter name="city">Oslo</steptml:parameter></steptml:invoke><｜tool_call_end｜>'
        "<｜tool_calls_end｜>"
    )
    _end = re.compile(r"\s*+<\|tool_call_end\|>(?:\s*+<\|tool_calls_end\|>)?")

    def read(self, src: Source, at: int) -> Reading | None:
        reading = super().read(src, at)
        if reading is None:
            return None
        shut = self._end.match(src.norm, reading.end)
        if shut:
            reading.end, reading.closed = shut.end(), True
            reading.defects = ()
        return reading


class Dots(Tagged):
    name = "dots"
    source = "dots"
    openers: ClassVar[tuple[str, ...]] = ("<dots_function_call>",)
    outer = re.compile(r"<dots_function_call>")
    example = (
        '<dots_function_call><invoke name="get_weather"><parameter name="city">Oslo</parameter></invoke>'
        "</dots_function_call>"
    )


class Muse(Tagged):
    name = "muse_glimmer"
    aliases: ClassVar[tuple[str, ...]] = ("muse",)
    source = "Muse Glimmer (Meta)"
    openers: ClassVar[tuple[str, ...]] = ("<atem:function_calls>", "<atem:invoke ")
    outer = re.compile(r"<atem:function_calls>")
    example = (
        'to=get_weather<|message|><atem:function_calls><atem:invoke name="get_weather">'
        '<atem:parameter name="city">Oslo</atem:parameter></atem:invoke></atem:function_calls>'
    )
