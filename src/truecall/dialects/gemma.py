"""Gemma 4 and FunctionGemma: ``call:W{key:value}`` with strings between delimiter tokens."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from truecall.dialects.base import Dialect, Draft, Reading, Source
from truecall.dialects.jsontext import finite

MAX_DEPTH = 60
_KEY = re.compile(r"\s*+([\w.\-$@ ]{1,128}?)\s*+:")
_PLAIN = re.compile(r"[^,{}\[\]]*")
_NUMBER = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?(?:[eE][-+]?\d{1,3})?(?=\s*+[,}\]])")
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}


class _Stop(Exception):
    pass


class _Body:
    """Reads ``{key:value,…}`` where ``mark`` opens and closes strings."""

    def __init__(self, src: Source, at: int, mark: str) -> None:
        self.text = src.text
        self.at = at
        self.end = src.size
        self.mark = mark
        self.repairs: dict[str, None] = {}
        self.cut = False
        after = re.escape(mark)
        self.next_key = re.compile(rf"\s*+,\s*+(?:{after}|[\"'])?[\w.\-$@ ]{{1,128}}(?:{after}|[\"'])?\s*+:")
        self.next_item = re.compile(rf"\s*+,\s*+(?:{after}|[\"'{{\[\d\-]|true|false|null)")
        self.closing = re.compile(r"\s*+,?\s*+[}\]][\s}\]]*(?:,|<|$)")

    def skip(self) -> str:
        while self.at < self.end and self.text[self.at].isspace():
            self.at += 1
        if self.at >= self.end:
            self.cut = True
            raise _Stop
        return self.text[self.at]

    def mapping(self, depth: int) -> dict[str, Any]:
        if depth > MAX_DEPTH:
            raise _Stop
        self.at += 1
        out: dict[str, Any] = {}
        while True:
            char = self.skip()
            if char == "}":
                self.at += 1
                return out
            if char == ",":
                self.at += 1
                if self.skip() == "}":
                    self.repairs["trailing_comma"] = None
                continue
            key = self.key(char)
            out[key] = self.value(depth, "key")

    def key(self, char: str) -> str:
        if self.text.startswith(self.mark, self.at) or char in "\"'":
            quote = self.mark if self.text.startswith(self.mark, self.at) else char
            start = self.at + len(quote)
            stop = self.text.find(quote, start, start + 200)
            if stop < 0:
                raise _Stop
            self.at = stop + len(quote)
            if self.skip() != ":":
                raise _Stop
            self.at += 1
            return self.text[start:stop]
        match = _KEY.match(self.text, self.at)
        if not match:
            self.cut = self.at + 130 >= self.end
            raise _Stop
        self.at = match.end()
        return match.group(1)

    def value(self, depth: int, inside: str) -> Any:
        char = self.skip()
        if self.text.startswith(self.mark, self.at):
            return self.string(self.mark, inside)
        if char == "{":
            return self.mapping(depth + 1)
        if char == "[":
            return self.sequence(depth + 1)
        if char in "\"'":
            self.repairs["wrong_quotes"] = None
            return self.string(char, inside)
        number = _NUMBER.match(self.text, self.at)
        if number:
            self.at = number.end()
            raw = number.group()
            try:
                return int(raw) if raw.lstrip("-").isdigit() else finite(raw)
            except ValueError:
                self.repairs["huge_number"] = None
                return raw
        match = _PLAIN.match(self.text, self.at)
        word = match.group().strip() if match else ""
        self.at = match.end() if match else self.at
        if self.at >= self.end:
            self.cut = True
            raise _Stop
        if word in _WORDS:
            return _WORDS[word]
        self.repairs["unquoted_value"] = None
        return word

    def sequence(self, depth: int) -> list[Any]:
        if depth > MAX_DEPTH:
            raise _Stop
        self.at += 1
        out: list[Any] = []
        while True:
            char = self.skip()
            if char == "]":
                self.at += 1
                return out
            if char == ",":
                self.at += 1
                continue
            if char == "}":
                raise _Stop
            out.append(self.value(depth, "item"))

    def string(self, quote: str, inside: str) -> str:
        """Up to the delimiter that is followed by what can follow a value; others are its text."""
        start = at = self.at + len(quote)
        mixed = self.text.find(self.mark, at, self.end) if quote != self.mark else -1
        while True:
            stop = self.text.find(quote, at, self.end)
            if 0 <= mixed < at:
                mixed = self.text.find(self.mark, at, self.end)
            if mixed >= 0 and (stop < 0 or mixed < stop + 2) and self._ends(mixed + len(self.mark), inside):
                self.at = mixed + len(self.mark)
                return self.text[start:mixed].removesuffix(quote)
            if stop < 0:
                self.cut = True
                self.at = self.end
                raise _Stop
            if self._ends(stop + len(quote), inside):
                self.at = stop + len(quote)
                return self.text[start:stop].replace(self.mark, '"')
            at = stop + len(quote)

    def _ends(self, at: int, inside: str) -> bool:
        follow = self.next_key if inside == "key" else self.next_item
        return follow.match(self.text, at) is not None or self.closing.match(self.text, at) is not None


class Gemma4(Dialect):
    name = "gemma4"
    source = "Gemma 4"
    openers = ("<|tool_call>",)
    mark: ClassVar[str] = '<|"|>'
    closer: ClassVar[str] = "<tool_call|>"
    example = '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>'
    _head = re.compile(r"(?:<[\w|]+>\s*+(?:call\s*+:\s*+)?|call:)([\w.:\-/]{1,128}?)\s*+(?=\{)")

    def read(self, src: Source, at: int) -> Reading | None:
        head = self._head.match(src.norm, at)
        if not head:
            return self._attempt(src, at)
        name = src.text[head.start(1) : head.end(1)]
        body = _Body(src, head.end(), self.mark)
        args: dict[str, Any] | None
        try:
            args = body.mapping(0)
        except (_Stop, RecursionError):
            args = None
            body.repairs["unclosed" if body.cut else "bad_body"] = None
        end = body.at
        stop = src.find(self.closer, end)
        near = stop >= 0 and (args is None or not src.text[end:stop].strip() or stop - end < 200)
        again = src.find(self.openers[0], end)
        closed = near and (again < 0 or again > stop)
        if closed:
            end = stop + len(self.closer)
        defects = () if closed else ("unclosed",)
        draft = Draft(name, args, at, end, repairs=tuple(body.repairs))
        return Reading(self.name, at, end, [draft], closed=closed, defects=defects)

    def _attempt(self, src: Source, at: int) -> Reading | None:
        rest = src.text[at : at + 200]
        if src.size - at > 160 or "\n\n" in rest:
            return None
        name = re.match(r"<[\w|]+>\s*+(?:c|ca|cal|call\s*+|call\s*+:\s*+([\w.\-]*))?$", rest)
        if not name:
            return None
        draft = Draft(name.group(1) or None, None, at, src.size, repairs=("unclosed",), weak=True)
        return Reading(self.name, at, src.size, [draft], closed=False)


class FunctionGemma(Gemma4):
    name = "functiongemma"
    source = "FunctionGemma 270M"
    openers = ("<start_function_call>",)
    mark = "<escape>"
    closer = "<end_function_call>"
    example = "<start_function_call>call:get_weather{city:<escape>Oslo<escape>}<end_function_call>"
