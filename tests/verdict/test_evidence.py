"""Which text is taken as what the model wrote, and what is cut off it."""

from __future__ import annotations

from typing import Any

import pytest
from verdict_bodies import HERMES, TOOLS, call, chat, chunks, raw

from truecall import wire
from truecall.classify import judge_response
from truecall.evidence import STRONGER, best, without_end
from truecall.records import Evidence, EvidenceTier


def evidence(body: Any, *, detokenized: str | None = None, **request: Any) -> Evidence:
    response = wire.read(body, "openai.chat")
    view = wire.read_request(request, "openai.chat") if request else None
    choice = response.choices[0] if response.choices else None
    return best(response, choice, detokenized=detokenized, request=view)


def logprobs(body: dict[str, Any], text: str) -> dict[str, Any]:
    entries = [{"token": c, "bytes": list(c.encode()), "logprob": -0.1} for c in text]
    body["choices"][0]["logprobs"] = {"content": entries}
    return body


def test_strongest_first() -> None:
    body = logprobs(raw("raw", "content"), "logprobs of the text")
    assert evidence(body, detokenized="ids") == Evidence(tier=EvidenceTier.TOKEN_IDS, text="ids")
    assert evidence(body) == Evidence(tier=EvidenceTier.RAW_TEXT, text="raw")
    del body["__verbose"]
    assert evidence(body) == Evidence(tier=EvidenceTier.LOGPROB_BYTES, text="logprobs of the text")
    body = {**chat(""), "error": {"message": "x", "failed_generation": HERMES}}
    assert evidence(body) == Evidence(tier=EvidenceTier.ERROR_BODY, text=HERMES)
    assert evidence(chat("content")) == Evidence(tier=EvidenceTier.CONTENT, text="content")
    assert evidence(chat("", reasoning_content="r")) == Evidence(tier=EvidenceTier.CONTENT, text="")
    assert evidence(chat(None, call())) == Evidence(tier=EvidenceTier.TOOL_CALLS, text=None)
    assert evidence(chat(None)) == Evidence(tier=EvidenceTier.NONE, text=None)
    assert {EvidenceTier.CONTENT, EvidenceTier.TOOL_CALLS, EvidenceTier.NONE} == set(EvidenceTier) - STRONGER


@pytest.mark.parametrize(
    "end",
    [
        "<|im_end|>",
        "<|eot_id|>\n",
        "</s>",
        "<end_of_turn>",
        "<|im_end|>\n<|endoftext|>",
        "<｜end▁of▁sentence｜>",
    ],
)
def test_end_tokens_are_cut_off(end: str) -> None:
    assert without_end(f"{HERMES}{end}") == HERMES
    bare = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    response = wire.read(chat(None, call(arguments={"city": "Oslo"})), "openai.chat")
    verdict = judge_response(response, TOOLS, detokenized=bare + end)
    assert [str(c.delivery) for c in verdict.calls] == ["surfaced"]


@pytest.mark.parametrize(
    "end", ["<|call|>", "<|tool_call_end|>", "<|im_end|>.", "</tool_call>", "<|im_end|> and so on"]
)
def test_tokens_of_a_call_stay(end: str) -> None:
    assert without_end(f"a{end}") == f"a{end}"


def test_logprobs_of_the_parsed_text_are_no_raw_text() -> None:
    assert evidence(logprobs(chat("I look."), "I look.")).tier is EvidenceTier.LOGPROB_BYTES
    again = logprobs(chat("I look.", call()), "I look.<|im_end|>")
    assert evidence(again).tier is EvidenceTier.CONTENT
    assert evidence(logprobs(chat("I look.", call()), "I l")).tier is EvidenceTier.CONTENT
    more = logprobs(chat("I look.", call()), f"I look.{HERMES}")
    assert evidence(more).tier is EvidenceTier.LOGPROB_BYTES


def test_prefill_is_put_before_llamacpps_raw_text() -> None:
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "<tool_call>\n{"}]
    assert evidence(raw("}", None), messages=messages).text == "<tool_call>\n{}"
    assert evidence(raw("<tool_call>\n{}", None), messages=messages).text == "<tool_call>\n{}", (
        "already there"
    )
    assert evidence(raw("}", None), messages=messages[:1]).text == "}"
    assert evidence(chat("x"), detokenized="}", messages=messages).text == "}", "vLLM's ids stand alone"


def test_reasoning_in_the_raw_text() -> None:
    text = f"<think>\nI need it.\n</think>\n{HERMES}<|im_end|>"
    response = wire.read(chat(None, call(), reasoning_content="I need it."), "openai.chat")
    verdict = judge_response(response, TOOLS, detokenized=text)
    assert [c.rule for c in verdict.calls] == ["call.surfaced"]
    swallowed = wire.read(chat("", reasoning_content=f"I need it.\n{HERMES}"), "openai.chat")
    verdict = judge_response(swallowed, TOOLS, detokenized=f"<think>\nI need it.\n{HERMES}<|im_end|>")
    assert [c.rule for c in verdict.calls] == ["call.leaked.reasoning"]


def test_a_stream_has_the_same_evidence() -> None:
    payloads = chunks({"content": "I "}, {"content": "look."})
    assert evidence(payloads) == Evidence(tier=EvidenceTier.CONTENT, text="I look.")
