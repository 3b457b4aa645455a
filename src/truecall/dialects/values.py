"""Parameter values that a dialect carries as text, read by the tool's schema."""

from __future__ import annotations

from typing import Any

from truecall.dialects.jsontext import mend, strict
from truecall.dialects.pytext import read_value
from truecall.schema import Tool

_SCALARS: dict[str, Any] = {"true": True, "false": False, "null": None}
_PYTHON: dict[str, Any] = {"True": True, "False": False, "None": None, "TRUE": True, "FALSE": False}
_WANTS = {bool: "boolean", int: "integer", float: "number", dict: "object", list: "array", type(None): "null"}
_NOTHING: frozenset[str] = frozenset()


def unframe(raw: str) -> str:
    """A value without the one newline that frames it on each side."""
    if raw.startswith("\r\n"):
        raw = raw[2:]
    elif raw.startswith("\n"):
        raw = raw[1:]
    if raw.endswith("\r\n"):
        return raw[:-2]
    return raw[:-1] if raw.endswith("\n") else raw


def _json(text: str) -> tuple[bool, Any]:
    if not text or text[0] not in '{["-0123456789tfn':
        return False, None
    got = strict(text, 0)
    return (not got.failed and got.end == len(text)), got.value


def typed(
    raw: str, key: str, tool: Tool | None, *, python: bool = False, stated: str | None = None
) -> tuple[Any, tuple[str, ...]]:
    """A text value as the schema's type, and the repairs that it took.

    ``python``: the dialect writes Python literals. ``stated``: the type that the markup itself gives.
    A value that does not fit its type stays text, for the schema check to report.
    """
    types = frozenset((stated,)) if stated else tool.types(key) if tool else _NOTHING
    text = raw.strip()
    if "string" in types:
        if text == "null" and "null" in types:
            return None, ()
        return raw, ()
    if text in _SCALARS and (not types or types & {"boolean", "null"}):
        return _SCALARS[text], ()
    if text in _PYTHON and types & {"boolean", "null"}:
        return _PYTHON[text], ()
    good, value = _json(text)
    if good and (not types or _fits(value, types)):
        return value, ()
    if types & {"object", "array"}:
        return _container(raw, text, types, python)
    return raw, ()


def _fits(value: Any, types: frozenset[str]) -> bool:
    want = _WANTS.get(type(value))
    return want in types or (want in ("integer", "number") and bool(types & {"integer", "number"}))


def _container(raw: str, text: str, types: frozenset[str], python: bool) -> tuple[Any, tuple[str, ...]]:
    """An object or array that is no JSON: Python's literals first, then a mended reading."""
    if text[:1] not in ("{", "[", "("):
        return raw, ()
    good, value = read_value(text)
    if good and _fits(value, types):
        return value, () if python else ("python_literal",)
    fixed = mend(text, 0, len(text))
    if not fixed.failed and _fits(fixed.value, types):
        return fixed.value, fixed.repairs or ("trailing_text",)
    return raw, ("bad_value",)
