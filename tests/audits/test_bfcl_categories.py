"""What stands behind a score near 0, and BFCL's rules for a right call."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.audits.snapshots import ANSWER, WEATHER, lines, results, scores, wrong_ast
from truecall.audits.bfcl import audit, gather
from truecall.audits.bfcl.answer import answer
from truecall.audits.bfcl.categories import CategoryAudit
from truecall.bfcl_rules import Uncheckable, check


def text_call(city: str, name: str = "weather.now") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{"city": "{city}"}}}}\n</tool_call>'


def near_zero(root: Path) -> CategoryAudit:
    """A run whose calls mostly stayed in the text."""
    stored: dict[str, Any] = {f"simple_python_{n}": text_call("oslo") for n in range(6)}
    stored["simple_python_6"] = text_call("Rome")  # valid, and not the answer
    stored["simple_python_7"] = {
        "id": "simple_python_7", "result": "Error during inference: Connection error.", "traceback": "Traceback",
    }  # fmt: skip
    stored["simple_python_8"] = "I can't look that up."
    stored["simple_python_9"] = [{"weather_now": '{"city": "Oslo"}'}]
    stored["simple_python_10"] = [{"weather.now": '{"city": "Oslo", "where": "{\\"lat\\": 59.9}"}'}]
    stored["simple_python_11"] = [{"weather.now": '{"city": "Oslo"}'}]
    stored["simple_python_12"] = '<tool_call>\n{"name": "weather.now", "arguments": {"city": \n</tool_call>'
    stored["simple_python_13"] = []
    results(root, "m", "simple_python", stored)
    decoder = "ast_decoder:decoder_failed"
    wrong = [
        wrong_ast(f"simple_python_{n}", decoder, stored[f"simple_python_{n}"]) for n in (*range(7), 8, 12)
    ]
    wrong.append(wrong_ast("simple_python_7", decoder, "Error during inference: Connection error."))
    wrong.append(
        wrong_ast("simple_python_9", "simple_function_checker:wrong_func_name", stored["simple_python_9"])
    )
    wrong.append(wrong_ast("simple_python_10", "type_error:simple", stored["simple_python_10"]))
    wrong.append(wrong_ast("simple_python_13", "ast_decoder:decoder_wrong_output_format", "[]"))
    scores(root, "m", "simple_python", 14, wrong)
    return audit(gather([root], installed=False)).runs[0].categories[0]


def test_each_entry_has_its_outcome(tmp_path: Path) -> None:
    found = near_zero(tmp_path)
    assert found.score == (1, 14)
    assert found.outcomes == {
        "right": 1, "request_failed": 1, "in_text": 8, "rejected": 2, "no_call": 1, "empty": 1,
    }  # fmt: skip
    assert found.valid["in_text"] == 7
    assert found.reasons == {
        "request_failed": {"connection": 1}, "in_text": {"payload does not parse": 1},
        "rejected": {"name_dots": 1, "dict_type": 1},
    }  # fmt: skip
    # Valid: seven in the text, the one with a respelled name, the right one. Produced: all but the error and the [].
    assert found.emitted_valid == (9, 12)
    # Right once delivered: six in the text, both rejected ones, the credited one.
    assert found.if_delivered == (9, 9)


def test_the_answer_puts_the_score_down_to_the_stack(tmp_path: Path) -> None:
    near_zero(tmp_path)
    report = audit(gather([tmp_path], installed=False))
    said = answer(report)
    assert "7.1 % (1/14)" in said and "is not the model's: 7 valid calls were left in the text" in said


def test_without_a_score_file_questions_give_the_answers(tmp_path: Path) -> None:
    results(tmp_path / "run", "m", "simple_python", {
        "simple_python_0": [{"weather.now": '{"city": "Oslo"}'}], "simple_python_1": text_call("Oslo"),
        "simple_python_2": [{"weather.now": '{"city": "Rome"}'}],
    })  # fmt: skip
    data = tmp_path / "data"
    questions = [{"id": f"simple_python_{n}", "question": [[]], "function": [WEATHER]} for n in range(3)]
    lines(data / "BFCL_v4_simple_python.json", questions)
    answers = [{"id": f"simple_python_{n}", "ground_truth": ANSWER} for n in range(3)]
    lines(data / "possible_answer" / "BFCL_v4_simple_python.json", answers)
    found = audit(gather([tmp_path / "run"], data)).runs[0].categories[0]
    assert found.score is None
    assert found.outcomes == {"right": 1, "in_text": 1, "surfaced": 1}
    assert found.if_delivered == (2, 2)
    bare = audit(gather([tmp_path / "run"], installed=False)).runs[0].categories[0]
    assert bare.if_delivered is None and bare.emitted_valid is None and bare.emitted == (3, 3)


def test_conversations_are_sorted_and_not_scored_again(tmp_path: Path) -> None:
    stored = {
        "multi_turn_base_0": [[[{"ls": "{}"}], "done"]],
        "multi_turn_base_1": [[text_call("Oslo")], ["ok"]],
        "multi_turn_base_2": [["I can't."]],
        "multi_turn_base_3": "Error during inference: timeout",
        "multi_turn_base_4": [[[{"ls": "{}"}]]],
        "multi_turn_base_5": [[], []],
    }
    results(tmp_path, "m", "multi_turn_base", stored, group="multi_turn")
    wrong: list[dict[str, Any]] = [
        {"id": f"multi_turn_base_{n}", "error": {"error_type": "multi_turn:empty_turn", "error_message": "x"}}
        for n in (0, 1, 2, 3, 5)
    ]
    scores(tmp_path, "m", "multi_turn_base", 6, wrong, group="multi_turn")
    found = audit(gather([tmp_path], installed=False)).runs[0].categories[0]
    assert found.outcomes == {
        "right": 1, "request_failed": 1, "in_text": 1, "rejected": 1, "no_call": 1, "empty": 1,
    }  # fmt: skip
    assert found.if_delivered is None
    assert any("not scored again" in note for note in found.notes)


# --------------------------------------------------------------------------- the rules


def tool(**properties: Any) -> list[dict[str, Any]]:
    required = [name for name, schema in properties.items() if schema.pop("required", False)]
    return [{"name": "f", "parameters": {"type": "dict", "properties": properties, "required": required}}]


@pytest.mark.parametrize(
    ("schema", "allowed", "value", "fault"),
    [
        ({"type": "string"}, ["New York"], "new-york", ""),
        ({"type": "string"}, ["New York"], "Boston", "value"),
        ({"type": "integer"}, [3], 3.0, "type"),
        ({"type": "integer"}, [1], True, "type"),
        ({"type": "float"}, [3.0], 3, ""),
        ({"type": "integer"}, [3], "3", "type"),
        ({"type": "integer"}, ["n"], "n", ""),  # a variable: the answer's type stands
        ({"type": "array", "items": {"type": "integer"}}, [[1, 2]], [1, 2], ""),
        ({"type": "array", "items": {"type": "integer"}}, [[1, 2]], [2, 1], "value"),
        ({"type": "array", "items": {"type": "integer"}}, [[1, 2]], ["1"], "nested_type"),
        ({"type": "array", "items": {"type": "string"}}, [["A b"]], ["a-B"], ""),
        ({"type": "dict"}, [{"lat": [1.5], "note": ["x", ""]}], {"lat": 1.5}, ""),
        ({"type": "dict"}, [{"lat": [1.5]}], {"lat": 1.5, "more": 1}, "value"),
        ({"type": "dict"}, [{"lat": [1.5]}], {}, "value"),
        ({"type": "dict"}, [{"lat": [1.5]}], '{"lat": 1.5}', "type"),
        ({"type": "array", "items": {"type": "dict"}}, [[{"a": [1]}]], [{"a": 1}], ""),
        ({"type": "array", "items": {"type": "dict"}}, [[{"a": [1]}]], [{"a": 1}, {"a": 1}], "value"),
    ],
)
def test_parameters(schema: dict[str, Any], allowed: list[Any], value: Any, fault: str) -> None:
    assert check(tool(x=schema), [("f", {"x": value})], [{"f": {"x": allowed}}], "simple_python") == fault


def test_names_counts_and_missing_parameters() -> None:
    tools = tool(a={"type": "integer", "required": True}, b={"type": "integer"})
    answers = [{"f": {"a": [1], "b": [2]}}]
    assert check(tools, [("f", {"a": 1, "b": 2})], answers, "multiple") == ""
    assert check(tools, [("g", {"a": 1})], answers, "multiple") == "wrong_name"
    assert check(tools, [("f", {"b": 2})], answers, "multiple") == "missing_required"
    assert check(tools, [("f", {"a": 1})], answers, "multiple") == "missing_optional"
    assert check(tools, [("f", {"a": 1, "c": 0})], answers, "multiple") == "unexpected_parameter"
    assert check(tools, [], answers, "multiple") == "wrong_count"


def test_parallel_calls_may_come_in_any_order() -> None:
    tools = tool(a={"type": "integer", "required": True})
    answers = [{"f": {"a": [1]}}, {"f": {"a": [2]}}]
    assert check(tools, [("f", {"a": 2}), ("f", {"a": 1})], answers, "parallel") == ""
    assert check(tools, [("f", {"a": 2}), ("f", {"a": 2})], answers, "parallel") != ""


@pytest.mark.parametrize("broken", [None, [], [{}], [{"f": {"a": None}}], [{"f": 3}], "text"])
def test_broken_answers_are_uncheckable_or_a_fault(broken: Any) -> None:
    with suppress(Uncheckable):
        assert check(tool(a={"type": "integer"}), [("f", {"a": 1})], broken, "simple_python")
