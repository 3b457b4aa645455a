"""Runs one client library against a base URL and prints what it got, as one JSON line.

Run by ``test_sdks.py`` in a process of its own: ``python sdk_clients.py CLIENT ROOT_URL``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ASK: Any = [{"role": "user", "content": "Weather in Oslo?"}]


def openai_sync(root: str) -> list[Any]:
    import openai

    client = openai.OpenAI(base_url=f"{root}/v1", api_key="sk-test-0123456789", max_retries=2)
    got: list[Any] = []
    raw = client.chat.completions.with_raw_response
    for options in ({}, {"tools": [WEATHER]}):
        answer = raw.create(model="m", messages=ASK, **options)
        got.append([sorted(answer.headers.items()), answer.content.decode()])
    for options in ({}, {"tools": [WEATHER]}):
        stream = client.chat.completions.create(model="m", messages=ASK, stream=True, **options)
        got.append([chunk.model_dump() for chunk in stream])
    try:
        client.chat.completions.create(model="missing", messages=ASK)
    except openai.NotFoundError as error:
        got.append([error.status_code, str(error), error.body])
    got.append(raw.create(model="flaky", messages=ASK).retries_taken)
    got.append([model.id for model in client.models.list()])
    return got


def openai_async(root: str) -> list[Any]:
    import openai

    async def work() -> list[Any]:
        got: list[Any] = []
        async with openai.AsyncOpenAI(base_url=f"{root}/v1", api_key="sk-test-0123456789") as client:
            for options in ({}, {"tools": [WEATHER]}):
                answer = await client.chat.completions.create(model="m", messages=ASK, **options)
                got.append(answer.model_dump())
                stream = await client.chat.completions.create(model="m", messages=ASK, stream=True, **options)
                got.append([chunk.model_dump() async for chunk in stream])
        return got

    return asyncio.run(work())


def anthropic(root: str) -> list[Any]:
    from anthropic import Anthropic

    client = Anthropic(base_url=root, api_key="sk-ant-0123456789")
    tool: Any = {"name": "get_weather", "input_schema": WEATHER["function"]["parameters"]}
    options: Any = {"model": "m", "max_tokens": 50, "messages": ASK, "tools": [tool]}
    got: list[Any] = [client.messages.create(**options).model_dump()]
    with client.messages.stream(**options) as stream:
        got += [event.model_dump() for event in stream]
    return got


def ollama(root: str) -> list[Any]:
    from ollama import Client

    client = Client(host=root)
    got: list[Any] = [client.chat(model="m", messages=ASK, tools=[WEATHER]).model_dump()]
    stream = client.chat(model="m", messages=ASK, tools=[WEATHER], stream=True)
    return got + [part.model_dump() for part in stream]


def inspect_ai(root: str) -> list[Any]:
    from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model
    from inspect_ai.tool import ToolInfo, ToolParam, ToolParams

    tool = ToolInfo(
        name="get_weather",
        description="The weather.",
        parameters=ToolParams(properties={"city": ToolParam(type="string")}, required=["city"]),
    )

    async def work() -> list[Any]:
        config = GenerateConfig(max_connections=1)
        model = get_model("openai/m", base_url=f"{root}/v1", api_key="sk-test-0123456789", config=config,
                          responses_api=False)  # fmt: skip
        answer = await model.generate([ChatMessageUser(content="Weather in Oslo?")], tools=[tool])
        calls = answer.choices[0].message.tool_calls or []
        return [[call.function, call.arguments, call.id] for call in calls] + [answer.completion]

    return asyncio.run(work())


def swapped(root: str) -> list[Any]:
    """What each library makes of a surfaced call, whole and streamed: [library, name, arguments]."""
    from anthropic import Anthropic
    from ollama import Client
    from openai import OpenAI

    schema = WEATHER["function"]["parameters"]
    got: list[Any] = []
    openai = OpenAI(base_url=f"{root}/v1", api_key="sk-test-0123456789", max_retries=0)
    chat: Any = {"model": "m", "messages": ASK, "tools": [WEATHER]}
    with openai.chat.completions.stream(**chat) as chunks:
        answers = [openai.chat.completions.create(**chat), chunks.get_final_completion()]
    chosen = [answer.choices[0] for answer in answers]
    got += [
        [choice.finish_reason, call.function.name, json.loads(call.function.arguments)]
        for choice in chosen
        for call in choice.message.tool_calls or []
    ]
    flat: Any = {"type": "function", "name": "get_weather", "parameters": schema}
    asked: Any = {"model": "m", "input": "Weather in Oslo?", "tools": [flat]}
    with openai.responses.stream(**asked) as events:
        responses = [openai.responses.create(**asked), events.get_final_response()]
    items: list[Any] = [item for response in responses for item in response.output]
    got += [[item.type, item.name, json.loads(item.arguments)] for item in items]
    client = Anthropic(base_url=root, api_key="sk-ant-0123456789", max_retries=0)
    tool: Any = {"name": "get_weather", "input_schema": schema}
    options: Any = {"model": "m", "max_tokens": 50, "messages": ASK, "tools": [tool]}
    with client.messages.stream(**options) as parts:
        messages = [client.messages.create(**options), parts.get_final_message()]
    got += [[m.stop_reason, block.name, block.input] for m in messages for block in m.content]
    ollama = Client(host=root)
    lines = [ollama.chat(model="m", messages=ASK, tools=[WEATHER])]
    lines += ollama.chat(model="m", messages=ASK, tools=[WEATHER], stream=True)
    used = [call.function for line in lines for call in line.message.tool_calls or []]
    got += [["ollama", function.name, dict(function.arguments)] for function in used]
    return got


CLIENTS = {f.__name__: f for f in (openai_sync, openai_async, anthropic, ollama, inspect_ai, swapped)}

if __name__ == "__main__":
    print(json.dumps(CLIENTS[sys.argv[1]](sys.argv[2]), default=str, sort_keys=True))
