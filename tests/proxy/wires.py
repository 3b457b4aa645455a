"""One answer in the words of each API: whole, and as a stream cut into pieces; requests that offer one tool."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.proxy.upstream import CALL, WEATHER, chunk, completion, text_stream

MESSAGES = [{"role": "user", "content": "Weather?"}]
SCHEMA = WEATHER["function"]["parameters"]


class Wire(NamedTuple):
    """``whole`` and ``stream`` say a text, and with ``call`` a call as the API gives one."""

    api: str
    path: str
    ask: dict[str, Any]
    kind: str = "text/event-stream"

    def request(self, stream: bool, **more: Any) -> dict[str, Any]:
        return {**self.ask, "stream": stream, **more}

    def whole(self, text: str | None, call: bool = False) -> bytes:
        return json.dumps(_WHOLE[self.api](text, call)).encode()

    def stream(self, text: str | None, size: int = 5, call: bool = False) -> list[bytes]:
        pieces = [text[i : i + size] for i in range(0, len(text), size)] if text is not None else []
        return _STREAMS[self.api](pieces, call)


def _event(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode()


# --------------------------------------------------------------------------- OpenAI chat


def _chat(text: str | None, call: bool) -> dict[str, Any]:
    return completion(text, [CALL] if call else None)


def _chat_stream(pieces: list[str], call: bool) -> list[bytes]:
    role, *texts, _, done = text_stream("".join(pieces), max(1, len(pieces[0]) if pieces else 1))
    calls = [chunk({"tool_calls": [{"index": 0, **CALL}]})] if call else []
    return [role, *texts, *calls, chunk({}, "tool_calls" if call else "stop"), done]


# --------------------------------------------------------------------------- OpenAI responses

_ITEM_CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_abc123", "name": "get_weather",
              "arguments": '{"city": "Oslo"}', "status": "completed"}  # fmt: skip


def _message_item(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def _responses(text: str | None, call: bool) -> dict[str, Any]:
    output = [*([_message_item(text)] if text is not None else []), *([_ITEM_CALL] if call else [])]
    head = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    usage = {"input_tokens": 10, "output_tokens": 20, "total_tokens": 30}
    return {**head, **more, "output": output, "usage": usage}


def _responses_stream(pieces: list[str], call: bool) -> list[bytes]:
    text = "".join(pieces)
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    whole = _responses(text if pieces else None, call)
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "output": [],
                                     "status": "in_progress"}}]  # fmt: skip
    if pieces:
        item = _message_item(text)
        (part,) = item["content"]
        begun = {**item, "content": [], "status": "in_progress"}
        events += [
            {"type": "response.output_item.added", "output_index": 0, "item": begun},
            {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
            *({"type": "response.output_text.delta", **place, "delta": piece} for piece in pieces),
            {"type": "response.output_text.done", **place, "text": text},
            {"type": "response.content_part.done", **place, "part": part},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
        ]
    if call:
        index = {"item_id": "fc_1", "output_index": 1 if pieces else 0}
        begun = {**_ITEM_CALL, "arguments": "", "status": "in_progress"}
        written = _ITEM_CALL["arguments"]
        events += [
            {"type": "response.output_item.added", "output_index": index["output_index"], "item": begun},
            {"type": "response.function_call_arguments.delta", **index, "delta": written},
            {"type": "response.function_call_arguments.done", **index, "arguments": written},
            {"type": "response.output_item.done", "output_index": index["output_index"], "item": _ITEM_CALL},
        ]
    events.append({"type": "response.completed", "response": whole})
    return [_event({**event, "sequence_number": number}) for number, event in enumerate(events)]


# --------------------------------------------------------------------------- Anthropic messages

_BLOCK_CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}


def _anthropic(text: str | None, call: bool) -> dict[str, Any]:
    blocks = [
        *([{"type": "text", "text": text}] if text is not None else []),
        *([_BLOCK_CALL] if call else []),
    ]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks}
    usage = {"input_tokens": 10, "output_tokens": 20}
    return {**head, "stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None, "usage": usage}


def _anthropic_stream(pieces: list[str], call: bool) -> list[bytes]:
    whole = _anthropic(None, call)
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    ]
    index = 0
    if pieces:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        events += _block(0, {"type": "text", "text": ""}, deltas)
        index = 1
    if call:
        delta = {"type": "input_json_delta", "partial_json": '{"city": "Oslo"}'}
        events += _block(index, {**_BLOCK_CALL, "input": {}}, [delta])
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events += [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    ]
    return [_event(event) for event in events]


def _block(index: int, block: dict[str, Any], deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


# --------------------------------------------------------------------------- Ollama chat

_OLLAMA_CALL = {"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
_HEAD = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}


def _ollama(text: str | None, call: bool) -> dict[str, Any]:
    message = {"role": "assistant", "content": text or "", **({"tool_calls": [_OLLAMA_CALL]} if call else {})}
    return {**_HEAD, "message": message, "done": True, "done_reason": "stop", "eval_count": 20}


def _ollama_stream(pieces: list[str], call: bool) -> list[bytes]:
    said = [{"content": piece} for piece in pieces]
    said += [{"content": "", "tool_calls": [_OLLAMA_CALL]}] if call else []
    lines = [{**_HEAD, "message": {"role": "assistant", **message}, "done": False} for message in said]
    lines.append(_ollama("", False))
    return [json.dumps(line).encode() + b"\n" for line in lines]


_WHOLE: dict[str, Any] = {
    "openai.chat": _chat,
    "openai.responses": _responses,
    "anthropic.messages": _anthropic,
    "ollama.chat": _ollama,
}
_STREAMS: dict[str, Any] = {
    "openai.chat": _chat_stream,
    "openai.responses": _responses_stream,
    "anthropic.messages": _anthropic_stream,
    "ollama.chat": _ollama_stream,
}
_FLAT = {"type": "function", "name": "get_weather", "parameters": SCHEMA}
_INPUT = {"name": "get_weather", "input_schema": SCHEMA}
WIRES = (
    Wire("openai.chat", "/v1/chat/completions", {"model": "m", "messages": MESSAGES, "tools": [WEATHER]}),
    Wire("openai.responses", "/v1/responses", {"model": "m", "input": "Weather?", "tools": [_FLAT]}),
    Wire("anthropic.messages", "/v1/messages",
         {"model": "m", "max_tokens": 99, "messages": MESSAGES, "tools": [_INPUT]}),
    Wire("ollama.chat", "/api/chat", {"model": "m", "messages": MESSAGES, "tools": [WEATHER]},
         "application/x-ndjson"),
)  # fmt: skip
