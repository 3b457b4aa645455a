"""``<tool_call>`` and its kin with JSON inside: the commonest envelope of all."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec

from truecall.dialects.base import Dialect, Draft, Reading, Source
from truecall.dialects.bodies import NAMED, json_calls, json_value, named_json, python_calls
from truecall.dialects.payload import Shapes
from truecall.schema import Toolset

_OPEN = re.compile(r"<[^<>\s]{1,64}[^<>\n]{0,80}?>\s*+")
_TRAILING = 2000


class JsonEnvelope(Dialect):
    """Markers around JSON payloads, one or many, objects or arrays."""

    closers: ClassVar[tuple[str, ...]] = ()
    name_key = False
    open_ended = False
    """The format has no closer of its own."""
    opening = _OPEN
    """What the opener looks like from its place on; white space after it included."""

    def body(self, src: Source, at: int) -> int | None:
        """Where the body begins, or None when the opener is not complete."""
        match = self.opening.match(src.norm, at)
        return match.end() if match else None

    def limits(self) -> tuple[str, ...]:
        return (*self.closers, *self.openers)

    def read(self, src: Source, at: int) -> Reading | None:
        begin = self.body(src, at)
        if begin is None or begin >= src.size:
            return None
        if src.text[begin] not in "{[":
            return self.loose(src, at, begin)
        shapes = Shapes(src.tools, envelope=True, name_key=self.name_key)
        drafts, end = json_calls(src, begin, shapes, self.limits())
        if not drafts and end == begin:
            return None
        return self.finish(src, at, end, drafts)

    def loose(self, src: Source, at: int, begin: int) -> Reading | None:
        """A name before JSON, or a Python call, of offered tools: models mix the forms."""
        drafts, end = named_json(src, begin, self.limits())
        if not drafts:
            drafts, end = python_calls(src, begin, self.limits())
        if not drafts or any(draft.name not in src.tools.tools for draft in drafts):
            return None
        return self.finish(src, at, end, drafts)

    def finish(self, src: Source, at: int, end: int, drafts: list[Draft]) -> Reading:
        """The reading with its closer, or without one."""
        after, defects, closed = close(src, end, (*self.closers, *mirror(src, at)), self.openers)
        if not closed and self.open_ended:
            defects = ()
        return Reading(self.name, at, after, drafts, closed=closed, defects=defects)


_TAG_NAME = re.compile(r"<([\w.:|\-]{1,64})>")


def mirror(src: Source, at: int) -> tuple[str, ...]:
    """The closing tag that belongs to the very opener at ``at``, suffix and prefix included."""
    match = _TAG_NAME.match(src.norm, at)
    return (f"</{match.group(1)}>",) if match else ()


def close(
    src: Source, end: int, closers: tuple[str, ...], openers: tuple[str, ...]
) -> tuple[int, tuple[str, ...], bool]:
    """Step over the closer that follows a payload: (end of the envelope, defects, closed)."""
    if not closers:
        return end, (), True
    at = src.skip(end)
    for closer in closers:
        if src.norm.startswith(closer, at):
            return at + len(closer), (), True
    for mark in openers:  # an opener in the closer's place
        if src.norm.startswith(mark, at) and src.skip(at + len(mark)) >= src.size:
            return src.size, ("unclosed",), True
    hit, closer = src.find_first(closers, at)
    if hit < 0 or hit - at > _TRAILING:
        return end, ("unclosed",), False
    opener, _ = src.find_first(openers, at)
    if 0 <= opener < hit:
        return end, ("unclosed",), False
    return hit + len(closer), ("trailing_text",), True


class _Payload(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: str
    arguments: dict[str, Any]


_decode = msgspec.json.Decoder(_Payload).decode
CLOSER = "</tool_call>"
_NEAR = 8192


def plain(text: str, begin: int, shut: int, tools: Toolset) -> tuple[str, dict[str, Any]] | None:
    """The commonest body by the shortest way: an offered name and its arguments, up to the closer at ``shut``.

    None where it is anything else: what the library refuses, the readers that know more may still read.
    """
    try:
        payload = _decode(text[begin:shut])
    except (ValueError, RecursionError):
        return None
    return (payload.name, payload.arguments) if payload.name in tools.tools else None


class Hermes(JsonEnvelope):
    name = "hermes"
    aliases = ("qwen25", "qwen3", "granite4", "ernie45", "exaone4", "hermes_json")
    source = "Hermes 2/3 Pro, Qwen2.5, QwQ, Qwen3, Granite 4, ERNIE 4.5, EXAONE 4, SmolLM3 and many finetunes"
    openers = ("<tool_call>",)
    closers = (CLOSER,)
    name_key = True
    example = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    opening = re.compile(r"<[\w.:|\-]*tool_call[\w.:\-]*>\s*+")

    def read(self, src: Source, at: int) -> Reading | None:
        begin = self.body(src, at)
        if begin is None:
            return None
        shut = src.find(CLOSER, begin)
        found = plain(src.text, begin, shut, src.tools) if 0 <= shut - begin <= _NEAR else None
        if found is not None:
            end = shut + len(CLOSER)
            return Reading("hermes", at, end, [Draft(*found, at, end)])
        if begin < src.size and src.text[begin] in "{[":
            reading = super().read(src, at)
            if reading and src.text[begin] == "[" and reading.dialect == self.name:
                reading.dialect = "granite3"
                reading.defects = tuple(d for d in reading.defects if d != "unclosed")
            return reading
        return self._other(src, at, begin)

    def _other(self, src: Source, at: int, begin: int) -> Reading | None:
        """Bodies that drifted: a fence, Python calls, a name before JSON."""
        if src.text.startswith("```", begin):
            line = src.text.find("\n", begin, begin + 40)
            inner = src.skip(line + 1) if line >= 0 else begin
            if inner < src.size and src.text[inner] in "{[":
                shapes = Shapes(src.tools, envelope=True, name_key=True)
                drafts, end = json_calls(src, inner, shapes, ("```", *self.limits()))
                fence = re.compile(r"\s*+```").match(src.text, end)
                if drafts:
                    reading = self.finish(src, at, fence.end() if fence else end, drafts)
                    reading.defects += ("fenced",)
                    return reading
        drafts, end = python_calls(src, begin, self.limits())
        if drafts:
            return self.finish(src, at, end, drafts)
        return None


_LISTED = re.compile(
    r"\s*+[\"']?name[\"']?\s*+[:=]\s*+[\"']?([\w.\-]{1,128})[\"']?,?\s+"
    r"[\"']?(?:arguments|parameters|args)[\"']?\s*+[:=]\s*+(?=\{)"
)


class Generic(JsonEnvelope):
    """Tags of unknown vendors whose name says "call", around a call of an offered tool."""

    name = "bare_json"
    opening = re.compile(r"<[\w.:|\-]{1,64}>\s*+")

    def read(self, src: Source, at: int) -> Reading | None:
        reading = super().read(src, at)
        if reading is None or any(draft.name not in src.tools.tools for draft in reading.drafts):
            return None
        return reading


class Attempt(Dialect):
    """A call envelope whose body no dialect reads: an attempt, with nothing to recover."""

    name = "hermes"
    closers: ClassVar[tuple[str, ...]] = ("</tool_call>",)
    openers = ("<tool_call>",)

    def read(self, src: Source, at: int) -> Reading | None:
        match = Hermes.opening.match(src.norm, at)
        if not match:
            return None
        begin = match.end()
        stop, _ = src.find_first(self.closers, begin)
        again, _ = src.find_first(self.openers, begin)
        listed = _LISTED.match(src.text, begin)
        if listed:
            return self._listed(src, at, listed, stop)
        if stop >= 0 and (again < 0 or again > stop) and stop - begin < _TRAILING:
            named, _ = named_json(src, begin, self.closers)
            if named:
                return None
            end = stop + len(self.closers[0])
            draft = Draft(None, None, at, end, repairs=("no_payload",), weak=True)
            return Reading(self.name, at, end, [draft])
        if stop < 0 and again < 0 and src.size - begin < 60 and not NAMED.match(src.norm, begin):
            if "\n" in src.text[begin:].strip() or src.text[begin:].count(" ") > 2:
                return None
            name = src.text[begin:].strip()
            known = name if name in src.tools.tools else None
            draft = Draft(known, None, at, src.size, repairs=("unclosed",), weak=True)
            return Reading(self.name, at, src.size, [draft], closed=False)
        return None

    def _listed(self, src: Source, at: int, listed: re.Match[str], stop: int) -> Reading:
        """``name: W`` and ``arguments: {…}`` on lines of their own."""
        got = json_value(src, listed.end(), self.closers)
        fine = not got.failed and isinstance(got.value, dict)
        end = stop + len(self.closers[0]) if stop >= got.end else got.end
        repairs = ("no_braces", *got.repairs) if fine else ("no_braces", *got.repairs, "bad_json")
        draft = Draft(listed.group(1), got.value if fine else None, at, end, repairs=repairs)
        return Reading(self.name, at, end, [draft], closed=stop >= got.end)
