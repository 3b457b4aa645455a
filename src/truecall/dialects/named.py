"""Special tokens around a name and a JSON object: Mistral, DeepSeek, Kimi K2, Solar, PLaMo, Inkling."""

from __future__ import annotations

import re

from truecall.dialects.base import Dialect, Draft, Reading, Source
from truecall.dialects.bodies import json_calls, json_value, named_json, python_calls, unwrap
from truecall.dialects.hermes import JsonEnvelope
from truecall.dialects.payload import Shapes
from truecall.schema import Toolset


class Mistral(Dialect):
    name = "mistral"
    aliases = ("mistral_json", "mistral_args", "ministral", "devstral", "magistral")
    source = "Mistral v3 to v13: an array, or NAME[ARGS]{…} with or without [CALL_ID]"
    openers = ("[TOOL_CALLS]",)
    example = '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}'
    _open = re.compile(r"\[TOOL_CALLS\]\s*+")
    _closers = ("[/TOOL_CALLS]",)

    def read(self, src: Source, at: int) -> Reading | None:
        match = self._open.match(src.norm, at)
        if not match:
            return None
        begin = match.end()
        limits = (*self.openers, "[TOOL_RESULTS]", "</s>", "<|im_end|>", *self._closers)
        if begin < src.size and src.text[begin] in "{[":
            shapes = Shapes(src.tools, envelope=True)
            drafts, end = json_calls(src, begin, shapes, limits)
            if not drafts and end == begin:
                drafts, end = python_calls(src, begin, limits)
            if not drafts and end > begin:
                return Reading(self.name, at, end, [])
        else:
            drafts, end = named_json(src, begin, limits)
            if not drafts:
                drafts, end = python_calls(src, begin, limits)
        if not drafts:
            return self._attempt(src, at, begin)
        after = src.skip(end)
        if src.norm.startswith("[/TOOL_CALLS]", after):
            end = after + len("[/TOOL_CALLS]")
        return Reading(self.name, at, end, drafts)

    def _attempt(self, src: Source, at: int, begin: int) -> Reading | None:
        """A marker with a name or nothing behind it, at the end of the text."""
        rest = src.text[begin : begin + 120]
        word = rest.strip().removesuffix("[ARGS]").strip()
        if len(rest) == 120 or not re.fullmatch(r"[\w.\-]*(?:\[\w*\]?\w*){0,3}", word):
            return None
        known = word if word in src.tools.tools else None
        return Reading(
            self.name, at, src.size, [Draft(known, None, at, src.size, repairs=("unclosed",), weak=True)],
            closed=False,
        )  # fmt: skip


class DeepSeek(Dialect):
    name = "deepseek"
    aliases = ("deepseek_v3", "deepseek_v31", "deepseek_r1")
    source = "DeepSeek V3, V3-0324, R1-0528 (fenced JSON) and V3.1 (plain JSON)"
    openers = ("<|tool_calls_begin|>", "<|tool_call_begin|>")
    example = (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}'
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )
    _open = re.compile(r"<\|tool_calls_begin\|>\s*+")
    _call = re.compile(
        r"(?:<\|tool_call_begin\|>)?\s*+(?:(?:function|tool)\s*+<\|tool_sep\|>\s*+)?([\w.\-]{1,128})"
        r"\s*+(?:<\|tool_sep\|>)?\s*+(?:```(?:json)?\s*+)?(?=\{|<\|tool_call_end\|>)"
    )
    _end = re.compile(r"\s*+(?:```)?\s*+<\|tool_call_end\|>\s*+|\s*+```\s*+")
    _close = re.compile(r"\s*+<\|tool_calls_end\|>")

    def read(self, src: Source, at: int) -> Reading | None:
        match = self._open.match(src.norm, at)
        pos = match.end() if match else at
        defects = () if match else ("missing_opener",)
        drafts: list[Draft] = []
        while len(drafts) < 1000:
            call = self._call.match(src.norm, pos)
            if not call:
                break
            if not (drafts or match or "tool_sep" in call.group() or "```" in call.group()):
                break
            name = src.text[call.start(1) : call.end(1)]
            draft, pos = self._payload(src, call.end(), name, call.start())
            drafts.append(draft)
            end = self._end.match(src.norm, pos)
            pos = end.end() if end else pos
            if "unclosed" in draft.repairs:
                break
        if not drafts:
            return None
        shut = self._close.match(src.norm, pos)
        drafts[0].start = at
        return Reading(
            self.name, at, shut.end() if shut else pos, drafts, closed=bool(shut) or not match,
            defects=defects if shut or not match else ("unclosed",),
        )  # fmt: skip

    def _payload(self, src: Source, at: int, name: str, start: int) -> tuple[Draft, int]:
        if not src.text.startswith("{", at):
            return Draft(
                name, {}, start, at, defects=("missing_arguments",), repairs=("missing_arguments",)
            ), at
        got = json_value(src, at, ("<|tool_call_end|>", "\n```", "<|tool_call"))
        if got.failed or not isinstance(got.value, dict):
            return Draft(name, None, start, got.end, repairs=(*got.repairs, "bad_json")), got.end
        args, more = unwrap(src, name, got.value)
        return Draft(name, args, start, got.end, defects=more, repairs=got.repairs), got.end


def kimi_name(raw: str, tools: Toolset) -> tuple[str, tuple[str, ...]]:
    """The tool's name in a Kimi call id, however the id was rewritten: (name, defects)."""
    raw = raw.strip()
    plain = re.sub(r":\d+$", "", raw)
    bare = re.sub(r"^functions?[.:]", "", plain)
    if bare in tools.tools or not tools.tools:
        return bare, () if plain != raw or "." in raw else ("odd_id",)
    fits = [n for n in tools.names if re.fullmatch(rf"(?:functions?)?[._:\-]?{re.escape(n)}[._:\-]?\d*", raw)]
    if fits:
        return max(fits, key=len), ("glued_id",)
    return bare, () if plain != raw else ("odd_id",)


_KIMI_CUT = re.compile(r"\s*+(?:<\|tool_call_begin\|>)?\s*+[\w.:\-]*\s*+(?:<[\w|]*>?)?\s*+")


class Kimi(Dialect):
    name = "kimi"
    aliases = ("kimi_k2",)
    source = "Kimi K2, K2-Thinking, K2.5, Kimi-Linear"
    openers = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>")
    example = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        '<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>'
    )
    _open = re.compile(r"<\|tool_calls?_section_begin\|>\s*+")
    _call = re.compile(
        r"\s*+(?:<\|tool_call_begin\|>)\s*+([^<>{}\n]{0,160}?)\s*+(?:<\|tool_call_argument_begin\|>|(?=\{))\s*+"
    )
    _end = re.compile(r"\s*+<\|tool_call_end\|>")
    _close = re.compile(r"\s*+<\|tool_calls?_section_end\|>")

    def read(self, src: Source, at: int) -> Reading | None:
        match = self._open.match(src.norm, at)
        pos = match.end() if match else at
        drafts: list[Draft] = []
        while len(drafts) < 1000:
            call = self._call.match(src.norm, pos)
            if not call:
                break
            draft, pos = self._payload(src, call)
            drafts.append(draft)
            end = self._end.match(src.norm, pos)
            pos = end.end() if end else pos
            if "unclosed" in draft.repairs:
                break
        if not drafts:
            return self._attempt(src, at, pos) if match else None
        drafts[0].start = at
        shut = self._close.match(src.norm, pos)
        defects = () if match else ("missing_opener",)
        return Reading(self.name, at, shut.end() if shut else pos, drafts, closed=bool(shut) or not match,
                       defects=defects if shut or not match else ("unclosed",))  # fmt: skip

    def _attempt(self, src: Source, at: int, pos: int) -> Reading | None:
        if src.size - pos > 160 or not _KIMI_CUT.fullmatch(src.norm, pos):
            return None
        name = re.search(r"functions\.([\w.\-]+)", src.text[pos:])
        draft = Draft(
            name.group(1) if name else None, None, at, src.size, repairs=("unclosed",), weak=not name
        )
        return Reading(self.name, at, src.size, [draft], closed=False)

    def _payload(self, src: Source, call: re.Match[str]) -> tuple[Draft, int]:
        raw = src.text[call.start(1) : call.end(1)]
        name, defects = kimi_name(raw, src.tools)
        got = json_value(src, call.end(), ("<|tool_call_end|>", "<|tool_call"))
        if got.failed or not isinstance(got.value, dict):
            return Draft(
                name or None, None, call.start(), got.end, repairs=(*got.repairs, "bad_json")
            ), got.end
        value = got.value
        if name not in src.tools.tools and isinstance(value.get("name"), str):
            found = Shapes(src.tools, envelope=True).read(value, call.start(), got.end)
            if found:
                found[0].repairs += (*got.repairs, "name_inside")
                found[0].defects += defects
                return found[0], got.end
        args, more = unwrap(src, name, value)
        repairs = got.repairs + tuple(d for d in defects if d == "glued_id")
        return Draft(
            name or None, args, call.start(), got.end, defects=defects + more, repairs=repairs
        ), got.end


class Solar(Dialect):
    name = "solar"
    aliases = ("solar_open",)
    source = "Solar Open"
    openers = ("<|tool_calls|>", "<|tool_call:begin|>")
    example = (
        '<|tool_calls|><|tool_call:begin|>c1<|tool_call:name|>get_weather<|tool_call:args|>{"city": "Oslo"}'
        "<|tool_call:end|><|calls|>"
    )
    _open = re.compile(r"<\|tool_calls\|>\s*+")
    _call = re.compile(
        r"\s*+<\|tool_call:begin\|>[^<>\n]{0,80}<\|tool_call:name\|>\s*+([\w.\-]{1,128})\s*+<\|tool_call:args\|>\s*+"
    )
    _end = re.compile(r"\s*+<\|tool_call:end\|>")
    _close = re.compile(r"\s*+<\|calls\|>")

    def read(self, src: Source, at: int) -> Reading | None:
        match = self._open.match(src.norm, at)
        pos = match.end() if match else at
        drafts: list[Draft] = []
        while len(drafts) < 1000:
            call = self._call.match(src.norm, pos)
            if not call:
                break
            name = src.text[call.start(1) : call.end(1)]
            got = json_value(src, call.end(), ("<|tool_call:end|>", "<|tool_call"))
            fine = not got.failed and isinstance(got.value, dict)
            repairs = got.repairs if fine else (*got.repairs, "bad_json")
            drafts.append(Draft(name, got.value if fine else None, call.start(), got.end, repairs=repairs))
            end = self._end.match(src.norm, got.end)
            pos = end.end() if end else got.end
        if not drafts:
            return None
        drafts[0].start = at
        shut = self._close.match(src.norm, pos)
        return Reading(self.name, at, shut.end() if shut else pos, drafts, closed=bool(shut))


class Plamo3(Dialect):
    name = "plamo3"
    aliases = ("plamo",)
    source = "PLaMo 3"
    openers = ("<|plamo:begin_tool_requests:plamo|>", "<|plamo:begin_tool_request:plamo|>")
    example = (
        "<|plamo:begin_tool_request:plamo|>get_weather<|plamo:constrain:plamo|>json"
        '<|plamo:msg:plamo|>{"city": "Oslo"}<|plamo:end_tool_request:plamo|>'
    )
    _call = re.compile(
        r"(?:\s*+<\|plamo:[\w:]{1,60}\|>\s*+){1,4}([^\W\d][\w.\-]{0,127})"
        r"(?:\s*+<\|plamo:[\w:]{1,60}\|>\s*+|json|\s){0,8}(?=\{)"
    )
    _end = re.compile(r"(?:\s*+<\|plamo:end_[\w:]+\|>)+")

    def read(self, src: Source, at: int) -> Reading | None:
        drafts: list[Draft] = []
        pos = at
        while len(drafts) < 1000:
            call = self._call.match(src.norm, pos)
            if not call:
                break
            name = src.text[call.start(1) : call.end(1)]
            got = json_value(src, call.end(), ("<|plamo:end", "<|plamo:"))
            fine = not got.failed and isinstance(got.value, dict)
            args, more = unwrap(src, name, got.value) if fine else (None, ())
            repairs = got.repairs if fine else (*got.repairs, "bad_json")
            drafts.append(Draft(name, args, call.start(), got.end, defects=more, repairs=repairs))
            end = self._end.match(src.norm, got.end)
            pos = end.end() if end else got.end
        return Reading(self.name, at, pos, drafts) if drafts else None


class Inkling(JsonEnvelope):
    name = "inkling"
    source = "Inkling: a name, then JSON that repeats it"
    openers = ("<|content_invoke_tool_json|>",)
    closers = ("<|end_message|>",)
    example = (
        '<|message_model|>get_weather<|content_invoke_tool_json|>{"name": "get_weather", '
        '"args": {"city": "Oslo"}}<|end_message|>'
    )
    _before = re.compile(r"(?:<\|message_model\|>)?\s*+([\w.\-]{1,128})\s*+$")

    def read(self, src: Source, at: int) -> Reading | None:
        reading = super().read(src, at)
        before = self._before.search(src.norm, max(0, at - 160), at)
        if reading and before:
            reading.start = before.start()
            reading.drafts[0].start = min(reading.drafts[0].start, before.start())
        return reading


class Functionary32(Dialect):
    """``>>>NAME\\n{…}``; the first ``>>>`` stands in the prompt, so that a text can begin with the name."""

    name = "functionary"
    aliases = ("functionary_v31", "functionary_v32", "llama31_custom")
    source = "Functionary v3.1 (<function=W>{…}</function>), v3.2 (>>>W), Llama 3.1's custom format"
    openers = (">>>",)
    example = '>>>get_weather\n{"city": "Oslo"}'

    def read(self, src: Source, at: int) -> Reading | None:
        begin = at + 3 if src.text.startswith(">>>", at) else at
        drafts, end = named_json(src, begin, (">>>", "<|eot_id|>"))
        if not drafts:
            return None
        drafts = drafts[:1]
        end = drafts[0].end
        return Reading(self.name, at, end, drafts, explicit=True)
