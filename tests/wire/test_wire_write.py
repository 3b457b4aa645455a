"""Records to payloads and back, requests of all APIs, and the sniffing of saved bodies."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_streams import ANTHROPIC_BODY, GEMINI, OLLAMA, RESPONSES_BODY, STREAMS, chunk

from truecall.records import Api, Choice, ErrorBody, Response, ToolCall, Usage
from truecall.wire import ToolResult, build, read, read_request, sniff, to_chat, to_sse
from truecall.wire.sse import frame

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
named = words.filter(bool)
some = st.none() | words
numbers = st.none() | st.integers(0, 10**6)
token_ids = st.none() | st.lists(st.integers(0, 2**31), max_size=4).map(tuple)
tool_calls = st.builds(ToolCall, name=st.none() | named, arguments=some, id=st.none() | named)
choices = st.builds(
    Choice,
    content=some,
    reasoning=some,
    refusal=some,
    tool_calls=st.lists(tool_calls, max_size=3).map(tuple),
    finish_reason=st.sampled_from(["stop", "length", "tool_calls"]),
    token_ids=token_ids,
    logprob_text=some,
)
usages = st.builds(
    Usage, prompt_tokens=numbers, completion_tokens=numbers, reasoning_tokens=numbers, cached_tokens=numbers
).filter(lambda usage: usage != Usage())
errors = st.builds(
    ErrorBody,
    message=named.filter(lambda text: "raw='" not in text),
    type=st.none() | named.filter(lambda text: text != "error"),
    code=st.none() | st.integers(0, 599) | named,
    generation=st.none() | named,
)
responses = st.builds(
    Response,
    api=st.just(Api.OPENAI_CHAT.value),
    choices=st.lists(choices, min_size=1, max_size=3).map(
        lambda found: tuple(msgspec.structs.replace(choice, index=i) for i, choice in enumerate(found))
    ),
    id=st.none() | named,
    model=st.none() | named,
    fingerprint=st.none() | named,
    usage=st.none() | usages,
    error=st.none() | errors,
    prompt_text=some,
    prompt_token_ids=st.none() | st.lists(st.integers(0, 99), min_size=1, max_size=4).map(tuple),
    extra=st.just({}) | st.just({"timings": {"prompt_n": 3}}),
)


def unmarked(response: Response) -> Response:
    """Without the marks of a stream."""
    plain = tuple(
        msgspec.structs.replace(
            choice, tool_calls=tuple(msgspec.structs.replace(call, index=None) for call in choice.tool_calls)
        )
        for choice in response.choices
    )
    return msgspec.structs.replace(response, choices=plain, stream=False, defects=())


@given(responses, st.integers(0, 5))
def test_round_trips(response: Response, piece: int) -> None:
    assert read(json.dumps(to_chat(response)), Api.OPENAI_CHAT) == response
    streamed = read(to_sse(response, piece=piece), Api.OPENAI_CHAT)
    assert unmarked(streamed) == response and streamed.stream
    assert read(frame(to_sse(response, piece=piece)), Api.OPENAI_CHAT) == streamed


@given(errors)
def test_an_error_alone(error: ErrorBody) -> None:
    response = Response(api=Api.OPENAI_CHAT.value, error=error)
    assert read(to_chat(response), Api.OPENAI_CHAT, status=400) == response
    assert read(to_sse(response), Api.OPENAI_CHAT).error == error


def test_raw_text_and_foreign_arguments() -> None:
    choice = Choice(
        content="", raw_text="<t>", tool_calls=(ToolCall(name="f", arguments={"a": 1}),), finish_reason="stop"
    )
    response = Response(api=Api.OLLAMA_CHAT.value, choices=(choice,), complete=False)
    got = read(to_sse(response), Api.OPENAI_CHAT)
    assert got.choices[0].raw_text == "<t>" and got.choices[0].tool_calls[0].arguments == '{"a":1}'
    assert "no_done" in got.defects


TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
TALK = [
    {"role": "system", "content": "S"},
    {"role": "user", "content": "U"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "R"},
]


def test_built_chat_requests_read_back() -> None:
    body = build(
        "m",
        TALK,
        tools=[TOOL],
        tool_choice="f",
        stream=True,
        max_tokens=9,
        temperature=0.0,
        seed=3,
        extra={"n": 2},
    )
    assert body["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert body["stream_options"] == {"include_usage": True}
    view = read_request(json.dumps(body), Api.OPENAI_CHAT)
    assert (view.model, view.messages, view.tools) == ("m", tuple(TALK), (TOOL,))
    assert (view.tool_choice, view.tool_name, view.max_tokens, view.seed, view.n) == ("named", "f", 9, 3, 2)
    assert view.stream and not view.prefill and view.temperature == 0.0
    assert view.tool_results == (ToolResult(id="c1", content="R"),)
    assert build("m", []) == {"model": "m", "messages": []}
    with pytest.raises(ValueError, match="ollama"):
        build("m", [], api=Api.GEMINI)


def test_built_ollama_requests_read_back() -> None:
    body = build(
        "m",
        TALK,
        api=Api.OLLAMA_CHAT,
        tools=[TOOL],
        tool_choice="required",
        max_tokens=9,
        seed=3,
        extra={"options": {"num_ctx": 8}},
    )
    assert body["options"] == {"seed": 3, "num_predict": 9, "num_ctx": 8} and "tool_choice" not in body
    assert body["stream"] is False and body["messages"][2]["tool_calls"] == [
        {"function": {"name": "f", "arguments": {"a": 1}}}
    ]
    view = read_request(body, Api.OLLAMA_CHAT)
    assert view.messages[2]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a":1}'}
    assert (
        view.tool_results == (ToolResult(name="f", content="R"),) and view.max_tokens == 9 and not view.stream
    )
    assert read_request({"model": "m", "messages": []}, Api.OLLAMA_CHAT).stream


def test_foreign_requests_in_one_shape() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    anthropic = {
        "model": "m",
        "max_tokens": 5,
        "system": [{"type": "text", "text": "S"}],
        "messages": [
            {"role": "user", "content": "U"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "R", "is_error": True}],
            },
        ],
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    }
    responses = {
        "model": "m",
        "max_output_tokens": 5,
        "instructions": "S",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "U"}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "R"},
        ],
        "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}],
        "tool_choice": "required",
    }
    gemini = {
        "systemInstruction": {"parts": [{"text": "S"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "U"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {"x": 1}}}],
            },
        ],
        "tools": [
            {"functionDeclarations": [{"name": "f", "description": "d", "parameters": {"type": "object"}}]}
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "generationConfig": {"maxOutputTokens": 5},
    }
    for api, body in ((Api.ANTHROPIC, anthropic), (Api.OPENAI_RESPONSES, responses), (Api.GEMINI, gemini)):
        view = read_request(body, api)
        assert [message["role"] for message in view.messages] == ["system", "user", "assistant", "tool"]
        assert [message["content"] for message in view.messages[:3]] == ["S", "U", None]
        assert view.messages[2]["tool_calls"] == [call]
        assert (view.tools, view.tool_choice, view.max_tokens) == ((TOOL,), "required", 5)
        assert [result.id for result in view.tool_results] == ["c1"] and not view.prefill
    assert read_request(anthropic, Api.ANTHROPIC).tool_results[0].error is True
    assert read_request(anthropic, Api.ANTHROPIC).parallel_tool_calls is False


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("auto", ("auto", None)),
        ({"type": "function", "function": {"name": "f"}}, ("named", "f")),
        ({"type": "function", "name": "f"}, ("named", "f")),
        ({"type": "auto"}, ("auto", None)),
        (None, (None, None)),
        (5, (None, None)),
    ],
)
def test_tool_choice(value: Any, expected: tuple[str | None, str | None]) -> None:
    view = read_request({"tool_choice": value}, Api.OPENAI_CHAT)
    assert (view.tool_choice, view.tool_name) == expected


def test_prefill_constraint_and_prompt() -> None:
    last = {"role": "assistant", "content": "<tool_call>"}
    assert read_request({"messages": [*TALK, last]}, Api.OPENAI_CHAT).prefill
    assert read_request({"messages": [{"role": "user", "content": "a"}, last]}, Api.ANTHROPIC).prefill
    assert read_request({"contents": [{"role": "model", "parts": [{"text": "x"}]}]}, Api.GEMINI).prefill
    assert not read_request({"messages": TALK[:3]}, Api.OPENAI_CHAT).prefill
    assert (
        read_request({"structured_outputs": {"choice": ["a"]}}, Api.OPENAI_CHAT).constraint
        == "structured_outputs"
    )
    assert (
        read_request({"response_format": {"type": "json_object"}}, Api.OPENAI_CHAT).constraint
        == "response_format"
    )
    assert read_request({"response_format": {"type": "text"}}, Api.OPENAI_CHAT).constraint is None
    assert read_request({"prompt": ["P"], "n_predict": 4}, Api.OPENAI_COMPLETIONS).prompt == "P"
    assert (
        read_request({}, Api.OPENAI_CHAT).tools is None
        and read_request({"tools": []}, Api.OPENAI_CHAT).tools == ()
    )
    assert read_request("[1]", Api.OPENAI_CHAT).defects == ("not_object",)
    assert read_request(b"\xff", Api.OPENAI_CHAT).defects == ("not_json",)


@pytest.mark.parametrize("name", STREAMS)
def test_sniff_streams(name: str) -> None:
    api, raw = STREAMS[name]
    assert sniff(raw) == api and sniff(raw.decode()) == api


@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [
        (ANTHROPIC_BODY, None, Api.ANTHROPIC),
        (RESPONSES_BODY, None, Api.OPENAI_RESPONSES),
        (GEMINI, None, Api.GEMINI),
        (OLLAMA[0], None, Api.OLLAMA_CHAT),
        ([json.dumps(chunk())], None, Api.OPENAI_CHAT),
        ({"choices": [{"message": {}}]}, None, Api.OPENAI_CHAT),
        ({"choices": [{"text": ""}]}, None, Api.OPENAI_COMPLETIONS),
        ({"error": "x"}, None, None),
        ({"error": "x"}, "http://h:1/v1/chat/completions?x=1", Api.OPENAI_CHAT),
        ({}, "/v1beta/models/g:streamGenerateContent", Api.GEMINI),
        ({}, "/v1/messages", Api.ANTHROPIC),
        ("<html>", None, None),
        (None, None, None),
    ],
)
def test_sniff(body: Any, path: str | None, expected: str | None) -> None:
    assert sniff(body, None, path) == expected
