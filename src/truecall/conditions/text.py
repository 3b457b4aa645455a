"""``text_tools``, ``constrained`` and ``react``: tools stand in the prompt, calls are read from the text.

The harness's strict parser (`truecall.conditions.parsers`) takes the place of the server's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from truecall.conditions import parsers, prompts
from truecall.conditions.base import Executable, Factors, Message
from truecall.records import Api, Choice, Json, ToolCall
from truecall.tasks.base import Call, Instance, Result

_FORMS = {"text_tools": "json", "constrained": "object", "react": "react"}


class Text:
    """Tools as text, one call a reply."""

    native = False

    def __init__(self, factors: Factors, tools: list[dict[str, Json]], api: str) -> None:
        self._factors = factors
        self.tools = tools
        self._api = api
        self._form = _FORMS[factors.condition]
        self.parser: str | None = parsers.digest()

    def opening(self, instance: Instance, example: Sequence[Message]) -> list[Message]:
        parts = [prompts.SYSTEM, *self._manners(), prompts.tool_list(self.tools)]
        if example:
            parts.append(prompts.EXAMPLE)
        system = {"role": "system", "content": "\n".join(parts)}
        return [system, *example, {"role": "user", "content": instance.prompt}]

    def _manners(self) -> list[str]:
        mandatory, thought = self._factors.prompt == "mandatory", self._factors.thought
        if self._form == "react":
            return [prompts.REACT, prompts.REACT_MANDATORY if mandatory else prompts.REACT_OPTIONAL]
        leave = prompts.MANDATORY if mandatory else prompts.OPTIONAL
        if self._form == "object":
            return [prompts.FORMAT, *([prompts.THOUGHT_FIELD] if thought else [])]
        return [leave, prompts.FORMAT_THOUGHT if thought else prompts.FORMAT]

    def fields(self) -> dict[str, Json]:
        if self._form == "react":
            if self._api == Api.OLLAMA_CHAT:
                return {"options": {"stop": [prompts.REACT_STOP]}}
            return {"stop": [prompts.REACT_STOP]}
        if self._form != "object":
            return {}
        schema = call_schema(self.tools, thought=self._factors.thought)
        if self._api == Api.OLLAMA_CHAT:
            return {"format": schema}
        named = {"name": "call", "schema": schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    def surfaced(self, choice: Choice) -> Choice:
        """A call that the interface made of the text by itself is not this harness's: it is left out."""
        found = parsers.parse(self._form, choice.content or "")
        calls: tuple[ToolCall, ...] = ()
        content = choice.content
        if found is not None:
            calls = (ToolCall(name=found.name, arguments=found.arguments),)
            content = found.rest or None
        return msgspec.structs.replace(choice, tool_calls=calls, content=content)

    def executable(self, choice: Choice) -> list[Executable]:
        return [
            Executable(name=call.name, call=Call(name=call.name or "", arguments=call.arguments))
            for call in choice.tool_calls
        ]

    def reply(self, choice: Choice, done: Sequence[tuple[Executable, Result]]) -> list[Message]:
        answer: Message = {"role": "assistant", "content": choice.content or ""}
        if not done:
            return [answer]
        form = prompts.OBSERVATION if self._form == "react" else prompts.RESULT
        texts = [form.format(name=each.name, text=result.text) for each, result in done]
        return [answer, {"role": "user", "content": "\n".join(texts)}]

    def wrote(self, call: Call, number: int) -> Choice:
        arguments = msgspec.json.encode(call.arguments).decode()
        thought = f"The next step is {call.name}."
        payload: dict[str, Any] = {"name": call.name, "arguments": call.arguments}
        if self._form == "react":
            text = f"Thought: {thought}\nAction: {call.name}\nAction Input: {arguments}"
        elif self._form == "object" and self._factors.thought:
            text = msgspec.json.encode({"thought": thought, **payload}).decode()
        else:
            text = msgspec.json.encode(payload).decode()
            if self._factors.thought:
                text = f"Thought: {thought}\n```json\n{text}\n```"
        return Choice(content=text)

    def final(self, text: str) -> bool:
        return self._form == "react" and "Final Answer:" in text


def call_schema(tools: Sequence[dict[str, Json]], *, thought: bool = False) -> dict[str, Json]:
    """The JSON Schema of one call of one of these tools, with a thought before it where one is demanded."""
    branches: list[Json] = []
    for tool in tools:
        function = tool["function"]
        properties: dict[str, Json] = {"thought": {"type": "string"}} if thought else {}
        properties["name"] = {"const": function["name"]}
        properties["arguments"] = {**function["parameters"], "additionalProperties": False}
        branches.append(
            {
                "type": "object",
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            }
        )
    return {"anyOf": branches}
