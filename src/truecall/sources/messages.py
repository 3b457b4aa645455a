"""Conversations in the shape of OpenAI's or Anthropic's messages, as turns of the model.

Source: the OpenAI chat completions reference (messages) and the Anthropic messages reference (content blocks).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from truecall import wire
from truecall.records import Choice, Json, ToolCall
from truecall.sources.base import Place, Turn
from truecall.wire.values import encode, objects, word

RESULT_ROLES: Final = frozenset(
    {"tool", "function", "ipython", "observation", "tool_response", "tool_result"}
)
"""Roles of messages that bring a tool's result back to the model."""

MODEL_ROLES: Final = frozenset({"assistant", "model", "gpt"})

_RESULT_TEXT: Final = re.compile(
    r"\s*(?:Observation:|<tool_response>|<tool_result>|<function_results?>|<tool_output>|Tool (?:result|output)\b"
    r"|\[TOOL_RESULTS\]|<\|tool_response)"
)


def is_result_text(text: Any) -> bool:
    """Whether a user's message is a tool's result that a text-only harness wrote there."""
    return isinstance(text, str) and _RESULT_TEXT.match(text) is not None


def conversation(
    messages: Sequence[Json], *, place: Place, tools: Json = None, known: bool | None = None, **more: Any
) -> Iterator[Turn]:
    """The model's turns among ``messages``.

    ``known``: whether the log would show structured calls. None: told from the conversation, by a call or a
    result in it. ``more``: fields of `Turn` that hold for all of them (model, step, episode …).
    """
    entries = [message if isinstance(message, dict) else {} for message in messages]
    if known is None:
        known = any(_shows_calls(message) for message in entries)
    position = 0
    for index, message in enumerate(entries):
        if role_of(message) not in MODEL_ROLES:
            continue
        choice = read_message(message)
        surfaced = choice.tool_calls if known or choice.tool_calls else None
        executed, observed = uptake(entries, index, bool(choice.tool_calls))
        yield Turn(
            place=place,
            text=choice.content,
            reasoning=choice.reasoning,
            tools=tools,
            surfaced=surfaced,
            finish_reason=choice.finish_reason,
            executed=executed,
            observed=observed,
            position=position,
            **more,
        )
        position += 1


def role_of(message: dict[str, Json]) -> str | None:
    """A message's role, by OpenAI's key or ShareGPT's."""
    return word(message.get("role", message.get("from")))


def _shows_calls(message: dict[str, Json]) -> bool:
    if message.get("tool_calls") or message.get("function_call") or role_of(message) in RESULT_ROLES:
        return True
    return any(block.get("type") in ("tool_use", "tool_result") for block in objects(message.get("content")))


def read_message(message: dict[str, Json]) -> Choice:
    """One assistant message of either shape as an answer."""
    blocks = message.get("content")
    if isinstance(blocks, list) and any(
        isinstance(block, dict) and block.get("type") in ("tool_use", "thinking") for block in blocks
    ):
        return _anthropic(blocks)
    if "content" not in message and isinstance(message.get("value"), str):  # ShareGPT
        message = {**message, "content": message["value"]}
    body = {"choices": [{"message": message, "finish_reason": message.get("finish_reason")}]}
    choices = wire.read(body, "openai.chat").choices
    return choices[0] if choices else Choice()


def _anthropic(blocks: list[Json]) -> Choice:
    response = wire.read({"type": "message", "role": "assistant", "content": blocks}, "anthropic.messages")
    return response.choices[0] if response.choices else Choice()


def uptake(messages: Sequence[dict[str, Json]], index: int, called: bool) -> tuple[bool | None, bool | None]:
    """(executed, observed) of the calls in the message at ``index``, by what follows it.

    A result that follows was executed and came back. A conversation that goes on without one: nothing came
    back, and whether something ran is unknown. The last message says nothing of what became of its calls.
    """
    followed = False
    for at in range(index + 1, len(messages)):
        message = messages[at]
        role = role_of(message)
        if role in MODEL_ROLES:
            followed = True
            break
        followed = True
        if role in RESULT_ROLES or is_result_text(message.get("content", message.get("value"))):
            return True, True
        if any(block.get("type") == "tool_result" for block in objects(message.get("content"))):
            return True, True
    if called:
        return None, (False if followed else None)
    return (False, False) if followed else (None, None)


def text_of(content: Json) -> str | None:
    """The text of a message's content: itself, or its text parts joined."""
    if isinstance(content, str):
        return content
    parts = [part["text"] for part in objects(content) if isinstance(part.get("text"), str)]
    return "".join(parts) if parts else None


def calls_of(value: Json) -> tuple[ToolCall, ...]:
    """Structured calls in any of the shapes that logs use: OpenAI's, or flat ``{name, arguments}``.

    inspect_ai has ``function`` as a name; a dict of arguments stays a dict.
    """
    out = []
    for item in objects(value):
        inner = item.get("function")
        source = inner if isinstance(inner, dict) else item
        name = word(inner) if isinstance(inner, str) else word(source.get("name"))
        arguments = source.get("arguments", source.get("args", source.get("input")))
        if not isinstance(arguments, (str, dict)) and arguments is not None:
            arguments = encode(arguments)
        out.append(ToolCall(name=name, arguments=arguments, id=word(item.get("id"))))
    return tuple(out)
