"""Every row of the engines' contracts: what a request with tools meets where it isn't supported."""

from __future__ import annotations

from typing import Any

from tests.faults.kinds import Answer, Scenario, Stream, completion, error, text_stream

HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>'
LM_STUDIO = '[TOOL_REQUEST]{"name": "get_weather", "arguments": {"city": "Oslo"}}[END_TOOL_REQUEST]'
CUT_REQUEST = '[TOOL_REQUEST]{"name": "get_weather", "arguments": {"city": "Oslo"}[END_TOOL'


def _flat(message: str, code: int = 400) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequest", "param": None, "code": code}


def _llamacpp(message: str, code: int, kind: str = "server_error") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "type": kind}}


_TEMPLATE = "registry.ollama.ai/library/gemma3:4b does not support tools"
# name -> about, status, body, rule that stacks.refusal must give (None: no refusal)
TABLE: dict[str, tuple[str, int, Any, str | None]] = {
    "vllm-auto": (
        "vLLM without flags, auto",
        400,
        error('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        "gate.vllm.auto_flags",
    ),
    "vllm-required": (
        "vLLM without parser, required",
        400,
        error('tool_choice="required" requires --tool-call-parser to be set'),
        "gate.vllm.required_parser",
    ),
    "vllm-named": (
        "vLLM without parser, named",
        400,
        error('tool_choice=function "get_weather" requires --tool-call-parser to be set'),
        "gate.vllm.named_parser",
    ),
    "vllm-none": ("vLLM without parser, none: rendered, not parsed", 200, completion(HERMES), None),
    "vllm-empty-tools": (
        "vLLM, tools: []",
        400,
        error(
            "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely."
        ),
        "request.empty_tools",
    ),
    "vllm-choice-without-tools": (
        "vLLM, tool_choice without tools",
        400,
        error("When using `tool_choice`, `tools` must be set."),
        "request.tool_choice_without_tools",
    ),
    "vllm-unknown-tool": (
        "vLLM, a name that is not offered",
        400,
        error("The tool specified in `tool_choice` does not match any of the specified `tools`"),
        "request.unknown_tool",
    ),
    "vllm-bad-choice": (
        "vLLM, a bad value",
        400,
        error("Invalid value for `tool_choice`: sometimes! Only named tools are supported."),
        "request.bad_tool_choice",
    ),
    "vllm-old-required": (
        "vLLM up to 0.27, required without parser: finish_reason without a call",
        200,
        completion("", finish="tool_calls"),
        None,
    ),
    "sglang-no-parser": ("SGLang without parser: the text as content", 200, completion(HERMES), None),
    "sglang-required-without-tools": (
        "SGLang",
        400,
        _flat("Tools cannot be empty if tool choice is set to required."),
        "request.tool_choice_without_tools",
    ),
    "sglang-named-without-tools": (
        "SGLang",
        400,
        _flat("Tools cannot be empty if tool choice is set to a specific tool."),
        "request.tool_choice_without_tools",
    ),
    "sglang-unknown-tool": (
        "SGLang",
        400,
        _flat("Tool 'get_news' not found in tools list."),
        "request.unknown_tool",
    ),
    "sglang-bad-schema": (
        "SGLang",
        400,
        _flat("Tool 0 function has invalid 'parameters' schema: 'objekt' is not valid"),
        "request.bad_schema",
    ),
    "llamacpp-no-jinja": (
        "llama.cpp --no-jinja",
        500,
        _llamacpp("tools param requires --jinja flag", 500),
        "gate.llamacpp.no_jinja",
    ),
    "llamacpp-no-jinja-choice": (
        "llama.cpp --no-jinja",
        500,
        _llamacpp("tool_choice param requires --jinja flag", 500),
        "gate.llamacpp.no_jinja",
    ),
    "llamacpp-bad-choice": (
        "llama.cpp",
        400,
        _llamacpp("Invalid tool_choice: sometimes", 400, "invalid_request_error"),
        "request.bad_tool_choice",
    ),
    "llamacpp-named-ignored": (
        "llama.cpp takes a named tool for auto",
        200,
        completion("The weather in Oslo is fine."),
        None,
    ),
    "llamacpp-no-template-tools": (
        "llama.cpp, the template renders no tools",
        200,
        completion("I can't look that up.", usage=(44, 8)),
        None,
    ),
    "llamacpp-peg-mismatch": (
        "llama.cpp, the output does not fit the grammar: text lost",
        500,
        _llamacpp("The model produced output that does not match the expected peg-native format", 500),
        "parser.llamacpp.peg_mismatch",
    ),
    "llamacpp-parse-input": (
        "llama.cpp, the text stands in the error",
        500,
        _llamacpp(f"Failed to parse input at pos 3: {HERMES}", 500),
        "parser.llamacpp.parse_input",
    ),
    "llamacpp-grammar-with-tools": (
        "llama.cpp",
        400,
        _llamacpp("Cannot use custom grammar constraints with tools.", 400, "invalid_request_error"),
        "request.constraint_conflict",
    ),
    "ollama-no-tools-native": ("Ollama", 400, {"error": _TEMPLATE}, "gate.ollama.no_tools_capability"),
    "ollama-no-tools": (
        "Ollama on /v1",
        400,
        error(_TEMPLATE, "invalid_request_error", None),
        "gate.ollama.no_tools_capability",
    ),
    "ollama-no-tools-old": (
        "older Ollama on /v1",
        400,
        error(_TEMPLATE, "api_error", None),
        "gate.ollama.no_tools_capability",
    ),
    "ollama-no-tools-several": (
        "Ollama, more than one capability missing",
        400,
        error(f"{_TEMPLATE}\nthinking", "invalid_request_error", None),
        "gate.ollama.no_tools_capability",
    ),
    "ollama-parser-failed": (
        "Ollama's parser fails; the raw text stands in the error",
        500,
        {"error": "error parsing tool call: raw='{\"city\": ', err=unexpected end of JSON input"},
        "parser.ollama.tool_call",
    ),
    "lmstudio-default": ("LM Studio, a model without tool use, text kept", 200, completion(LM_STUDIO), None),
    "lmstudio-unparsable": ("LM Studio, unparsable text goes to content", 200, completion(CUT_REQUEST), None),
    "tgi-unknown-tool": (
        "TGI",
        422,
        {"error": "Tool with name get_news not found", "error_type": "tool_error"},
        "request.unknown_tool",
    ),
    "tgi-not-json": (
        "TGI, the grammar's JSON was cut",
        422,
        {
            "error": 'Failed to parse generated text: {"function": {"_name": "get_w',
            "error_type": "tool_error",
        },
        "tgi.generated_not_json",
    ),
    "llamacpp-python": ("llama-cpp-python: tools go to the template only", 200, completion(HERMES), None),
    "openai-no-tools": (
        "a hosted model without tools",
        400,
        error(
            "tools is not supported in this model. For a list of supported models …", "invalid_request_error"
        ),
        "gate.model_no_tools",
    ),
    "groq-failed-generation": (
        "a service that validates: the model's text stands in the error",
        400,
        {
            "error": {
                "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation'.",
                "type": "invalid_request_error",
                "code": "tool_use_failed",
                "failed_generation": '<function=get_weather>{"city": "Oslo"}</function>',
            }
        },
        "groq.tool_use_failed",
    ),
}

_LATE = "{\"error\": \"error parsing tool call: raw='ls -R\\n', err=invalid character 'l'\"}"


def _scenario(name: str, about: str, status: int, body: Any) -> Scenario:
    text = body["choices"][0]["message"]["content"] if status == 200 else None
    return Scenario(name, about, (Answer(status, body),), stream=text_stream(text) if text else None)


SCENARIOS = (
    *(_scenario(name, about, status, body) for name, (about, status, body, _) in TABLE.items()),
    Scenario(
        "ollama-error-line",
        "Ollama's parser fails in mid-stream: an error line after status 200",
        (Answer(500, _LATE, {"content-type": "application/json"}),),
        Stream(
            ('{"model": "m", "message": {"role": "assistant", "content": ""}, "done": false}', _LATE),
            ndjson=True,
        ),
    ),
)
