"""The texts that conditions use, word for word. They are hashed into the card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from truecall.records import Json

SYSTEM: Final = "You solve the user's task step by step with tools."
OPTIONAL: Final = "Call a tool when it helps; you may also answer directly."
MANDATORY: Final = "Every reply must be a tool call, until the task is done."
THOUGHT: Final = 'Before each call, write one line that begins with "Thought:" and says why.'
THOUGHT_FIELD: Final = 'Give your reason in "thought".'

LIST: Final = "Tools, each with the JSON Schema of its arguments:"
FORMAT: Final = (
    'To call a tool, reply with one JSON object and nothing else: {"name": <tool name>, "arguments": {...}}'
)
FORMAT_THOUGHT: Final = (
    "To call a tool, write your line of thought and then one JSON object in a fenced block:\n"
    '```json\n{"name": <tool name>, "arguments": {...}}\n```'
)
FORMAT_NATIVE: Final = 'A call is a JSON object: {"name": <tool name>, "arguments": {...}}'
ALLOWED: Final = "Allowed tool names: "

REACT: Final = """Reply in exactly this form, one step at a time:
Thought: why you take the next step
Action: the name of one tool
Action Input: its arguments, as one JSON object
Then stop. The result comes as "Observation:". When the task is done, reply:
Final Answer: the answer"""
REACT_OPTIONAL: Final = "You may give the Final Answer at once, without any Action."
REACT_MANDATORY: Final = "The first reply must hold an Action."
REACT_STOP: Final = "\nObservation:"

NUDGE: Final = "No tool call was received. Call a tool to go on with the task."
RESULT: Final = "Result of {name}:\n{text}"
OBSERVATION: Final = "Observation: {text}"
EXAMPLE: Final = "Here is an example of a solved task. Your own task comes after it."


def tool_list(tools: Sequence[dict[str, Json]]) -> str:
    """The tools as text: name, description, schema, one a line; then the allowed names."""
    lines = [LIST]
    for tool in tools:
        function = tool["function"]
        schema = msgspec.json.encode(function["parameters"]).decode()
        lines.append(f"- {function['name']}: {function['description']} {schema}")
    return "\n".join([*lines, ALLOWED + ", ".join(str(tool["function"]["name"]) for tool in tools)])


def texts() -> dict[str, str]:
    """All texts by name, for the card."""
    return {name: value for name, value in globals().items() if name.isupper() and isinstance(value, str)}
