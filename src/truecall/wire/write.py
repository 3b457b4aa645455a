"""Records to HTTP payloads: requests for OpenAI chat and Ollama chat, responses for OpenAI chat.

Source: OpenAI API reference; Ollama API documentation. ``read(to_chat(r))`` gives ``r`` again, and
``read(to_sse(r))`` the same but for the marks of a stream (``stream``, ``defects``, a call's ``index``).
"""

from __future__ import annotations

from typing import Final

from truecall.records import Api, Choice, ErrorBody, Json, Response, ToolCall, Usage
from truecall.wire.calls import arguments_object
from truecall.wire.request import content_text
from truecall.wire.sse import DONE
from truecall.wire.values import encode, obj, objects

_CHOICES: Final = ("auto", "required", "none")


def build(
    model: str | None,
    messages: list[dict[str, Json]],
    *,
    api: str = Api.OPENAI_CHAT.value,
    tools: list[dict[str, Json]] | None = None,
    tool_choice: str | dict[str, Json] | None = None,
    stream: bool = False,
    max_tokens: int | None = None,
    temperature: float | None = None,
    seed: int | None = None,
    extra: dict[str, Json] | None = None,
) -> dict[str, Json]:
    """A request body for OpenAI chat or Ollama chat; what is None is left out.

    ``messages`` and ``tools`` are in OpenAI's shape. ``tool_choice`` may be a tool's name. A stream asks
    for its usage. Ollama has no tool_choice: it is dropped there. ``extra`` is merged last (objects such
    as ``options`` one level deep). ValueError for any other API.
    """
    settings: dict[str, Json] = {"temperature": temperature, "seed": seed}
    body: dict[str, Json]
    if api == Api.OPENAI_CHAT:
        body = {"model": model, "messages": messages, "tools": tools, "tool_choice": _choice(tool_choice)}
        body |= {"max_tokens": max_tokens, **settings}
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
    elif api == Api.OLLAMA_CHAT:
        settings["num_predict"] = max_tokens
        options = {key: value for key, value in settings.items() if value is not None}
        body = {"model": model, "messages": [_for_ollama(message, messages) for message in messages]}
        body |= {"tools": tools, "options": options or None, "stream": stream}
    else:
        raise ValueError(f"requests are built for openai.chat and ollama.chat, not for {api}")
    body = {key: value for key, value in body.items() if value is not None}
    for key, value in (extra or {}).items():
        old = body.get(key)
        body[key] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return body


def to_chat(response: Response, *, created: int = 0) -> dict[str, Json]:
    """The body of a chat completion. Without choices an error is the body, as servers write it."""
    if response.error is not None and not response.choices:
        return {"error": _error(response.error)}
    body = _head(response, "chat.completion", created)
    body["choices"] = [
        {
            "index": choice.index,
            "message": _message(choice),
            "finish_reason": choice.finish_reason,
            **_evidence(choice),
        }
        for choice in response.choices
    ]
    body |= _tail(response)
    if response.error is not None:
        body["error"] = _error(response.error)
    return body


def to_sse(response: Response, *, piece: int = 16, created: int = 0) -> list[str]:
    """The payloads of the same answer as a stream, texts cut into ``piece`` characters (0: not cut).

    An error comes after the choices; ``[DONE]`` ends a response that is ``complete``. See ``sse.frame``.
    """
    head = _head(response, "chat.completion.chunk", created)
    payloads: list[dict[str, Json]] = []
    for choice in response.choices:
        for delta in _deltas(choice, piece):
            chunk = {"index": choice.index, "delta": delta, "finish_reason": None}
            payloads.append({**head, "choices": [chunk]})
        last = {
            "index": choice.index,
            "delta": {},
            "finish_reason": choice.finish_reason,
            **_evidence(choice),
        }
        payloads.append({**head, "choices": [last]})
    tail = _tail(response)
    if tail:
        payloads.append({**head, "choices": [], **tail})
    if response.error is not None:
        payloads.append({"error": _error(response.error)})
    texts = [encode(payload) for payload in payloads]
    return [*texts, DONE] if response.complete else texts


def _choice(value: str | dict[str, Json] | None) -> Json:
    if isinstance(value, str) and value not in _CHOICES:
        return {"type": "function", "function": {"name": value}}
    return value


def _for_ollama(message: dict[str, Json], messages: list[dict[str, Json]]) -> dict[str, Json]:
    """A message as Ollama takes it: text content, argument objects, a result named by its tool."""
    out = {key: value for key, value in message.items() if key not in ("tool_calls", "tool_call_id", "name")}
    if not isinstance(out.get("content"), str):
        out["content"] = content_text(out.get("content")) or ""
    calls = [obj(call.get("function")) for call in objects(message.get("tool_calls"))]
    if calls:
        out["tool_calls"] = [
            {
                "function": {
                    "name": call.get("name"),
                    "arguments": arguments_object(call.get("arguments")) or {},
                }
            }
            for call in calls
        ]
    if message.get("role") == "tool":
        name = message.get("name") or _called(messages, message.get("tool_call_id"))
        if name:
            out["tool_name"] = name
    return out


def _called(messages: list[dict[str, Json]], call_id: Json) -> Json:
    """The name of the tool that the call with this id was to."""
    calls = (call for message in messages for call in objects(message.get("tool_calls")))
    return next((obj(call.get("function")).get("name") for call in calls if call.get("id") == call_id), None)


def _head(response: Response, kind: str, created: int) -> dict[str, Json]:
    head: dict[str, Json] = {"id": response.id, "object": kind, "created": created, "model": response.model}
    if response.fingerprint is not None:
        head["system_fingerprint"] = response.fingerprint
    return head


def _tail(response: Response) -> dict[str, Json]:
    """What is said once for the whole answer."""
    tail: dict[str, Json] = dict(response.extra)
    if response.usage is not None:
        tail["usage"] = _usage(response.usage)
    if response.prompt_text is not None:
        tail["prompt_text"] = response.prompt_text
    if response.prompt_token_ids is not None:
        tail["prompt_token_ids"] = list(response.prompt_token_ids)
    raw = response.choices[0].raw_text if response.choices else None
    if raw is not None:
        tail["__verbose"] = {"content": raw}
    return tail


def _message(choice: Choice) -> dict[str, Json]:
    message: dict[str, Json] = {"role": "assistant", "content": choice.content}
    if choice.reasoning is not None:
        message["reasoning_content"] = choice.reasoning
    if choice.refusal is not None:
        message["refusal"] = choice.refusal
    if choice.tool_calls:
        message["tool_calls"] = [_call(call) for call in choice.tool_calls]
    return message


def _deltas(choice: Choice, piece: int) -> list[dict[str, Json]]:
    deltas: list[dict[str, Json]] = [{"role": "assistant"}]
    for key, said in (
        ("reasoning_content", choice.reasoning),
        ("content", choice.content),
        ("refusal", choice.refusal),
    ):
        if said is not None:
            deltas += [{key: part} for part in _cut(said, piece)]
    for index, call in enumerate(choice.tool_calls):
        first = _call(call)
        arguments = first["function"].pop("arguments", None)
        if arguments is not None:
            first["function"]["arguments"] = ""
        deltas.append({"tool_calls": [{"index": index, **first}]})
        for part in _cut(arguments, piece) if arguments else []:
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    return deltas


def _call(call: ToolCall) -> dict[str, Json]:
    function: dict[str, Json] = {}
    if call.name is not None:
        function["name"] = call.name
    if call.arguments is not None:
        function["arguments"] = call.arguments if isinstance(call.arguments, str) else encode(call.arguments)
    return {**({} if call.id is None else {"id": call.id}), "type": "function", "function": function}


def _cut(whole: str, piece: int) -> list[str]:
    if piece <= 0 or not whole:
        return [whole]
    return [whole[start : start + piece] for start in range(0, len(whole), piece)]


def _evidence(choice: Choice) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if choice.token_ids is not None:
        found["token_ids"] = list(choice.token_ids)
    if choice.logprob_text is not None:
        written = {"token": choice.logprob_text, "bytes": list(choice.logprob_text.encode()), "logprob": None}
        found["logprobs"] = {"content": [written]}
    return found


def _usage(usage: Usage) -> dict[str, Json]:
    out: dict[str, Json] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }
    if usage.prompt_tokens is not None and usage.completion_tokens is not None:
        out["total_tokens"] = usage.prompt_tokens + usage.completion_tokens
    if usage.reasoning_tokens is not None:
        out["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    if usage.cached_tokens is not None:
        out["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    return out


def _error(error: ErrorBody) -> dict[str, Json]:
    out: dict[str, Json] = {"message": error.message, "type": error.type, "param": None, "code": error.code}
    if error.generation is not None:
        out["failed_generation"] = error.generation
    return out
