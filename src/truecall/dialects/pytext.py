"""Python-literal calls in model text, by a small reader of our own.

``name(key="value", other=[1, 2])``: never evaluated, never handed to Python's parser; nesting is capped and
every character is read once.
"""

from __future__ import annotations

import re
from keyword import iskeyword
from math import isinf
from typing import Any, NamedTuple

from truecall.schema import Tool

MAX_DEPTH = 60

NAME = r"[^\W\d][\w.\-]{0,127}"
_KEYWORD = re.compile(r"\s*+([^\W\d][\w\-]*)\s*+=(?!=)\s*+")
_SPACE = re.compile(r"(?:\s++|#[^\n]*+(?:\n|$))*+")
_PREFIXED = re.compile(r"[rRbBuUfF]{0,2}(?=[\"'])")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]{1,16}|(?:\d[\d_]{0,300})?\.?\d{1,300}(?:[eE][+-]?\d{1,3})?\.?)"
)
_IDENT = re.compile(r"[^\W\d][\w.$]*")
_CALL = re.compile(rf"({NAME})\s*+\(")
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0",
    "\\": "\\", "'": "'", '"': '"', "\n": "", "/": "/", "`": "`",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_CONSTANTS: dict[str, Any] = {
    "True": True, "False": False, "None": None, "true": True, "false": False, "null": None,
}  # fmt: skip


class PyCall(NamedTuple):
    """A call that was read: ``arguments`` None where positional ones could not be named."""

    name: str
    arguments: dict[str, Any] | None
    end: int
    defects: tuple[str, ...]
    repairs: tuple[str, ...]
    cut: bool


class _Stop(Exception):
    pass


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1) or match.group(2) or match.group(3)
    if code:
        number = int(code, 16)
        return chr(number) if number < 0x110000 else match.group(0)
    char = match.group(4)
    return _ESCAPES.get(char, match.group(0))


class _Reader:
    def __init__(self, text: str, at: int, end: int) -> None:
        self.text = text
        self.at = at
        self.end = end
        self.repairs: dict[str, None] = {}
        self.cut = False
        self.partial: dict[str, Any] = {}

    def space(self) -> str:
        match = _SPACE.match(self.text, self.at, self.end)
        if match:
            self.at = match.end()
        return self.text[self.at] if self.at < self.end else ""

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise _Stop
        char = self.space()
        if char == "":
            self.cut = True
            raise _Stop
        if char in "[(":
            return self.sequence("]" if char == "[" else ")", depth)
        if char == "{":
            return self.mapping(depth)
        prefix = _PREFIXED.match(self.text, self.at, self.end)
        if prefix:
            self.at = prefix.end()
            return self.strings("r" in prefix.group().lower())
        number = _NUMBER.match(self.text, self.at, self.end)
        if number:
            return self.number(number)
        return self.word(depth)

    def number(self, match: re.Match[str]) -> Any:
        self.at = match.end()
        raw = match.group().replace("_", "")
        try:
            if raw.lower().lstrip("+-").startswith("0x"):
                return int(raw, 16)
            return int(raw)
        except ValueError:
            pass
        try:
            value = float(raw)
        except ValueError:
            raise _Stop from None
        if isinf(value):
            self.repairs["huge_number"] = None
            return raw
        return value

    def strings(self, raw: bool) -> str:
        """One string, or several side by side, which Python joins."""
        out = [self.string(raw)]
        while True:
            keep = self.at
            self.space()
            prefix = _PREFIXED.match(self.text, self.at, self.end)
            if not prefix:
                self.at = keep
                return "".join(out)
            self.at = prefix.end()
            out.append(self.string("r" in prefix.group().lower()))

    def string(self, raw: bool) -> str:
        text, start = self.text, self.at
        quote = text[start]
        triple = text.startswith(quote * 3, start)
        closer = quote * 3 if triple else quote
        at = start + len(closer)
        begin = at
        while True:
            hit = text.find(closer, at, self.end)
            if hit < 0:
                self.cut = True
                self.at = self.end
                raise _Stop
            back = hit
            while back > begin and text[back - 1] == "\\":
                back -= 1
            if (hit - back) % 2 == 0:
                break
            at = hit + 1
        body = text[begin:hit]
        self.at = hit + len(closer)
        if not triple and "\n" in body:
            self.repairs["unescaped_newline"] = None
        return body if raw or "\\" not in body else _ESCAPE.sub(_unescape, body)

    def sequence(self, closer: str, depth: int) -> Any:
        self.at += 1
        out: list[Any] = []
        comma = False
        while True:
            char = self.space()
            if char == closer:
                self.at += 1
                return out[0] if closer == ")" and len(out) == 1 and not comma else out
            if char == ",":
                comma = True
                self.at += 1
                continue
            out.append(self.value(depth + 1))

    def mapping(self, depth: int) -> dict[str, Any]:
        self.at += 1
        out: dict[str, Any] = {}
        while True:
            char = self.space()
            if char == "}":
                self.at += 1
                return out
            if char == ",":
                self.at += 1
                continue
            key = self.value(depth + 1)
            if self.space() != ":":
                self.cut = self.at >= self.end
                raise _Stop
            self.at += 1
            out[key if isinstance(key, str) else str(key)] = self.value(depth + 1)

    def word(self, depth: int) -> Any:
        match = _IDENT.match(self.text, self.at, self.end)
        if not match:
            if self.text[self.at] in "+-" and self.at + 1 >= self.end:
                self.cut, self.at = True, self.end
            raise _Stop
        self.at = match.end()
        if self.at >= self.end:
            self.cut = True
            raise _Stop
        word = match.group()
        if word in _CONSTANTS:
            if word.islower():
                self.repairs["json_literal"] = None
            return _CONSTANTS[word]
        if self.at < self.end and self.text[self.at] == "(":
            self.at += 1
            inner = self.parameters(depth + 1)
            self.repairs["nested_call"] = None
            return dict(inner[1]) if word == "dict" and not inner[0] else {word: inner[1] or inner[0]}
        self.repairs["unquoted_value"] = None
        return word

    def parameters(self, depth: int) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments, up to and with the closing parenthesis."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        if depth == 0:
            self.partial = keywords
        while True:
            char = self.space()
            if char == ")":
                self.at += 1
                return positional, keywords
            if char == ",":
                self.at += 1
                continue
            if self.text.startswith("**{", self.at):
                self.at += 2
                keywords.update(self.mapping(depth + 1))
                continue
            key = _KEYWORD.match(self.text, self.at, self.end)
            if key:
                self.at = key.end()
                if "-" in key.group(1):
                    self.repairs["bad_identifier"] = None
                elif iskeyword(key.group(1)):
                    self.repairs["reserved_word"] = None
                keywords[key.group(1)] = self.value(depth + 1)
            else:
                positional.append(self.value(depth + 1))
            if self.space() not in (",", ")", ""):
                raise _Stop


def read_call(
    text: str, at: int, end: int, tool: Tool | None = None, name: str | None = None
) -> PyCall | None:
    """Read ``name(…)`` at ``at``; with ``name`` given, only the parameters from the parenthesis at ``at``.

    None when no call starts here. A call that breaks off or does not parse has ``unclosed`` or
    ``bad_python`` among its repairs, and of its arguments those before the fault (None if there are none).
    """
    if name is None:
        match = _CALL.match(text, at, end)
        if not match:
            return None
        name = match.group(1)
        at = match.end()
    else:
        at += 1
    reader = _Reader(text, at, end)
    if "-" in name:
        reader.repairs["bad_identifier"] = None
    try:
        positional, keywords = reader.parameters(0)
    except (_Stop, RecursionError):
        repairs = (*reader.repairs, "unclosed" if reader.cut or reader.at >= end else "bad_python")
        return PyCall(name, dict(reader.partial) or None, reader.at, (), repairs, reader.cut)
    defects: tuple[str, ...] = ()
    arguments: dict[str, Any] | None = keywords
    if positional:
        defects = ("positional_arguments",)
        arguments = _place(positional, keywords, tool)
    repairs = tuple(reader.repairs)
    if arguments is None:
        repairs = (*repairs, "positional_arguments")
    return PyCall(name, arguments, reader.at, defects, repairs, False)


def _place(positional: list[Any], keywords: dict[str, Any], tool: Tool | None) -> dict[str, Any] | None:
    """Positional values under the names of the tool's parameters, in the schema's order."""
    if tool is None:
        if len(positional) == 1 and isinstance(positional[0], dict) and not keywords:
            return positional[0]
        return None
    if len(positional) == 1 and isinstance(positional[0], dict) and set(positional[0]) <= set(tool.order):
        return {**positional[0], **keywords}
    free = [key for key in tool.order if key not in keywords]
    if len(positional) > len(free):
        return None
    return {**dict(zip(free, positional, strict=False)), **keywords}


def read_value(text: str) -> tuple[bool, Any]:
    """A whole text as one Python literal: (True, value), or (False, None)."""
    reader = _Reader(text, 0, len(text))
    try:
        value = reader.value(0)
        if reader.space() or reader.repairs:
            return False, None
    except (_Stop, RecursionError):
        return False, None
    return True, value
