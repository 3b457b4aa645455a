"""Requests of all APIs, read into one shape (OpenAI chat's).

Source: the API references named in each API's file; ``request_shapes.py`` holds the foreign shapes.
"""

from __future__ import annotations

from typing import Final

from truecall.records import Json, Record
from truecall.wire.values import (
    count,
    encode,
    integer,
    items,
    join,
    obj,
    objects,
    text,
    word,
)

CONSTRAINTS: Final = (
    *("structured_outputs", "guided_json", "guided_choice", "guided_regex", "guided_grammar"),
    *("structural_tag", "grammar", "json_schema", "regex", "ebnf", "format"),
)
"""Fields that constrain what is generated, in the engines' own names (vLLM, SGLang, llama.cpp, Ollama)."""


class ToolResult(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A tool's result on its way back to the model; ``error``: the request marks it as one."""

    id: str | None = None
    name: str | None = None
    content: str | None = None
    error: bool | None = None


class RequestView(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What a request asks, whatever its API.

    ``messages`` and ``tools`` are in OpenAI chat's shape; ``tools`` None: the field was absent.
    ``tool_choice``: auto, required, none or named (then ``tool_name``), None where nothing was said; any
    other value stands as it came. ``prefill``: the last message is the start of the answer itself.
    ``constraint``: the field that constrains the output, if any. ``prompt``: that of text completions.
    ``defects``: ``not_json``, ``not_object``.
    """

    api: str
    model: str | None = None
    messages: tuple[dict[str, Json], ...] = ()
    tools: tuple[dict[str, Json], ...] | None = None
    tool_choice: str | None = None
    tool_name: str | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    n: int | None = None
    stream: bool = False
    prefill: bool = False
    tool_results: tuple[ToolResult, ...] = ()
    constraint: str | None = None
    prompt: str | None = None
    defects: tuple[str, ...] = ()


def chat_view(body: dict[str, Json], api: str) -> RequestView:
    """OpenAI chat completions, with the engines' own fields."""
    messages = tuple(objects(body.get("messages")))
    choice, name = tool_choice(body.get("tool_choice"))
    tools = body.get("tools")
    if tools is None and body.get("functions") is not None:  # from before tools
        tools = [{"type": "function", "function": function} for function in objects(body["functions"])]
        choice, name = tool_choice(body.get("function_call"))
    limit = count(body.get("max_completion_tokens"))
    return RequestView(
        api=api,
        model=word(body.get("model")),
        messages=messages,
        tools=None if tools is None else tuple(objects(tools)),
        tool_choice=choice,
        tool_name=name,
        parallel_tool_calls=truth(body.get("parallel_tool_calls")),
        max_tokens=count(body.get("max_tokens")) if limit is None else limit,
        temperature=number(body.get("temperature")),
        seed=integer(body.get("seed")),
        n=count(body.get("n")),
        stream=body.get("stream") is True,
        prefill=ends_in_prefill(messages),
        tool_results=tool_results(messages),
        constraint=constraint(body),
    )


def completions_view(body: dict[str, Json], api: str) -> RequestView:
    """OpenAI text completions: a prompt, no messages."""
    prompt = body.get("prompt")
    if isinstance(prompt, list):
        prompt = prompt[0] if len(prompt) == 1 else None
    return RequestView(
        api=api,
        model=word(body.get("model")),
        max_tokens=_first(count(body.get("max_tokens")), count(body.get("n_predict"))),
        temperature=number(body.get("temperature")),
        seed=integer(body.get("seed")),
        n=count(body.get("n")),
        stream=body.get("stream") is True,
        constraint=constraint(body),
        prompt=text(prompt),
    )


def tool_choice(value: Json) -> tuple[str | None, str | None]:
    """(choice, tool name) of OpenAI's ``tool_choice``, in the chat and in the responses form."""
    if isinstance(value, str):
        return (word(value), None)
    if not isinstance(value, dict):
        return (None, None)
    name = word(obj(value.get("function")).get("name")) or word(value.get("name"))
    if name:
        return ("named", name)
    return (word(value.get("mode")) or word(value.get("type")), None)


def tool_results(messages: tuple[dict[str, Json], ...]) -> tuple[ToolResult, ...]:
    """The results among messages in OpenAI's shape."""
    return tuple(
        ToolResult(
            id=word(message.get("tool_call_id")),
            name=word(message.get("name")) or word(message.get("tool_name")),
            content=content_text(message.get("content")),
            error=truth(message.get("is_error")),
        )
        for message in messages
        if message.get("role") in ("tool", "function")
    )


def ends_in_prefill(messages: tuple[dict[str, Json], ...]) -> bool:
    """Whether the last message is the assistant's own, without calls: the answer is to go on from it."""
    return bool(messages) and messages[-1].get("role") == "assistant" and not messages[-1].get("tool_calls")


def constraint(body: dict[str, Json]) -> str | None:
    """The field that constrains the output, or None."""
    form = obj(body.get("response_format") or obj(body.get("text")).get("format"))
    if form and form.get("type") != "text":
        return "response_format"
    return next((key for key in CONSTRAINTS if body.get(key) not in (None, "", {}, [])), None)


def content_text(content: Json) -> str | None:
    """The text of a message's content: itself, or its text parts joined; None where there is none."""
    if isinstance(content, str):
        return text(content)
    parts = [part["text"] for part in objects(content) if isinstance(part.get("text"), str)]
    parts = parts or [part for part in items(content) if isinstance(part, str)]
    return join(parts) if parts else None


def function_tool(name: Json, description: Json, parameters: Json) -> dict[str, Json]:
    """A tool in OpenAI chat's shape; absent parts are left out."""
    function: dict[str, Json] = {"name": name}
    if description is not None:
        function["description"] = description
    if parameters is not None:
        function["parameters"] = parameters
    return {"type": "function", "function": function}


def function_call(call_id: Json, name: Json, arguments: Json) -> dict[str, Json]:
    """A call in an assistant message, arguments as text."""
    written = arguments if isinstance(arguments, str) else encode({} if arguments is None else arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": written}}


def truth(value: Json) -> bool | None:
    """A boolean, else None."""
    return value if isinstance(value, bool) else None


def number(value: Json) -> float | None:
    """A finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e300 else None


def _first(first: int | None, second: int | None) -> int | None:
    return second if first is None else first
