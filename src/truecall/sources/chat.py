"""OpenAI chat JSONL: conversations, request and response pairs, batch files, saved responses.

A line is one of

- ``{"messages": [...], "tools": [...]}``: a conversation; fine-tuning files and most logs;
- ``{"request": {...}, "response": {...}}``, also as ``input`` / ``output`` or ``body``;
- ``{"custom_id": …, "response": {"status_code", "body"}, "error"}``: a line of OpenAI's batch output;
- a response as it came (``{"object": "chat.completion", "choices": [...]}``), of any API that truecall reads.

Source: the OpenAI reference (chat completions, batch, fine-tuning). Lines of the first kind are decoded by type,
without making objects of what nobody asks for; all others take the general way, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from truecall import wire
from truecall.records import Json, ToolCall
from truecall.sources.base import Bad, Head, Item, Line, Options, Place, Turn, wanted
from truecall.sources.files import TOO_LONG
from truecall.sources.messages import conversation, is_result_text
from truecall.wire.values import NOTHING, decode, integer, obj, word

NAME: Final = "chat"

_CONVERSATION: Final = ("messages", "conversations", "conversation")
_ASKED: Final = ("request", "input", "req")
_ANSWERED: Final = ("response", "output", "resp", "body")


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct, gc=False):
    function: _Function
    id: str | None = None
    index: int | None = None


class Model(msgspec.Struct, tag_field="role", tag="assistant", gc=False):
    """A model's message. A field that must be null sends a line where it is not the general way."""

    content: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning_content: str | None = None
    finish_reason: str | None = None
    reasoning: None = None
    thinking: None = None
    function_call: None = None
    refusal: None = None


class _User(msgspec.Struct, tag_field="role", tag="user", gc=False):
    content: msgspec.Raw = msgspec.Raw()


class _System(msgspec.Struct, tag_field="role", tag="system", gc=False):
    pass


class _Developer(msgspec.Struct, tag_field="role", tag="developer", gc=False):
    pass


class _Tool(msgspec.Struct, tag_field="role", tag="tool", gc=False):
    pass


class TypedLine(msgspec.Struct, gc=False):
    """A conversation of the plain kind. ``tools`` is decoded when it is asked for."""

    messages: list[Model | _User | _System | _Developer | _Tool]
    tools: msgspec.Raw = msgspec.Raw()
    model: str | None = None
    step: int | None = None
    tool_choice: str | dict[str, Any] | None = None
    id: str | int | None = None
    request: None = None
    response: None = None
    functions: None = None
    error: None = None


_decode_line = msgspec.json.Decoder(TypedLine).decode
_ABSENT: Final = (b"", b"null")
_RESULT_HEAD: Final = 80


class ChatSource:
    """See the module."""

    name = NAME
    lines = True

    def sniff(self, head: Head) -> bool:
        """Whether the first line is of one of the module's shapes."""
        return is_entry(head.first)

    def read(self, data: Iterable[Line], file: str, options: Options) -> Iterator[Item]:
        """The turns of a file of lines."""
        reader = ChatReader(file, options)
        for line in data:
            yield from reader.line(line)


def is_entry(entry: Json) -> bool:
    """Whether a line is of one of the module's shapes."""
    if not isinstance(entry, dict):
        return False
    if any(isinstance(entry.get(key), list) for key in _CONVERSATION):
        return True
    if any(isinstance(entry.get(key), dict) for key in ("response", "body")):
        return True
    pair = isinstance(entry.get("input"), dict) and isinstance(entry.get("output"), dict)
    return pair or wire.sniff(entry) is not None


class ChatReader:
    """Reads lines; tool lists that come again and again are decoded once, to one object."""

    def __init__(self, file: str, options: Options) -> None:
        self.file = file
        self.options = options
        self._lists: dict[bytes, Json] = {}

    def line(self, line: Line) -> Iterable[Item]:
        """What one line holds."""
        entry = None if self.options.fields else self.typed(line.data)
        return self._general(line) if entry is None else self._typed(entry, line)

    def typed(self, data: bytes) -> TypedLine | None:
        """The line as a plain conversation; None where it takes the general way."""
        try:
            return _decode_line(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def tools(self, entry: TypedLine) -> tuple[Json, bool]:
        """(the tools of a typed line or None, whether the line itself lists them).

        Equal lists are one object. A line that lists tools would show structured calls, had there been any.
        """
        raw = bytes(entry.tools)
        found = self._tools(raw) if raw not in _ABSENT else None
        return (self.options.tools, False) if found is None else (found, True)

    def _typed(self, entry: TypedLine, line: Line) -> Iterator[Turn]:
        tools, listed = self.tools(entry)
        known = listed or shows_calls(entry.messages)
        place = Place(file=self.file, line=line.number, offset=line.offset)
        position = 0
        for index, message in enumerate(entry.messages):
            if type(message) is Model:
                yield self.turn(entry, index, position, place, tools, known)
                position += 1

    def turn(
        self, entry: TypedLine, index: int, position: int, place: Place, tools: Json, known: bool
    ) -> Turn:
        """The turn of the model's message at ``index``."""
        message = entry.messages[index]
        assert type(message) is Model
        calls = message.tool_calls
        surfaced: tuple[ToolCall, ...] | None = () if known else None
        if calls:
            surfaced = tuple(
                ToolCall(name=c.function.name, arguments=c.function.arguments, id=c.id, index=c.index)
                for c in calls
            )
        executed, observed = typed_uptake(entry.messages, index, bool(calls))
        return Turn(
            place=place,
            text=message.content,
            reasoning=message.reasoning_content,
            tools=tools,
            tool_choice=entry.tool_choice,
            surfaced=surfaced,
            finish_reason=message.finish_reason,
            executed=executed,
            observed=observed,
            model=entry.model,
            step=entry.step,
            episode=None if entry.id is None else str(entry.id),
            position=position,
        )

    def _tools(self, raw: bytes) -> Json:
        found = self._lists.get(raw)
        if found is None:
            if len(self._lists) >= 64:
                self._lists.clear()
            found = self._lists[raw] = decode(raw)
        return found if isinstance(found, list) else None

    # ----------------------------------------------------------------------- the general way

    def _general(self, line: Line) -> Iterator[Item]:
        place = Place(file=self.file, line=line.number, offset=line.offset)
        if line.data == TOO_LONG:
            yield Bad(place=place, reason="a line that is too long to be one")
            return
        entry = decode(line.data)
        if entry is NOTHING:
            yield Bad(place=place, reason="is no JSON")
        elif not isinstance(entry, dict):
            yield Bad(place=place, reason="is no JSON object")
        else:
            yield from entry_turns(entry, place, self.options)


def shows_calls(messages: list[Any]) -> bool:
    """Whether a conversation has a structured call or a result in it."""
    return any(type(m) is _Tool or (type(m) is Model and bool(m.tool_calls)) for m in messages)


def typed_uptake(messages: list[Any], index: int, called: bool) -> tuple[bool | None, bool | None]:
    """As `messages.uptake`, on typed messages."""
    at = index + 1
    if at >= len(messages):
        return None, None
    if called and type(messages[at]) is _Tool:
        return True, True
    for following in range(at, len(messages)):
        message = messages[following]
        kind = type(message)
        if kind is _Tool:
            return True, True
        if kind is Model:
            break
        if kind is _User and _is_result(message.content):
            return True, True
    return (None, False) if called else (False, False)


def _is_result(content: msgspec.Raw) -> bool:
    raw = bytes(memoryview(content)[:_RESULT_HEAD])
    if raw[:1] == b'"' and raw[1:2] not in b"O<T[\\ ":
        return False
    start = raw.lstrip()
    if start[:1] == b"[":
        return b'"tool_result"' in bytes(content)
    return start[:1] == b'"' and is_result_text(start[1:].decode("utf-8", "replace").replace("\\n", "\n"))


def entry_turns(entry: dict[str, Json], place: Place, options: Options) -> Iterator[Item]:
    """The turns of one decoded line."""
    request = _first_object(entry, _ASKED)
    answer = _first_object(entry, _ANSWERED)
    fields = wanted(entry, options)
    if answer is not None or wire.sniff(entry) is not None:
        yield _exchange(entry, request, answer, place, options, fields)
        return
    messages = next((entry[key] for key in _CONVERSATION if isinstance(entry.get(key), list)), None)
    if messages is None:
        yield Bad(place=place, reason="holds neither messages nor a response")
        return
    tools = _offered(entry)
    yield from conversation(
        messages,
        place=place,
        tools=options.tools if tools is None else tools,
        known=True if tools is not None else None,
        model=word(entry.get("model")),
        step=integer(entry.get("step")),
        episode=_ident(entry),
        tool_choice=entry.get("tool_choice"),
        fields=fields,
    )


def _first_object(entry: dict[str, Json], keys: tuple[str, ...]) -> dict[str, Json] | None:
    return next((entry[key] for key in keys if isinstance(entry.get(key), dict)), None)


def _offered(entry: dict[str, Json]) -> Json:
    tools = entry.get("tools")
    if isinstance(tools, str):  # datasets keep the list as text
        tools = decode(tools)
    if isinstance(tools, list):
        return tools
    functions = entry.get("functions")
    return functions if isinstance(functions, list) else None


def _ident(entry: dict[str, Json]) -> str | None:
    for key in ("custom_id", "episode", "id"):
        value = entry.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return str(value)
    return None


def _exchange(
    entry: dict[str, Json],
    request: dict[str, Json] | None,
    answer: dict[str, Json] | None,
    place: Place,
    options: Options,
    fields: dict[str, Json],
) -> Turn:
    """A request with its response, either as it stands or wrapped as OpenAI's batch files have it."""
    if request is not None and isinstance(request.get("body"), dict):
        request = request["body"]
    status = None
    body: Json = entry if answer is None else answer
    if answer is not None and isinstance(answer.get("body"), (dict, str)):
        status = integer(answer.get("status_code", answer.get("status")))
        body = answer["body"]
    error = entry.get("error") if answer is not None or "choices" not in entry else None
    api = wire.sniff(body) or (wire.sniff(request) if request else None) or "openai.chat"
    head = body if isinstance(body, dict) else {}
    tools = obj(request).get("tools") if request is not None else _offered(entry)
    return Turn(
        place=place,
        tools=options.tools if tools is None else tools,
        body=body,
        api=api,
        request=request,
        status=status,
        error=word(obj(error).get("message")) or word(error),
        model=word(head.get("model")) or word(obj(request).get("model")),
        episode=_ident(entry),
        step=integer(entry.get("step")),
        fields=fields,
    )
