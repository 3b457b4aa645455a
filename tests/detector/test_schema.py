"""Arguments against their schema, and tool lists of every shape."""

from __future__ import annotations

from typing import Any

import pytest

from truecall.detector import detect
from truecall.schema import check, compile_tools

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"enum": ["c", "f"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "kind", "path"),
    [
        ({}, "missing", ""),
        ({"city": "Oslo", "moon": 1}, "unknown", ""),
        ({"city": 3}, "type", "/city"),
        ({"city": "O"}, "length", "/city"),
        ({"city": "Oslo", "days": 99}, "range", "/days"),
        ({"city": "Oslo", "unit": "k"}, "enum", "/unit"),
        ({"city": "Oslo", "tags": [1]}, "type", "/tags/0"),
        ({"city": "Oslo", "tags": ["a", "b", "c"]}, "length", "/tags"),
        (["Oslo"], "not_object", ""),
    ],
)
def test_violation(arguments: Any, kind: str, path: str) -> None:
    found = check(arguments, SCHEMA)
    assert [(v.kind, v.path) for v in found] == [(kind, path)]


def test_valid_and_unknown_schemas() -> None:
    assert check({"city": "Oslo", "days": 2}, SCHEMA) == ()
    assert check({"anything": 1}, None) == ()
    assert check({"anything": 1}, {}) == ()


def test_broken_schema_and_remote_reference() -> None:
    assert [v.kind for v in check({"a": 1}, {"type": "no such type"})] == ["schema_invalid"]
    remote = {"properties": {"a": {"$ref": "https://example.org/schema.json"}}}
    assert [v.kind for v in check({"a": 1}, remote)] == ["schema_invalid"]


def test_bfcl_types() -> None:
    schema = {
        "type": "dict",
        "properties": {"x": {"type": "float"}, "y": {"type": "tuple"}, "z": {"type": "any"}},
    }
    assert check({"x": 1.5, "y": [1], "z": "w"}, schema) == ()
    assert [v.kind for v in check({"x": "a"}, schema)] == ["type"]


@pytest.mark.parametrize(
    "tools",
    [
        [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
        [{"name": "f", "parameters": SCHEMA}],
        [{"name": "f", "input_schema": SCHEMA}],
        [{"functionDeclarations": [{"name": "f", "parameters": SCHEMA}]}],
        [None, 3, {"name": 4}, {"name": "f", "parameters": SCHEMA}],
    ],
)
def test_tool_lists(tools: Any) -> None:
    toolset = compile_tools(tools)
    assert toolset.names == ("f",)
    tool = toolset.get("f")
    assert tool is not None and tool.required == ("city",)


@pytest.mark.parametrize("tools", ["garbage", 3, [[]], [{"function": "x"}], {"a": {1, 2}}])
def test_garbage_tools_do_no_harm(tools: Any) -> None:
    assert detect('<tool_call>{"name": "f", "arguments": {}}</tool_call>', tools).emitted


def test_text_values_take_the_schemas_types() -> None:
    tools = [{"name": "f", "parameters": SCHEMA}]
    text = (
        "<function=f>\n<parameter=city>\n12\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
        '<parameter=tags>\n["a"]\n</parameter>\n</function>'
    )
    (call,) = detect(text, tools).calls
    assert call.arguments == {"city": "12", "days": 3, "tags": ["a"]}
    assert call.violations == ()
    (call,) = detect(text.replace("3", "three"), tools).calls
    assert call.arguments is not None and call.arguments["days"] == "three"
    assert [(v.kind, v.path) for v in call.violations or ()] == [("type", "/days")]


def test_a_tool_list_that_changes_in_place_is_read_again() -> None:
    days: dict[str, object] = {"type": "integer"}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"days": days}}}]
    first = compile_tools(tools)
    assert compile_tools(tools) is first
    days["type"] = "string"
    assert compile_tools(tools).tools["f"].types("days") == {"string"}
    assert first.tools["f"].types("days") == {"integer"}
    assert first.tools["f"].check({"days": 3}) == ()
    days["type"] = "integer"
    assert compile_tools(tools) is first
