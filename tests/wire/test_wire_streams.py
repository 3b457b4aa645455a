"""Streams: any cut gives the same record; a whole body gives what its stream gives."""

from __future__ import annotations

import json
import tracemalloc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_streams import (
    ANTHROPIC,
    ANTHROPIC_BODY,
    CALL,
    GEMINI,
    OLLAMA,
    RESPONSES,
    RESPONSES_BODY,
    STREAMS,
    chunk,
    sse,
)

from truecall.records import Api, Response, ToolCall, Usage
from truecall.wire import StreamReader, read
from truecall.wire.sse import LineSplitter, PayloadParser, frame

ARGUMENTS = '{"city": "Oslo"}'


def pieces(api: str, parts: list[bytes]) -> Response:
    reader = StreamReader(api)
    for part in parts:
        reader.feed(part)
    return reader.finish()


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_cut_at_any_byte_is_the_same_record(name: str) -> None:
    api, raw = STREAMS[name]
    whole = read(raw, api)
    assert whole.stream and whole.choices
    for cut in range(len(raw) + 1):
        assert pieces(api, [raw[:cut], raw[cut:]]) == whole, cut
    assert pieces(api, [raw[at : at + 1] for at in range(len(raw))]) == whole


@given(st.sampled_from(sorted(STREAMS)), st.data())
def test_a_stream_cut_anywhere_often(name: str, data: st.DataObject) -> None:
    api, raw = STREAMS[name]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=30)))
    parts = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert pieces(api, parts) == read(raw, api)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_ends_early_keeps_what_came_and_never_raises(name: str) -> None:
    api, raw = STREAMS[name]
    whole = read(raw, api)
    for end in range(0, len(raw), 7):
        got = pieces(api, [raw[:end]])
        text = (got.choices[0].content or "") if got.choices else ""
        assert (whole.choices[0].content or "").startswith(text)
        if got.complete:
            assert got.choices == whole.choices
    assert not pieces(api, [raw[: len(raw) // 2]]).complete


def test_what_a_chat_stream_says() -> None:
    got = read(sse(*CALL), Api.OPENAI_CHAT)
    assert got.choices[0].content == "Schön 😀. "
    assert got.choices[0].tool_calls == (
        ToolCall(name="get_weather", arguments='{"city": "Tromsø 🌧"}', id="call_a", index=0),
        ToolCall(name="web_search", arguments='{"query": "ferry"}', id="call_b", index=1),
    )
    assert got.usage == Usage(prompt_tokens=20, completion_tokens=9, reasoning_tokens=3)
    assert (got.complete, got.defects, got.id, got.model) == (True, (), "chatcmpl-1", "m")


def test_lists_of_payloads_read_as_the_stream_does() -> None:
    texts = [json.dumps(payload) for payload in CALL]
    assert read([*texts, "[DONE]"], Api.OPENAI_CHAT) == read(sse(*CALL), Api.OPENAI_CHAT)
    assert read([*CALL, "[DONE]"], Api.OPENAI_CHAT) == read(sse(*CALL), Api.OPENAI_CHAT)
    assert read([f"data: {text}" for text in [*texts, "[DONE]"]], Api.OPENAI_CHAT) == read(
        sse(*CALL), Api.OPENAI_CHAT
    )
    assert read(OLLAMA, Api.OLLAMA_CHAT) == read(STREAMS["ollama"][1], Api.OLLAMA_CHAT)


def test_ollama_lines() -> None:
    got = read(STREAMS["ollama"][1], Api.OLLAMA_CHAT)
    assert got.choices[0].content == "Ja. " and got.choices[0].reasoning == "Høm"
    assert got.choices[0].tool_calls == (
        ToolCall(name="get_weather", arguments={"city": "Tromsø", "days": 2}),
    )
    assert got.usage == Usage(prompt_tokens=11, completion_tokens=7) and got.extra == {"total_duration": 5}
    assert got.complete and got.defects == ()
    cut = read(OLLAMA[:3], Api.OLLAMA_CHAT)
    assert not cut.complete and "no_done" in cut.defects


@pytest.mark.parametrize(
    ("api", "stream", "body"),
    [
        (Api.ANTHROPIC, ANTHROPIC, ANTHROPIC_BODY),
        (Api.OPENAI_RESPONSES, RESPONSES, RESPONSES_BODY),
    ],
)
def test_a_whole_body_reads_as_its_stream(api: str, stream: list[object], body: dict[str, object]) -> None:
    assert msgspec.structs.replace(read(stream, api), stream=False) == read(body, api)


def test_gemini_array_events_and_object() -> None:
    got = read(sse(*GEMINI, done=False), Api.GEMINI)
    assert got.choices[0].content == "Let me look." and got.choices[0].reasoning == "Hm."
    assert got.choices[0].tool_calls == (ToolCall(name="get_weather", arguments={"city": "Oslo"}),)
    assert got.usage == Usage(prompt_tokens=8, completion_tokens=12, reasoning_tokens=2)
    assert (got.complete, got.defects, got.id, got.model) == (True, (), "r1", "m")
    assert read(json.dumps(GEMINI, indent=1), Api.GEMINI) == got
    assert not read(GEMINI[:2], Api.GEMINI).complete


def test_a_responses_stream_without_its_finished_items_is_read_from_deltas() -> None:
    kept = [event for event in RESPONSES if not str(event["type"]).endswith("item.done")][:-1]
    got = read(kept, Api.OPENAI_RESPONSES)
    assert got.choices[0].tool_calls == (
        ToolCall(name="get_weather", arguments='{"city": "Oslo"}', id="call_1"),
    )
    assert got.choices[0].content == "Looking." and not got.complete and "no_done" in got.defects


def test_a_responses_stream_whose_text_comes_only_when_done() -> None:
    event = {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": ARGUMENTS}
    item = {"type": "function_call", "call_id": "c", "name": "get_weather", "arguments": ""}
    begin = {"type": "response.output_item.added", "output_index": 0, "item": item}
    end = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": ARGUMENTS}
    for events in ([begin, event, end], [begin, delta, event, end]):
        got = read([json.dumps(found) for found in events], Api.OPENAI_RESPONSES)
        assert [call.arguments for call in got.choices[0].tool_calls] == [ARGUMENTS]


def test_code_that_gemini_runs_is_text_of_the_model() -> None:
    code = "print(default_api.get_weather(city='Oslo'))"
    parts = [{"text": "So: "}, {"executableCode": {"language": "PYTHON", "code": code}}]
    got = read({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}, Api.GEMINI)
    assert got.choices[0].content == "So: " + code


def test_a_cut_anthropic_input_stays_text() -> None:
    got = read(ANTHROPIC[:12] + ANTHROPIC[13:], Api.ANTHROPIC)
    assert got.choices[0].tool_calls[0].arguments == '{"city":'


def test_several_choices_are_kept_apart() -> None:
    got = read(
        [chunk({"content": "b"}, index=1), chunk({"content": "a"}), chunk({"content": "B"}, "stop", index=1)],
        "openai.chat",
    )
    assert [(c.index, c.content, c.finish_reason) for c in got.choices] == [(0, "a", None), (1, "bB", "stop")]


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"])), max_size=6),
    st.data(),
)
def test_payloads_come_back_from_frames(texts: list[str], data: st.DataObject) -> None:
    raw = frame(texts)
    cut = data.draw(st.integers(0, len(raw)))
    parser = PayloadParser()
    got = parser.feed(raw[:cut]) + parser.feed(raw[cut:]) + parser.finish()
    assert [payload.text for payload in got] == texts


@given(st.binary(max_size=60).map(lambda b: bytes(b"ab\r\n:"[x % 5] for x in b)), st.data())
def test_lines_are_those_of_the_whole_at_any_cut(raw: bytes, data: st.DataObject) -> None:
    expected = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if not expected[-1]:
        expected.pop()
    cut = data.draw(st.integers(0, len(raw)))
    lines = LineSplitter()
    assert lines.feed(raw[:cut]) + lines.feed(raw[cut:]) + lines.finish() == expected


def test_event_fields() -> None:
    parser = PayloadParser()
    raw = b": a comment\nevent: x\nid: 1\ndata: one\ndata:two\nretry: 5\n\n"
    raw += b'{"bare": 1}\nerror: {"a": 1}\n\nnonsense\n'
    got = parser.feed(raw) + parser.finish()
    assert [(p.text, p.event, p.bare) for p in got] == [
        ("one\ntwo", "x", False),
        ('{"bare": 1}', None, True),
        ('{"a": 1}', "error", False),
    ]
    assert parser.odd_lines == 1


def test_a_line_past_the_bound_is_dropped_and_named() -> None:
    reader = StreamReader(Api.OPENAI_CHAT, limit=1000)
    for _ in range(500):
        reader.feed(b"data: " + b"x" * 1000)
    reader.feed(b"\n\n" + sse(chunk({"content": "after"}, "stop")))
    got = reader.finish()
    assert got.choices[0].content == "after" and "overflow" in got.defects and not got.complete


def test_memory_is_that_of_the_pending_line() -> None:
    parser = PayloadParser()
    line = b"data: " + b"y" * 994 + b"\n\n"
    tracemalloc.start()
    for _ in range(5000):  # 5 MB in all
        parser.feed(line)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
