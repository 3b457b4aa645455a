"""Envelopes of single vendors around JSON payloads; each differs only in its markers."""

from __future__ import annotations

import re
from typing import ClassVar

from truecall.dialects.base import Draft, Reading, Source
from truecall.dialects.bodies import python_calls, statements
from truecall.dialects.hermes import JsonEnvelope
from truecall.dialects.jsontext import strict
from truecall.dialects.payload import is_definition


class ToolsTag(JsonEnvelope):
    name = "tools_tag"
    aliases: ClassVar[tuple[str, ...]] = ("qwen25_coder_tools",)
    source = "Qwen2.5-Coder, which copies the tag of the prompt's tool list"
    openers: ClassVar[tuple[str, ...]] = ("<tools>",)
    closers: ClassVar[tuple[str, ...]] = ("</tools>",)
    example = '<tools>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tools>'

    def read(self, src: Source, at: int) -> Reading | None:
        begin = self.body(src, at)
        if begin is not None and src.text[begin : begin + 1] in ("{", "["):
            got = strict(src.text, begin)
            items = got.value if isinstance(got.value, list) else [got.value]
            if any(is_definition(item, alone=False) for item in items):
                end, _, _ = _past(src, begin, self.closers)
                return Reading(self.name, at, end, [])
        return super().read(src, at)


def _past(src: Source, at: int, closers: tuple[str, ...]) -> tuple[int, str, bool]:
    hit, closer = src.find_first(closers, at)
    return (src.size, "", False) if hit < 0 else (hit + len(closer), closer, True)


class Granite3(JsonEnvelope):
    name = "granite3"
    aliases: ClassVar[tuple[str, ...]] = ("granite",)
    source = "Granite 3.0-3.3, Phi-4-mini's own tokens: a JSON array, usually without a closer"
    openers: ClassVar[tuple[str, ...]] = ("<|tool_call|>",)
    open_ended = True
    closers: ClassVar[tuple[str, ...]] = (
        "<|/tool_call|>",
        "</|tool_call|>",
        "<|end_tool_call|>",
        "<|tool_call_end|>",
    )
    example = '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]'

    def finish(self, src: Source, at: int, end: int, drafts: list[Draft]) -> Reading:
        reading = super().finish(src, at, end, drafts)
        if src.norm.endswith("/tool_call|>", at, reading.end):
            reading.dialect = Functools.name
        return reading


class Granite20b(JsonEnvelope):
    name = "granite20b_fc"
    source = "granite-20b-functioncalling; also a generic tag of many prompts"
    openers: ClassVar[tuple[str, ...]] = ("<function_call>", "<functioncall>", "<|function|>")
    open_ended = True
    closers: ClassVar[tuple[str, ...]] = ("</function_call>", "</functioncall>", "<|/function_call|>")
    example = '<function_call> {"name": "get_weather", "arguments": {"city": "Oslo"}}'


class ToolCalls(JsonEnvelope):
    """``<tool_calls>`` with JSON: an array (Jamba, Hunyuan, Apriel) or lines (MiniMax-M1)."""

    name = "jamba"
    aliases: ClassVar[tuple[str, ...]] = ("apriel",)
    source = "Jamba 1.5/1.6, Apriel: an array in <tool_calls>"
    openers: ClassVar[tuple[str, ...]] = ("<tool_calls>",)
    closers: ClassVar[tuple[str, ...]] = ("</tool_calls>",)
    opening = re.compile(r"<tool_calls(?::[\w\-]+)?>\s*+")
    example = '<tool_calls>[\n {"name": "get_weather", "arguments": {"city": "Oslo"}}\n]</tool_calls>'

    def read(self, src: Source, at: int) -> Reading | None:
        reading = super().read(src, at)
        begin = self.body(src, at)
        if reading and begin is not None:
            if src.text[begin] == "{":
                reading.dialect = "minimax_m1"
            elif src.text.rfind("<answer>", max(0, at - 400), at) > src.text.rfind(
                "</answer>", max(0, at - 400), at
            ):
                reading.dialect = "hunyuan_a13b"
        return reading


class MiniMaxM1(ToolCalls):
    name = "minimax_m1"
    aliases: ClassVar[tuple[str, ...]] = ()
    source = "MiniMax-M1: JSON lines in <tool_calls>"
    example = '<tool_calls>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_calls>'


class HunyuanA13b(ToolCalls):
    name = "hunyuan_a13b"
    aliases: ClassVar[tuple[str, ...]] = ()
    source = "Hunyuan-A13B: an array in <tool_calls> inside <answer>"
    example = (
        '<answer><tool_calls>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]</tool_calls></answer>'
    )


class DotsJson(JsonEnvelope):
    name = "dots"
    source = "dots, where it falls back to JSON"
    openers: ClassVar[tuple[str, ...]] = ("<dots_function_call>",)
    closers: ClassVar[tuple[str, ...]] = ("</dots_function_call>",)
    example = (
        '<dots_function_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</dots_function_call>'
    )


class K2Json(JsonEnvelope):
    name = "k2_horizon"
    source = "K2 Horizon with a JSON body"
    openers: ClassVar[tuple[str, ...]] = ("<ifm|tool_call>",)
    closers: ClassVar[tuple[str, ...]] = ("</ifm|tool_call>",)
    example = '<ifm|tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</ifm|tool_call>'


class Nemotron(JsonEnvelope):
    name = "nemotron_toolcall"
    aliases: ClassVar[tuple[str, ...]] = ("nemotron",)
    source = "Nemotron Nano v2 and kin"
    openers: ClassVar[tuple[str, ...]] = ("<TOOLCALL>",)
    closers: ClassVar[tuple[str, ...]] = ("</TOOLCALL>",)
    example = '<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]</TOOLCALL>'


class LongCat(JsonEnvelope):
    name = "longcat"
    source = "LongCat-Flash"
    openers: ClassVar[tuple[str, ...]] = ("<longcat_tool_call>",)
    closers: ClassVar[tuple[str, ...]] = ("</longcat_tool_call>",)
    example = (
        '<longcat_tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</longcat_tool_call>'
    )


class InternLm(JsonEnvelope):
    name = "internlm2"
    aliases: ClassVar[tuple[str, ...]] = ("internlm", "interns1")
    source = "InternLM2/2.5, Intern-S1"
    openers: ClassVar[tuple[str, ...]] = ("<|action_start|>",)
    closers: ClassVar[tuple[str, ...]] = ("<|action_end|>",)
    opening = re.compile(r"<\|action_start\|>\s*+<\|(?:plugin|interpreter)\|>\s*+")
    example = (
        '<|action_start|><|plugin|>\n{"name": "get_weather", "parameters": {"city": "Oslo"}}<|action_end|>'
    )


class Apertus(JsonEnvelope):
    name = "apertus"
    source = "Apertus 2509: the name is the key"
    openers: ClassVar[tuple[str, ...]] = ("<|tools_prefix|>",)
    closers: ClassVar[tuple[str, ...]] = ("<|tools_suffix|>",)
    example = '<|tools_prefix|>[{"get_weather": {"city": "Oslo"}}]<|tools_suffix|>'


class CohereAction(JsonEnvelope):
    name = "cohere_action"
    aliases: ClassVar[tuple[str, ...]] = ("cohere", "command_a", "command_r7b")
    source = "Command R7B, Command A"
    openers: ClassVar[tuple[str, ...]] = ("<|START_ACTION|>",)
    closers: ClassVar[tuple[str, ...]] = ("<|END_ACTION|>",)
    example = (
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", '
        '"parameters": {"city": "Oslo"}}\n]<|END_ACTION|>'
    )


_CUT_NAME = re.compile(r"\[\s*+[^\W\d][\w.\-]{0,127}$")


class Lfm2(JsonEnvelope):
    name = "lfm2"
    aliases: ClassVar[tuple[str, ...]] = ("lfm2.5",)
    source = "LFM2, LFM2.5: Python calls or JSON"
    openers: ClassVar[tuple[str, ...]] = ("<|tool_call_start|>",)
    closers: ClassVar[tuple[str, ...]] = ("<|tool_call_end|>",)
    json_words = False
    example = '<|tool_call_start|>[get_weather(city="Oslo")]<|tool_call_end|>'

    def read(self, src: Source, at: int) -> Reading | None:
        begin = self.body(src, at)
        if begin is None:
            return None
        drafts, end = python_calls(src, begin, self.limits(), json_words=self.json_words)
        if not drafts and _CUT_NAME.match(src.text, begin):
            drafts, end = [Draft(None, None, at, src.size, repairs=("unclosed",), weak=True)], src.size
        return self.finish(src, at, end, drafts) if drafts else super().read(src, at)


class Olmo3(Lfm2):
    name = "olmo3"
    aliases: ClassVar[tuple[str, ...]] = ()
    source = "OLMo 3: Python calls, one per line; JSON's true, false and null are its own"
    json_words = True
    openers: ClassVar[tuple[str, ...]] = ("<function_calls>",)
    closers: ClassVar[tuple[str, ...]] = ("</function_calls>",)
    example = '<function_calls>\nget_weather(city="Oslo")\n</function_calls>'


class Llama4Pythonic(Lfm2):
    name = "pythonic"
    aliases: ClassVar[tuple[str, ...]] = ("llama4_pythonic",)
    source = "Llama 4 between its Python tokens"
    openers: ClassVar[tuple[str, ...]] = ("<|python_start|>",)
    closers: ClassVar[tuple[str, ...]] = ("<|python_end|>", "<|eot|>", "<|eom|>")
    example = '<|python_start|>[get_weather(city="Oslo")]<|python_end|>'


class ToolCodeTag(Lfm2):
    name = "gemma_tool_code"
    aliases: ClassVar[tuple[str, ...]] = ("tool_code",)
    source = "Gemma 2/3, Gemini: Python calls in a tool_code block"
    openers: ClassVar[tuple[str, ...]] = ("<tool_code>",)
    closers: ClassVar[tuple[str, ...]] = ("</tool_code>",)
    example = '<tool_code>\nget_weather(city="Oslo")\n</tool_code>'

    def read(self, src: Source, at: int) -> Reading | None:
        begin = self.body(src, at)
        if begin is None:
            return None
        stop = src.find(self.closers[0], begin)
        drafts, end = statements(src, begin, stop if stop >= 0 else src.size, own=True)
        return self.finish(src, at, end, drafts) if drafts else super().read(src, at)


class LmStudio(JsonEnvelope):
    name = "lmstudio_tool_request"
    aliases: ClassVar[tuple[str, ...]] = ("lmstudio_default",)
    source = "any model under LM Studio's default tool mode"
    openers: ClassVar[tuple[str, ...]] = ("[TOOL_REQUEST]",)
    closers: ClassVar[tuple[str, ...]] = ("[END_TOOL_REQUEST]", "[/TOOL_REQUEST]")
    opening = re.compile(r"\[TOOL_REQUEST\]\s*+")
    example = '[TOOL_REQUEST]{"name": "get_weather", "arguments": {"city": "Oslo"}}[END_TOOL_REQUEST]'


class GigaChat3(JsonEnvelope):
    name = "gigachat3"
    aliases: ClassVar[tuple[str, ...]] = ("gigachat",)
    source = "GigaChat 3"
    openers: ClassVar[tuple[str, ...]] = ("function call<|role_sep|>", "<|function_call|>")
    opening = re.compile(r"(?:function call<\|role_sep\|>|<\|function_call\|>)\s*+")
    example = 'function call<|role_sep|>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}'


class Functools(JsonEnvelope):
    name = "phi4_functools"
    aliases: ClassVar[tuple[str, ...]] = ("phi4_mini", "firefunction")
    source = "Phi-4-mini, FireFunction"
    openers: ClassVar[tuple[str, ...]] = ("functools[",)
    opening = re.compile(r"functools\s*+(?=\[)")
    example = 'functools[{"name": "get_weather", "arguments": {"city": "Oslo"}}]'


class Hcx(JsonEnvelope):
    name = "hcx"
    aliases: ClassVar[tuple[str, ...]] = ("hyperclovax",)
    source = "HyperCLOVA X"
    openers: ClassVar[tuple[str, ...]] = ("-> tool/function_call",)
    opening = re.compile(r"->\s*+tool/function_call\s*+")
    example = ' -> tool/function_call\n[{"name": "get_weather", "arguments": {"city": "Oslo"}}]'
