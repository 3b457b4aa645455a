"""Faults of parsers and streams (D14 to D19, D30 to D36, D41 to D43 of the defect list), and of stream forms.

Where the two ways of asking differ, the plain answer and the stream are those of one engine for one text.
"""

from __future__ import annotations

import json
from typing import Any

from tests.faults.contracts import HERMES
from tests.faults.kinds import (
    DONE,
    START,
    TOOL_CALL,
    Answer,
    Scenario,
    Stream,
    call_delta,
    chunk,
    completion,
    error,
    stream,
    text_stream,
)

GOOD = '{"city": "Oslo", "days": 2}'
FENCED = '```json\n{"name": "get_weather", "parameters": {"city": "Oslo"}}\n```'


def _called(arguments: str, name: str = "get_weather") -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def _plain(content: str | None, *calls: dict[str, Any], finish: str = "stop", **more: Any) -> tuple[Answer]:
    return (Answer(200, completion(content, calls, finish=finish, **more)),)


def _called_stream(*pieces: str, finish: str | None = "tool_calls", name: str = "get_weather") -> Stream:
    return stream(call_delta(0, name, ""), *(call_delta(0, arguments=p) for p in pieces), finish=finish)


DEFECTS = (
    Scenario(
        "d14-raw-newline",
        "SGLang hermes: no call; streaming sends a call with cut arguments",
        _plain(
            '<tool_call>\n{"name": "run_tests", "arguments": {"code": "def f():\n return 1"}}\n</tool_call>'
        ),
        _called_stream('{"code": "def f()', name="run_tests"),
    ),
    Scenario(
        "d15-extra-brace",
        "SGLang hermes: no call; streaming sends the call and a stray brace as text",
        _plain(HERMES.replace("}}\n", "}}}\n")),
        stream(call_delta(0, "get_weather", GOOD), chunk({"content": "}"}), finish="tool_calls"),
    ),
    Scenario(
        "d16-no-arguments",
        "SGLang hermes: {} without streaming, an empty string with it",
        _plain(None, _called("{}"), finish="tool_calls"),
        _called_stream(""),
    ),
    Scenario(
        "d17-wrapper-leaks",
        "SGLang llama3: no call; streaming sends the call, and the fence as text",
        _plain(FENCED),
        stream(
            chunk({"content": "```json\n"}),
            call_delta(0, "get_weather", '{"city": "Oslo"}'),
            chunk({"content": "\n```"}),
            finish="tool_calls",
        ),
    ),
    Scenario(
        "d18-stream-leaks",
        "vLLM llama3_json: a call without streaming, text with it",
        _plain(None, _called('{"city": "Oslo"}'), finish="tool_calls"),
        text_stream(FENCED),
    ),
    Scenario(
        "d19-stream-empty",
        "vLLM phi4_mini_json: neither call nor content when streaming",
        _plain(None, _called(GOOD), finish="tool_calls"),
        Stream(
            (START, chunk({}, "stop"), json.dumps({"choices": [], "usage": {"completion_tokens": 31}}), DONE)
        ),
    ),
    Scenario(
        "d30-error-after-tokens",
        "llama.cpp: the final parse fails after the stream had begun",
        (
            Answer(
                500,
                error(
                    "The model produced output that does not match the expected peg-native format", None, 500
                ),
            ),
        ),
        Stream(
            (
                START,
                chunk({"content": "Let me see. "}),
                json.dumps(
                    error(
                        "The model produced output that does not match the expected peg-native format",
                        None,
                        500,
                    )
                ),
            )
        ),
    ),
    Scenario(
        "d31-turn-is-error",
        "Ollama: bad arguments turn the whole answer into an error",
        (Answer(500, error("failed to parse JSON: unexpected end of JSON input", "api_error", None)),),
    ),
    Scenario(
        "d32-wrong-tool",
        "Ollama's fallback scanner: a tool's name inside the arguments picked the wrong tool",
        _plain("", _called(GOOD, name="weather"), finish="tool_calls"),
    ),
    Scenario(
        "d33-length-hidden",
        "vLLM: cut by max_tokens after a call, finish_reason tool_calls",
        _plain(None, _called(GOOD), _called('{"city": "Ber'), finish="tool_calls", usage=(150, 64)),
    ),
    Scenario(
        "d34-required-empty",
        "vLLM: required, finish_reason tool_calls with an empty list",
        _plain("", finish="tool_calls"),
        stream(finish="tool_calls"),
    ),
    Scenario(
        "d35-required-not-schema",
        "vLLM: required constrains the envelope only: arguments are no object",
        _plain(None, _called("4222"), finish="tool_calls"),
    ),
    Scenario(
        "d36-call-finish-stop",
        "a call with finish_reason stop",
        _plain(None, TOOL_CALL),
        _called_stream(GOOD, finish="stop"),
    ),
    Scenario(
        "d41-stream-invalid",
        "vLLM hermes: no call; streaming sends arguments with a brace too many",
        _plain(HERMES.replace("}}\n", "}}}\n")),
        _called_stream('{"city": "Oslo", ', '"days": 2}}}'),
    ),
    Scenario(
        "d42-stream-cut",
        "vLLM qwen3_coder: valid JSON without days; streaming cuts the JSON",
        _plain(None, _called('{"city": "Oslo"}'), finish="tool_calls"),
        _called_stream('{"city": "Oslo", ', '"days": '),
    ),
    Scenario(
        "d43-second-broken",
        "vLLM hermes: no call at all; streaming sends both, the second broken",
        _plain(f'{HERMES}\n<tool_call>\n{{"name": "get_weather", "arguments": {{"city": }}}}\n</tool_call>'),
        stream(
            call_delta(0, "get_weather", GOOD),
            call_delta(1, "get_weather", '{"city": }'),
            finish="tool_calls",
        ),
    ),
    Scenario(
        "d01-erased",
        "vLLM qwen3_coder on hermes text: neither call nor text, tokens spent",
        _plain(None, usage=(150, 34)),
        Stream(
            (START, chunk({}, "stop"), json.dumps({"choices": [], "usage": {"completion_tokens": 34}}), DONE)
        ),
    ),
)

FORMS = (
    Scenario(
        "no-done",
        "the stream ends without [DONE]",
        _plain(None, TOOL_CALL, finish="tool_calls"),
        stream(call_delta(0, "get_weather", GOOD), finish="tool_calls", done=False),
    ),
    Scenario(
        "index-reused",
        "a second call under the first one's index",
        _plain(None, TOOL_CALL, finish="tool_calls"),
        stream(
            call_delta(0, "get_weather", GOOD, id="call_a"),
            call_delta(0, "get_weather", '{"city": "Bergen"}', id="call_b"),
            finish="tool_calls",
        ),
    ),
    Scenario(
        "index-missing",
        "tool call pieces without an index",
        _plain(None, TOOL_CALL, finish="tool_calls"),
        stream(
            call_delta(None, "get_weather", '{"city": '),
            call_delta(None, arguments='"Oslo"}'),
            finish="tool_calls",
        ),
    ),
    Scenario(
        "chunk-twice",
        "the last piece of the arguments comes twice",
        _plain(None, TOOL_CALL, finish="tool_calls"),
        _called_stream('{"city": ', '"Oslo"}', '"Oslo"}'),
    ),
    Scenario(
        "last-brace-lost",
        "the last piece of the arguments never comes",
        _plain(None, TOOL_CALL, finish="tool_calls"),
        _called_stream('{"city": "Oslo", "days": 2'),
    ),
    Scenario(
        "name-twice",
        "the name comes with every piece",
        _plain(None, TOOL_CALL, finish="tool_calls"),
        stream(
            call_delta(0, "get_weather", '{"city": '),
            call_delta(0, "get_weather", '"Oslo"}'),
            finish="tool_calls",
        ),
    ),
    Scenario(
        "empty-finish",
        "finish_reason is an empty string on the way",
        _plain(None, TOOL_CALL, finish="tool_calls"),
        Stream(
            (
                chunk({"role": "assistant"}, ""),
                call_delta(0, "get_weather", GOOD),
                chunk({}, "tool_calls"),
                DONE,
            )
        ),
    ),
    Scenario(
        "marker-split",
        "the call's text in pieces that split its markers",
        _plain(HERMES),
        text_stream(HERMES, size=1),
    ),
)

SCENARIOS = (*DEFECTS, *FORMS)
