"""The gate on its own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecall
from truecall.audits.failures import cause_of
from truecall.audits.gate import RULES, GateState, has_name_key, read

CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
BROKEN = '<tool_call>\n{"name": "f", "arguments": {"a": \n</tool_call>'


@pytest.mark.parametrize(
    ("result", "state"),
    [
        ("I'm sorry, none of the tools can tell the time.", "ABSTAINED"),
        ("[]", "ABSTAINED"),  # a text that says "no calls" was kept
        ("I would never write `<tool_call>` here.", "ABSTAINED"),
        (CALL, "CALLED"),
        (BROKEN, "MALFORMED"),
        ('<function_call> {"name": "no_function", "arguments": {}}', "ABSTAINED"),
        ('<tool_call title="Convert" result="1.4">', "MALFORMED"),
        ("", "EMPTY"),
        (" \n", "EMPTY"),
        ([], "EMPTY"),
        ([{}], "EMPTY"),
        (None, "EMPTY"),
        ([{"f": '{"a": 1}'}], "CALLED"),
        ([{"f": {"a": 1}}], "CALLED"),
        ([{"f": '{"a": 1'}], "MALFORMED"),
        ([{"f": "null"}], "MALFORMED"),
        ([{"f": "[1]"}], "MALFORMED"),
        ([{"f": "{}"}, {"g": "{"}], "MALFORMED"),
        ([{"function": {"name": "f", "arguments": "{}"}, "type": "function", "id": "1"}], "CALLED"),
        ({"role": "assistant", "content": "No.", "tool_calls": None}, "ABSTAINED"),
        ({"role": "assistant", "content": None, "tool_calls": [{"name": "f", "arguments": {}}]}, "CALLED"),
        ({"role": "assistant", "content": None, "tool_calls": []}, "EMPTY"),
        ([[["I can't."]], [[{"f": "{}"}]]], "CALLED"),
        ("Error during inference: Error code: 500 - {'error': {'message': 'x'}}", "SERVING_ERROR"),
        ("Error code: 429 - rate limited", "SERVING_ERROR"),
        ("litellm.RateLimitError: slow down", "SERVING_ERROR"),
        (3, "MALFORMED"),
    ],
)
def test_states(result: Any, state: str) -> None:
    assert truecall.gate(result) == state


def test_a_call_that_the_grader_did_not_read_is_no_abstention() -> None:
    assert truecall.gate(CALL, decoded=False) is GateState.MALFORMED
    assert truecall.gate(BROKEN, decoded=True) is GateState.CALLED
    assert truecall.gate("No tool fits.", decoded=False) is GateState.ABSTAINED
    assert truecall.gate([{"f": "{}"}], decoded=False) is GateState.MALFORMED


def test_a_failed_request_wins_over_what_was_stored() -> None:
    assert truecall.gate([], failed=True) is GateState.SERVING_ERROR
    assert truecall.gate("Error code: 500 - x", decoded=False) is GateState.SERVING_ERROR


def test_tools_let_bare_calls_be_read() -> None:
    tools = [{"name": "lookup", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}]
    assert truecall.gate('lookup(q="x")', tools=tools) is GateState.CALLED


@pytest.mark.parametrize(
    ("text", "keyed"),
    [
        ('<tool_call name="f">', True), ('{"name": "f"}', True), ("tool_name: f", True), ("name = f", True),
        ('<tool_call id="f">', False), ("the filename is f", False), ("<f>{}</f>", False),
    ],
)  # fmt: skip
def test_name_keys(text: str, keyed: bool) -> None:
    assert has_name_key(text) is keyed


KEYS = st.text(max_size=8) | st.sampled_from(["content", "tool_calls", "name", "function"])
JSONS = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.text()
    | st.sampled_from([CALL, BROKEN, "f", "content", "error"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(JSONS, st.sampled_from([None, True, False]))
def test_never_raises_and_always_names_a_rule(result: Any, decoded: bool | None) -> None:
    reading = read(result, decoded=decoded)
    assert reading.state in GateState
    assert reading.rule in RULES
    if decoded is False:
        assert reading.state is not GateState.CALLED


@pytest.mark.parametrize(
    "text",
    [
        "Error: Connection refused",
        "HTTP 503 Service Unavailable",
        "Internal Server Error",
        "upstream connect error or disconnect/reset before headers. reset reason: connection failure",
        "<html><head><title>502 Bad Gateway</title></head><body></body></html>",
        "APIConnectionError('Connection error.')",
        "openai.APITimeoutError: Request timed out.",
        "Request timed out.",
        "Connection error.",
        "{'error': {'message': 'x'}}",
        '{"error": "model not found"}',
        '{"error": {"code": 500}}',
        '{"object":"error","message":"x","code":400}',
        '{"detail":"Not Found"}',
        "Traceback (most recent call last):\n  File",
        "ReadTimeout: x",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool",
        "500 Internal Server Error",
        "503: Service Unavailable",
        "Error during inference: x",
        "Error during inference",
        "An error occurred: 429 Too Many Requests",
        "google.api_core.exceptions.ResourceExhausted: 429",
        "anthropic.OverloadedError: x",
        "botocore.exceptions.ClientError: An error occurred (ThrottlingException)",
        "cohere.errors.TooManyRequestsError",
        "mistralai.exceptions.MistralAPIException: Status: 500",
        "Rate limit reached for gpt-4",
        "Service Unavailable",
        "CUDA out of memory",
        "RuntimeError: CUDA error",
        "ERROR",
        "Error code: 400 - {'object':'error'}",
        "HTTPError: 500 Server Error",
        "vllm.engine.async_llm_engine.AsyncEngineDeadError: Background loop has errored already.",
    ],
)
def test_stored_errors_are_no_answers(text: str) -> None:
    assert truecall.gate(text) is GateState.SERVING_ERROR


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, the request would cause an Internal Server Error in that API.",
        "Error handling isn't supported by the tool.",
        "The HTTP 500 status means a server error.",
        "500 miles is about 804 km.",
        "503 is a prime number",
        "Connection errors happen when the network is down.",
        "Timeout is a parameter that you have not given.",
        "An error occurred in your formula: 429 is not divisible by 2.",
        "No function can do this.",
        "RuntimeError is raised in Python when an error is detected that doesn't fall in any category.",
    ],
)
def test_words_about_errors_are_answers(text: str) -> None:
    assert truecall.gate(text) is GateState.ABSTAINED


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Error code: 400 - 'dict' is not valid under any of the given schemas", "dict_schema"),
        ("Error code: 400 - Invalid 'tools[0].function.name': does not match '^[a-zA-Z0-9_-]+$'", "name_pattern"),
        ("Error code: 429 - slow down", "rate_limit"),
        ("Request timed out.", "timeout"),
        ("Connection error.", "connection"),
        ("Error code: 500 - x", "server_error"),
        ("Error code: 404 - x", "refused"),
        ("This model's maximum context length is 8192 tokens", "context"),
        ("json.decoder.JSONDecodeError: Expecting value", "arguments"),
        ("KeyError: 'x'", "harness"),
        ("Error during inference: Out of cheese", "unknown"),
    ],
)  # fmt: skip
def test_causes(text: str, cause: str) -> None:
    assert cause_of(text) == cause


def test_of_a_traceback_only_its_exception_counts() -> None:
    traceback = 'Traceback (most recent call last):\n  File "x.py", line 429, in f\nAssertionError: no\n'
    assert cause_of("Error during inference: no", traceback) == "harness"
    assert (
        cause_of("Error during inference: x", traceback.replace("AssertionError", "httpx.ReadTimeout"))
        == "timeout"
    )
