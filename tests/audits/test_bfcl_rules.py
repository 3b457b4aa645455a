"""BFCL's scorer: the published ids, and the literals of Java and JavaScript."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.audits.snapshots import BFCL, needs_published
from tests.effort import HANGS
from truecall.bfcl_rules import NamedCall, Uncheckable, check, decoded, fault
from truecall.bfcl_rules.literals import LONGEST, java, javascript
from truecall.sources.bfcl import Entry, read_results, read_scores


def tool_call_text(result: Any) -> list[NamedCall] | None:
    """What bfcl-eval's handler for Falcon3 reads in a text: the first ``<tool_call>``, fenced or not."""
    if not isinstance(result, str) or "<tool_call>" not in result:
        return None
    payload = result.split("<tool_call>")[1].split("</tool_call>")[0].strip()
    if payload.startswith("```") and payload.endswith("```"):
        payload = payload.strip("`").strip().removeprefix("json").strip()
    try:
        value = json.loads(payload)
        calls = [
            (call["name"], call["arguments"]) for call in (value if isinstance(value, list) else [value])
        ]
    except (ValueError, KeyError, TypeError):
        return None
    return calls if all(isinstance(arguments, dict) for _, arguments in calls) else None


SCORED = sorted(BFCL.rglob("*_score.json")) if BFCL.is_dir() else []


@needs_published
@pytest.mark.parametrize("scored", SCORED, ids=lambda path: f"{path.parts[-3]}-{path.stem[8:-6]}")
def test_the_scorer_credits_the_published_ids(scored: Path) -> None:
    """Every category that has a score file; what a question offers and allows stands in its line there."""
    name = scored.name.replace("_score.json", "_result.json")
    [results] = [path for path in BFCL.rglob(name) if path.parts[-3] == scored.parts[-3]]
    category = name.removeprefix("BFCL_v4_").removesuffix("_result.json")
    read = tool_call_text if "Falcon3" in str(scored) else decoded
    score, bad = read_scores(scored)
    wrong = {line.id: line for line in score.wrong}
    entries = [entry for entry in read_results(results, "", category) if isinstance(entry, Entry)]
    assert not bad and len(entries) == score.total
    ours = set()
    for entry in entries:
        line = wrong.get(entry.id)
        tools, answer = (line.tools or [], line.answer) if line is not None else ([], None)
        if fault(tools, read(entry.result), answer, category) == "":
            ours.add(entry.id)
    assert ours == {entry.id for entry in entries} - wrong.keys()
    assert len(ours) == score.correct


@needs_published
def test_every_kind_of_category_is_among_them() -> None:
    names = {path.name for path in SCORED}
    assert {
        f"BFCL_v4_{name}_score.json" for name in ("irrelevance", "live_irrelevance", "live_relevance")
    } <= names
    assert "BFCL_v4_parallel_score.json" in names and len(SCORED) >= 5


@pytest.mark.parametrize(
    ("stored", "calls"),
    [
        ([{"f": '{"a": 1}'}, {"g": {}}], [("f", {"a": 1}), ("g", {})]),
        ([], []),
        ([{}], None),
        ([{"f": "{"}], None),
        ([{"f": "null"}], None),
        ([{"f": []}], None),
        ("[f(a=1)]", None),
        ("Error during inference: Error code: 500", None),
        (None, None),
    ],
)
def test_what_is_read_in_a_stored_result(stored: Any, calls: Any) -> None:
    assert decoded(stored) == calls
    assert fault([], decoded(stored), None, "live_irrelevance") == ("called" if calls else "")
    assert fault([], decoded(stored), None, "live_relevance") == ("" if calls else "no_call")
    if calls is None:
        assert fault([], None, [], "multiple") == "not_decoded"


@pytest.mark.parametrize(
    ("text", "kind", "inner", "value"),
    [
        ("-12", "integer", None, -12),
        ("12L", "integer", None, "12L"),
        ("12L", "long", None, 12),
        ("12", "long", None, "12"),
        ("1.5e3f", "float", None, 1500.0),
        ("1.5", "float", None, "1.5"),
        ("1.5", "double", None, 1.5),
        ("true", "boolean", None, True),
        ("True", "boolean", None, "True"),
        ("'a'", "char", None, "'a'"),
        ('"a"', "String", None, '"a"'),
        ("12", "any", None, "12"),
        ("new int[]{1, 2,}", "Array", "integer", [1, 2]),
        ('new Object[]{1, "a, b", true, 3L}', "Array", None, [1, '"a', 'b"', True, 3]),
        ("list", "ArrayList", "String", "list"),
        ('new ArrayList<String>(Arrays.asList("a", "b"))', "ArrayList", "String", ["a", "b"]),
        ('new ArrayList<>() {{ add("a"); add("b"); }}', "ArrayList", "String", ["a", "b"]),
        ("new ArrayList<Integer>()", "ArrayList", "integer", []),
        ('new HashMap<String, Object>() {{ put("k", "v"); put("n", 2.5f); }}', "HashMap", None,
         {"k": "v", "n": 2.5}),
        ("new HashMap<>()", "HashMap", None, {}),
    ],
)  # fmt: skip
def test_java(text: str, kind: str, inner: str | None, value: Any) -> None:
    read = java(text, kind, inner)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "kind", "inner", "value"),
    [
        ("'a'", "String", None, "a"),
        ("'a\"", "String", None, "'a\""),
        ("7", "integer", None, 7),
        ("7", "float", None, 7.0),
        ("7n", "Bigint", None, 7),
        ("false", "Boolean", None, False),
        ("fn", "any", None, "fn"),
        ("[1, 'two', true]", "array", None, [1, "two", True]),
        ("new Array('a', 'b')", "array", "String", ["a", "b"]),
        ("[]", "array", "integer", []),
        ("[[1, 2], ['x']]", "array", None, [[1, 2], ["x"]]),
        ("rows", "array", None, "rows"),
        ("{key: 'v', n: 2, list: [1, 2]}", "dict", None, {"key": "v", "n": 2, "list": [1, 2]}),
        ("{}", "dict", None, {}),
        ("options", "dict", None, "options"),
    ],
)
def test_javascript(text: str, kind: str, inner: str | None, value: Any) -> None:
    read = javascript(text, kind, inner)
    assert (read, type(read)) == (value, type(value))


def tool(**properties: Any) -> list[dict[str, Any]]:
    return [{"name": "f", "parameters": {"type": "dict", "properties": properties, "required": []}}]


@pytest.mark.parametrize(
    ("category", "schema", "allowed", "value", "broken"),
    [
        ("simple_java", {"type": "long"}, [5], "5L", ""),
        ("simple_java", {"type": "long"}, [5], "5", "type"),
        ("simple_java", {"type": "long"}, [5], 5, "not_text"),
        ("simple_java", {"type": "boolean"}, ["flag"], "flag", ""),  # a variable
        ("simple_java", {"type": "ArrayList", "items": {"type": "long"}}, [[1, 2]],
         "new ArrayList<>(Arrays.asList(1L, 2L))", ""),
        ("simple_java", {"type": "ArrayList", "items": {"type": "long"}}, [[1, 2]],
         "new ArrayList<>(Arrays.asList(1, 2))", "nested_type"),
        ("simple_javascript", {"type": "dict"}, [{"a": [1]}], "{a: 1}", ""),
        ("simple_javascript", {"type": "array", "items": {"type": "String"}}, [["x", "y"]], "['x', \"y\"]", ""),
        ("simple_javascript", {"type": "Boolean"}, [True], "false", "value"),
    ],
)  # fmt: skip
def test_other_languages(category: str, schema: Any, allowed: Any, value: Any, broken: str) -> None:
    assert check(tool(x=schema), [("f", {"x": value})], [{"f": {"x": allowed}}], category) == broken


def test_types_that_bfcl_does_not_read_are_uncheckable() -> None:
    long = "x" * (LONGEST + 1)
    for kind, value in (("Queue", "q"), ("HashMap", long)):
        with pytest.raises(Uncheckable):
            check(tool(x={"type": kind}), [("f", {"x": value})], [{"f": {"x": ["q"]}}], "simple_java")
    assert check(tool(x={"type": "any"}), [("f", {"x": long})], [{"f": {"x": [long]}}], "simple_java") == ""


@pytest.mark.parametrize("piece", ["],[", "new HashMap<", " ", "a,", "a:", "] ,", 'put("', "}"])
def test_hostile_literals_end_soon(piece: str) -> None:
    began = time.process_time()
    for start in ("", "[[", "{", "new HashMap<>() {", "new ArrayList<>() {{", "new Array(["):
        text = (start + piece * LONGEST)[:LONGEST]
        for kind in ("ArrayList", "Array", "HashMap"):
            java(text, kind)
        for kind in ("array", "dict"):
            javascript(text, kind)
    assert time.process_time() - began < HANGS
