"""JSON in model text: where a value ends, and what a broken one was meant to say.

`strict` reads a value as the standard has it. `mend` reads what `strict` can't and names every repair;
both touch each character a bounded number of times and never raise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import isinf
from typing import Any

import msgspec

_MAX_ESCAPES = 50_000  # in one broken string; beyond that it is noise, and is left as it stands
MAX_DEPTH = 80  # nesting that `mend` follows; the strict reader has the interpreter's own limit


def _no_constant(word: str) -> None:
    raise ValueError(word)


def finite(word: str) -> float:
    """The number that a word stands for. Raises ValueError where no double holds it: JSON can't carry infinity on."""
    value = float(word)
    if isinf(value):
        raise ValueError(word)
    return value


class _Decoder(json.JSONDecoder):
    """Typed view of the C scanner, which reads one value and tells where it ends."""

    scan_once: Callable[[str, int], tuple[Any, int]]


scan = _Decoder(parse_float=finite, parse_constant=_no_constant).scan_once
"""The C scanner itself: (value, end), or StopIteration, ValueError or RecursionError."""


class Value(msgspec.Struct, eq=False, gc=False):
    """A value and where it ends; ``repairs`` is empty when it parsed as it stands.

    ``failed`` is True when nothing could be read; ``end`` is then where reading stopped.
    """

    value: Any
    end: int
    repairs: tuple[str, ...] = ()
    failed: bool = False


def strict(text: str, at: int) -> Value:
    """Read one JSON value at ``at`` (no leading white space allowed).

    The library counts lines up to every error, so a long text is read through a window that doubles only while
    the value seems to go on past it.
    """
    size = len(text)
    if size <= _SHORT:
        try:
            return Value(*scan(text, at))
        except (StopIteration, ValueError, RecursionError):
            return _strict(text, at)[0]
    width = _SHORT
    while True:
        got, cut = _strict(text[at : at + width], 0)
        if not cut or at + width >= size:
            got.end += at
            return got
        width *= 2


def _strict(text: str, at: int) -> tuple[Value, bool]:
    """A value, and for a failed one whether the end of ``text`` may be the cause."""
    try:
        value, end = scan(text, at)
    except StopIteration as stop:
        place = max(int(stop.value or 0), at + 1)
        return Value(None, place, failed=True), place + _NEAR > len(text)
    except json.JSONDecodeError as error:
        place = max(error.pos, at + 1)
        cut = place + _NEAR > len(text) or error.msg.startswith("Unterminated")
        return Value(None, place, failed=True), cut
    except RecursionError:
        deep = _DEEP.match(text, at)  # so many brackets were nested at least
        return Value(None, deep.end() if deep else at + 1, ("too_deep",), failed=True), False
    except ValueError:  # a number that is too large, or NaN and Infinity, which are no JSON
        return Value(None, at + 1, failed=True), False
    return Value(value, end), False


_COMMA = re.compile(r"[ \t\n\r]*+(?:(,)[ \t\n\r]*+|\])")


def long_array(text: str, at: int, most: int = 1000) -> int:
    """Where an array of more than ``most`` values ends, read value by value so that none is kept; else -1."""
    count, pos = 0, at + 1
    while True:
        got = strict(text, pos)
        if got.failed:
            return -1
        count += 1
        comma = _COMMA.match(text, got.end)
        if comma is None:
            return -1
        pos = comma.end()
        if not comma[1]:
            return pos if count > most else -1


_SHORT = 8192
_NEAR = 16  # an escape or a literal that the window cut is no longer than this
_DEEP = re.compile(r"(?:[^\[{]*[\[{]){300}")
_SPACE = re.compile(r"(?:\s++|//[^\n]*+\n|/\*.{0,2000}?\*/)*+", re.DOTALL)
_WORD = re.compile(r"[^\s,:{}\[\]]+")
_BARE = re.compile(r"[^,{}\[\]\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,300})(?:\.\d+)?(?:[eE][-+]?\d{1,4})?(?=[\s,}\]]|$)")
_GAP = r"\s*+[,;](?:[\s,]++|//[^\n]{0,200}+\n|/\*.{0,200}?\*/)*+"
_KEY_NEXT = re.compile(
    _GAP + r"(?:(?:[\"'“][^\"'“”\n]{1,80}[\"'”]|[A-Za-z_]\w{0,60})\s*+:|(?:\"[\w\-]{0,60}\"?+\s*+)?$)",
    re.DOTALL,
)
_KEY_UNPARTED = re.compile(r"\s+\"[A-Za-z_][\w\-]{0,60}\"\s*+:")
_ITEM_NEXT = re.compile(_GAP + r"(?:[\"'“\[{\d\-]|true|false|null|True|False|None)", re.DOTALL)
_CLOSE_NEXT = re.compile(
    r"\s*+,?\s*+(?:[}\]][\s}\]]*(?:[,;<`\"']|$|[^\w\s])|[}\]][^\S\n]*+\n|[}\]][\s}\]]*$|$)"
)
_CLOSE_TIGHT = re.compile(r"\s*+[}\]]")
_COLON_NEXT = re.compile(r"\s*+:|\s++[\"{\[]")
_UNENDED = re.compile(r"[\w.\-]{1,64}(?=\s*+,\s*+\"[A-Za-z_]\w{0,60}\"\s*+:)")
_BAD_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|(.)|$)', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_QUOTES = {'"': '"', "'": "'", "“": "”", "`": "`"}
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_PYTHON_WORDS: dict[str, Any] = {
    "True": True, "False": False, "None": None, "undefined": None,
}  # fmt: skip
_NO_NUMBERS = frozenset(("NaN", "Infinity", "-Infinity"))  # other languages' literals: JSON has null for them


class _GiveUp(Exception):
    pass


class _Mender:
    """A recursive reader that guesses the intent of broken JSON."""

    def __init__(self, text: str, at: int, end: int) -> None:
        self.text = text
        self.at = at
        self.end = end
        self.repairs: dict[str, None] = {}

    def note(self, repair: str) -> None:
        self.repairs[repair] = None

    def space(self) -> str:
        """Skip white space and comments; the next character, or "" at the end."""
        match = _SPACE.match(self.text, self.at, self.end)
        if match and match.end() > self.at:
            if "/" in self.text[self.at : match.end()]:
                self.note("comment")
            self.at = match.end()
        return self.text[self.at] if self.at < self.end else ""

    def value(self, depth: int, inside: str) -> Any:
        if depth > MAX_DEPTH:
            self.note("too_deep")
            raise _GiveUp
        char = self.space()
        if char == "{":
            return self.object(depth)
        if char == "[" or char == "(":
            return self.array(depth, "]" if char == "[" else ")")
        if char in _QUOTES:
            return self.string(inside)
        if char == "":
            self.note("cut")
            return None
        return self.word()

    def object(self, depth: int) -> dict[str, Any]:
        self.at += 1
        out: dict[str, Any] = {}
        while True:
            char = self.space()
            if char == "}":
                self.at += 1
                return out
            if char == "":
                self.note("closed_brackets")
                return out
            if char in "])":
                self.note("closed_brackets")
                return out
            if char == ",":
                self.note("extra_comma")
                self.at += 1
                continue
            key = self.key()
            if self.space() == ":":
                self.at += 1
            elif self.at >= self.end:
                self.note("cut")
                return out
            elif self.text[self.at] in '"{[':
                self.note("missing_colon")
            else:
                raise _GiveUp
            out[key] = self.value(depth + 1, "object")
            self.comma("}")

    def array(self, depth: int, closer: str) -> list[Any]:
        self.at += 1
        if closer == ")":
            self.note("python_literal")
        out: list[Any] = []
        while True:
            char = self.space()
            if char == closer:
                self.at += 1
                return out
            if char == "" or char in "})]":
                self.note("closed_brackets")
                return out
            if char == ",":
                self.note("extra_comma")
                self.at += 1
                continue
            before = self.at
            out.append(self.value(depth + 1, "array"))
            if self.at == before:
                raise _GiveUp
            self.comma(closer)

    def comma(self, closer: str) -> None:
        char = self.space()
        if char == ",":
            self.at += 1
            if self.space() in (closer, ""):
                self.note("trailing_comma")
        elif char and char not in "}])":
            self.note("missing_comma")
            self.at += char == ";"

    def key(self) -> str:
        char = self.text[self.at]
        if char in _QUOTES:
            return str(self.string("key"))
        match = _WORD.match(self.text, self.at, self.end)
        if not match:
            raise _GiveUp
        self.at = match.end()
        self.note("unquoted_key")
        return match.group().strip("\"'")

    def word(self) -> Any:
        number = _NUMBER.match(self.text, self.at, self.end)
        if number:
            self.at = number.end()
            try:
                return scan(number.group(), 0)[0]
            except ValueError:
                self.note("huge_number")
                return number.group()
        match = _BARE.match(self.text, self.at, self.end)
        word = match.group().strip() if match else ""
        if not match or not word:
            raise _GiveUp
        self.at = match.end()
        if word in _WORDS:
            return _WORDS[word]
        if word in _PYTHON_WORDS:
            self.note("python_literal")
            return _PYTHON_WORDS[word]
        if word in _NO_NUMBERS:
            self.note("json_literal")
            return None
        bare = word.strip("\"'")
        self.note("unquoted_value" if bare == word else "half_quoted")
        return bare

    def string(self, inside: str) -> str:
        quote = self.text[self.at]
        closer = _QUOTES[quote]
        if quote != '"':
            self.note("python_literal" if quote == "'" else "odd_quotes")
        triple = self.text.startswith(quote * 3, self.at)
        if triple and inside != "key":
            return self.triple(quote)
        start = at = self.at + 1
        early = _UNENDED.match(self.text, start, self.end) if inside == "object" and quote == '"' else None
        if early:
            self.note("half_quoted")
            self.at = early.end()
            return early.group()
        inner = False
        while True:
            at = self.closing(closer, at)
            if at < 0:
                self.at = self.end
                self.note("cut_string")
                return self.decode(start, self.end, quote, inner)
            if self.closes(at + 1, inside):
                self.at = at + 1
                return self.decode(start, at, quote, inner)
            inner = True
            at += 1

    def closing(self, closer: str, at: int) -> int:
        """The next quote that no backslash escapes, or -1."""
        while True:
            at = self.text.find(closer, at, self.end)
            if at < 0:
                return -1
            back = at
            while self.text[back - 1] == "\\":
                back -= 1
            if (at - back) % 2 == 0:
                return at
            at += 1

    def closes(self, after: int, inside: str) -> bool:
        """Whether what follows a quote is what follows the end of a string."""
        text, end = self.text, self.end
        if inside == "key":
            return _COLON_NEXT.match(text, after, end) is not None
        if inside == "object" and _KEY_UNPARTED.match(text, after, end):
            return True
        follow = _KEY_NEXT if inside == "object" else _ITEM_NEXT
        if follow.match(text, after, end) or _CLOSE_NEXT.match(text, after, end):
            return True
        return inside == "array" and _CLOSE_TIGHT.match(text, after, end) is not None

    def triple(self, quote: str) -> str:
        self.note("python_literal")
        start = self.at + 3
        end = self.text.find(quote * 3, start, self.end)
        if end < 0:
            self.note("cut_string")
            self.at = self.end
            return self.text[start : self.end]
        self.at = end + 3
        return self.text[start:end]

    def decode(self, start: int, end: int, quote: str, inner: bool) -> str:
        raw = self.text[start:end]
        if inner:
            self.note("unescaped_quote")
        if _CONTROL.search(raw):
            self.note("unescaped_newline")
        if "\\" not in raw or raw.count("\\") > _MAX_ESCAPES:
            return raw

        def fix(match: re.Match[str]) -> str:
            if match.group(1):
                return match.group(0)
            if match.group(2) is None:
                return ""
            if match.group(2) == quote:
                return quote
            self.note("invalid_escape")
            return "\\\\" + ('\\"' if match.group(2) == '"' else match.group(2))

        fixed = _BAD_ESCAPE.sub(fix, raw)
        fixed = re.sub(r'(\\.)|"', lambda m: m.group(1) or '\\"', fixed, flags=re.DOTALL)
        try:
            return str(json.loads(f'"{fixed}"', strict=False))
        except ValueError:
            return raw


def mend(text: str, at: int, end: int) -> Value:
    """Read a broken value at ``at``, not past ``end``, with the repairs named.

    ``cut`` and ``cut_string`` among the repairs say that the text ended inside the value.
    """
    mender = _Mender(text, at, end)
    try:
        value = mender.value(0, "array")
    except (_GiveUp, RecursionError, ValueError):
        return Value(None, max(mender.at, at + 1), tuple(mender.repairs), failed=True)
    # What the strict reader refused and no repair explains is white space that JSON does not know.
    return Value(value, mender.at, tuple(mender.repairs) or ("odd_space",))
