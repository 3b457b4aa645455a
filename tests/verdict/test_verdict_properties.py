"""Whatever comes in, a verdict comes out: legal, encodable, and no stack's error is a model's non-call."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from test_verdict_rules import assert_legal
from tests.effort import effort
from verdict_bodies import CUT, HERMES, TOOLS, call, chat, raw

from truecall import judge
from truecall.classify import judge_exchange
from truecall.records import Api, Emission, Exchange, Failure, FailureKind, Request, Timing, Verdict

PIECES = (
    *(HERMES, CUT, "Hello.", "", "<think>", "</think>", "<|im_end|>", "```json\n", '{"city": "Oslo"}'),
    *("[TOOL_CALLS]", "<function=get_weather>", "\ud83d", "\x00", "Error during inference: x", '{"error":'),
)
text = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=4).map("".join), st.text(st.characters(), max_size=20)
)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
arguments = st.one_of(
    text,
    json_value,
    st.sampled_from(
        ['{"city": "Oslo"}', '{"city": "Os', '{"city": "Oslo"}{"city": "Rome"}', '{"city": 1}', "null"]
    ),
)
odd = st.one_of(json_value, text)
structured = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["a", "b"]),
        "index": st.sampled_from([0, 1, None, "x"]),
        "function": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(
                    ["get_weather", "get_weatherget_weather", "get_weather</x>", "", None, HERMES]
                ),
                "arguments": arguments,
            },
        ),
    },
)
message = st.fixed_dictionaries(
    {},
    optional={
        "content": st.one_of(text, st.none(), odd),
        "reasoning_content": text,
        "tool_calls": st.one_of(st.lists(structured, max_size=3), odd),
        "refusal": st.none() | text,
    },
)
finish = st.sampled_from(
    ["stop", "length", "tool_calls", "content_filter", "error", "", None, "MALFORMED_FUNCTION_CALL"]
)
choice = st.fixed_dictionaries(
    {"message": message, "finish_reason": finish},
    optional={
        "token_ids": st.just([1, 2]),
        "logprobs": st.fixed_dictionaries(
            {"content": st.lists(st.fixed_dictionaries({"token": text, "bytes": st.just(None)}), max_size=3)}
        ),
    },
)
usage = st.fixed_dictionaries(
    {},
    optional={"prompt_tokens": st.integers(0, 9), "completion_tokens": st.integers(0, 60)},
)
body = st.one_of(
    odd,
    st.binary(max_size=40),
    st.fixed_dictionaries(
        {},
        optional={
            "choices": st.lists(choice, max_size=2),
            "usage": usage,
            "error": st.one_of(odd, st.fixed_dictionaries({"message": text})),
            "__verbose": st.fixed_dictionaries({"content": text}),
            "message": message,
            "content": odd,
            "candidates": odd,
            "output": odd,
            "done": st.booleans(),
        },
    ),
)
delta = st.fixed_dictionaries(
    {"choices": st.lists(st.fixed_dictionaries({"delta": message, "finish_reason": finish}))}
)
stream = st.lists(st.one_of(delta.map(json.dumps), odd.map(json.dumps), st.just("[DONE]"), text), max_size=5)
request = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "tool_choice": st.sampled_from(
            ["auto", "none", "required", {"function": {"name": "get_weather"}}, 3]
        ),
        "max_tokens": st.integers(-1, 40),
        "parallel_tool_calls": st.booleans(),
        "messages": st.just([{"role": "assistant", "content": "<tool_call>"}]),
        "guided_json": st.just({"type": "object"}),
        "tools": odd,
    },
)
tools = st.sampled_from([None, [], TOOLS, [3, {"function": {"name": None}}]])
api = st.sampled_from([*Api, "unknown.api"]).map(str)


def hold(verdict: Verdict) -> None:
    assert_legal(verdict)
    msgspec.json.decode(msgspec.json.encode(verdict))
    assert verdict.detector
    flags = verdict.flags
    if not verdict.calls:
        assert flags.unknown == (verdict.emission is Emission.UNKNOWN)
    if flags.valid_surfaced or flags.well_formed_lost:
        assert verdict.calls
    if verdict.calls:
        assert flags.produced


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from([None, 200, 302, 400, 404, 422, 429, 500, 503]),
    st.one_of(body, stream),
    tools,
    api,
    request,
)
def test_judge_is_total_and_legal(
    status: int | None, body: Any, tools: Any, api: str, request: dict[str, Any] | None
) -> None:
    verdict = judge(status, body, tools, api=api, request=request)
    hold(verdict)
    if status is not None and status >= 300:
        assert verdict.emission is not Emission.NO_CALL


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FailureKind), st.sampled_from([None, 200, 500]), stream, tools, st.none() | text)
def test_a_failure_is_never_a_non_call(
    kind: FailureKind, status: int | None, stream: list[str], tools: Any, detokenized: str | None
) -> None:
    data = "".join(f"data: {piece}\n\n" for piece in stream).encode("utf-8", "surrogatepass")
    exchange = Exchange(
        request=Request(method="POST", url="http://localhost/v1/chat/completions"),
        timing=Timing(started_at=0.0),
        status=status,
        body=data,
        failure=Failure(kind=kind),
    )
    verdict = judge_exchange(exchange, tools, detokenized=detokenized)
    hold(verdict)
    assert verdict.emission is not Emission.NO_CALL


@settings(max_examples=150, deadline=None)
@given(choice, usage, st.sampled_from(["auto", "required", None]))
def test_only_choice_none_makes_a_call_no_loss(
    answer: dict[str, Any], usage: dict[str, int], choice: str | None
) -> None:
    verdict = judge(200, {"choices": [answer], "usage": usage}, TOOLS, request={"tool_choice": choice})
    assert verdict.rule != "call.asked_as_text"


def judging(count: int) -> int:
    """The effort of judging ``count`` surfaced calls beside as many others in the text."""
    calls = [call(arguments={"city": f"c{i}"}) for i in range(count)]
    text = "\n".join(HERMES.replace("Oslo", f"x{i}") for i in range(count))
    bodies = (chat(text, *calls), raw(text, None, *calls))
    return effort(lambda: [judge(200, body, TOOLS) for body in bodies])


def test_matching_is_linear() -> None:
    judging(10)
    assert judging(400) < 4.5 * judging(100), "four times the calls; sixteen would be quadratic"
