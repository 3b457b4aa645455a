"""What a stack did to a call or an answer, told from the answer alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from verdict_bodies import TOOLS, call, chat, chunks

from truecall import judge
from truecall.records import Verdict

ARGUMENTS = '{"city": "Oslo"}'
OSLO = {"city": "Oslo"}
MANGLED = "call.mangled."


def triple(verdict: Verdict) -> tuple[str, str, str]:
    return (verdict.emission, verdict.delivery, verdict.rule)


def streamed(*arguments: str | None, name: str = "get_weather") -> Verdict:
    """The verdict on a stream of one call, its arguments in pieces."""
    first = {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": name}}]}
    more = [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in arguments]
    return judge(200, chunks(first, *more, finish="tool_calls"), TOOLS)


@pytest.mark.parametrize("tail", ["</tool_call>", "<|im_end|>", "\n</parameter>\n</function>", "<|call|>"])
def test_markup_behind_arguments(tail: str) -> None:
    verdict = judge(200, chat(None, call(arguments=ARGUMENTS + tail)), TOOLS)
    assert triple(verdict) == ("valid", "mangled", "call.mangled.markup")
    assert verdict.calls[0].arguments == OSLO


def test_words_or_brackets_behind_arguments_are_the_models() -> None:
    for tail in ("}", "}}", " and so on", "<b"):
        verdict = judge(200, chat(None, call(arguments=ARGUMENTS + tail)), TOOLS)
        assert triple(verdict) == ("malformed", "surfaced", "call.surfaced"), tail


@pytest.mark.parametrize(
    "pieces", [(ARGUMENTS, '"Oslo"}'), (ARGUMENTS, '"}'), ("{}", ARGUMENTS), (ARGUMENTS, "{}")]
)
def test_a_piece_that_came_again(pieces: tuple[str, ...]) -> None:
    verdict = streamed(*pieces)
    assert triple(verdict) == ("valid", "mangled", "call.mangled.doubled")
    assert [found.arguments for found in verdict.calls] == [OSLO]


def test_arguments_without_their_beginning() -> None:
    assert triple(streamed(ARGUMENTS[1:])) == ("malformed", "mangled", "call.mangled.cut")


def test_arguments_that_never_came_in_a_stream() -> None:
    for pieces in ((), ("",), (None,)):
        assert triple(streamed(*pieces)) == ("malformed", "mangled", "call.mangled.cut")
        assert triple(streamed(*pieces, name="clock_now")) == ("valid", "surfaced", "call.surfaced")
    whole = judge(200, chat(None, call(arguments="")), TOOLS)
    assert triple(whole) == ("invalid_arguments", "surfaced", "call.surfaced"), "a body says what it says"


def test_names_that_were_joined() -> None:
    both = judge(200, chat(None, call("get_weatherclock_now", ARGUMENTS + "{}")), TOOLS)
    assert both.calls[0].name == "get_weather"
    both = judge(200, chat(None, call("get_weatherclock_now", ARGUMENTS + '{"zone": "UTC"}')), TOOLS)
    assert [(c.name, c.rule) for c in both.calls] == [
        ("get_weather", MANGLED + "concatenated"),
        ("clock_now", MANGLED + "concatenated"),
    ]
    thrice = judge(200, chat(None, call("clock_now" * 3, "{}" * 3)), TOOLS)
    assert [(c.name, c.rule) for c in thrice.calls] == [("clock_now", MANGLED + "doubled")]
    assert judge(200, chat(None, call(" get_weather", ARGUMENTS)), TOOLS).rule == MANGLED + "name"


def test_arguments_spread_over_nameless_entries() -> None:
    def entry(index: int, arguments: str, name: str | None = None) -> dict[str, Any]:
        return {"tool_calls": [{"index": index, "function": {"name": name, "arguments": arguments}}]}

    stream = [entry(0, "", "get_weather"), entry(1, '{"city": '), entry(2, '"Oslo"}'), entry(3, "{}")]
    found = judge(200, chunks(*stream, finish="tool_calls"), TOOLS).calls
    assert [(c.name, c.arguments, c.rule) for c in found] == [
        ("get_weather", OSLO, MANGLED + "nameless"),
        (None, {}, MANGLED + "nameless"),
    ]


def test_an_object_that_the_budget_cut() -> None:
    def message(arguments: dict[str, Any], tokens: int) -> Verdict:
        block = {"type": "tool_use", "id": "t", "name": "get_weather", "input": arguments}
        usage = {"input_tokens": 9, "output_tokens": tokens}
        body = {"type": "message", "content": [block], "stop_reason": "tool_use", "usage": usage}
        return judge(200, body, TOOLS, api="anthropic.messages", request={"max_tokens": 64})

    assert triple(message({"days": 2}, 64)) == ("malformed", "cut_off", "call.cut_off.budget")
    assert triple(message({"days": 2}, 30)) == ("invalid_arguments", "surfaced", "call.surfaced")
    assert triple(message(OSLO, 64)) == ("valid", "surfaced", "call.surfaced")


def test_a_block_that_got_nothing() -> None:
    def stream(*events: dict[str, Any], name: str = "get_weather") -> Verdict:
        block = {"type": "tool_use", "id": "t", "name": name, "input": {}}
        start = {"type": "content_block_start", "index": 0, "content_block": block}
        payloads = [{"type": "message_start", "message": {"content": []}}, start, *events]
        return judge(200, [json.dumps(p) for p in payloads], TOOLS, api="anthropic.messages")

    ends = (
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    )
    empty = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": ""},
    }
    assert triple(stream()) == ("malformed", "cut_off", "call.cut_off.stream")
    assert triple(stream(name="clock_now")) == ("malformed", "cut_off", "call.cut_off.stream")
    assert triple(stream(*ends)) == ("malformed", "mangled", "call.mangled.cut")
    assert triple(stream(empty, *ends)) == ("invalid_arguments", "surfaced", "call.surfaced"), (
        "it says: empty"
    )
    assert triple(stream(*ends, name="clock_now")) == ("valid", "surfaced", "call.surfaced")


def test_counts_without_a_choice() -> None:
    for tokens, want in ((0, ("empty", "nothing")), (80, ("unknown", "unknown"))):
        body = {"choices": [], "usage": {"prompt_tokens": 300, "completion_tokens": tokens}}
        assert triple(judge(200, body, TOOLS))[:2] == want
    signed = {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": []}
    assert triple(judge(200, signed, TOOLS)) == ("unknown", "unknown", "turn.unknown.empty")
    assert triple(judge(200, {"choices": []}, TOOLS))[1:] == ("server_error", "turn.not_an_answer")


def test_a_body_of_another_api_than_was_said() -> None:
    block = {"type": "tool_use", "id": "t", "name": "get_weather", "input": OSLO}
    body = {"type": "message", "content": [block], "stop_reason": "tool_use"}
    assert triple(judge(200, body, TOOLS)) == ("valid", "surfaced", "call.surfaced")
    events = chunks({"tool_calls": [{"index": 0, **call(arguments=ARGUMENTS)}]}, finish="tool_calls")
    assert triple(judge(200, events, TOOLS, api="anthropic.messages")) == (
        "valid",
        "surfaced",
        "call.surfaced",
    )


def test_a_generation_inside_a_quoted_body() -> None:
    upstream = json.dumps(
        {
            "error": {
                "message": "Failed to call a function. Please adjust your prompt.",
                "code": "tool_use_failed",
                "failed_generation": f"<function=get_weather>{ARGUMENTS}</function>",
            }
        }
    )
    router = {"message": "Provider returned error", "code": 400, "metadata": {"raw": upstream}}
    proxy = {"message": f"litellm.BadRequestError: GroqException - {upstream}", "code": "400"}
    for error in (router, proxy):
        verdict = judge(400, {"error": error}, TOOLS)
        assert triple(verdict) == ("valid", "erased", "call.erased.error_body")
        assert verdict.calls[0].arguments == OSLO
