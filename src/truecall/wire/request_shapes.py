"""The request shapes that are not OpenAI chat's, brought into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from truecall.records import Api, Json
from truecall.wire.request import (
    RequestView,
    ToolResult,
    chat_view,
    completions_view,
    constraint,
    content_text,
    ends_in_prefill,
    function_call,
    function_tool,
    number,
    tool_choice,
    tool_results,
    truth,
)
from truecall.wire.values import NOTHING, count, decode, encode, integer, items, obj, objects, plain, word

_Message = dict[str, Json]


def read_request(body: bytes | str | dict[str, Json] | None, api: str) -> RequestView:
    """A request body by its wire format. Never raises; a body that is no JSON object has a defect."""
    value = decode(body) if isinstance(body, (bytes, str)) else body
    if not isinstance(value, dict):
        return RequestView(api=str(api), defects=("not_json" if value is NOTHING else "not_object",))
    return SHAPES.get(str(api), chat_view)(obj(plain(value)), str(api))


def ollama_view(body: dict[str, Json], api: str) -> RequestView:
    """Ollama chat: argument objects, ``options``, a stream unless told otherwise; no tool_choice exists."""
    options = obj(body.get("options"))
    messages = tuple(_ollama_message(message) for message in objects(body.get("messages")))
    tools = body.get("tools")
    limit = integer(options.get("num_predict"))
    return RequestView(
        api=api,
        model=word(body.get("model")),
        messages=messages,
        tools=None if tools is None else tuple(objects(tools)),
        max_tokens=limit if limit is not None and limit >= 0 else None,  # negative: no limit
        temperature=number(options.get("temperature")),
        seed=integer(options.get("seed")),
        stream=body.get("stream") is not False,
        prefill=ends_in_prefill(messages),
        tool_results=tool_results(messages),
        constraint=constraint(body),
        prompt=word(body.get("prompt")),
    )


def anthropic_view(body: dict[str, Json], api: str) -> RequestView:
    """Anthropic messages: content blocks, ``system`` beside the messages, ``any`` for required."""
    messages: list[_Message] = []
    system = content_text(body.get("system"))
    if system is not None:
        messages.append({"role": "system", "content": system})
    for message in objects(body.get("messages")):
        messages += _anthropic_message(message)
    choice = obj(body.get("tool_choice"))
    kind = {"any": "required", "tool": "named"}.get(word(choice.get("type")) or "", word(choice.get("type")))
    tools = body.get("tools")
    parallel = truth(choice.get("disable_parallel_tool_use"))
    return RequestView(
        api=api,
        model=word(body.get("model")),
        messages=tuple(messages),
        tools=None if tools is None else tuple(_anthropic_tool(tool) for tool in objects(tools)),
        tool_choice=kind,
        tool_name=word(choice.get("name")) if kind == "named" else None,
        parallel_tool_calls=None if parallel is None else not parallel,
        max_tokens=count(body.get("max_tokens")),
        temperature=number(body.get("temperature")),
        stream=body.get("stream") is True,
        prefill=ends_in_prefill(tuple(messages)),
        tool_results=tool_results(tuple(messages)),
        constraint=constraint(body),
    )


def responses_view(body: dict[str, Json], api: str) -> RequestView:
    """OpenAI responses: ``input`` items, flat tools, ``instructions``."""
    messages: list[_Message] = []
    if isinstance(body.get("instructions"), str):
        messages.append({"role": "system", "content": body["instructions"]})
    given = body.get("input")
    if isinstance(given, str):
        messages.append({"role": "user", "content": given})
    for item in items(given):
        messages += _responses_item(obj(item))
    choice, name = tool_choice(body.get("tool_choice"))
    tools = body.get("tools")
    return RequestView(
        api=api,
        model=word(body.get("model")),
        messages=tuple(messages),
        tools=None if tools is None else tuple(_responses_tool(tool) for tool in objects(tools)),
        tool_choice=choice,
        tool_name=name,
        parallel_tool_calls=truth(body.get("parallel_tool_calls")),
        max_tokens=count(body.get("max_output_tokens")),
        temperature=number(body.get("temperature")),
        stream=body.get("stream") is True,
        prefill=ends_in_prefill(tuple(messages)),
        tool_results=tool_results(tuple(messages)),
        constraint=constraint(body),
    )


def gemini_view(body: dict[str, Json], api: str) -> RequestView:
    """Gemini: ``contents`` of parts; the model and whether to stream stand in the URL, not in the body."""
    messages: list[_Message] = []
    results: list[ToolResult] = []
    system = content_text(obj(_either(body, "systemInstruction", "system_instruction")).get("parts"))
    if system is not None:
        messages.append({"role": "system", "content": system})
    contents = list(objects(body.get("contents")))
    for content in contents:
        messages += _gemini_content(content)
    results.extend(tool_results(tuple(messages)))
    config = obj(_either(body, "generationConfig", "generation_config"))
    mode, name = _gemini_choice(obj(_either(body, "toolConfig", "tool_config")))
    tools = body.get("tools")
    schema = any(_either(config, *keys) for keys in _GEMINI_SCHEMAS)
    return RequestView(
        api=api,
        model=word(body.get("model")),
        messages=tuple(messages),
        tools=None if tools is None else tuple(_gemini_tools(tools)),
        tool_choice=mode,
        tool_name=name,
        max_tokens=count(_either(config, "maxOutputTokens", "max_output_tokens")),
        temperature=number(config.get("temperature")),
        seed=integer(config.get("seed")),
        n=count(_either(config, "candidateCount", "candidate_count")),
        prefill=bool(contents) and contents[-1].get("role") == "model" and ends_in_prefill(tuple(messages)),
        tool_results=tuple(results),
        constraint="response_schema" if schema else None,
    )


SHAPES: Final[dict[str, Callable[[dict[str, Json], str], RequestView]]] = {
    Api.OPENAI_CHAT.value: chat_view,
    Api.OPENAI_COMPLETIONS.value: completions_view,
    Api.OPENAI_RESPONSES.value: responses_view,
    Api.ANTHROPIC.value: anthropic_view,
    Api.GEMINI.value: gemini_view,
    Api.OLLAMA_CHAT.value: ollama_view,
}
_GEMINI_SCHEMAS = (("responseSchema", "response_schema"), ("responseJsonSchema", "response_json_schema"))


def _ollama_message(message: _Message) -> _Message:
    out = dict(message)
    calls = [
        obj(call.get("function")) | {"id": call.get("id")} for call in objects(message.get("tool_calls"))
    ]
    if calls:
        out["tool_calls"] = [
            function_call(call["id"], call.get("name"), call.get("arguments")) for call in calls
        ]
    if "thinking" in out:
        out["reasoning_content"] = out.pop("thinking")
    if "tool_name" in out:
        out["name"] = out.pop("tool_name")
    return out


def _anthropic_message(message: _Message) -> list[_Message]:
    """One message in OpenAI's shape; the tool results of a user message come before its text."""
    role, content = message.get("role"), message.get("content")
    if not isinstance(content, list):
        return [{"role": role, "content": content}]
    results = [_anthropic_result(block) for block in objects(content) if block.get("type") == "tool_result"]
    out: _Message = {
        "role": role,
        "content": content_text([b for b in objects(content) if b.get("type") == "text"]),
    }
    calls = [
        function_call(block.get("id"), block.get("name"), block.get("input"))
        for block in objects(content)
        if block.get("type") == "tool_use"
    ]
    if calls:
        out["tool_calls"] = calls
    thoughts = [b["thinking"] for b in objects(content) if isinstance(b.get("thinking"), str)]
    if thoughts:
        out["reasoning_content"] = "".join(thoughts)
    said = calls or thoughts or out["content"] is not None or not results
    return [*results, out] if said else results


def _anthropic_result(block: _Message) -> _Message:
    out: _Message = {
        "role": "tool",
        "tool_call_id": block.get("tool_use_id"),
        "content": content_text(block.get("content")),
    }
    if isinstance(block.get("is_error"), bool):
        out["is_error"] = block["is_error"]
    return out


def _anthropic_tool(tool: _Message) -> _Message:
    if "input_schema" not in tool and "type" in tool:
        return tool  # a tool that the server runs itself
    return function_tool(tool.get("name"), tool.get("description"), tool.get("input_schema"))


def _responses_item(item: _Message) -> list[_Message]:
    kind = item.get("type", "message")
    if kind in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments", item.get("input"))
        call = function_call(item.get("call_id"), item.get("name"), arguments)
        return [{"role": "assistant", "content": None, "tool_calls": [call]}]
    if kind in ("function_call_output", "custom_tool_call_output"):
        output = item.get("output")
        content = output if isinstance(output, str) else content_text(output)
        return [{"role": "tool", "tool_call_id": item.get("call_id"), "content": content}]
    if kind == "message" and "role" in item:
        return [{"role": item["role"], "content": content_text(item.get("content"))}]
    return []


def _responses_tool(tool: _Message) -> _Message:
    if tool.get("type") != "function" or isinstance(tool.get("function"), dict):
        return tool
    out = function_tool(tool.get("name"), tool.get("description"), tool.get("parameters"))
    if tool.get("strict") is not None:
        out["function"]["strict"] = tool["strict"]
    return out


def _gemini_content(content: _Message) -> list[_Message]:
    role = "assistant" if content.get("role") == "model" else "user"
    parts = list(objects(content.get("parts")))
    out: list[_Message] = []
    said = content_text([part for part in parts if part.get("thought") is not True])
    calls = [obj(call) for part in parts if (call := _either(part, "functionCall", "function_call"))]
    if said is not None or calls:
        out.append({"role": role, "content": said})
    if calls:
        out[0]["tool_calls"] = [function_call(c.get("id"), c.get("name"), c.get("args")) for c in calls]
    for part in parts:
        result = obj(_either(part, "functionResponse", "function_response"))
        if result:
            answer = result.get("response")
            written = answer if isinstance(answer, str) else encode(answer)
            out.append(
                {
                    "role": "tool",
                    "tool_call_id": result.get("id"),
                    "name": result.get("name"),
                    "content": written,
                }
            )
    return out


def _gemini_tools(tools: Json) -> list[_Message]:
    out: list[_Message] = []
    for tool in objects(tools):
        declared = list(objects(_either(tool, "functionDeclarations", "function_declarations")))
        for function in declared:
            parameters = _either(function, "parameters", "parametersJsonSchema", "parameters_json_schema")
            out.append(function_tool(function.get("name"), function.get("description"), parameters))
        if not declared:
            out.append(tool)  # a tool that the server runs itself
    return out


def _gemini_choice(config: dict[str, Json]) -> tuple[str | None, str | None]:
    calling = obj(_either(config, "functionCallingConfig", "function_calling_config"))
    mode = word(calling.get("mode"))
    names = items(_either(calling, "allowedFunctionNames", "allowed_function_names"))
    if mode == "ANY" and len(names) == 1:
        return ("named", word(names[0]))
    return ({"AUTO": "auto", "ANY": "required", "NONE": "none"}.get(mode or "", mode), None)


def _either(value: dict[str, Json], *keys: str) -> Json:
    """The first of several spellings of a field that is there."""
    return next((value[key] for key in keys if value.get(key) is not None), None)
