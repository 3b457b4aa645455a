"""Java and JavaScript literals as BFCL reads them before it checks a value.

In these categories every argument is sent as text. What is no literal of the described type stays the text that it
was, and then counts where an answer is that text (a variable's name). Collections are found by BFCL's own loose
patterns, which split at every comma: published scores rest on them. Hostile texts take quadratic time in them, so that
their length is bounded (`LONGEST`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from truecall.records import Json

LONGEST: Final = 4000
"""Characters of a collection's literal that is read."""

Convert = Callable[[str], Json]


def java(text: str, kind: str, inner: str | None = None) -> Json:
    """The value of a Java literal of type ``kind`` (of ``inner`` elements). KeyError: a type without a reading."""
    if kind == "ArrayList":
        return _array_list(text, inner)
    if kind == "Array":
        found = re.search(r"new\s+\w+\[\]\s*\{(.*?)\}", text)
        return text if found is None else _items(found[1], lambda item: _java_item(item, inner), bare=False)
    if kind == "HashMap":
        return _hash_map(text)
    return _scalar(text, _JAVA[kind])


def javascript(text: str, kind: str, inner: str | None = None) -> Json:
    """The value of a JavaScript literal, as `java`."""
    if kind == "array":
        return _js_array(text.strip(), inner)
    if kind == "dict":
        return _js_object(text.strip())
    if kind == "String":
        return _unquoted(text)
    return _scalar(text, _JAVASCRIPT[kind])


# --------------------------------------------------------------------------- single values


def _true(text: str) -> bool:
    return text == "true"


_DECIMAL: Final = r"-?\d+(\.\d+)?([eE][+-]?\d+)?"
_BOOLEAN: Final = (re.compile(r"(true|false)\Z"), _true)
_INTEGER: Final = (re.compile(r"-?\d+$"), int)
_TEXT: Final = (re.compile(r""), str)
_JAVA: Final[dict[str, tuple[re.Pattern[str], Callable[[str], Any]]]] = {
    **dict.fromkeys(("byte", "short", "integer"), _INTEGER),
    "float": (re.compile(_DECIMAL + "[fF]$"), lambda text: float(text.rstrip("fF\n"))),
    "double": (re.compile(_DECIMAL + "$"), float),
    "long": (re.compile(r"-?\d+[lL]$"), lambda text: int(text.rstrip("lL\n"))),
    "boolean": _BOOLEAN,
    **dict.fromkeys(("char", "String", "any"), _TEXT),
}
_JAVASCRIPT: Final[dict[str, tuple[re.Pattern[str], Callable[[str], Any]]]] = {
    "integer": _INTEGER,
    "float": (re.compile(r"-?\d+(\.\d+)?$"), float),
    "Bigint": (re.compile(r"-?\d+n$"), lambda text: int(text[:-1])),
    "Boolean": _BOOLEAN,
    "any": _TEXT,
}


def _scalar(text: str, reading: tuple[re.Pattern[str], Callable[[str], Any]]) -> Json:
    pattern, convert = reading
    return convert(text) if pattern.match(text) else text


def _free(text: str, quotes: str, more: Convert | None = None) -> Json:
    """A value without a described type."""
    if text in ("true", "false"):
        return text == "true"
    if (bare := _unquoted(text, quotes)) != text:
        return bare
    if more is not None and (value := more(text)) is not text:
        return value
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _java_free(text: str) -> Json:
    return _free(text, '"', _java_suffixed)


def _java_suffixed(text: str) -> Json:
    value = _scalar(text, _JAVA["long"])
    return value if value is not text else _scalar(text, _JAVA["float"])


def _js_free(text: str) -> Json:
    return _free(text.strip(), "\"'")


def _unquoted(text: str, quotes: str = "\"'") -> str:
    return text[1:-1] if text and text[0] in quotes and text[-1] == text[0] else text


# --------------------------------------------------------------------------- collections


def _items(text: str, convert: Convert, *, bare: bool) -> list[Json]:
    """The elements between commas; ``bare``: empty ones count."""
    parts = [part.strip() for part in text.split(",")]
    return [convert(part) for part in parts if part or bare]


def _java_item(text: str, inner: str | None) -> Json:
    return java(text, inner) if inner else _java_free(text)


def _array_list(text: str, inner: str | None) -> Json:
    def item(part: str) -> Json:
        return part[1:-1] if inner in ("char", "String") else _java_item(part, inner)

    listed = re.search(r"new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)", text)
    if listed is not None:
        return _items(listed[1], item, bare=True)
    added = re.search(r"new\s+ArrayList<\w*>\(\)\s*\{\{\s*+(.+?)\s*+\}\}", text, re.DOTALL)
    if added is not None:
        return [item(part.strip()) for part in re.findall(r"add\((.+?)\)", added[1])]
    return [] if re.search(r"new\s+ArrayList<\w*>\(\)", text) else text


def _hash_map(text: str) -> Json:
    found = re.search(r"new\s+HashMap<.*?>\s*+\(\)\s*+\{\s*+\{?\s*+(.*?)\s*+\}?\s*+\}", text, re.DOTALL)
    if found is not None:
        pairs = re.findall(r"put\(\"(.*?)\",\s*(.*?)\)", found[1])
        return {key: _java_free(value.strip()) for key, value in pairs}
    return {} if re.search(r"new\s+HashMap<.*?>\s*\(\)", text) else text


# An array of arrays: rows one after another, else anything up to the first "]" that stands before the end.
_NESTED: Final = re.compile(
    r"\[\s*+\[.*?\]\s*+(?>,\s*+\[.*?\]\s*+)*+\]|\[\s*+\[.*?\]\s*+\]"
    r"|\bnew\s++Array\(\s*+\[.*?\]\s*+(?>,\s*+\[.*?\]\s*+)*+\)|\bnew\s++Array\(\s*+\[.*?\]\s*+\)"
)
_FLAT: Final = re.compile(r"\[(.*?)\]|\bnew\s++Array\((.*?)\)")


def _js_array(text: str, inner: str | None) -> Json:
    if nested := _NESTED.match(text):
        rows = [row.strip() for row in re.findall(r"\[(.*?)\]", nested[0])]
        rows[0] = rows[0].removeprefix("[")
        return [_items(row, _js_free, bare=True) for row in rows]
    flat = _FLAT.match(text)
    if flat is None:
        return text
    listed = (flat[1] if flat[1] is not None else flat[2]).strip()
    return _items(listed, lambda part: _js_item(part, inner), bare=True) if listed else []


def _js_item(text: str, inner: str | None) -> Json:
    return javascript(text, inner) if inner else _js_free(text)


def _js_object(text: str) -> Json:
    found = None if text == "{}" else re.match(r"\{(.*?)\}", text)
    if found is None:
        return {} if text == "{}" else text
    pairs = re.findall(r"([^:]+):\s*(.*?)(?:,\s*(?=[^,]+:)|$)", found[1])
    return {key.strip().strip("'\""): _js_member(value.strip()) for key, value in pairs}


def _js_member(text: str) -> Json:
    if text.startswith("[") and text.endswith("]"):
        return _js_array(text, None)
    if text.startswith("{") and text.endswith("}"):
        return _js_object(text)
    return _js_free(text.strip("'\""))
