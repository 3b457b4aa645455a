"""Errors of every engine, and bodies that mean harm: data, never an exception."""

from __future__ import annotations

import gzip
import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import HANGS, effort
from wire_streams import ANTHROPIC, CALL, GEMINI, OLLAMA, RESPONSES, STREAMS, chunk, sse

from truecall.records import Api, Response
from truecall.wire import StreamReader, read, read_request, sniff

APIS = [api.value for api in Api]
SHAPES: list[Any] = [*CALL, *OLLAMA, *ANTHROPIC, *RESPONSES, *GEMINI]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just("\ud800"),
    st.just(2**70),
)
junk = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values inside a decoded payload, itself included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def spoil(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """A copy of a payload with one value replaced."""
    if not path:
        return junk
    key, *rest = path
    out = dict(value) if isinstance(value, dict) else list(value)
    out[key] = spoil(out[key], tuple(rest), junk)
    return out


SPOTS = [(shape, place) for shape in SHAPES for place in places(shape)]
spoiled = st.builds(lambda spot, junk: spoil(*spot, junk), st.sampled_from(SPOTS), junk)


@settings(deadline=None, max_examples=250)
@given(st.sampled_from(APIS), st.lists(spoiled | st.sampled_from(SHAPES), max_size=6))
def test_wrong_types_in_any_field(api: str, payloads: list[Any]) -> None:
    for got in (read(payloads, api), *(read(payload, api) for payload in payloads)):
        assert isinstance(got, Response)
        msgspec.json.decode(msgspec.json.encode(got))
    msgspec.json.encode(read_request(payloads[0] if payloads else None, api))
    sniff(payloads)


@settings(deadline=None, max_examples=300)
@given(
    st.binary(max_size=80) | st.text(max_size=80), st.sampled_from(APIS), st.sampled_from([None, 200, 500])
)
def test_any_bytes(raw: bytes | str, api: str, status: int | None) -> None:
    msgspec.json.encode(read(raw, api, status=status))
    msgspec.json.encode(read_request(raw, api))
    sniff(raw, None, "http://[broken")
    reader = StreamReader(api)
    reader.feed(raw if isinstance(raw, bytes) else raw.encode("utf-8", "replace"))
    msgspec.json.encode(reader.finish())


@settings(deadline=None)
@given(st.sampled_from(sorted(STREAMS)), st.data())
def test_flipped_bytes(name: str, data: st.DataObject) -> None:
    api, raw = STREAMS[name]
    spoiled = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 8))):
        spoiled[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    msgspec.json.encode(read(bytes(spoiled), api))


@pytest.mark.parametrize(
    ("body", "message", "kind", "code"),
    [
        ({"error": {"message": "m", "type": "t", "code": 400}}, "m", "t", 400),
        ({"object": "error", "message": "m", "type": "t", "param": None, "code": 400}, "m", "t", 400),
        ({"error": "m"}, "m", None, None),
        ({"error": "m", "error_type": "t"}, "m", "t", None),
        ({"detail": "m"}, "m", None, None),
        ({"detail": {"message": "m", "code": "c"}}, "m", None, "c"),
        (
            {"detail": [{"loc": ["body"], "msg": "m", "type": "t"}]},
            '[{"loc":["body"],"msg":"m","type":"t"}]',
            None,
            None,
        ),
        ({"message": "m", "code": 7}, "m", None, 7),
        (
            {"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}},
            "m",
            "INVALID_ARGUMENT",
            400,
        ),
        ([{"error": {"code": 400, "message": "m", "status": "S"}}], "m", "S", 400),
        ({"type": "error", "error": {"type": "t", "message": "m"}}, "m", "t", None),
        ({"errors": [{"message": "m", "code": 1}]}, "m", None, 1),
        ({"error": {"weird": 1}}, '{"weird":1}', None, None),
    ],
)
@pytest.mark.parametrize("api", APIS)
def test_error_shapes(body: Any, message: str, kind: str | None, code: Any, api: str) -> None:
    for form in (json.dumps(body), json.dumps(body, indent=2).encode()):
        got = read(form, api, status=400)
        assert got.error is not None and got.choices == ()
        assert (got.error.message, got.error.type, got.error.code) == (message, kind, code)
        assert got.error.generation is None and got.extra == {}


@pytest.mark.parametrize(
    ("body", "generation"),
    [
        (
            {"error": {"message": "Failed to call a function.", "failed_generation": "<function=f>{}"}},
            "<function=f>{}",
        ),
        ({"error": {"message": "Failed to parse input at pos 12: <tool_call>\n{}"}}, "<tool_call>\n{}"),
        ({"error": {"message": "x: unparsed peg-native output: <t>\n"}}, "<t>\n"),
        ({"error": "error parsing tool call: raw='it's\n', err=invalid character 'l'"}, "it's\n"),
        ({"error": 'error parsing tool call: raw=\'{"a"'}, '{"a"'),
        ({"error": "Failed to parse generated text: {oops", "error_type": "tool_error"}, "{oops"),
        ({"error": {"message": "up", "metadata": {"raw": "Failed to parse input at pos 0: <t>"}}}, "<t>"),
        ({"error": {"message": "Failed to parse tool call arguments as JSON"}}, None),
        (
            {
                "error": {
                    "message": "The model produced output that does not match the expected peg-native format"
                }
            },
            None,
        ),
    ],
)
def test_model_text_inside_errors(body: Any, generation: str | None) -> None:
    got = read(body, Api.OPENAI_CHAT, status=500).error
    assert got is not None and got.generation == generation


def test_gemini_finish_message() -> None:
    candidate = {
        "finishReason": "MALFORMED_FUNCTION_CALL",
        "finishMessage": "Malformed function call: print(f(",
    }
    got = read({"candidates": [candidate]}, Api.GEMINI)
    assert got.error is not None and got.error.generation == "print(f("
    assert got.choices[0].finish_reason == "MALFORMED_FUNCTION_CALL"
    blocked = read({"promptFeedback": {"blockReason": "SAFETY"}}, Api.GEMINI)
    assert blocked.error is not None and blocked.error.type == "SAFETY" and blocked.choices == ()


@pytest.mark.parametrize("api", APIS)
def test_bodies_that_are_no_answer(api: str) -> None:
    assert (
        read(None, api).defects == read(b" \n", api).defects == ("empty_body",)
        and not read(b"", api).complete
    )
    page = read("<!DOCTYPE html><html><head><title>502 Bad &amp; Gateway</title>", api, status=502)
    assert page.error is not None and (page.error.message, page.error.type) == ("502 Bad & Gateway", "html")
    assert page.defects == ("not_json",)
    bare = read("<html><body><h1>Not</h1> found</body></html>", api, status=404)
    assert bare.error is not None and bare.error.message == "Not found"
    words = read("Bad gateway", api, status=502)
    assert words.error is not None and (words.error.message, words.error.type) == ("Bad gateway", "text")
    zipped = read(gzip.compress(b"hello" * 50), api)
    assert zipped.error is not None and zipped.error.type == "binary" and "not_json" in zipped.defects
    cut = read('{"choices": [{"message": {"content": "hal', api)
    assert cut.defects == ("truncated_json",) and not cut.complete and cut.error is None
    deep = read("[" * 500_000, api)
    assert deep.defects == ("too_deep",) and read('{"a":' * 100_000, api).defects == ("too_deep",)
    said = read("error: no such model", api, status=404)
    assert said.error is not None and said.error.message == "error: no such model"
    quoted = read('"no such model"', api, status=404)
    assert quoted.error is not None and quoted.error.message == "no such model"
    for odd in ("NaN", "17", "true", "null", "[]", "[1, 2]"):
        assert read(odd, api).choices == () and read(odd, api).defects


def test_lenient_json() -> None:
    choice = '{"message": {"content": "a\nb"}, "finish_reason": "stop", "x": NaN}'
    text = f'{{"choices": [{choice}], "usage": {{"prompt_tokens": "7"}}}}'
    got = read(text, Api.OPENAI_CHAT)
    assert got.choices[0].content == "a\nb" and got.usage is not None and got.usage.prompt_tokens == 7
    latin = b'{"choices": [{"message": {"content": "\xe9"}, "finish_reason": "stop"}]}'
    assert read(latin, Api.OPENAI_CHAT).choices[0].content == "\ufffd"
    assert read(latin, Api.OPENAI_CHAT).defects == ("invalid_utf8",)
    odd = {"usage": {"prompt_tokens": -1, "completion_tokens": 3.0, "reasoning_tokens": True}, "choices": []}
    usage = read(odd, Api.OPENAI_CHAT).usage
    assert usage is not None and (usage.prompt_tokens, usage.completion_tokens) == (None, 3)


SHAPES = [
    lambda n: sse(*[chunk({"content": "word "})] * n),
    lambda n: sse(*[chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"'}}]})] * n),
    lambda n: sse(*[chunk({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]})] * n),
    lambda n: sse(*[chunk({"tool_calls": [{"function": {"name": "f", "arguments": "["}}]})] * n),
    lambda n: b"data: x\n" * n,
    lambda n: b"\r" * n * 100,
    lambda n: b'{"error": "' + b"raw='" * n * 20 + b'"}',
    lambda n: b"<html>" + b"<" * n * 100,
]


@pytest.mark.parametrize("make", SHAPES)
def test_work_is_linear(make: Any) -> None:
    small, large = (effort(lambda n=n: read(make(n), Api.OPENAI_CHAT)) for n in (250, 2_000))  # type: ignore[misc]
    assert large < 8 * 1.1 * small


@pytest.mark.parametrize("make", SHAPES)
def test_long_bodies_end(make: Any) -> None:
    start = time.process_time()
    read(make(20_000), Api.OPENAI_CHAT)
    assert time.process_time() - start < HANGS


def test_ten_megabytes() -> None:
    body = {"choices": [{"message": {"content": "x" * 10_000_000}, "finish_reason": "stop"}]}
    start = time.process_time()
    assert read(json.dumps(body).encode(), Api.OPENAI_CHAT).complete
    dripped = StreamReader(Api.OPENAI_CHAT)
    raw = sse(chunk({"content": "x" * 2_000_000}, "stop"))
    for at in range(0, len(raw), 16):
        dripped.feed(raw[at : at + 16])
    assert dripped.finish().complete and time.process_time() - start < HANGS
