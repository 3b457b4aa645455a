"""``native`` and ``native_hint``: the interface's own channel, in the second with a text list beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from truecall.conditions import prompts
from truecall.conditions.base import Executable, Factors, Message
from truecall.records import Choice, Json, ToolCall
from truecall.tasks.base import Call, Instance, Result


class Native:
    """Tools go in the request's ``tools``; calls come back in ``tool_calls``."""

    native = True
    parser: str | None = None

    def __init__(self, factors: Factors, tools: list[dict[str, Json]]) -> None:
        self._factors = factors
        self.tools = tools

    def opening(self, instance: Instance, example: Sequence[Message]) -> list[Message]:
        mandatory = self._factors.prompt == "mandatory"
        parts = [prompts.SYSTEM, prompts.MANDATORY if mandatory else prompts.OPTIONAL]
        if self._factors.thought:
            parts.append(prompts.THOUGHT)
        if self._factors.condition == "native_hint":
            parts += [prompts.tool_list(self.tools), prompts.FORMAT_NATIVE]
        if example:
            parts.append(prompts.EXAMPLE)
        system = {"role": "system", "content": "\n".join(parts)}
        return [system, *example, {"role": "user", "content": instance.prompt}]

    def fields(self) -> dict[str, Json]:
        return {"tools": self.tools, "tool_choice": self._factors.tool_choice}

    def surfaced(self, choice: Choice) -> Choice:
        return choice

    def executable(self, choice: Choice) -> list[Executable]:
        return [_executable(call) for call in choice.tool_calls]

    def reply(self, choice: Choice, done: Sequence[tuple[Executable, Result]]) -> list[Message]:
        answer: Message = {"role": "assistant", "content": choice.content or ""}
        ids = [call.id or f"call{place:05d}" for place, call in enumerate(choice.tool_calls)]
        if choice.tool_calls:
            answer["tool_calls"] = [
                _written(call, ident) for call, ident in zip(choice.tool_calls, ids, strict=True)
            ]
        results = [
            {"role": "tool", "tool_call_id": ident, "name": each.name or "", "content": result.text}
            for ident, (each, result) in zip(ids, done, strict=False)
        ]
        return [answer, *results]

    def wrote(self, call: Call, number: int) -> Choice:
        arguments = msgspec.json.encode(call.arguments).decode()
        return Choice(tool_calls=(ToolCall(name=call.name, arguments=arguments, id=f"call{number:05d}"),))

    def final(self, text: str) -> bool:
        return False


def _executable(call: ToolCall) -> Executable:
    """The call with its arguments decoded. Nothing is repaired: what can't be read is told to the model."""
    arguments: Any = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, RecursionError):
            return Executable(
                name=call.name, call=None, fault="Error: the arguments are no JSON.", id=call.id
            )
    if call.name is None:
        return Executable(name=None, call=None, fault="Error: the call names no tool.", id=call.id)
    if not isinstance(arguments, dict):
        return Executable(
            name=call.name, call=None, fault="Error: the arguments are no JSON object.", id=call.id
        )
    return Executable(name=call.name, call=Call(name=call.name, arguments=arguments), id=call.id)


def _written(call: ToolCall, ident: str) -> Message:
    """The call in the history, as it came."""
    arguments = call.arguments if call.arguments is not None else "{}"
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return {"id": ident, "type": "function", "function": {"name": call.name or "", "arguments": text}}
