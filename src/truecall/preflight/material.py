"""The tools, questions and texts that preflight's probes use: small, stable, and easy to call."""

from __future__ import annotations

from typing import Any, Final

from truecall.records import Json

Tool = dict[str, Any]
Message = dict[str, Any]


def tool(name: str, description: str, properties: dict[str, Json], required: list[str]) -> Tool:
    """One tool in the OpenAI form."""
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


WEATHER: Final = tool(
    "get_weather",
    "Get the current weather in a city.",
    {"city": {"type": "string", "description": "The city's name"}},
    ["city"],
)
CLOCK: Final = tool(
    "get_time",
    "Get the local time in a city.",
    {"city": {"type": "string", "description": "The city's name"}},
    ["city"],
)
NO_ARGUMENTS: Final = tool("list_cities", "List all known cities.", {}, [])
NESTED: Final = tool(
    "book_trip",
    "Book a trip.",
    {
        "traveller": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
            "required": ["name"],
        },
        "stops": {"type": "array", "items": {"type": "string"}},
        "flexible": {"type": "boolean"},
    },
    ["traveller", "stops"],
)
CODE: Final = tool(
    "run_code", "Run a piece of code.", {"code": {"type": "string", "description": "The code"}}, ["code"]
)

ASK_WEATHER: Final = "What is the weather in Paris? Use the get_weather tool."
ASK_TWO: Final = "What is the weather in Paris and in Oslo? Call get_weather once for each city."
ASK_LONG: Final = "Write a long story about a river, at least five hundred words. Do not use any tool."
ASK_NOTHING: Final = "Say hello in one short sentence. Do not use any tool."


def user(text: str) -> list[Message]:
    """A conversation of one user message."""
    return [{"role": "user", "content": text}]


def with_description(base: Tool, words: int) -> Tool:
    """The tool with a description of ``words`` plain words (about one token each)."""
    filler = " ".join(f"note {n} about the weather service" for n in range(words // 6 + 1))
    body = {**base["function"], "description": " ".join(filler.split()[:words])}
    return {"type": "function", "function": body}


def round_trip(result: str) -> list[Message]:
    """A conversation in which the tool was called and has answered with ``result``."""
    call = {
        "id": "call00001",  # nine characters: what the strictest template accepts
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
    }
    return [
        *user(ASK_WEATHER),
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": result},
    ]


BAD_SCHEMA: Final = tool(
    "get_weather",
    "Get the current weather in a city.",
    {"city": {"type": "strin", "description": "a type that does not exist"}},
    ["city"],
)
