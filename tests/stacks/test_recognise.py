"""Engines are known by two marks, from recorded answers of live servers and from documented ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults import fingerprints
from truecall import stacks
from truecall.stacks import Observations, Seen, StackInfo

RECORDED = Path(__file__).parents[1] / "recorded"


def observe(answers: fingerprints.Answers, model: str | None = None) -> Observations:
    seen = {
        path: Seen(status=status, headers=tuple(headers.items()), body=body)
        for path, (status, headers, body) in answers.items()
    }
    return Observations(chat=seen.pop("chat", None), seen=seen, model=model)


def recorded(name: str) -> tuple[int, dict[str, str], Any]:
    record = json.loads((RECORDED / f"{name}.json").read_text())
    try:
        body = json.loads(record["body"])
    except (TypeError, ValueError):
        body = record["body"]
    return record["status"], record["headers"], body


def live_llamacpp(chat: str = "llamacpp-hermes-auto") -> StackInfo:
    template = chat.split("-")[1]
    return stacks.recognise(
        observe(
            {
                "/v1/models": recorded("llamacpp-hermes-models"),
                "/props": recorded(f"llamacpp-{template}-props"),
                "/version": recorded("llamacpp-hermes-path-unknown"),
                "chat": recorded(chat),
            }
        )
    )


def live_vllm(chat: str) -> StackInfo:
    return stacks.recognise(
        observe(
            {
                "/v1/models": recorded("vllm-noparser-models"),
                "/version": recorded("vllm-noparser-version"),
                "/server_info": recorded("vllm-noparser-server_info"),
                "/tokenizer_info": recorded("vllm-noparser-tokenizer_info"),
                "chat": recorded(chat),
            }
        )
    )


def test_a_live_llamacpp() -> None:
    info = live_llamacpp()
    assert info.engine == "llamacpp"
    assert len(info.signals) >= 4
    assert info.model.value == "SmolLM2-135M-Instruct"
    assert info.model_path.value == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert info.quantisation.value == "Q4_1"
    assert info.context_length.value == 4096
    assert "<tool_call>" in info.chat_template.value
    assert info.tools.value is True
    assert "<tool_call>" not in live_llamacpp("llamacpp-own-auto").chat_template.value


def test_a_live_vllm_without_parser_is_told_by_its_gate() -> None:
    info = live_vllm("vllm-noparser-auto")
    assert info.engine == "vllm"
    assert (info.version.value, info.version.origin) == ("0.32.0", "probed")
    assert info.context_length.value == 2048
    assert info.tool_parser.value == "none"
    assert info.chat_template.origin == "unknown"
    assert stacks.engine("vllm").advice("gate.vllm.auto_flags", info, "hermes") == (
        "start vLLM with --enable-auto-tool-choice --tool-call-parser hermes"
    )


def test_a_live_vllm_by_its_answer() -> None:
    info = live_vllm("vllm-noparser-none")
    assert info.engine == "vllm"
    assert any("system_fingerprint" in s for s in info.signals)
    assert info.tool_parser.origin == "unknown"


@pytest.mark.parametrize(
    ("answers", "engine"),
    [
        (fingerprints.SGLANG, "sglang"),
        (fingerprints.SGLANG_OLD, "sglang"),
        (fingerprints.VLLM_OLD, "vllm"),
        (fingerprints.VLLM_DEV, "vllm"),
        (fingerprints.OLLAMA, "ollama"),
        (fingerprints.LMSTUDIO, "lmstudio"),
        (fingerprints.TGI, "tgi"),
        (fingerprints.OPENAI, "openai_compatible"),
        (fingerprints.OPENROUTER, "openai_compatible"),
        (fingerprints.DEAD, "openai_compatible"),
        ({}, "openai_compatible"),
    ],
)
def test_documented_marks(answers: fingerprints.Answers, engine: str) -> None:
    info = stacks.recognise(observe(answers))
    assert info.engine == engine
    assert engine == "openai_compatible" or len(info.signals) >= 2


def test_one_mark_is_a_hint_only() -> None:
    one = {"/v1/models": fingerprints.models("vllm")}
    info = stacks.recognise(observe(one))
    assert info.engine == "openai_compatible"
    assert info.signals == ('vLLM? /v1/models owned_by "vllm"',)


def test_what_engines_tell_of_themselves() -> None:
    sglang = stacks.recognise(observe(fingerprints.SGLANG))
    assert (sglang.tool_parser.value, sglang.version.value) == ("qwen25", "0.5.23")
    assert sglang.model_path.value == "org/m"
    ollama = stacks.recognise(observe(fingerprints.OLLAMA))
    assert (ollama.tool_parser.value, ollama.digest.value) == ("qwen3-coder", "d1")
    assert (ollama.tools.value, ollama.context_length.value) == (True, 4096)
    studio = stacks.recognise(observe(fingerprints.LMSTUDIO))
    assert (studio.tools.value, studio.context_length.value) == (False, 8192)
    tgi = stacks.recognise(observe(fingerprints.TGI))
    assert (tgi.version.value, tgi.digest.value, tgi.model.value) == ("3.3.4", "abc", "org/m")
    dev = stacks.recognise(observe(fingerprints.VLLM_DEV))
    assert (dev.tool_parser.value, dev.quantisation.value) == ("hermes", "awq")
    assert dev.chat_template.value == "{{ messages }}"
    router = stacks.recognise(observe(fingerprints.OPENROUTER))
    assert (router.tools.value, router.context_length.value) == (False, 131072)


def test_a_model_that_was_asked_for_and_is_not_listed_is_declared() -> None:
    info = stacks.recognise(observe(fingerprints.OLLAMA, model="other"))
    assert (info.model.value, info.model.origin) == ("other", "declared")
    assert info.digest.origin == "unknown"


@pytest.mark.parametrize(
    ("headers", "body", "name"),
    [
        ({"server": "nginx/1.27.0"}, {}, "nginx"),
        ({"server": "cloudflare", "cf-ray": "1"}, {}, "Cloudflare"),
        ({"x-litellm-model-id": "1"}, {}, "LiteLLM"),
        ({"via": "1.1 kong/3.4"}, {}, "Kong"),
        ({"x-kong-upstream-latency": "1"}, {}, "Kong"),
        ({"server": "envoy"}, {}, "Envoy"),
        ({"x-envoy-upstream-service-time": "1"}, {}, "Envoy"),
        ({"via": "1.1 Caddy"}, {}, "Caddy"),
        ({}, {"error": {"message": "litellm.BadRequestError: OpenAIException - x"}}, "LiteLLM"),
        ({}, {"error": {"message": "No endpoints found that support tool use"}}, "OpenRouter"),
    ],
)
def test_gateways(headers: dict[str, str], body: Any, name: str) -> None:
    answers: fingerprints.Answers = {**fingerprints.OLLAMA, "chat": (400, headers, body)}
    info = stacks.recognise(observe(answers))
    assert info.engine == "ollama"
    assert [g.name for g in info.gateways] == [name]
    assert info.label == f"Ollama 0.20.7 behind {name}"


def test_no_gateway_on_a_bare_engine() -> None:
    assert stacks.recognise(observe(fingerprints.SGLANG)).gateways == ()
    assert live_llamacpp().gateways == ()
    words = {"choices": [{"message": {"content": "litellm.BadRequestError: said the model"}}]}
    assert stacks.recognise(observe({"chat": (200, {}, words)})).gateways == ()


JUNK: list[Any] = [None, 7, "text", [], [1], {}, {"data": None}, {"data": [None, {"id": 5, "owned_by": 3}]}]


@pytest.mark.parametrize(
    "junk", [*JUNK, {"choices": [None]}, {"choices": [{"message": {"tool_calls": [1]}}]}]
)
def test_no_answer_is_too_odd(junk: Any) -> None:
    answers: fingerprints.Answers = {p: (200, {}, junk) for p in (*stacks.PROBE_PATHS, "chat")}
    assert stacks.recognise(observe(answers)).engine == "openai_compatible"
    for name in stacks.ENGINES:  # describe() must bear it too, once recognised
        assert stacks.engine(name).describe(observe(answers)).engine == name
