"""Bodies that live vLLM and llama.cpp servers sent (tests/recorded)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from truecall.records import Api, Response
from truecall.wire import StreamReader, by_path, read, read_request, sniff
from truecall.wire.sse import frame

FOLDER = Path(__file__).parent.parent / "recorded"


@cache
def exchanges() -> dict[str, dict[str, Any]]:
    found = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
    return {name: it for name, it in found.items() if by_path(it["request"]["path"]) is not None}


def response(name: str) -> Response:
    it = exchanges()[name]
    api = by_path(it["request"]["path"])
    assert api is not None
    return read(it["body"], api, status=it["status"], content_type=it["headers"].get("content-type"))


def test_every_body_is_an_answer_or_an_error() -> None:
    assert len(exchanges()) > 200
    for name, it in exchanges().items():
        got = response(name)
        if it["status"] >= 400:
            assert got.error is not None and got.error.message and not got.choices and not got.defects, name
        else:
            assert got.choices and got.stream == isinstance(it["body"], list), name
        if got.error is None:
            assert got.complete and not set(got.defects) - {"index_gap"} and got.usage is not None, name
        else:
            assert it["status"] >= 400 or set(got.defects) >= {"error_event", "no_done"}, name


def test_token_ids_are_all_of_the_generated_tokens() -> None:
    seen = 0
    for name in exchanges():
        got = response(name)
        for choice in got.choices:
            if choice.token_ids is not None:
                assert got.usage is not None and len(choice.token_ids) == got.usage.completion_tokens, name
                seen += 1
    assert seen > 100


def test_requests_and_apis() -> None:
    for name, it in exchanges().items():
        body = it["request"].get("body")
        view = read_request(body, by_path(it["request"]["path"]) or "")
        if isinstance(body, dict):
            assert view.model == body.get("model") and view.stream == body.get("stream", False), name
            assert view.tools == (tuple(body["tools"]) if "tools" in body else None), name
        if it["status"] == 200:
            assert sniff(it["body"]) == by_path(it["request"]["path"]), name


def test_the_same_text_by_ids_by_logprobs_and_by_content() -> None:
    got = response("vllm-hermes-choice-logprobs")
    assert got.choices[0].logprob_text is not None and got.choices[0].tool_calls[0].name == "get_weather"
    assert got.choices[0].logprob_text.startswith("<tool_call>")
    plain = response("llamacpp-hermes-auto").choices[0]
    assert plain.raw_text == plain.content and plain.token_ids
    assert response("llamacpp-hermes-auto").extra["chat_format"]


@pytest.mark.parametrize(
    "name", ["vllm-hermes-choice-hermes-stream", "llamacpp-hermes-auto-stream", "llamacpp-hermes-open-stream"]
)
def test_recorded_streams_at_any_cut(name: str) -> None:
    raw, whole = frame(exchanges()[name]["body"]), response(name)
    for cut in range(0, len(raw), 11):
        reader = StreamReader(Api.OPENAI_CHAT)
        reader.feed(raw[:cut])
        reader.feed(raw[cut:])
        assert reader.finish() == whole, cut
