"""Harmony: channels, recipients and messages (gpt-oss)."""

from __future__ import annotations

import re

from truecall.dialects.base import Dialect, Draft, Reading, Source
from truecall.dialects.bodies import json_value, unwrap

_HEADER = re.compile(
    r"(?:<\|start\|>)?\s*+(?P<role>assistant|functions\.[\w.\-]+)?(?P<before>[^<\n]{0,120}?)"
    r"(?:<\|channel\|>(?P<channel>[^<\n]{0,200}?))?(?:<\|constrain\|>\s*+\w*\s*+)?<\|message\|>"
)
_RECIPIENT = re.compile(r"\bto=([^\s<>=|{]{1,160})")
_ENDS = ("<|call|>", "<|end|>", "<|return|>", "<|start|>", "<|channel|>")
_BARE = re.compile(
    r"(?:(?:assistant)?\s*+(?:commentary|analysis)?\s*+)?to=(?:functions\.)?([\w.\-]{1,128})"
    r"(?P<channel>\s*+(?:<\|channel\|>)?\s*+(?:commentary|analysis)?)"
    r"\s*+(?:<\|constrain\|>)?\s*+(?:json|code)?\s*+(?:<\|message\|>)?[\s\u00a0\u200b-\u200d\ufeff]*"
)
_CUT = re.compile(r"(?:<[|\w]{0,12}|(?<=>)\w{1,12}|j|js|jso)$")
_NOT_TOOLS = frozenset(("assistant", "user", "all", "final", "self"))


class Message:
    """One harmony message: its channel, its recipient if it is a call, and where its body stands."""

    __slots__ = ("body", "channel", "end", "recipient", "role", "start", "stop")

    def __init__(self, src: Source, match: re.Match[str]) -> None:
        self.start = match.start()
        self.body = match.end()
        header = (match.group("before") or "") + " " + (match.group("channel") or "")
        words = (match.group("channel") or "").split()
        self.channel = words[0] if words and not words[0].startswith("to=") else ""
        self.role = match.group("role") or ""
        found = _RECIPIENT.search(header)
        self.recipient = found.group(1) if found and found.group(1) not in _NOT_TOOLS else None
        if self.role.startswith("functions."):
            self.recipient = None
        stop, literal = src.find_first(_ENDS, self.body)
        self.stop = stop if stop >= 0 else src.size
        self.end = self.stop
        if literal in ("<|call|>", "<|end|>", "<|return|>"):
            self.end += len(literal)


def message(src: Source, at: int) -> Message | None:
    """The message whose header begins at ``at``, or None."""
    match = _HEADER.match(src.norm, at)
    return Message(src, match) if match else None


class Harmony(Dialect):
    name = "harmony"
    aliases = ("gpt_oss", "gpt-oss")
    source = "gpt-oss 20b and 120b"
    openers = ("<|channel|>", "<|start|>", "to=functions.")
    example = (
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>'
    )

    def read(self, src: Source, at: int) -> Reading | None:
        found = message(src, at)
        if found is None or found.recipient is None:
            return None
        return self.call(src, found)

    def call(self, src: Source, found: Message) -> Reading:
        """The call that a message with a recipient is."""
        name = (found.recipient or "").removeprefix("functions.")
        begin = src.skip(found.body)
        tool = src.tools.get(name)
        end, closed = found.end, src.norm.startswith("<|call|>", found.stop)
        if begin < src.size and src.text[begin] == "{":
            got = json_value(src, begin, _ENDS)
            if got.end > found.stop:
                stop, literal = src.find_first(_ENDS, got.end)
                end = stop + len(literal) if literal in ("<|call|>", "<|end|>") else got.end
                closed = literal == "<|call|>"
            if not got.failed and isinstance(got.value, dict):
                args, defects = unwrap(src, name, got.value)
                if src.text[got.end : max(got.end, found.stop)].strip():
                    defects += ("trailing_text",)
                draft = Draft(name, args, found.start, end, defects=defects, repairs=got.repairs)
                return self._reading(found, end, draft, closed)
        raw = src.text[found.body : found.stop]
        body = raw.strip()
        only = tool.only_parameter if tool else None
        plain = {only: raw} if only and body and body[0] not in "{[" else None
        repairs = ("plain_input",) if plain else ("bad_json",) if body else ("unclosed",)
        return self._reading(found, end, Draft(name, plain, found.start, end, repairs=repairs), closed)

    def _reading(self, found: Message, end: int, draft: Draft, closed: bool) -> Reading:
        defects = ("analysis_recipient",) if found.channel == "analysis" else ()
        return Reading(self.name, found.start, end, [draft], closed=closed, defects=defects, standing=True)


class HarmonyBare(Dialect):
    """A recipient header whose special tokens were stripped: ``to=functions.W json{…}``."""

    name = "harmony"
    openers = ("to=functions.",)

    def read(self, src: Source, at: int) -> Reading | None:
        match = _BARE.match(src.norm, at)
        if not match:
            return None
        name = match.group(1) if match.group(1) != "functions." else None
        begin = match.end()
        if begin < src.size and src.text[begin] == "{":
            got = json_value(src, begin, _ENDS)
            if not got.failed and isinstance(got.value, dict):
                end = got.end
                for token in ("<|call|>", "<|end|>"):
                    if src.norm.startswith(token, end):
                        end += len(token)
                draft = Draft(name, got.value, at, end, defects=("stripped_tokens",), repairs=got.repairs)
                return Reading(self.name, at, end, [draft], standing=True, defects=("missing_opener",))
            draft = Draft(name, None, at, got.end, repairs=(*got.repairs, "bad_json"))
            return Reading(self.name, at, got.end, [draft], closed=False, standing=True)
        if begin >= src.size or _CUT.match(src.norm, begin):
            draft = Draft(name, None, at, src.size, repairs=("unclosed",))
            return Reading(self.name, at, src.size, [draft], closed=False, standing=True)
        return None
