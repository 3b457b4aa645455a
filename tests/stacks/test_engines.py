"""What is sent for evidence and for loopback, how it is read, and what is advised."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from truecall import stacks
from truecall.stacks import ENGINES, StackInfo
from truecall.stacks.advice import COMMON
from truecall.stacks.base import Fact
from truecall.stacks.dialect_parsers import parsers_for

RECORDED = Path(__file__).parents[1] / "recorded"
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]

# As registered in the versions that were read (vLLM 0.32.0, SGLang 0.5.23, verl 0.9.1; Ollama of 2026-08).
REGISTERED = {
    "vllm": """apertus cohere_command3 cohere_command4 deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4
        deepseek_v41 dots ernie45 functiongemma gemma4 gigachat3 glm45 glm47 granite granite-20b-fc granite4
        hermes hf hunyuan_a13b hy_v3 hy_v4 inkling internlm jamba k2_horizon kimi_k2 kimi_k3 lfm2 ling3
        llama3_json llama4_json llama4_pythonic longcat mimo minicpm5 minimax_m2 minimax_m3 mistral
        muse_glimmer olmo3 openai phi4_mini_json plamo3 poolside_v1 pythonic qwen3_coder qwen3_json qwen3_xml
        seed_oss step3 step3p5 xlam""",
    "sglang": """apertus2509 beam cohere_command4 deepseekv3 deepseekv31 deepseekv32 deepseekv4 deepseekv41
        dots glm glm45 glm47 gpt-oss k2_horizon kimi_k2 kimi_k3 lfm2 ling3 llama3 mimo minicpm5 mistral muse
        poolside_v1 pythonic qwen qwen25 qwen3_coder spark25 step3 step3p5 minimax-m2 minimax-m3 nanbeige
        trinity interns1 hermes hunyuan gigachat3 gigachat35 gemma4 inkling iquest_q1 response_template""",
    "verl": "deepseek_v4 gemma4 glm gpt-oss hermes kimi minimax qwen3_coder seed",
    "ollama": """qwen3 qwen3-thinking qwen3.5 ornith qwen3-coder qwen3-vl-instruct qwen3-vl-thinking ministral
        passthrough harmony cogito deepseek3 olmo3 olmo3-think nemotron-3-nano functiongemma glm-4.7 gemma4
        gemma4-no-thinking glm-ocr lfm2 lfm2-thinking laguna poolside-v1 cohere glimmer""",
}


@pytest.mark.parametrize("engine", REGISTERED)
def test_parsers_are_registered_ones(engine: str) -> None:
    known = set(REGISTERED[engine].split())
    used = {name for names in stacks.DIALECT_PARSERS[engine].values() for name in names}
    assert used - known == set()


@pytest.mark.parametrize("engine", stacks.DIALECT_PARSERS)
def test_the_reverse_table_agrees(engine: str) -> None:
    for parser, dialect in stacks.PARSER_DIALECTS[engine].items():
        assert parser in parsers_for(engine, dialect)


def test_aliases_and_unknown_dialects() -> None:
    assert parsers_for("vllm", "bare_json") == parsers_for("vllm", "llama3_json")
    assert parsers_for("sglang", "qwen3_coder_xml")[0] == "qwen3_coder"
    assert parsers_for("vllm", "react") == ()
    assert parsers_for("nowhere", "hermes") == ()


@pytest.mark.parametrize("name", ENGINES)
def test_evidence_fields_leave_the_request_alone(name: str) -> None:
    stack = stacks.engine(name)
    fields = stack.evidence_fields({"model": "m"})
    assert (fields == {}) is (stack.evidence_kind == "none")
    own = {"model": "m", **dict.fromkeys(fields, "mine")}
    assert stack.evidence_fields(own) == {}
    sampling = {"temperature", "max_tokens", "messages", "tools", "tool_choice", "seed", "grammar"}
    assert not sampling & set(fields)


def test_evidence_fields_are_those_that_live_servers_answered() -> None:
    vllm = json.loads((RECORDED / "vllm-noparser-none-hermes.json").read_text())
    assert "return_token_ids" in vllm["request"]["body"]
    assert json.loads(vllm["body"])["choices"][0]["token_ids"]
    llama = json.loads((RECORDED / "llamacpp-hermes-auto.json").read_text())
    assert set(stacks.engine("llamacpp").evidence_fields({})) <= set(llama["request"]["body"])
    assert "content" in json.loads(llama["body"])["__verbose"]


def test_token_ids_become_text() -> None:
    vllm = stacks.engine("vllm")
    request = vllm.detokenize([1, 2], "m")
    assert request is not None
    assert (request.path, request.body) == ("/detokenize", {"model": "m", "tokens": [1, 2]})
    live = json.loads((RECORDED / "vllm-noparser-none-hermes-detokenized.json").read_text())
    assert live["request"]["path"] == "/detokenize"
    assert (vllm.read_detokenized(json.loads(live["body"])) or "").startswith("<tool_call>\n{")
    sglang = stacks.engine("sglang")
    request = sglang.detokenize([1, 2])
    assert request is not None
    assert request.body["skip_special_tokens"] is False
    assert sglang.read_detokenized({"text": ["a"]}) == sglang.read_detokenized({"text": "a"}) == "a"
    for odd in (None, [], {"text": 1}, {"prompt": None}):
        assert vllm.read_detokenized(odd) is None
        assert sglang.read_detokenized(odd) is None
    assert stacks.engine("llamacpp").detokenize([1]) is None


@pytest.mark.parametrize("name", ENGINES)
def test_loopback_by_each_way(name: str) -> None:
    stack = stacks.engine(name)
    for way in stack.ways:
        request = stack.loopback(HERMES, TOOLS, "m", way)
        if way == "oracle":
            assert request is None  # needs the parser's name, see SGLang.oracle
            continue
        assert request is not None
        assert (request.way, request.path) == (way, "/v1/chat/completions")
        assert request.body["tools"] == TOOLS
        assert request.body["tool_choice"] == "auto"
        assert HERMES in _strings(request.body)
    assert stack.loopback(HERMES, TOOLS, "m", "prefill") is None or "prefill" in stack.ways
    strongest = stack.loopback(HERMES, TOOLS, "m")
    assert (strongest.way if strongest else None) == (stack.ways[0] if stack.ways else None)


def _strings(value: Any) -> str:
    if isinstance(value, str):
        return re.sub(r"\\(.)", r"\1", value.replace("\\n", "\n")) + value
    if isinstance(value, dict):
        return "".join(map(_strings, value.values()))
    return "".join(map(_strings, value)) if isinstance(value, list) else ""


def test_guided_regex_takes_exactly_the_text() -> None:
    text = 'a+b (c) [d] {"e": "\\n"}\n.*^$|?-#\t é'
    request = stacks.engine("sglang").loopback(text, TOOLS, "m", "guided")
    assert request is not None
    assert re.fullmatch(request.body["regex"], text)
    assert not re.fullmatch(request.body["regex"], text + "x")


def test_prefill_as_run_on_a_live_server() -> None:
    request = stacks.engine("llamacpp").loopback(HERMES, TOOLS, "m")
    assert request is not None
    assert not request.stream
    live = json.loads((RECORDED / "llamacpp-hermes-prefill-hermes.json").read_text())
    assert live["request"]["body"]["messages"][-1]["role"] == request.body["messages"][-1]["role"]
    assert live["request"]["body"]["max_tokens"] == request.body["max_tokens"]
    assert json.loads(live["body"])["choices"][0]["message"]["tool_calls"]
    # why prefill says nothing of streams: the arguments of a whole prefilled call never come
    stream = json.loads((RECORDED / "llamacpp-hermes-prefill-hermes-stream.json").read_text())["body"]
    assert '"get_weather"' in "".join(stream)
    assert "Paris" not in "".join(p.split('"__verbose"')[0] for p in stream)


def test_the_oracle_of_sglang() -> None:
    sglang = ENGINES["sglang"]
    request = sglang.oracle(HERMES, TOOLS, "hermes")  # type: ignore[attr-defined]
    assert request.path == "/parse_function_call"
    assert request.body["tool_call_parser"] == "hermes"
    body = {"normal_text": "", "calls": [{"tool_index": 0, "name": "f", "parameters": "{}"}]}
    assert sglang.read_oracle(body) == ("", [{"name": "f", "arguments": "{}"}])
    for odd in (None, {}, {"calls": None}):
        assert sglang.read_oracle(odd) is None


def info(engine: str, parser: str | None = None) -> StackInfo:
    fact = Fact(value=parser, origin="probed") if parser else Fact()
    return StackInfo(engine=engine, title=engine, tool_parser=fact)


@pytest.mark.parametrize(
    ("engine", "parser", "finding", "dialect", "change"),
    [
        (
            "vllm",
            "qwen3_coder",
            "parser-mismatch",
            "hermes",
            "change --tool-call-parser qwen3_coder to hermes",
        ),
        ("vllm", None, "no-parser", "pythonic", "--enable-auto-tool-choice --tool-call-parser pythonic"),
        ("vllm", None, "gate.vllm.required_parser", "glm", "--tool-call-parser glm45"),
        ("vllm", None, "gate.vllm.auto_flags", None, "--enable-auto-tool-choice --tool-call-parser NAME"),
        ("vllm", None, "auto-erased", "hermes", "--tool-call-parser hermes"),
        ("vllm", None, "parser-mismatch", "react", "no tool-call parser of vLLM reads react"),
        (
            "sglang",
            "qwen25",
            "parser-mismatch",
            "qwen3_coder",
            "change --tool-call-parser qwen25 to qwen3_coder",
        ),
        ("sglang", "none", "no-parser", "harmony", "start SGLang with --tool-call-parser gpt-oss"),
        (
            "llamacpp",
            None,
            "parser-mismatch",
            "kimi",
            "--chat-template-file FILE, a template of the family Kimi K2",
        ),
        ("llamacpp", None, "tools-not-rendered", None, "--chat-template-file"),
        ("llamacpp", None, "gate.llamacpp.no_jinja", None, "--jinja"),
        ("ollama", None, "parser-mismatch", "qwen3_coder", "PARSER qwen3-coder"),
        ("ollama", None, "required-not-enforced", None, "no tool_choice"),
        ("lmstudio", None, "parser-mismatch", "hermes", "[TOOL_REQUEST]"),
        ("tgi", None, "finish-reason-lies", None, "look at the calls"),
        ("openai_compatible", None, "stream-differs", None, "without streaming"),
    ],
)
def test_advice(engine: str, parser: str | None, finding: str, dialect: str | None, change: str) -> None:
    assert change in stacks.engine(engine).advice(finding, info(engine, parser), dialect)


def test_no_advice_to_set_the_parser_that_is_set() -> None:
    text = stacks.engine("vllm").advice("auto-leaked", info("vllm", "hermes"), "hermes")
    assert "--tool-call-parser" not in text
    assert stacks.engine("vllm").advice("no-such-finding", info("vllm")) == ""


@pytest.mark.parametrize("name", ENGINES)
def test_every_common_finding_has_advice_everywhere(name: str) -> None:
    assert all(stacks.engine(name).advice(f, info(name)) for f in COMMON)
