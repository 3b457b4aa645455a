"""Texts that make a careless reader slow: each shape is stretched to a size asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "detector"))

from markers import MARKERS

Shape = Callable[[int], str]

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>\n'
OPEN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "'
PROSE = "The model reads a text and, when asked, says what it found in it (or not). "


def _repeat(unit: str, before: str = "", after: str = "") -> Shape:
    return lambda size: before + unit * max(1, size // len(unit)) + after


def _nested(opener: str, closer: str) -> Shape:
    def make(size: int) -> str:
        depth = max(1, size // (len(opener) + len(closer)))
        return opener * depth + closer * depth

    return make


SHAPES: dict[str, Shape] = {
    "prose": _repeat(PROSE),
    "valid calls": _repeat(CALL),
    "valid bare objects": _repeat('{"name": "get_weather", "arguments": {"city": "Oslo"}}\n'),
    "one call, 1 value": _repeat("x", OPEN, '"}}\n</tool_call>'),
    "no closer, prose": _repeat(PROSE, OPEN),
    "no closer, backslashes": _repeat("\\", OPEN),
    "no closer, quotes": _repeat('"', OPEN),
    "no closer, XML value": _repeat(PROSE, "<tool_call>\n<function=get_weather>\n<parameter=city>\n"),
    "no closer, reasoning": _repeat(PROSE, "<think>"),
    "no closer, fence": _repeat(PROSE, "```json\n"),
    "no closer, pythonic": _repeat("a=1, ", "[get_weather("),
    "nested braces": _repeat("{"),
    "nested objects": _repeat('{"a":'),
    "nested objects, closed": _nested('{"a":', "}"),
    "nested arrays": _nested("[", "]"),
    "nested arrays in a call": lambda size: OPEN[:-1] + _nested("[", "]")(size) + "}}\n</tool_call>",
    "nested call objects": _repeat('{"name": "get_weather", "arguments": '),
    "nested tags": _repeat("<a>"),
    "nested parentheses": _repeat("[get_weather(city="),
    "openers with payload": _repeat(OPEN),
    "openers with a brace": _repeat("<tool_call>{"),
    "openers of XML": _repeat("<function=get_weather>\n<parameter=city>\n"),
    "XML values without their call's closer": _repeat(
        "<function=get_weather>\n<parameter=city>\nx\n</parameter>\n<"
    ),
    "openers of ReAct": _repeat("Action: get_weather\nAction Input: {"),
    "alternating fences": _repeat("```json\n{\n~~~\n"),
    "fence lines": _repeat("```\n"),
    "fences with data": _repeat('```json\n{"a": [1, 2]}\n```\n'),
    "thoughts": _repeat("<think>a</think>"),
    "double quotes": _repeat('"'),
    "single quotes": _repeat("'"),
    "backticks": _repeat("`"),
    "backslashes": _repeat("\\"),
    "angle brackets": _repeat("<"),
    "pipes": _repeat("<|"),
    "blank lines": _repeat("\n"),
    "spaces": _repeat(" "),
    "quoted lines": _repeat("> " + CALL.replace("\n", " ") + "\n"),
    "name without call": _repeat("get_weather "),
    "name and parenthesis": _repeat("get_weather("),
    "array of numbers": _repeat("1, ", "[", "1]"),
    "array of objects": _repeat('{"id": 1}, ', "[", "{}]"),
    "wide text": _repeat("北京的天气很好。"),
}

OPENERS: dict[str, Shape] = {f"openers {marker!r}": _repeat(marker) for marker in MARKERS}
