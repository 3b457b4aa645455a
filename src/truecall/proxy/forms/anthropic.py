"""Anthropic messages: text and calls are blocks; a stream begins, fills and ends each by its index."""

from __future__ import annotations

from truecall.proxy.forms.base import Event, Form, New, arguments_text, named_event
from truecall.records import Json
from truecall.wire.values import integer, items, obj


class Anthropic(Form):
    """See the module."""

    def __init__(self) -> None:
        self._next = 0  # index of the next block that the client gets
        self._places: dict[int | None, int] = {}  # the server's index -> the client's

    def blank(self, text: str, model: str | None) -> dict[str, Json]:
        head = {"id": "msg_truecall", "type": "message", "role": "assistant", "model": model}
        usage = {"input_tokens": 0, "output_tokens": 0}  # the API wants numbers; an error states none
        blocks = [{"type": "text", "text": text}]
        return {**head, "content": blocks, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}

    def whole(self, value: dict[str, Json], choice: int, new: New) -> None:
        blocks: list[Json] = []
        rest = new.content
        for block in items(value.get("content")):
            kind = obj(block).get("type")
            if kind == "text":
                if rest:
                    blocks.append({**block, "text": rest})
                rest = ""
            elif not (new.hide and kind == "tool_use"):
                blocks.append(block)
        if rest:
            blocks.append({"type": "text", "text": rest})
        value["content"] = [*blocks, *_structured(new)]
        value["stop_reason"] = _stopped(value.get("stop_reason"), new)

    # ------------------------------------------------------------- streams

    def content(self, value: dict[str, Json]) -> str:
        delta, block = obj(value.get("delta")), obj(value.get("content_block"))
        text = delta.get("text") if delta.get("type") == "text_delta" else None
        if block.get("type") == "text":  # a block that begins with some of its text
            text = block.get("text")
        return text if isinstance(text, str) else ""

    def calls(self, value: dict[str, Json]) -> bool:
        return obj(value.get("content_block")).get("type") == "tool_use"

    def ends(self, event: Event) -> bool:
        return event.value is not None and event.value.get("type") in ("message_delta", "message_stop")

    def opens(self, value: dict[str, Json]) -> bool:
        return obj(value.get("content_block")).get("type") == "text" and not self.content(value)

    def passed(self, value: dict[str, Json]) -> None:
        if value.get("type") == "content_block_start":
            index = integer(value.get("index"))
            self._places[index] = self._next
            self._next += 1

    def tail(self, held: list[Event], new: New) -> list[bytes]:
        out: list[bytes] = []
        rest = new.rest
        gone: set[int | None] = set()
        added = False
        for event in held:
            value = event.value
            if value is None:
                out.append(event.raw)
                continue
            index = integer(value.get("index"))
            if value.get("type") == "content_block_start":
                block = obj(value.get("content_block"))
                if block.get("type") == "text":
                    block["text"] = ""
                    unwanted = not rest
                else:
                    unwanted = new.hide and self.calls(value)
                if unwanted:
                    gone.add(index)
                else:
                    self.passed(value)
            if index is not None and index in gone:
                continue
            if event.content and value.get("type") == "content_block_delta":
                if rest:
                    out.append(self.frame(_delta(self._places.get(index, 0), "text_delta", text=rest)))
                rest = ""
                continue
            if self.ends(event) and not added:
                out += self._added(new, rest)
                rest, added = "", True
            if value.get("type") == "message_delta":
                delta = obj(value.get("delta"))
                delta["stop_reason"] = _stopped(delta.get("stop_reason"), new)
            if index is not None:
                value["index"] = self._places.get(index, index)
            out.append(self.frame(value))
        return out if added else out + self._added(new, rest)

    def frame(self, value: dict[str, Json]) -> bytes:
        return named_event(value)

    def _added(self, new: New, rest: str) -> list[bytes]:
        """The blocks that come on top: a text that no block had room for, and the calls."""
        out: list[bytes] = []
        if rest:
            out += self._block({"type": "text", "text": ""}, "text_delta", text=rest)
        for call, block in zip(new.calls, _structured(new), strict=True):
            written = arguments_text(call)
            out += self._block({**block, "input": {}}, "input_json_delta", partial_json=written)
        return out

    def _block(self, block: dict[str, Json], kind: str, **said: str) -> list[bytes]:
        index = self._next
        self._next += 1
        start = {"type": "content_block_start", "index": index, "content_block": block}
        events = (start, _delta(index, kind, **said), {"type": "content_block_stop", "index": index})
        return [self.frame(event) for event in events]


def _delta(index: int, kind: str, **said: str) -> dict[str, Json]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **said}}


def _structured(new: New) -> list[dict[str, Json]]:
    return [
        {
            "type": "tool_use",
            "id": f"toolu_{new.ident(place)}",
            "name": call.name,
            "input": call.arguments or {},
        }
        for place, call in enumerate(new.calls)
    ]


def _stopped(reason: Json, new: New) -> Json:
    if not new.hide:
        return "tool_use"
    return "end_turn" if reason == "tool_use" else reason
