"""OpenTelemetry spans of model calls (GenAI semantic conventions) as JSON.

A file holds OTLP/JSON (``resourceSpans``) or spans as the Python SDK's exporter prints them, in one value, a list, a
value a line, or values one after another. Messages and tools are read from ``gen_ai.output.messages``,
``gen_ai.input.messages`` and ``gen_ai.tool.definitions``, on the span or on its event; from before those, from the
numbered attributes ``gen_ai.completion.0.…``, ``gen_ai.prompt.0.…`` and ``llm.request.functions.0.…``.

Source: semantic-conventions-genai 0.1.0 (model spans, events), OpenLLMetry 0.62. Content is off by default in most
instrumentations: then text and calls are unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from truecall.records import Json, ToolCall, Usage
from truecall.sources.base import Bad, Head, Item, Options, Place, Turn, wanted
from truecall.sources.files import read_whole
from truecall.wire.values import NOTHING, count, decode, encode, integer, items, obj, objects, word

NAME: Final = "otel"

_MODEL_CALLS: Final = frozenset({"chat", "generate_content", "text_completion", "completion", "responses"})
_NUMBERED: Final = "gen_ai.completion."
_MARKS: Final = (b'"gen_ai.', b'"llm.request.', b'"resourceSpans"')


class OtelSource:
    """See the module."""

    name = NAME
    lines = False

    def sniff(self, head: Head) -> bool:
        """Whether the head shows spans with attributes of GenAI."""
        data = head.data
        if data.lstrip()[:1] not in (b"{", b"["):
            return False
        shaped = b'"resourceSpans"' in data or (b'"attributes"' in data and b'"span_id"' in data)
        return shaped and any(mark in data for mark in _MARKS)

    def read(self, data: Any, file: str, options: Options) -> Iterator[Item]:
        """The model's turns, in the order of the file."""
        spans: list[tuple[Place, dict[str, Json]]] = []
        for item in _values(read_whole(str(data)), file):
            if isinstance(item, Bad):
                yield item
            else:
                spans.extend(
                    (Place(file=file, entry=f"span {len(spans) + n}"), span)
                    for n, span in enumerate(_spans(item))
                )
        run, seen = _followed(span for _, span in spans)
        for place, span in spans:
            attributes = _with_events(span)
            if _is_model_call(attributes):
                yield _turn(attributes, span, place, run, seen, options)


# --------------------------------------------------------------------------- spans


def _values(raw: bytes, file: str) -> Iterator[Any]:
    """The JSON values of a file, one after another."""
    whole = decode(raw)
    if whole is not NOTHING:
        yield whole
        return
    text = raw.decode("utf-8", "replace")
    reader = json.JSONDecoder(strict=False)
    at, size = 0, len(text)
    while at < size:
        if text[at] in " \t\r\n,\x1e":
            at += 1
            continue
        try:
            value, at = reader.raw_decode(text, at)
        except (ValueError, RecursionError):
            following = text.find("\n{", at)
            line = text.count("\n", 0, at) + 1
            yield Bad(place=Place(file=file, line=line), reason="is no JSON")
            at = size if following < 0 else following + 1
            continue
        yield value


def _spans(value: Json) -> Iterator[dict[str, Json]]:
    if isinstance(value, list):
        for item in value:
            yield from _spans(item)
        return
    if not isinstance(value, dict):
        return
    if "resourceSpans" not in value:
        yield value
        return
    for resource in objects(value["resourceSpans"]):
        for scope in objects(resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans")):
            yield from objects(scope.get("spans"))


def _attributes(holder: dict[str, Json]) -> dict[str, Json]:
    """Attributes of a span or event: a plain object (SDK), or OTLP's list of keys and typed values."""
    found = holder.get("attributes")
    if isinstance(found, dict):
        return found
    return {str(item.get("key")): _value(item.get("value")) for item in objects(found)}


def _value(value: Json, depth: int = 0) -> Json:
    """OTLP's AnyValue as plain data."""
    if not isinstance(value, dict) or depth > 30:
        return None
    if "arrayValue" in value:
        return [_value(item, depth + 1) for item in items(obj(value["arrayValue"]).get("values"))]
    if "kvlistValue" in value:
        pairs = objects(obj(value["kvlistValue"]).get("values"))
        return {str(pair.get("key")): _value(pair.get("value"), depth + 1) for pair in pairs}
    if "intValue" in value:
        return integer(value["intValue"])
    return next((value[key] for key in ("stringValue", "boolValue", "doubleValue") if key in value), None)


def _with_events(span: dict[str, Json]) -> dict[str, Json]:
    """A span's attributes, with those of its GenAI events where the span has them not."""
    found = dict(_attributes(span))
    for event in objects(span.get("events")):
        if str(event.get("name", "")).startswith("gen_ai."):
            for key, value in _attributes(event).items():
                found.setdefault(key, value)
    return found


def _is_model_call(attributes: dict[str, Json]) -> bool:
    operation = attributes.get("gen_ai.operation.name")
    if isinstance(operation, str):
        return operation in _MODEL_CALLS
    return "gen_ai.output.messages" in attributes or any(key.startswith(_NUMBERED) for key in attributes)


def _followed(spans: Iterator[dict[str, Json]]) -> tuple[frozenset[str], frozenset[str]]:
    """(ids of calls that a tool span ran, ids of calls whose result is in some model's input)."""
    run: set[str] = set()
    seen: set[str] = set()
    for span in spans:
        attributes = _with_events(span)
        if attributes.get("gen_ai.operation.name") == "execute_tool":
            run.add(str(attributes.get("gen_ai.tool.call.id")))
        for message in objects(_json(attributes.get("gen_ai.input.messages"))):
            for part in objects(message.get("parts")):
                if part.get("type") == "tool_call_response":
                    seen.add(str(part.get("id")))
        seen.update(
            str(value)
            for key, value in attributes.items()
            if key.startswith("gen_ai.prompt.") and key.endswith(".tool_call_id")
        )
    return frozenset(run), frozenset(seen)


def _json(value: Json) -> Json:
    """A structured attribute: as it stands, or as the JSON text that spans may hold instead."""
    return decode(value) if isinstance(value, str) else value


# --------------------------------------------------------------------------- turns


def _turn(
    attributes: dict[str, Json],
    span: dict[str, Json],
    place: Place,
    run: frozenset[str],
    seen: frozenset[str],
    options: Options,
) -> Turn:
    messages = _json(attributes.get("gen_ai.output.messages"))
    if isinstance(messages, list):
        text, reasoning, calls, finish = _message(next(objects(messages), {}))
        known = bool(messages)
    else:
        text, reasoning, calls, finish = _numbered(attributes)
        known = text is not None or bool(calls)
    reasons = items(_json(attributes.get("gen_ai.response.finish_reasons")))
    ids = {call.id for call in calls if call.id}
    tools = _tools(attributes)
    return Turn(
        place=place,
        text=text,
        reasoning=reasoning,
        tools=options.tools if tools is None else tools,
        surfaced=calls if known else None,
        finish_reason=_finish(finish or next((word(reason) for reason in reasons), None)),
        usage=Usage(
            prompt_tokens=count(
                attributes.get("gen_ai.usage.input_tokens", attributes.get("gen_ai.usage.prompt_tokens"))
            ),
            completion_tokens=count(
                attributes.get("gen_ai.usage.output_tokens", attributes.get("gen_ai.usage.completion_tokens"))
            ),
        ),
        error=_error(attributes, span) if not known else None,
        executed=True if ids & run or ids & seen else None,
        observed=True if ids & seen else None,
        model=word(attributes.get("gen_ai.response.model")) or word(attributes.get("gen_ai.request.model")),
        episode=word(attributes.get("gen_ai.conversation.id")),
        fields=wanted({**span, "attributes": attributes, **attributes}, options),
    )


def _finish(reason: str | None) -> str | None:
    return "tool_calls" if reason == "tool_call" else reason


def _error(attributes: dict[str, Json], span: dict[str, Json]) -> str | None:
    kind = word(attributes.get("error.type"))
    said = word(obj(span.get("status")).get("message")) or word(obj(span.get("status")).get("description"))
    if kind is None and said is None:
        return None
    return f"{kind or 'error'}: {said}" if said else kind


_Read = tuple[str | None, str | None, tuple[ToolCall, ...], str | None]


def _message(message: dict[str, Json]) -> _Read:
    """(text, reasoning, calls, finish_reason) of an output message in parts."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    for part in objects(message.get("parts")):
        kind, content = part.get("type"), part.get("content")
        if kind == "tool_call":
            calls.append(_call(part.get("name"), part.get("arguments"), part.get("id")))
        elif isinstance(content, str):
            (thoughts if kind == "reasoning" else texts).append(content)
    return (
        "".join(texts) if texts else None,
        "".join(thoughts) or None,
        tuple(calls),
        word(message.get("finish_reason")),
    )


def _call(name: Json, arguments: Json, ident: Json) -> ToolCall:
    if arguments is not None and not isinstance(arguments, (str, dict)):
        arguments = encode(arguments)
    return ToolCall(name=word(name), arguments=arguments, id=word(ident))


def _numbered(attributes: dict[str, Json]) -> _Read:
    """The first completion among numbered attributes."""
    head = f"{_NUMBERED}0."
    calls = []
    number = 0
    while f"{head}tool_calls.{number}.name" in attributes:
        one = f"{head}tool_calls.{number}."
        calls.append(
            _call(attributes[f"{one}name"], attributes.get(f"{one}arguments"), attributes.get(f"{one}id"))
        )
        number += 1
    content = attributes.get(f"{head}content")
    return (
        content if isinstance(content, str) else None,
        word(attributes.get(f"{head}reasoning")),
        tuple(calls),
        word(attributes.get(f"{head}finish_reason")),
    )


def _tools(attributes: dict[str, Json]) -> Json:
    found = _json(attributes.get("gen_ai.tool.definitions"))
    if isinstance(found, list):
        return [_json(tool) for tool in found]
    tools: list[Json] = []
    while f"llm.request.functions.{len(tools)}.name" in attributes:
        head = f"llm.request.functions.{len(tools)}."
        tool = {"name": attributes[f"{head}name"], "parameters": _json(attributes.get(f"{head}parameters"))}
        tools.append(tool)
    return tools or None
