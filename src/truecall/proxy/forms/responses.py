"""OpenAI responses: text and calls are output items; a stream announces, fills and finishes each of them."""

from __future__ import annotations

from typing import Final

from truecall.proxy.forms.base import Event, Form, New, arguments_text, named_event
from truecall.records import Json
from truecall.wire.values import integer, items, obj, word

_ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "response.done")
_ADDED, _DONE = "response.output_item.added", "response.output_item.done"


class Responses(Form):
    """See the module."""

    def __init__(self) -> None:
        self._next = 0  # output index of the next item that the client gets
        self._places: dict[Json, int] = {}  # item -> output index that the client gets
        self._said: dict[Json, str] = {}  # text of the items so far
        self._number = -1  # the last sequence_number

    def blank(self, text: str, model: str | None) -> dict[str, Json]:
        head = {"id": "resp_truecall", "object": "response", "created_at": 0, "status": "completed"}
        more: dict[str, Json] = {
            "error": None,
            "incomplete_details": None,
            "tools": [],
            "tool_choice": "auto",
        }
        return {**head, **more, "model": model, "parallel_tool_calls": True, "output": [_message(text)]}

    def whole(self, value: dict[str, Json], choice: int, new: New) -> None:
        output: list[Json] = []
        rest = new.content
        for item in items(value.get("output")):
            kind = obj(item).get("type")
            if kind == "message":
                item["content"], rest = _parts(item.get("content"), rest)
                if not item["content"]:
                    continue
            if not (new.hide and kind == "function_call"):
                output.append(item)
        if rest:
            output.append(_message(rest, new.number))
        value["output"] = [*output, *_structured(new)]
        if isinstance(value.get("output_text"), str):
            value["output_text"] = new.content

    # ------------------------------------------------------------- streams

    def content(self, value: dict[str, Json]) -> str:
        text = value.get("delta") if value.get("type") == "response.output_text.delta" else None
        return text if isinstance(text, str) else ""

    def calls(self, value: dict[str, Json]) -> bool:
        return value.get("type") == _ADDED and obj(value.get("item")).get("type") == "function_call"

    def ends(self, event: Event) -> bool:
        return event.value is not None and event.value.get("type") in _ENDS

    def opens(self, value: dict[str, Json]) -> bool:
        return value.get("type") == "response.content_part.added" or self._opens_message(value)

    def passed(self, value: dict[str, Json]) -> None:
        item = _item_of(value)
        if value.get("type") == _ADDED:
            self._places[item] = self._next
            self._next += 1
        self._said[item] = self._said.get(item, "") + self.content(value)
        self._number = max(self._number, integer(value.get("sequence_number")) or 0)

    def tail(self, held: list[Event], new: New) -> list[bytes]:
        out: list[bytes] = []
        rest = new.rest
        gone: set[Json] = set()
        added = False
        for event in held:
            value = event.value
            if value is None:
                out.append(event.raw)
                continue
            item = _item_of(value)
            if value.get("type") == _ADDED:
                if (self._opens_message(value) and not rest) or (new.hide and self.calls(value)):
                    gone.add(item)
                else:
                    self._places[item] = self._next
                    self._next += 1
            if item is not None and item in gone:
                continue
            if event.content:
                if not rest:
                    continue
                value["delta"] = rest
                self._said[item] = self._said.get(item, "") + rest
                rest = ""
            elif self.ends(event) and not added:
                out += self._added(new, rest)
                rest, added = "", True
            if self.ends(event):
                self.whole(obj(value.get("response")), 0, new)
            else:
                self._told(value, self._said.get(item, ""))
            if item in self._places:
                value["output_index"] = self._places[item]
            out.append(self._sent(value))
        return out if added else out + self._added(new, rest)

    def frame(self, value: dict[str, Json]) -> bytes:
        return named_event(value)

    def _opens_message(self, value: dict[str, Json]) -> bool:
        return value.get("type") == _ADDED and obj(value.get("item")).get("type") == "message"

    def _told(self, value: dict[str, Json], said: str) -> None:
        """What the events after an item's deltas repeat of them."""
        kind = value.get("type")
        if kind == "response.output_text.done":
            value["text"] = said
        elif kind == "response.content_part.done" and obj(value.get("part")).get("type") == "output_text":
            value["part"]["text"] = said
        elif kind == _DONE and obj(value.get("item")).get("type") == "message":
            value["item"]["content"], _ = _parts(value["item"].get("content"), said)

    def _added(self, new: New, rest: str) -> list[bytes]:
        """The items that come on top: a text that no message had room for, and the calls."""
        out: list[bytes] = []
        if rest:
            item = _message(rest, new.number)
            place = {"item_id": item["id"], "output_index": self._next, "content_index": 0}
            (part,) = item["content"]
            begun = {**item, "status": "in_progress", "content": []}
            out += self._item(
                begun,
                {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
                {"type": "response.output_text.delta", **place, "delta": rest},
                {"type": "response.output_text.done", **place, "text": rest},
                {"type": "response.content_part.done", **place, "part": part},
                item,
            )
        for call, item in zip(new.calls, _structured(new), strict=True):
            written = arguments_text(call)
            place = {"item_id": item["id"], "output_index": self._next}
            out += self._item(
                {**item, "status": "in_progress", "arguments": ""},
                {"type": "response.function_call_arguments.delta", **place, "delta": written},
                {"type": "response.function_call_arguments.done", **place, "arguments": written},
                item,
            )
        return out

    def _item(self, begun: dict[str, Json], *events: dict[str, Json]) -> list[bytes]:
        """The events of one item; the last of ``events`` is the item as it is in the end."""
        *between, done = events
        index = self._next
        self._next += 1
        first = {"type": _ADDED, "output_index": index, "item": begun}
        return [
            self._sent(e) for e in (first, *between, {"type": _DONE, "output_index": index, "item": done})
        ]

    def _sent(self, value: dict[str, Json]) -> bytes:
        """The event with the number that follows the last one's."""
        self._number += 1
        return self.frame({**value, "sequence_number": self._number})


def _item_of(value: dict[str, Json]) -> int | str | None:
    """What tells the item of an event: its place, or (llama.cpp gives none) its id."""
    index = integer(value.get("output_index"))
    return (
        index if index is not None else word(value.get("item_id")) or word(obj(value.get("item")).get("id"))
    )


def _message(text: str, number: int = 0) -> dict[str, Json]:
    part = {"type": "output_text", "text": text, "annotations": []}
    head = {"type": "message", "id": f"msg_truecall_{number}", "role": "assistant", "status": "completed"}
    return {**head, "content": [part]}


def _parts(parts: Json, text: str) -> tuple[list[Json], str]:
    """A message's parts with ``text`` for all of their text; what is left of it where there was no place."""
    out: list[Json] = []
    for part in items(parts):
        if obj(part).get("type") != "output_text":
            out.append(part)
        elif text:
            out.append({**part, "text": text})
            text = ""
    return out, text


def _structured(new: New) -> list[dict[str, Json]]:
    return [
        {
            "type": "function_call",
            "id": f"fc_{new.ident(place)}",
            "call_id": f"call_{new.ident(place)}",
            "name": call.name,
            "arguments": arguments_text(call),
            "status": "completed",
        }
        for place, call in enumerate(new.calls)
    ]
