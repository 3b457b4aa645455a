"""The requests that were recorded: what to send, under which name, and what to look at in the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

CHAT = "/v1/chat/completions"
MODEL = "SmolLM2-135M-Instruct"
CITY = {"type": "string", "description": "The city"}
SCHEMA = {"type": "object", "properties": {"city": CITY, "days": {"type": "integer"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Get the weather for a city.", "parameters": SCHEMA}
TOOL = {"type": "function", "function": WEATHER}
NAMED = {"type": "function", "function": {"name": "get_weather"}}
UNKNOWN = {"type": "function", "function": {"name": "not_offered"}}
ASK: list[dict[str, Any]] = [
    {"role": "user", "content": "What is the weather in Paris? Use the get_weather tool."}
]

CALL = '{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}'
HERMES = f"<tool_call>\n{CALL}\n</tool_call>"
PARAMETERS = "<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>"
XML_CALL = f"<function=get_weather>\n{PARAMETERS}\n</function>"
DIALECTS = {
    "hermes": HERMES,
    "hermes-prose": f"I will look it up.\n{HERMES}\nDone.",
    "hermes-parallel": f"{HERMES}\n{HERMES.replace('Paris', 'Oslo')}",
    "hermes-wrong-name": HERMES.replace("get_weather", "get_news"),
    "hermes-cut": HERMES[: HERMES.index(', "days"')],
    "hermes-no-close": f"<tool_call>\n{CALL}",
    "hermes-bad-json": HERMES.replace("}}", "}"),
    "hermes-tag-in-string": HERMES.replace("Paris", "</tool_call>"),
    "hermes-unicode": HERMES.replace("Paris", "Zürich 東京"),
    "bare-json": CALL,
    "fenced-json": f"```json\n{CALL}\n```",
    "qwen3-coder": f"<tool_call>\n{XML_CALL}\n</tool_call>",
    "qwen3-coder-no-open": XML_CALL,
    "llama3-json": CALL.replace("arguments", "parameters"),
    "llama3-python-tag": "<|python_tag|>" + CALL.replace("arguments", "parameters"),
    "pythonic": '[get_weather(city="Paris", days=2)]',
    "mistral": f"[TOOL_CALLS] [{CALL}]",
    "mistral-args": '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris", "days": 2}',
    "glm45": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
    "deepseek-v31": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
    '{"city": "Paris"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "harmony": "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
    '{"city": "Paris"}<|call|>',
    "react": 'Action: get_weather\nAction Input: {"city": "Paris"}',
    "prose": "It is sunny in Paris.",
}


@dataclass(frozen=True)
class Case:
    """One request. `raw` replaces the JSON body; `detokenize` asks for a second record with the ids as text; `keep`
    names the keys of the answer that are stored, where the others describe the machine."""

    name: str
    body: dict[str, Any] | None = None
    path: str = CHAT
    note: str = ""
    raw: str | None = None
    detokenize: bool = False
    keep: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        return "GET" if self.body is None and self.raw is None else "POST"


def chat(**fields: Any) -> dict[str, Any]:
    """A chat request at temperature 0; a field given as None is left out."""
    body = {"model": MODEL, "messages": ASK, "temperature": 0, "max_tokens": 100, **fields}
    return {name: value for name, value in body.items() if value is not None}


def tools(choice: object = "auto", **fields: Any) -> dict[str, Any]:
    return chat(tools=[TOOL], tool_choice=choice, **fields)


def assistant(text: str) -> list[dict[str, Any]]:
    return [*ASK, {"role": "assistant", "content": text}]


def with_function(**fields: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {**WEATHER, **fields}}]


ROUND_TRIP = [
    *ASK,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": '{"temperature_celsius": 17, "sky": "overcast"}'},
]
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
VERBOSE = {"verbose": True, "return_tokens": True}
IDS = {"return_token_ids": True}
LONG = [{"role": "user", "content": "weather " * 6000}]
BAD_SCHEMAS = {
    "type": with_function(parameters={"type": "nonsense"}),
    "not-an-object": with_function(parameters="text"),
    "bad-ref": with_function(parameters={"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}}),
    "bad-regex": with_function(
        parameters={"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}
    ),
}


def refusals() -> Iterable[Case]:
    """Requests that a server should refuse, or is known to accept silently; the same for both engines."""
    yield Case("tools-empty", chat(tools=[], tool_choice="auto"))
    yield Case("tools-empty-no-choice", chat(tools=[]))
    yield Case("choice-without-tools", chat(tool_choice="auto"))
    yield Case("required-without-tools", chat(tool_choice="required"))
    yield Case("named-without-tools", chat(tool_choice=NAMED))
    yield Case("named-unknown", tools(UNKNOWN))
    yield Case("choice-bad-value", tools("sometimes"))
    yield Case("body-not-json", raw='{"model": "x", "messages": [')
    yield Case("messages-missing", chat(messages=None))
    yield Case("model-unknown", chat(model="not-served", max_tokens=4))
    yield Case("context-exceeded", chat(messages=LONG, max_tokens=4))
    yield Case("path-unknown", chat(), path="/v1/no-such-route")
    for name, offered in BAD_SCHEMAS.items():
        yield Case(f"schema-{name}", chat(tools=offered, tool_choice="auto", max_tokens=8))
        yield Case(f"schema-{name}-required", chat(tools=offered, tool_choice="required", max_tokens=8))


def shapes(extra: dict[str, Any]) -> Iterable[Case]:
    """The four tool choices and the parameters beside them, with `extra` asking for evidence."""
    yield Case("plain", chat(max_tokens=40, **extra))
    yield Case("plain-stream", chat(max_tokens=20, **STREAM))
    yield Case("auto", tools(**extra))
    yield Case("auto-stream", tools(**STREAM, **extra))
    yield Case("choice-absent", tools(None, **extra))
    yield Case("required", tools("required", **extra))
    yield Case("required-stream", tools("required", **STREAM, **extra))
    yield Case("required-warm", tools("required", **{**extra, "temperature": 1.0, "seed": 7}))
    yield Case("named", tools(NAMED, **extra))
    yield Case("none", tools("none", **extra))
    yield Case("strict", chat(tools=with_function(strict=True), tool_choice="auto", **extra))
    yield Case("strict-required", chat(tools=with_function(strict=True), tool_choice="required", **extra))
    yield Case("parallel-false", tools(parallel_tool_calls=False, **extra))
    yield Case("logprobs", tools(logprobs=True, top_logprobs=1, **extra))
    yield Case("round-trip", tools(messages=ROUND_TRIP, **extra))
    yield Case(
        "round-trip-id-unknown", tools(messages=[*ROUND_TRIP[:2], {**ROUND_TRIP[2], "tool_call_id": "x"}])
    )


def llama_own() -> Iterable[Case]:
    keep = {"plain", "auto", "auto-stream", "required", "required-stream", "named", "none", "round-trip"}
    yield from (case for case in shapes(VERBOSE) if case.name in keep)
    yield Case("prefill-hermes", tools(messages=assistant(HERMES), **{**VERBOSE, "max_tokens": 1}))
    yield Case("props", path="/props")
    yield Case("apply-template", tools(), path="/apply-template", note="the tools are not in the prompt")


def llama_hermes() -> Iterable[Case]:
    yield from shapes(VERBOSE)
    yield from refusals()
    yield Case("auto-bare", tools(), note="no field beyond the API: no verbose, no tokens")
    yield Case("auto-verbose-no-tokens", tools(verbose=True))
    yield Case("logprobs-stream", tools(logprobs=True, top_logprobs=1, **STREAM))
    yield Case("grammar-with-tools", tools(grammar='root ::= "yes"'))
    format_field = {"type": "json_schema", "json_schema": {"name": "call", "schema": SCHEMA}}
    yield Case("response-format-with-tools", tools(response_format=format_field, **VERBOSE))
    yield Case(
        "parse-tool-calls-false", tools(messages=assistant(HERMES), parse_tool_calls=False, max_tokens=1)
    )
    for path in ("/health", "/v1/models", "/props", "/slots", "/metrics"):
        yield Case(path.rpartition("/")[2], path=path)
    yield Case("apply-template", tools(), path="/apply-template")
    yield Case("apply-template-no-tools", chat(), path="/apply-template")
    yield Case("apply-template-round-trip", tools(messages=ROUND_TRIP), path="/apply-template")
    prompt = f"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n{HERMES}"
    completion = {"prompt": prompt, "n_predict": 1, "temperature": 0, "return_tokens": True}
    yield Case("completion", completion, path="/completion")
    yield Case("completion-parse", {**completion, "parse_tool_calls": True}, path="/completion")
    for name, text in DIALECTS.items():
        note = "loopback by prefill: the last message is this text, one token is generated"
        body = tools(messages=assistant(text), **{**VERBOSE, "max_tokens": 1})
        yield Case(f"prefill-{name}", body, note=note)
        yield Case(f"prefill-{name}-stream", {**body, **STREAM}, note=note)
    went_on = "the model goes on after the call, which the grammar of this template does not allow"
    body = tools(messages=assistant(HERMES), **{**VERBOSE, "max_tokens": 5})
    yield Case("prefill-hermes-goes-on", body, note=went_on)
    yield Case("prefill-hermes-goes-on-stream", {**body, **STREAM}, note=went_on)
    yield Case(
        "prefill-hermes-none", tools("none", messages=assistant(HERMES), **{**VERBOSE, "max_tokens": 1})
    )
    yield Case("prefill-hermes-no-tools", chat(messages=assistant(HERMES), **{**VERBOSE, "max_tokens": 1}))
    two = {**VERBOSE, "max_tokens": 1, "parallel_tool_calls": False}
    yield Case("prefill-parallel-false", tools(messages=assistant(DIALECTS["hermes-parallel"]), **two))
    required = {**VERBOSE, "max_tokens": 1}
    yield Case("prefill-hermes-required", tools("required", messages=assistant(HERMES), **required))


def llama_written() -> Iterable[Case]:
    """Calls whose bytes the model writes itself: the opener is prefilled and the grammar holds it from there."""
    opened = assistant('<tool_call>\n{"name": "get_weather", "arguments": {')
    note = "the opener is prefilled, the model writes the rest"
    yield Case("open", tools(messages=opened, **{**VERBOSE, "max_tokens": 60}), note=note)
    yield Case("open-stream", tools(messages=opened, **{**VERBOSE, **STREAM, "max_tokens": 60}), note=note)
    yield Case("open-logprobs", tools(messages=opened, logprobs=True, max_tokens=60), note=note)
    yield Case("open-max-tokens", tools(messages=opened, **{**VERBOSE, "max_tokens": 5}), note=note)
    yield Case(
        "open-max-tokens-stream", tools(messages=opened, **{**VERBOSE, **STREAM, "max_tokens": 5}), note=note
    )
    echo = [{"role": "user", "content": f"Repeat this text word for word and add nothing:\n{HERMES}"}]
    yield Case(
        "echo-hermes", tools(messages=echo, **VERBOSE), note="loopback by asking the model to repeat a text"
    )


def llama_no_jinja() -> Iterable[Case]:
    yield Case("plain", chat(max_tokens=8))
    yield Case("auto", tools())
    yield Case("none", tools("none"))
    yield Case("choice-without-tools", chat(tool_choice="auto", max_tokens=4))
    yield Case("none-without-tools", chat(tool_choice="none", max_tokens=4))
    yield Case("required-without-tools", chat(tool_choice="required", max_tokens=4))


def choice(text: str, **fields: Any) -> dict[str, Any]:
    """vLLM: guided decoding lets the model write this text alone."""
    guided = {"structured_outputs": {"choice": [text]}, "max_tokens": 200}
    return chat(**{"tools": [TOOL], "tool_choice": "auto", **guided, **IDS, **fields})


def vllm_common() -> Iterable[Case]:
    yield from shapes(IDS)
    yield from refusals()
    for path in ("/health", "/version", "/v1/models", "/tokenizer_info", "/ping", "/load"):
        yield Case(path.rpartition("/")[2], path=path)
    yield Case("server_info", path="/server_info", keep=("vllm_config", "detail"))
    yield Case("max-tokens-above-context", tools("none", max_tokens=100_000))
    yield Case("prompt-text", tools("none", return_prompt_text=True, max_tokens=4, **IDS))
    yield Case("tokenize", tools(), path="/tokenize")
    yield Case("tokenize-no-tools", chat(), path="/tokenize")
    yield Case("render", tools("none"), path="/v1/chat/completions/render")
    yield Case(
        "none-hermes", choice(HERMES, tool_choice="none"), note="left in the text, as asked", detokenize=True
    )
    xml = choice(DIALECTS["qwen3-coder"], tool_choice="none")
    yield Case("none-qwen3-coder", xml, detokenize=True)
    yield Case("none-hermes-stream", choice(HERMES, tool_choice="none", **STREAM))
    yield Case("logprobs-hermes", choice(HERMES, tool_choice="none", logprobs=True, return_token_ids=None))


def vllm_parser() -> Iterable[Case]:
    yield from vllm_common()
    for name, text in DIALECTS.items():
        note = "loopback by guided decoding: structured_outputs.choice holds this text alone"
        yield Case(f"choice-{name}", choice(text), note=note, detokenize=True)
        yield Case(f"choice-{name}-stream", choice(text, **STREAM), note=note)
    yield Case("choice-logprobs", choice(HERMES, logprobs=True, return_token_ids=None))
    yield Case("choice-logprobs-stream", choice(HERMES, logprobs=True, **STREAM))
    yield Case("choice-fenced-logprobs", choice(DIALECTS["fenced-json"], logprobs=True))
    yield Case("choice-bare", choice(HERMES, return_token_ids=None), note="no field for evidence")
    yield Case(
        "choice-parallel-false",
        choice(DIALECTS["hermes-parallel"], parallel_tool_calls=False),
        detokenize=True,
    )
    cut = "the budget ends inside the call"
    yield Case("choice-max-tokens", choice(HERMES, max_tokens=12), note=cut, detokenize=True)
    yield Case("choice-max-tokens-stream", choice(HERMES, max_tokens=12, **STREAM), note=cut)
    late = "the budget ends after the arguments, before the closing tag"
    yield Case("choice-max-tokens-late", choice(HERMES, max_tokens=30), note=late, detokenize=True)
    yield Case("choice-required", choice(HERMES, tool_choice="required"))
    yield Case("choice-skip-special-false", choice(HERMES, skip_special_tokens=False))
    yield Case("required-tiny", tools("required", **{**IDS, "max_tokens": 6}))
    yield Case("named-stream", tools(NAMED, **STREAM, **IDS))
    yield Case(
        "prefill-hermes",
        tools(
            messages=assistant(HERMES),
            max_tokens=5,
            continue_final_message=True,
            add_generation_prompt=False,
            **IDS,
        ),
    )


SETS = {
    "llama-own": list(llama_own()),
    "llama-hermes": list(llama_hermes()),
    "llama-written": list(llama_written()),
    "llama-no-jinja": list(llama_no_jinja()),
    "vllm-no-parser": list(vllm_common()),
    "vllm-parser": list(vllm_parser()),
}
