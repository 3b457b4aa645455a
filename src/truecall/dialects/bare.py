"""Calls without markers of their own: bare JSON, fenced JSON, Python calls, Llama's python tag."""

from __future__ import annotations

import re

import msgspec

from truecall.dialects.base import Dialect, Draft, Reading, Source
from truecall.dialects.bodies import json_calls, json_value, python_calls, statements, unwrap
from truecall.dialects.jsontext import long_array, strict
from truecall.dialects.payload import Shapes
from truecall.dialects.pytext import NAME, read_call

OBJECT = re.compile(r"\{\s*+(?:[\"'“][^\W\d][\w\- .]{0,60}[\"'”]\s*+:|[A-Za-z_]\w{0,30}\s*+:\s*+[\"'{])")
ARRAY = re.compile(r"\[\s*+\{")
_LIST_END = re.compile(r"[^\n]{0,400}\][ \t]*+(?=\n|$)")
PY_LIST = re.compile(rf"\[\s*+{NAME}\s*+\(")
_NAMED_FIELD = re.compile(
    r"[\"'“]?(?:name|tool_name|function_name|tool|function|action|recipient_name)[\"'”]?\s*+:\s*+[\"'“]([^\"'”\n]{1,100})"
)
_ARGS_FIELD = re.compile(r"[\"'“]?(?:arguments|parameters|args|action_input|tool_input|input)[\"'”]?\s*+:")
_BEFORE = re.compile(
    rf"(?:^|[\n>\]]|\|>|>>>)\s*+(?P<call>(?:functions\.)?({NAME}))(?::\d+)?"
    r"(?:\s|<\|?[\w:.\-|]{1,60}>|\[[A-Z_]+\]|json(?=[<\s])|:(?=\s))*$"
)
_LONG = 20_000  # characters; a shorter array is decoded whole
_LIMITS = ("```", "\n\n```", "<|", "</")


_CLOSED_BY = {
    "</tool_call>": "hermes", "</tools>": "tools_tag", "</tool_calls>": "minimax_m1",
    "</TOOLCALL>": "nemotron_toolcall", "</function_call>": "granite20b_fc", "</longcat_tool_call>": "longcat",
    "[END_TOOL_REQUEST]": "lmstudio_tool_request",
    "<|END_ACTION|>": "cohere_action", "<|action_end|>": "internlm2", "<|tools_suffix|>": "apertus",
    "<|/tool_call|>": "phi4_functools", "<|tool_call_end|>": "lfm2",
}  # fmt: skip
_CLOSER = re.compile(r"\s*+(" + "|".join(map(re.escape, _CLOSED_BY)) + ")")
"""Closers that tell which opener is missing."""


def plausible(src: Source, at: int) -> bool:
    """Whether broken JSON at ``at`` is worth mending: it names an offered tool, or all the text is it."""
    window = src.text[at : at + 600]
    names = _NAMED_FIELD.findall(window)
    if any(name in src.tools.tools for name in names):
        return True
    alone = not src.text[max(0, at - 200) : at].strip(" \n\t[") and at < 200
    return bool(names) and alone and _ARGS_FIELD.search(window) is not None


class BareJson(Dialect):
    name = "bare_json"
    aliases = ("qwen25_coder_bare", "xlam", "openai_json", "tgi_internal")
    source = "Qwen2.5-Coder, xLAM, Llama and anything asked for JSON"
    openers = ("{", "[")
    example = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'

    def read(self, src: Source, at: int) -> Reading | None:
        """A payload, or a value that is no call (no drafts) and is to be passed over whole."""
        text = src.text
        array = text[at] == "["
        if not (ARRAY if array else OBJECT).match(text, at):
            return None
        if array and src.size - at > _LONG:
            end = long_array(text, at)
            if end >= 0:
                return Reading("", at, end, [])
        got = json_value(src, at, _LIMITS, fix=plausible(src, at) if strict(text, at).failed else False)
        if got.failed:
            return Reading("", at, got.end, [])
        shapes = Shapes(src.tools, envelope=False)
        drafts, end = json_calls(src, at, shapes, _LIMITS, fix=bool(got.repairs))
        if not drafts:
            return self._named(src, at, got.value, got.end, got.repairs) or Reading("", at, got.end, [])
        closer = _CLOSER.match(src.norm, end)
        if closer:
            name = _CLOSED_BY[closer.group(1)]
            return Reading(name, at, closer.end(), drafts, defects=("missing_opener",))
        for draft in drafts:
            draft.dialect = draft.dialect or _flavour(text, draft)
        return Reading(
            self.name, at, end, drafts, explicit=False, closed="unclosed" not in drafts[-1].repairs
        )

    def encoded(self, src: Source, at: int) -> Reading | None:
        """A JSON string that holds the payload; ``at`` is its quotation mark."""
        got = strict(src.text, at)
        inner = strict(got.value, 0) if not got.failed and isinstance(got.value, str) else None
        if inner is None or inner.failed:
            return None
        drafts = Shapes(src.tools, envelope=False).read(inner.value, at, got.end)
        if not drafts:
            return None
        for draft in drafts:
            draft.defects += ("double_encoded",)
        return Reading(self.name, at, got.end, drafts[:1], explicit=False)

    def empty(self, src: Source, at: int) -> Reading | None:
        """``{}`` behind a tool's name."""
        return self._named(src, at, {}, at + 2, ())

    def _named(
        self, src: Source, at: int, value: object, end: int, repairs: tuple[str, ...]
    ) -> Reading | None:
        """An arguments object behind a tool's name: ``get_weather {"city": …}``."""
        if not isinstance(value, dict) or not src.tools.tools:
            return None
        before = _BEFORE.search(src.norm, max(0, at - 160), at)
        if not before:
            return None
        name = src.text[before.start(2) : before.end(2)]
        tool = src.tools.get(name)
        if tool is None:
            return None
        args, more = unwrap(src, name, value)
        start = before.start("call")
        if tool.order and not set(args) <= set(tool.order) and start > 8:
            return None
        kimi = src.norm.startswith("functions.", start) or "argument_begin" in before.group()
        glued = before.end(2) == at
        dialect = "kimi" if kimi else "mistral" if glued else "functionary"
        draft = Draft(name, args, start, end, defects=more, repairs=repairs, dialect=dialect)
        marked = src.text[before.start() : start].strip().endswith(">")
        reading = Reading(dialect, start, end, [draft], explicit=marked or start < 3)
        if src.text[max(0, reading.start - 3) : reading.start] == ">>>":
            reading.start -= 3
        return reading


def _flavour(text: str, draft: Draft) -> str:
    """Llama's way of writing bare JSON is a dialect of its own."""
    head = text[draft.start : draft.start + 400]
    if draft.dialect:
        return draft.dialect
    parameters = head.find('"parameters"')
    arguments = head.find('"arguments"')
    llama = parameters >= 0 and (arguments < 0 or parameters < arguments) and '"tool_name"' not in head
    return "llama3_json" if llama and '"tool_calls"' not in head else "bare_json"


class Llama3Json(Dialect):
    """``{"name": …, "parameters": …}``; read by `BareJson`, which tells the two apart."""

    name = "llama3_json"
    aliases = ("llama4_json",)
    source = "Llama 3.1 to 3.3, Llama 4"
    openers = ("{",)
    example = '{"name": "get_weather", "parameters": {"city": "Oslo"}}'


class PythonTag(Dialect):
    name = "llama3_python_tag"
    aliases = ("llama_python_tag",)
    source = "Llama 3.1+: built-in tools and code"
    openers = ("<|python_tag|>",)
    example = '<|python_tag|>brave_search.call(query="x")'
    _open = re.compile(r"<\|python_tag\|>\s*+")
    _code_tools = (
        "python",
        "code_interpreter",
        "ipython",
        "execute_python",
        "run_python",
        "python_interpreter",
    )

    def read(self, src: Source, at: int) -> Reading | None:
        match = self._open.match(src.norm, at)
        if not match:
            return None
        begin = match.end()
        limits = ("<|eom_id|>", "<|eot_id|>")
        if begin >= src.size:
            draft = Draft(None, None, at, begin, repairs=("unclosed",), weak=True)
            return Reading(self.name, at, begin, [draft], closed=False)
        if src.text[begin] in "{[" and not PY_LIST.match(src.text, begin):
            drafts, end = json_calls(
                src, begin, Shapes(src.tools, envelope=True), (*limits, "<|python_tag|>")
            )
            if drafts:
                return Reading("llama3_json", at, end, drafts, closed="unclosed" not in drafts[-1].repairs)
        drafts, end = python_calls(src, begin, limits)
        if drafts and (len(drafts) > 1 or self._alone(src, end, drafts[0])):
            return Reading(self.name, at, end, drafts)
        stop, _ = src.find_first(limits, begin)
        stop = stop if stop >= 0 else src.size
        if src.text[begin] in ",.;:)!?`":  # the token is talked about: no code begins so
            return None
        name = next((n for n in self._code_tools if n in src.tools.tools), None)
        tool = src.tools.get(name)
        only = tool.only_parameter if tool else None
        args = {only: src.text[begin:stop]} if only else None
        draft = Draft(name, args, at, stop, repairs=() if args else ("no_payload",), weak=name is None)
        return Reading(self.name, at, stop, [draft])

    def _alone(self, src: Source, end: int, draft: Draft) -> bool:
        rest = src.text[end : end + 40].strip()
        known = draft.name in src.tools.tools
        return known or not rest or rest.startswith("<|") or "unclosed" in draft.repairs


class Pythonic(Dialect):
    name = "pythonic"
    aliases = ("llama4_pythonic", "toolace", "gorilla")
    source = "Llama 3.2 lightweight, Llama 4, ToolACE, watt-tool, Gorilla"
    openers = ("[NAME(", "<<function>>")
    example = '[get_weather(city="Oslo"), get_weather(city="Bergen")]'

    def read(self, src: Source, at: int) -> Reading | None:
        """A list of calls at ``[``."""
        if not PY_LIST.match(src.text, at):
            return None
        drafts, end = python_calls(src, at, ())
        if not drafts:
            return None
        rest = _LIST_END.match(src.text, end) if "bad_python" in drafts[-1].repairs else None
        end = rest.end() if rest else end  # the list's own end, past the fault
        reading = Reading(
            self.name, at, end, drafts, explicit=False, closed="unclosed" not in drafts[-1].repairs
        )
        return reading

    def gorilla(self, src: Source, at: int) -> Reading | None:
        """``<<function>>`` before one call or a list of them."""
        begin = src.skip(at + len("<<function>>"))
        drafts, end = python_calls(src, begin, ("<<function>>",))
        return Reading(self.name, at, end, drafts) if drafts else None

    def line(self, src: Source, at: int) -> Reading | None:
        """A call that begins a line; further ones may follow on the next lines."""
        drafts: list[Draft] = []
        pos = at
        while len(drafts) < 1000:
            got = read_call(src.text, pos, src.size)
            if got is None or got.name not in src.tools.tools:
                break
            tool = src.tools.get(got.name)
            if "positional_arguments" in got.defects:
                got = read_call(src.text, pos, src.size, tool) or got
            drafts.append(
                Draft(got.name, got.arguments, pos, got.end, defects=got.defects, repairs=got.repairs)
            )
            pos = src.skip(got.end)
            if got.repairs or src.text[pos : pos + 1] in (",", ";"):
                break
        if not drafts:
            return None
        return Reading(self.name, at, drafts[-1].end, drafts, explicit=False,
                       closed="unclosed" not in drafts[-1].repairs)  # fmt: skip


_OPEN_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([\w+#.\-]*)[^\n`]*(?:\n|$)")
_COMMENTS = re.compile(r"(?:\s*+(?://|#)[^\n]*\n)+\s*+")


class Fence(msgspec.Struct, eq=False, gc=False):
    """A fenced block: its language, where its body stands and where it ends."""

    start: int
    body: int
    stop: int
    end: int
    language: str


def open_fence(src: Source, at: int) -> Fence | None:
    """The fence that opens at ``at`` (the start of its ticks), up to its closing line or the end."""
    match = _OPEN_FENCE.match(src.text, at)
    if not match:
        return None
    ticks = match.group(1)
    body = match.end()
    hit = src.find("\n" + ticks[:3], body - 1)
    if hit == body - 1 and src.text[hit + 4 : hit + 5].isalnum():
        hit = _nested(src, hit, "\n" + ticks[:3])
    if hit >= 0 and len(ticks) == 3 and src.text[hit + 4 : hit + 5] != ticks[0]:
        return Fence(at, body, hit + 1, hit + 4, match.group(2).lower())
    while hit >= 0:
        line = src.text.find("\n", hit + 1, hit + 200)
        rest = src.text[hit + 1 : line if line >= 0 else min(src.size, hit + 200)]
        bare = rest.lstrip(ticks[0])
        if len(rest) - len(bare) >= len(ticks):
            return Fence(at, body, hit + 1, hit + 1 + len(rest) - len(bare), match.group(2).lower())
        hit = src.find("\n" + ticks[:3], hit + 1)
    return Fence(at, body, src.size, src.size, match.group(2).lower())


def _nested(src: Source, hit: int, closer: str) -> int:
    """The closer of a block whose first line opens a block: behind the inner one, or ``hit`` where none is."""
    inner = src.find(closer, hit + 4)
    outer = src.find(closer, inner + 4) if inner >= 0 else -1
    return outer if outer >= 0 else hit


OWN_BLOCKS = frozenset(("tool_code", "tool_call", "tool_calls", "function_call", "tool"))
"""Languages that only a call has."""
NAME_WORDS = ("name", "function", "tool", "action", "recipient")


_NAME_LINE = re.compile(rf"(?:^|[\n>])\s*+(?:function\s*+)?({NAME})[ \t]*\n[ \t]*$")


class FencedJson(Dialect):
    name = "fenced_json"
    aliases = ("qwen25_coder_fence", "markdown_json")
    source = "Qwen2.5-Coder and most models that know Markdown"
    openers = ("```",)
    example = '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'

    def body(self, src: Source, fence: Fence) -> Reading | None:
        """The calls that a fence's body is, JSON or Python; None when it is something else."""
        if not self.may(src, fence):
            return None
        begin = src.skip(fence.body)
        inner = _OPEN_FENCE.match(src.text, begin) if src.text.startswith("```", begin) else None
        begin = src.skip(inner.end()) if inner else begin
        comment = _COMMENTS.match(src.text, begin)
        begin = comment.end() if comment else begin
        if begin >= fence.stop:
            return None
        if src.text[begin] in "{[" and not PY_LIST.match(src.text, begin):
            return self._json(src, fence, begin)
        return self._python(src, fence, begin)

    def under_name(self, src: Source, fence: Fence) -> Reading | None:
        """A block of arguments under a line with an offered name: DeepSeek's form without its tokens."""
        if not src.text[max(0, fence.start - 160) : fence.start].rstrip().endswith(src.tools.names):
            return None
        before = _NAME_LINE.search(src.norm, max(0, fence.start - 160), fence.start)
        tool = src.tools.get(before.group(1)) if before else None
        begin = src.skip(fence.body)
        if before is None or tool is None or not src.text.startswith("{", begin):
            return None
        got = strict(src.text, begin)
        if got.failed or (tool.order and not set(got.value) <= set(tool.order)):
            return None
        end, closed = self._end(src, fence, got.end)
        draft = Draft(tool.name, got.value, before.start(1), end, defects=("stripped_tokens",))
        return Reading("deepseek", before.start(1), end, [draft], explicit=False, closed=closed)

    @staticmethod
    def may(src: Source, fence: Fence) -> bool:
        """Whether the block names an offered tool, or anything where none is known."""
        find, body, stop = src.text.find, fence.body, fence.stop
        if src.tools.names and fence.language not in OWN_BLOCKS:
            return any(find(name, body, stop) >= 0 for name in src.named)
        if fence.language in OWN_BLOCKS:
            return True
        return any(find(word, body, stop) >= 0 for word in NAME_WORDS)

    def _json(self, src: Source, fence: Fence, begin: int) -> Reading | None:
        fix = plausible(src, begin)
        drafts, end = json_calls(src, begin, Shapes(src.tools, envelope=False), ("\n```", "\n~~~"), fix=fix)
        if not drafts or any("unquoted_value" in d.repairs for d in drafts):
            return None
        for draft in drafts:
            draft.dialect = draft.dialect if draft.dialect == "tgi_internal" else ""
        end, closed = self._end(src, fence, end)
        return Reading(self.name, fence.start, end, drafts, explicit=False, closed=closed)

    def _end(self, src: Source, fence: Fence, end: int) -> tuple[int, bool]:
        """The end of the block; ticks straight behind the payload close it too."""
        near = src.skip(end)
        if (
            src.text.startswith("```", near)
            and near < fence.end
            and not src.text.startswith("```", fence.body)
        ):
            return near + 3, True
        return max(fence.end, end), fence.stop < src.size

    def _python(self, src: Source, fence: Fence, begin: int) -> Reading | None:
        """Every statement calls an offered tool (or, in a tool_code block, any)."""
        own = fence.language in OWN_BLOCKS
        if not own and fence.language not in ("", "python", "py", "plaintext", "text", "pythonic"):
            return None
        listed = src.text[begin] == "["
        if listed:
            drafts, pos = python_calls(src, begin, ("\n```",))
        else:
            drafts, pos = statements(src, begin, fence.stop, own=own)
        if not drafts or (not own and any(d.name not in src.tools.tools for d in drafts)):
            return None
        if any("unquoted_value" in d.repairs for d in drafts):
            return None
        if any(d.arguments is None and "unclosed" not in d.repairs for d in drafts):
            return None
        end, closed = self._end(src, fence, pos)
        return Reading("gemma_tool_code" if not listed else "pythonic", fence.start, end, drafts,
                       explicit=own, closed=closed)  # fmt: skip
