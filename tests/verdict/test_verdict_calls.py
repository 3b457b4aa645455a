"""What became of a call: each rule on a small body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from verdict_bodies import ARGUMENTS, CUT, HERMES, TOOLS, call, chat, chunks, raw

from truecall import judge
from truecall.records import Delivery, Emission, EvidenceTier, Part, Verdict


def of(body: Any, tools: Any = TOOLS, *, status: int = 200, **request: Any) -> Verdict:
    return judge(status, body, tools, request=request or None)


def triple(verdict: Verdict) -> tuple[str, str, str]:
    return str(verdict.emission), str(verdict.delivery), verdict.rule


def per_call(verdict: Verdict) -> list[tuple[str, str]]:
    return [(str(c.delivery), c.rule) for c in verdict.calls]


# --------------------------------------------------------------------------- surfaced


def test_surfaced() -> None:
    verdict = of(chat(None, call(), finish="tool_calls"))
    assert triple(verdict) == ("valid", "surfaced", "call.surfaced")
    assert verdict.tier is EvidenceTier.TOOL_CALLS
    assert verdict.cause is Part.NONE
    assert verdict.flags.valid_emitted and verdict.flags.valid_surfaced and verdict.flags.produced
    assert not verdict.flags.well_formed_lost and not verdict.flags.forced
    assert verdict.calls[0].arguments == ARGUMENTS


@pytest.mark.parametrize(
    ("name", "arguments", "emission"),
    [
        ("get_weather", {"city": 3}, "invalid_arguments"),
        ("get_weather", {}, "invalid_arguments"),
        ("get_weather", "", "invalid_arguments"),
        ("clock_now", "", "valid"),
        ("clock_now", None, "valid"),
        ("clock_now", "null", "valid"),
        ("get_news", {}, "wrong_name"),
        ("get_weather", '{"city": Oslo}', "malformed"),
        ("get_weather", '{"city": "Oslo"} and so on', "malformed"),
        ("get_weather", "[1, 2]", "malformed"),
        ("get_weather", '"{\\"city\\": \\"Oslo\\"}"', "valid"),
    ],
)
def test_surfaced_emissions(name: str, arguments: Any, emission: str) -> None:
    verdict = of(chat(None, call(name, arguments), finish="tool_calls"))
    assert triple(verdict) == (emission, "surfaced", "call.surfaced")
    assert verdict.cause is (Part.NONE if emission == "valid" else Part.MODEL)


def test_an_entry_without_a_name_is_the_stacks_garbage() -> None:
    verdict = of(chat(None, call(None, {}), finish="tool_calls"))
    assert triple(verdict) == ("malformed", "mangled", "call.mangled.nameless")
    assert verdict.cause is Part.STREAM and verdict.flags.unknown


def test_broken_schema_is_not_the_models_fault() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "nonsense"}}}]
    verdict = of(chat(None, call("f", {"a": 1})), tools)
    assert verdict.emission is Emission.VALID
    assert [v.kind for v in verdict.calls[0].violations] == ["schema_invalid"]


def test_without_a_tool_list_no_name_is_wrong() -> None:
    verdict = judge(200, chat(None, call("anything", {"a": 1})), None)
    assert triple(verdict) == ("valid", "surfaced", "call.surfaced")


def test_tools_are_read_from_the_request() -> None:
    verdict = judge(200, chat(None, call("get_news", {})), None, request={"tools": TOOLS})
    assert verdict.emission is Emission.WRONG_NAME


# --------------------------------------------------------------------------- left in the text


def test_leaked() -> None:
    verdict = of(chat(f"Let me look.\n{HERMES}"))
    assert triple(verdict) == ("valid", "leaked", "call.leaked.content")
    assert verdict.flags.well_formed_lost and verdict.flags.valid_emitted and not verdict.flags.valid_surfaced
    assert verdict.calls[0].dialect == "hermes"


def test_one_surfaced_one_leaked_shows_the_loss() -> None:
    verdict = of(chat(HERMES, call("clock_now", {}), finish="tool_calls"))
    assert triple(verdict) == ("valid", "leaked", "call.leaked.content")
    assert per_call(verdict) == [("surfaced", "call.surfaced"), ("leaked", "call.leaked.content")]
    assert verdict.flags.valid_surfaced and verdict.flags.well_formed_lost


def test_a_call_in_both_places_counts_once() -> None:
    verdict = of(chat(HERMES, call(), finish="tool_calls"))
    assert per_call(verdict) == [("surfaced", "call.surfaced")]
    assert "duplicated_in_content" in verdict.notes


def test_content_tells_what_a_damaged_call_was() -> None:
    verdict = of(chat(HERMES, call(arguments='{"city": "Oslo", "days": '), finish="tool_calls"))
    assert per_call(verdict) == [("mangled", "call.mangled.cut")]
    assert verdict.emission is Emission.VALID
    assert verdict.calls[0].arguments == ARGUMENTS


def test_reasoning_swallowed() -> None:
    verdict = of(chat("", reasoning_content=f"I need the weather.\n{HERMES}"))
    assert triple(verdict) == ("valid", "leaked", "call.leaked.reasoning")
    answered = of(chat("It is 3 degrees.", reasoning_content=f"I could write\n{HERMES}"))
    assert triple(answered) == ("no_call", "nothing", "turn.no_call")
    called = of(chat("", call("clock_now", {}), reasoning_content=f"I could write\n{HERMES}"))
    assert per_call(called) == [("surfaced", "call.surfaced")]


def test_choice_none() -> None:
    verdict = of(chat(HERMES), tool_choice="none")
    assert triple(verdict) == ("valid", "nothing", "call.asked_as_text")
    assert not verdict.flags.well_formed_lost and verdict.flags.valid_emitted
    erased = of(raw(HERMES, ""), tool_choice="none")
    assert triple(erased) == ("valid", "erased", "call.erased.evidence"), "it is not even in the text"
    assert "none_ignored" in of(chat(None, call()), tool_choice="none").notes


# --------------------------------------------------------------------------- stronger evidence


def test_erased() -> None:
    verdict = of(raw(f"{HERMES}<|im_end|>", None))
    assert triple(verdict) == ("valid", "erased", "call.erased.evidence")
    assert verdict.tier is EvidenceTier.RAW_TEXT and verdict.cause is Part.PARSER
    assert verdict.flags.well_formed_lost


def test_parallel_calls_dropped() -> None:
    second = HERMES.replace("Oslo", "Rome")
    body = raw(f"{HERMES}\n{second}", None, call(), finish="tool_calls")
    told = of(body, parallel_tool_calls=False)
    assert per_call(told) == [("surfaced", "call.surfaced"), ("erased", "call.erased.parallel")]
    assert told.cause is Part.HARNESS
    assert per_call(of(body))[1] == ("erased", "call.erased.evidence")


def test_mangled_against_evidence() -> None:
    verdict = of(raw('<function=get_weather>{"city": "Oslo"}</function>', None, call(arguments={})))
    assert triple(verdict) == ("valid", "mangled", "call.mangled.changed")
    assert verdict.calls[0].arguments == {"city": "Oslo"}
    assert verdict.calls[0].surfaced is not None and verdict.calls[0].surfaced.arguments == "{}"


def test_payload_in_the_name() -> None:
    payload = json.dumps({"name": "get_weather", "arguments": {"city": "Oslo"}})
    verdict = of(chat(None, call(payload, {})))
    assert triple(verdict) == ("valid", "mangled", "call.mangled.name")
    assert (verdict.calls[0].name, verdict.calls[0].arguments) == ("get_weather", {"city": "Oslo"})


def test_phantom() -> None:
    verdict = of(raw("The weather is fine.", "The weather is fine.", call(), finish="tool_calls"))
    assert triple(verdict) == ("no_call", "phantom", "call.phantom")
    assert not verdict.flags.valid_emitted and not verdict.flags.valid_surfaced
    empty = of(raw("<|im_end|>", None, call()))
    assert triple(empty) == ("empty", "phantom", "call.phantom")
    capped = of(raw("The weather", None, call(), finish="length"))
    assert triple(capped) == ("truncated", "phantom", "call.phantom")


def test_stack_repairs_a_payload() -> None:
    broken = HERMES.replace("}}", "}")
    verdict = of(raw(broken, None, call(), finish="tool_calls"))
    assert triple(verdict) == ("malformed", "surfaced", "call.surfaced")
    assert "repaired_by_stack" in verdict.calls[0].defects
    assert verdict.flags.valid_surfaced and not verdict.flags.valid_emitted


def test_leak_seen_by_both_is_no_erasure() -> None:
    assert triple(of(raw(f"Look: {HERMES}", f"Look: {HERMES}")))[1] == "leaked"
    reasoned = of(raw(f"<think>{HERMES}", "", reasoning_content=HERMES))
    assert triple(reasoned) == ("valid", "leaked", "call.leaked.reasoning")


def test_malformed_left_in_the_text_is_put_down_to_the_model() -> None:
    verdict = of(chat(HERMES.replace("}}", "}")))
    assert (verdict.emission, verdict.delivery, verdict.cause) == (
        Emission.MALFORMED,
        Delivery.LEAKED,
        Part.MODEL,
    )


# --------------------------------------------------------------------------- forced


def test_forced_array_is_no_phantom() -> None:
    text = json.dumps([{"name": "get_weather", "parameters": ARGUMENTS}])
    verdict = of(raw(text, None, call(), finish="tool_calls"), tool_choice="required")
    assert per_call(verdict) == [("surfaced", "call.surfaced")]
    assert verdict.flags.forced


def test_named_arguments_alone_are_the_call() -> None:
    named = {"type": "function", "function": {"name": "get_weather"}}
    verdict = of(raw(json.dumps(ARGUMENTS), None, call()), tool_choice=named)
    assert per_call(verdict) == [("surfaced", "call.surfaced")]
    assert verdict.calls[0].dialect == "arguments_only" and verdict.flags.forced
    left = of(chat(json.dumps(ARGUMENTS)), tool_choice=named)
    assert triple(left) == ("valid", "leaked", "call.leaked.content")
    other = of(chat('{"temperature": 3}'), tool_choice=named)
    assert triple(other) == ("no_call", "nothing", "turn.required_ignored")


@pytest.mark.parametrize(
    "request_fields",
    [
        {"tool_choice": "required"},
        {"structured_outputs": {"choice": ["a"]}},
        {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "<tool_call>"}]},
    ],
)
def test_forced_flag(request_fields: dict[str, Any]) -> None:
    body = chat(None, call(), finish="tool_calls")
    assert of(body, **request_fields).flags.forced
    assert not of(body, tool_choice="auto").flags.forced


# --------------------------------------------------------------------------- streams and budgets


def test_stream_cut_inside_call() -> None:
    opened = {"index": 0, "id": "c", "function": {"name": "get_weather", "arguments": '{"city": "Os'}}
    verdict = of(chunks({"tool_calls": [opened]}, finish=None, done=False))
    assert triple(verdict) == ("malformed", "cut_off", "call.cut_off.stream")
    text = of(chunks({"content": CUT}, finish=None, done=False))
    assert triple(text) == ("malformed", "cut_off", "call.cut_off.stream")


def test_budget_ends_inside_the_call() -> None:
    verdict = of(chat(CUT, finish="stop", tokens=20), max_tokens=20)
    assert triple(verdict) == ("malformed", "cut_off", "call.cut_off.budget")
    assert "finish_reason_lies" in verdict.notes
    assert triple(of(chat(CUT, tokens=20), max_tokens=40))[1] == "leaked"
    assert triple(of(raw(CUT, "", finish="length"))) == ("malformed", "cut_off", "call.cut_off.budget")


def test_written_whole_and_surfaced_in_part_is_mangled() -> None:
    body = raw(HERMES, None, call(arguments='{"city": "Os'), finish="length")
    assert triple(of(body)) == ("valid", "mangled", "call.mangled.cut")


def test_two_calls_under_one_index() -> None:
    pieces = [
        {"index": 0, "id": i, "function": {"name": "get_weather", "arguments": json.dumps({"city": city})}}
        for i, city in (("a", "Metz"), ("b", "Nancy"))
    ]
    verdict = of(chunks(*({"tool_calls": [piece]} for piece in pieces), finish="tool_calls"))
    assert per_call(verdict) == [("mangled", "call.mangled.concatenated")] * 2
    whole = of(chat(None, *(call(arguments={"city": c}, index=0) for c in ("Metz", "Nancy"))))
    assert per_call(whole) == [("surfaced", "call.surfaced")] * 2


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        (('{"city": "Oslo", "days": ', "2}", "2}"), ARGUMENTS),
        (('{"city": "Os', 'lo", "days": ', 'lo", "days": ', "2}"), None),
    ],
)
def test_a_piece_that_came_twice(pieces: tuple[str, ...], arguments: dict[str, Any] | None) -> None:
    first, *more = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    first["function"]["name"] = "get_weather"
    verdict = of(chunks(*({"tool_calls": [piece]} for piece in (first, *more)), finish="tool_calls"))
    assert per_call(verdict) == [("mangled", "call.mangled.doubled")]
    assert verdict.cause is Part.STREAM
    assert verdict.calls[0].arguments == arguments
    assert verdict.flags.unknown == (arguments is None)


def test_cut_arguments_of_a_whole_body_are_the_parsers() -> None:
    cut = '{"city": "Oslo"'
    assert of(chat(None, call(arguments=cut))).cause is Part.PARSER
    piece = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": cut}}]}
    assert of(chunks(piece)).cause is Part.STREAM


def test_a_prefilled_stream_sends_arguments_without_their_beginning() -> None:
    """llama.cpp streams only what comes after the prefill; the whole body has all of it."""
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": CUT}]
    for arguments in ('"}', "", ', "days": 2}'):
        piece = {"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": arguments}}
        verdict = of(chunks({"tool_calls": [piece]}, finish="length"), messages=messages)
        assert triple(verdict) == ("malformed", "mangled", "call.mangled.cut")
        assert verdict.cause is Part.STREAM and verdict.flags.unknown and verdict.flags.forced
    whole = of(raw(HERMES[len(CUT) :], None, call(), finish="stop"), messages=messages)
    assert per_call(whole) == [("surfaced", "call.surfaced")]
    assert whole.calls[0].emitted is not None


# --------------------------------------------------------------------------- errors that hold a call


def test_answer_under_an_error_status() -> None:
    verdict = of(chat(None, call()), status=500)
    assert triple(verdict) == ("valid", "erased", "call.erased.error_body")
    assert triple(of(chat(HERMES), status=500)) == ("valid", "erased", "call.erased.error_body")
    assert verdict.tier is EvidenceTier.ERROR_BODY


def test_stated_attempts() -> None:
    gemini = {"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]}
    assert triple(judge(200, gemini, TOOLS, api="gemini.generateContent")) == (
        "malformed",
        "erased",
        "call.stated",
    )
    groq = {"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}}
    assert triple(of(groq, status=400)) == ("malformed", "erased", "call.stated")
    ollama = {"error": "error parsing tool call: raw='ls -R\n', err=invalid character 'l'"}
    assert triple(of(ollama, status=500)) == ("malformed", "erased", "call.stated")


def test_an_error_quotes_only_a_part() -> None:
    other = HERMES.replace("Oslo", "Rome")
    error = {"message": "failed", "failed_generation": other}
    stream = [*chunks({"content": HERMES}, finish=None, done=False), json.dumps({"error": error})]
    assert sorted(per_call(of(stream))) == [
        ("erased", "call.erased.error_body"),
        ("leaked", "call.leaked.content"),
    ]
    whole = {"tool_calls": [{"index": 0, **call()}]}
    stream = [*chunks(whole, finish=None, done=False), json.dumps({"error": error})]
    assert sorted(per_call(of(stream))) == [
        ("erased", "call.erased.error_body"),
        ("surfaced", "call.surfaced"),
    ]


def test_errors_that_show_prose_state_no_attempt() -> None:
    shown = {"error": {"message": "Failed to parse input at pos 3: It is a fine day.", "code": 500}}
    assert triple(of(shown, status=500)) == ("unknown", "server_error", "parser.llamacpp.parse_input")
    for message in ("Failed to call a function.", "Tool choice is required, but model did not call a tool"):
        error = {"message": message, "code": "tool_use_failed", "failed_generation": "It is a fine day."}
        assert triple(of({"error": error}, status=400)) == ("unknown", "server_error", "groq.tool_use_failed")


# --------------------------------------------------------------------------- the turn


def test_several_answers_are_judged_apart() -> None:
    body = chat("No.", tokens=400)
    body["choices"].append({**chat(HERMES)["choices"][0], "index": 1})
    first, second = (judge(200, body, TOOLS, request={"max_tokens": 10, "n": 2}, choice=i) for i in (0, 1))
    assert triple(first) == ("no_call", "nothing", "turn.no_call"), "the sum of tokens is not one answer's"
    assert triple(second) == ("valid", "leaked", "call.leaked.content")
    assert "several_choices" in first.notes
    assert triple(judge(200, body, TOOLS, choice=2)) == ("unknown", "server_error", "turn.not_an_answer")


def test_notes_on_finish_reason() -> None:
    assert "finish_reason_lies" in of(chat(None, call(), finish="stop")).notes
    named = {"type": "function", "function": {"name": "get_weather"}}
    assert "finish_reason_lies" not in of(chat(None, call(), finish="stop"), tool_choice=named).notes
    assert "finish_reason_lies" in of(chat("Hello.", finish="tool_calls")).notes
    assert "finish_reason_lies" not in of(chat("Hello.")).notes
