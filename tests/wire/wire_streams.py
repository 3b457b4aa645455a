"""Streams that the tests cut, one of each kind, and helpers."""

from __future__ import annotations

import json
from typing import Any

from truecall.records import Api


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chat chunk with one choice."""
    choice = {"index": more.pop("index", 0), "delta": delta or {}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}


def tool(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    """A delta with one tool call; ``id``, ``name`` and ``arguments`` as given."""
    call: dict[str, Any] = {} if index is None else {"index": index}
    if "id" in fields:
        call["id"] = fields.pop("id")
    call["function"] = fields
    return {"tool_calls": [call]}


def sse(*payloads: dict[str, Any] | str, end: str = "\n", done: bool = True) -> bytes:
    """An event stream of payloads, ``[DONE]`` last."""
    texts = [p if isinstance(p, str) else json.dumps(p, ensure_ascii=False) for p in payloads]
    return "".join(f"data: {text}{end}{end}" for text in [*texts, *(["[DONE]"] if done else [])]).encode()


def ndjson(*lines: dict[str, Any]) -> bytes:
    """Lines of JSON."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def events(*payloads: dict[str, Any]) -> bytes:
    """An event stream with event names, as Anthropic and the responses API send."""
    return "".join(f"event: {p['type']}\ndata: {json.dumps(p)}\n\n" for p in payloads).encode()


CALL = [
    chunk({"role": "assistant", "content": "Schön 😀. "}),
    chunk(tool(0, id="call_a", name="get_weather", arguments="")),
    chunk(tool(0, arguments='{"city": "Tromsø 🌧')),
    chunk(tool(0, arguments='"}')),
    chunk(tool(1, id="call_b", name="web_search", arguments='{"query": "ferry"}')),
    chunk(finish="tool_calls"),
    {
        "id": "chatcmpl-1",
        "choices": [],
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 9,
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
    },
]

OLLAMA = [
    {"model": "m", "message": {"role": "assistant", "content": "", "thinking": "Høm"}, "done": False},
    {"model": "m", "message": {"role": "assistant", "content": "Ja. "}, "done": False},
    {
        "model": "m",
        "message": {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Tromsø", "days": 2}}}],
        },
        "done": False,
    },
    {
        "model": "m",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 11,
        "eval_count": 7,
        "total_duration": 5,
    },
]

ANTHROPIC = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "model": "m",
            "content": [],
            "usage": {"input_tokens": 9, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "So."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "x"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "ping"},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Let me "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "look."}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "input_json_delta", "partial_json": '{"city":'},
    },
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "input_json_delta", "partial_json": ' "Oslo"}'},
    },
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}},
    {"type": "message_stop"},
]
ANTHROPIC_BODY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "So.", "signature": "x"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 9, "output_tokens": 30},
}

_ITEM = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather"}
_TEXT = {"type": "message", "id": "msg_1", "role": "assistant"}
_REASON = {"type": "reasoning", "id": "rs_1"}
RESPONSES_BODY = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m",
    "output": [
        {**_REASON, "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {**_TEXT, "content": [{"type": "output_text", "text": "Looking."}]},
        {**_ITEM, "arguments": '{"city": "Oslo"}', "status": "completed"},
    ],
    "usage": {"input_tokens": 8, "output_tokens": 12, "output_tokens_details": {"reasoning_tokens": 2}},
}
RESPONSES = [
    {
        "type": "response.created",
        "response": {"id": "resp_1", "status": "in_progress", "model": "m", "output": []},
    },
    {
        "type": "response.output_item.added",
        "output_index": 0,
        "item": {**_REASON, "summary": [], "content": []},
    },
    {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "Hm."},
    {"type": "response.output_item.done", "output_index": 0, "item": RESPONSES_BODY["output"][0]},
    {"type": "response.output_item.added", "output_index": 1, "item": {**_TEXT, "content": []}},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Look"},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "ing."},
    {"type": "response.output_item.done", "output_index": 1, "item": RESPONSES_BODY["output"][1]},
    {"type": "response.output_item.added", "output_index": 2, "item": {**_ITEM, "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"city"'},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": ': "Oslo"}'},
    {"type": "response.output_item.done", "output_index": 2, "item": RESPONSES_BODY["output"][2]},
    {"type": "response.completed", "response": RESPONSES_BODY},
]

GEMINI = [
    {"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}], "role": "model"}, "index": 0}]},
    {"candidates": [{"content": {"parts": [{"text": "Let me "}], "role": "model"}, "index": 0}]},
    {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": "look."},
                        {"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}},
                    ]
                },
                "index": 0,
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 10, "thoughtsTokenCount": 2},
        "modelVersion": "m",
        "responseId": "r1",
    },
]

COMPLETIONS = [
    {
        "id": "cmpl-1",
        "object": "text_completion",
        "choices": [{"index": 0, "text": "Schö", "finish_reason": None}],
    },
    {"id": "cmpl-1", "choices": [{"index": 0, "text": "n", "finish_reason": "stop"}]},
]

STREAMS: dict[str, tuple[str, bytes]] = {
    "chat": (Api.OPENAI_CHAT, sse(*CALL)),
    "chat, CRLF": (Api.OPENAI_CHAT, b"\xef\xbb\xbf: hello\r\n\r\n" + sse(*CALL, end="\r\n")),
    "chat, CR, no end": (Api.OPENAI_CHAT, sse(*CALL, end="\r").rstrip(b"\r")),
    "chat, error inside": (
        Api.OPENAI_CHAT,
        sse(*CALL[:3], {"error": {"message": "dead", "code": 500}}, done=False),
    ),
    "ollama": (Api.OLLAMA_CHAT, ndjson(*OLLAMA)),
    "ollama, error inside": (
        Api.OLLAMA_CHAT,
        ndjson(*OLLAMA[:2], {"error": "error parsing tool call: raw='x'"}),
    ),
    "anthropic": (Api.ANTHROPIC, events(*ANTHROPIC)),
    "responses": (Api.OPENAI_RESPONSES, events(*RESPONSES)),
    "gemini": (Api.GEMINI, sse(*GEMINI, done=False)),
    "completions": (Api.OPENAI_COMPLETIONS, sse(*COMPLETIONS)),
}
