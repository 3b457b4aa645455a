"""Each named defect of a form, and what is made of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from wire_streams import ANTHROPIC, CALL, OLLAMA, RESPONSES, chunk, sse, tool

from truecall.records import Api, Response, ToolCall
from truecall.wire import read

ARGS = '{"city": "Oslo"}'
END = chunk(finish="tool_calls")


def stream(*deltas: dict[str, Any]) -> Response:
    return read([*(chunk(delta) for delta in deltas), END, "[DONE]"], Api.OPENAI_CHAT)


def calls(response: Response) -> list[tuple[Any, ...]]:
    return [(call.id, call.name, call.arguments) for call in response.choices[0].tool_calls]


def body(message: dict[str, Any], **more: Any) -> Response:
    return read(
        {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **more}, Api.OPENAI_CHAT
    )


def test_index_reused_for_a_second_id() -> None:
    got = stream(
        tool(0, id="a", name="f", arguments='{"x":1}'), tool(0, id="b", name="f", arguments='{"x":2}')
    )
    assert calls(got) == [("a", "f", '{"x":1}'), ("b", "f", '{"x":2}')]
    assert got.defects == ("index_reused",)


def test_index_reused_with_pieces_after_it() -> None:
    got = stream(
        tool(0, id="a", name="f", arguments=""),
        tool(0, arguments='{"x":1}'),
        tool(0, id="b", name="g", arguments=""),
        tool(0, arguments='{"x":'),
        tool(0, arguments="2}"),
    )
    assert calls(got) == [("a", "f", '{"x":1}'), ("b", "g", '{"x":2}')] and "index_reused" in got.defects


def test_index_reused_without_ids() -> None:
    got = stream(tool(0, name="f", arguments='{"x":1}'), tool(0, name="f", arguments='{"x":2}'))
    assert calls(got) == [(None, "f", '{"x":1}'), (None, "f", '{"x":2}')] and "index_reused" in got.defects
    got = stream(tool(0, name="f", arguments='{"x":1}'), tool(0, name="g", arguments='{"x":2}'))
    assert [name for _, name, _ in calls(got)] == ["f", "g"] and "index_reused" in got.defects
    got = stream(tool(0, name="get", arguments="{}"), tool(0, name="get_all", arguments="{}"))
    assert [name for _, name, _ in calls(got)] == ["get", "get_all"] and "index_reused" in got.defects


def test_a_new_id_for_every_delta_is_one_call() -> None:
    got = stream(
        tool(0, id="a", name="f", arguments='{"x":'),
        tool(0, id="b", arguments="1"),
        tool(0, id="c", arguments="}"),
    )
    assert calls(got) == [("a", "f", '{"x":1}')] and got.defects == ("id_changed",)


def test_missing_index() -> None:
    got = stream(
        tool(None, id="a", name="f", arguments='{"x":'),
        tool(None, arguments="1}"),
        tool(None, id="b", name="g", arguments="{}"),
        tool(None, id="a", arguments=" "),
    )
    assert calls(got) == [("a", "f", '{"x":1} '), ("b", "g", "{}")] and got.defects == ("missing_index",)
    got = stream(tool(None, name="f", arguments='{"x":1}'), tool(None, name="f", arguments='{"x":1}'))
    assert calls(got) == [(None, "f", '{"x":1}')] * 2


def test_names_in_pieces_and_names_repeated() -> None:
    assert calls(stream(tool(0, id="a", name="get_"), tool(0, name="weather"), tool(0, arguments=ARGS))) == [
        ("a", "get_weather", ARGS)
    ]
    got = stream(tool(0, id="a", name="get_", arguments=""), tool(0, name="weather", arguments=ARGS))
    assert calls(got) == [("a", "get_weather", ARGS)] and got.defects == ()
    got = stream(tool(0, id="a", name="f", arguments='{"x"'), tool(0, id="a", name="f", arguments=":1}"))
    assert calls(got) == [("a", "f", '{"x":1}')] and got.defects == ("name_repeated",)
    got = stream(tool(0, id="a", name="get"), tool(0, id="a", name="get_weather", arguments=ARGS))
    assert calls(got) == [("a", "get_weather", ARGS)] and got.defects == ("name_repeated",)


@pytest.mark.parametrize(
    "parts",
    [
        [ARGS, ARGS],
        ["", ARGS, ARGS, ARGS],
        ['{"city": ', '"Oslo"}', ARGS],
        ['{"city": ', ARGS],
        ['{"city":', ' "Oslo"', ' "Oslo"', "}"],
        ['{"city"', '{"city": "O', ARGS],
    ],
)
def test_duplicate_chunk_is_named_and_kept(parts: list[str]) -> None:
    got = stream(tool(0, id="a", name="f"), *(tool(0, arguments=part) for part in parts))
    assert calls(got) == [("a", "f", "".join(parts))] and got.defects == ("duplicate_chunk",)


@pytest.mark.parametrize(
    "parts", [['{"a":', '{"a":1}}'], ['{"s":"', "aa", "aa", '"}'], ['{"s":"a b a b', " a b"]]
)
def test_what_only_looks_doubled_is_no_defect(parts: list[str]) -> None:
    got = stream(tool(0, id="a", name="f"), *(tool(0, arguments=part) for part in parts))
    assert calls(got)[0][2] == "".join(parts) and got.defects == ()


def test_no_done_and_no_finish_reason() -> None:
    ended = read([chunk({"content": "a"}, "stop")], Api.OPENAI_CHAT)
    assert ended.complete and ended.defects == ("no_done",)
    cut = read([chunk({"content": "a"})], Api.OPENAI_CHAT)
    assert not cut.complete and cut.defects == ("no_done", "no_finish_reason")
    empty_words = read([chunk({"content": "a"}, ""), chunk({"content": "b"}, ""), "[DONE]"], Api.OPENAI_CHAT)
    assert empty_words.choices[0].content == "ab" and empty_words.choices[0].finish_reason is None
    assert empty_words.complete and empty_words.defects == ("no_finish_reason",)


def test_error_event() -> None:
    got = read(
        sse(chunk({"content": "a"}), {"error": {"message": "dead", "type": "server_error", "code": 500}}),
        "openai.chat",
    )
    assert got.error is not None and (got.error.message, got.error.code) == ("dead", 500)
    assert got.choices[0].content == "a" and "error_event" in got.defects
    named = read(b'event: error\ndata: {"message": "boom"}\n\n', Api.OPENAI_CHAT)
    assert named.error is not None and named.error.message == "boom" and not named.complete
    old_llama = read(
        sse(CALL[0], done=False) + b'error: {"code": 500, "message": "x", "type": "t"}\n\n', "openai.chat"
    )
    assert old_llama.error is not None and old_llama.error.code == 500
    words = read(sse(CALL[0], "Internal Server Error"), Api.OPENAI_CHAT)
    assert words.error is not None and words.error.message == "Internal Server Error"
    assert {"bad_payload", "error_event"} <= set(words.defects)
    line = read([*OLLAMA[:2], {"error": "died"}], Api.OLLAMA_CHAT)
    assert line.error is not None and line.error.message == "died" and not line.complete
    claude = read(
        [*ANTHROPIC[:4], {"type": "error", "error": {"type": "overloaded_error", "message": "o"}}],
        Api.ANTHROPIC,
    )
    assert claude.error is not None and claude.error.type == "overloaded_error" and not claude.complete
    failed = {
        "type": "response.failed",
        "response": {"status": "failed", "error": {"code": "c", "message": "m"}},
    }
    response = read([*RESPONSES[:6], failed], Api.OPENAI_RESPONSES)
    assert (
        response.error is not None
        and response.error.code == "c"
        and response.choices[0].finish_reason == "failed"
    )


def test_forms_of_payloads() -> None:
    joined = b"data: " + b"\ndata: ".join(json.dumps(c).encode() for c in CALL) + b"\ndata: [DONE]\n\n"
    got = read(joined, Api.OPENAI_CHAT)
    assert got.defects == ("missing_blank_line",) and got.choices == read(CALL, Api.OPENAI_CHAT).choices
    bare = read(sse(*CALL[:1], done=False) + b'{"error": {"message": "oom"}}', Api.OPENAI_CHAT)
    assert "bare_line" in bare.defects and bare.error is not None
    assert "bad_payload" in read(sse(*CALL, '{"id": "x'), Api.OPENAI_CHAT).defects
    assert "not_object" in read(sse(*CALL, "17"), Api.OPENAI_CHAT).defects
    assert read(sse(done=True), Api.OPENAI_CHAT).defects == ("no_choices",)
    bad = sse(chunk({"content": "é"}, "stop")).replace("é".encode(), b"\xe9")
    assert read(bad, Api.OPENAI_CHAT).defects == ("invalid_utf8",)
    assert read(bad, Api.OPENAI_CHAT).choices[0].content == "\ufffd"


def test_message_in_stream() -> None:
    message = {"index": 0, "message": {"content": "ab", "tool_calls": []}, "finish_reason": "stop"}
    again = read(
        [chunk({"content": "a"}), chunk({"content": "b"}), {"choices": [message]}, "[DONE]"], "openai.chat"
    )
    assert again.choices[0].content == "ab" and again.choices[0].finish_reason == "stop"
    alone = read([{"choices": [message]}, "[DONE]"], Api.OPENAI_CHAT)
    assert alone.choices[0].content == "ab" and alone.defects == again.defects == ("message_in_stream",)


def test_forms_of_calls() -> None:
    legacy = body({"content": None, "function_call": {"name": "f", "arguments": ARGS}})
    assert calls(legacy) == [(None, "f", ARGS)] and legacy.defects == ("legacy_function_call",)
    pieces = stream(
        {"function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": ARGS[:4]}},
        {"function_call": {"arguments": ARGS[4:]}},
    )
    assert calls(pieces) == [(None, "f", ARGS)] and pieces.choices[0].tool_calls[0].index is None
    flat = body({"tool_calls": [{"id": "a", "name": "f", "arguments": {"x": 1}}]})
    assert calls(flat) == [("a", "f", {"x": 1})] and flat.defects == ("arguments_not_text", "flat_call")
    single = body({"tool_calls": {"function": {"name": "f", "arguments": ARGS}}})
    assert calls(single) == [(None, "f", ARGS)] and single.defects == ("tool_calls_not_list",)
    custom = body({"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f", "input": "raw"}}]})
    assert calls(custom) == [("a", "f", "raw")] and custom.defects == ()
    absent = body({"tool_calls": [{"function": {"name": "f"}}]})
    assert absent.choices[0].tool_calls == (ToolCall(name="f"),)


def test_forms_of_content() -> None:
    parts = body(
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]},
                {"type": "text", "text": "a"},
                "b",
            ]
        }
    )
    assert (parts.choices[0].content, parts.choices[0].reasoning) == ("ab", "t")
    assert (
        body({"content": []}).choices[0].content == "" and body({"content": None}).choices[0].content is None
    )
    assert body({"content": 5}).defects == ("content_not_text",)
    twice = body({"content": "a", "reasoning": "r", "reasoning_content": "r"})
    assert twice.choices[0].reasoning == "r"
    inside = read({"choices": [{"message": {"content": "a", "finish_reason": "stop"}}]}, Api.OPENAI_CHAT)
    assert inside.choices[0].finish_reason == "stop" and inside.defects == ()
    split = read(
        [chunk({"content": "\ud83d"}), chunk({"content": "\ude00 \ud83d"}, "stop"), "[DONE]"], Api.OPENAI_CHAT
    )
    assert split.choices[0].content == "😀 \ufffd"


def test_reasoning_details() -> None:
    details = [
        {"type": "reasoning.summary", "summary": "Hm. "},
        {"type": "reasoning.encrypted", "data": "x"},
        {"type": "reasoning.text", "text": "Yes."},
        7,
    ]
    assert body({"content": "", "reasoning_details": details}).choices[0].reasoning == "Hm. Yes."
    both = body({"content": "", "reasoning": "Hm.", "reasoning_details": details})
    assert both.choices[0].reasoning == "Hm.", "the same text under two names"
    got = stream(*({"reasoning_details": [entry]} for entry in details[::2]))
    assert got.choices[0].reasoning == "Hm. Yes."
    assert body({"content": "Hi", "reasoning_details": []}).choices[0].reasoning is None


def test_index_gap() -> None:
    got = stream(tool(1, id="b", name="g", arguments="{}"))
    assert calls(got) == [("b", "g", "{}")] and got.defects == ("index_gap",)


def test_other_defects() -> None:
    same = {"choices": [{"index": 0, "message": {"content": t}, "finish_reason": "stop"} for t in "ab"]}
    got = read(same, Api.OPENAI_CHAT)
    assert [c.content for c in got.choices] == ["a", "b"] and got.defects == ("choice_index_reused",)
    logprobs = {"content": [{"token": "x", "bytes": [1, 999]}]}
    bad = read(
        {"choices": [{"message": {"content": "x"}, "finish_reason": "stop", "logprobs": logprobs}]},
        "openai.chat",
    )
    assert bad.defects == ("bad_logprobs",)
    orphan = read(ANTHROPIC[:1] + ANTHROPIC[2:3] + ANTHROPIC[-2:], Api.ANTHROPIC)
    assert orphan.choices[0].reasoning == "So." and orphan.defects == ("orphan_delta",)
    differs = [*RESPONSES[:5], {**RESPONSES[5], "delta": "Lurk"}, *RESPONSES[6:]]
    got = read(differs, Api.OPENAI_RESPONSES)
    assert got.choices[0].content == "Looking." and got.defects == ("done_differs",)


def test_evidence_fields() -> None:
    choice = {
        "message": {"content": "hi"},
        "finish_reason": "stop",
        "token_ids": [5, 6],
        "logprobs": {
            "content": [
                {"token": "\ufffd", "bytes": [240, 159]},
                {"bytes": [152, 128]},
                {"token": "<x>", "bytes": None},
            ]
        },
    }
    vllm = read({"choices": [choice], "prompt_token_ids": [1, 2], "prompt_text": "<s>hi"}, Api.OPENAI_CHAT)
    assert vllm.choices[0].token_ids == (5, 6) and vllm.choices[0].logprob_text == "😀<x>"
    assert vllm.prompt_token_ids == (1, 2) and vllm.prompt_text == "<s>hi"
    pieces = [chunk({"content": "h"}), chunk({"content": "i"}, "stop")]
    pieces[0]["choices"][0]["token_ids"], pieces[1]["choices"][0]["token_ids"] = [5], [6]
    assert read([*pieces, "[DONE]"], Api.OPENAI_CHAT).choices[0].token_ids == (5, 6)
    verbose = {
        "content": "<tool_call>",
        "prompt": "P",
        "tokens": [7],
        "generation_settings": {"chat_format": "hermes"},
    }
    llama = body({"content": ""}, __verbose=verbose, timings={"prompt_n": 3}, system_fingerprint="b1-x")
    assert llama.choices[0].raw_text == "<tool_call>" and llama.choices[0].token_ids == (7,)
    assert llama.prompt_text == "P" and llama.fingerprint == "b1-x"
    assert llama.extra == {"chat_format": "hermes", "timings": {"prompt_n": 3}}
    sglang = body({"content": "x"}, sglext={"input_ids": [1], "output_ids": [[2, 3]]})
    assert sglang.choices[0].token_ids == (2, 3) and sglang.prompt_token_ids == (1,)
    ollama = read(
        {"message": {"content": ""}, "done": True, "_debug_info": {"rendered_template": "T"}}, Api.OLLAMA_CHAT
    )
    assert ollama.prompt_text == "T"
    big = body({"content": "x"}, blob="y" * 10_000, small=1)
    assert big.extra == {"small": 1}


def test_incomplete_responses() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}
    got = read([*RESPONSES[:10], {"type": "response.incomplete", "response": cut}], Api.OPENAI_RESPONSES)
    assert got.choices[0].finish_reason == "max_output_tokens" and got.complete and got.defects == ()
    assert calls(got) == [("call_1", "get_weather", '{"city"')]
    assert (
        read({**cut, "object": "response"}, Api.OPENAI_RESPONSES).choices[0].finish_reason
        == "max_output_tokens"
    )


def test_text_completions() -> None:
    choice = {
        "text": "a",
        "finish_reason": "stop",
        "logprobs": {"tokens": ["<x>", "a"]},
        "prompt_token_ids": [4],
    }
    got = read({"choices": [choice]}, Api.OPENAI_COMPLETIONS)
    assert got.choices[0].logprob_text == "<x>a" and got.prompt_token_ids == (4,)
    native = {
        "content": "b",
        "stop": True,
        "stop_type": "eos",
        "tokens": [9],
        "prompt": "P",
        "tokens_predicted": 1,
    }
    own = read(native, Api.OPENAI_COMPLETIONS)
    assert (own.choices[0].content, own.choices[0].finish_reason, own.choices[0].token_ids) == (
        "b",
        "eos",
        (9,),
    )
    assert own.prompt_text == "P" and own.usage is not None and own.usage.completion_tokens == 1
