"""Ollama ``/api/chat``: one object, or JSON lines; a call is whole on its line, its arguments an object."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from truecall.proxy.forms.base import Event, Form, New
from truecall.records import Json
from truecall.stacks.base import Stack
from truecall.wire.values import items, obj

_HEAD: Final = ("model", "created_at")


class Ollama(Form):
    """See the module."""

    lines: ClassVar[bool] = True

    def asks(self, stack: Stack, body: dict[str, Json]) -> dict[str, Json]:
        return stack.evidence_fields(body) if stack.name == "ollama" else {}

    def blank(self, text: str, model: str | None) -> dict[str, Json]:
        message = {"role": "assistant", "content": text}
        return {"model": model, "message": message, "done": True, "done_reason": "stop"}

    def whole(self, value: dict[str, Json], choice: int, new: New) -> None:
        message = obj(value.get("message"))
        message["content"] = new.content
        if new.hide:
            message.pop("tool_calls", None)
        else:
            message["tool_calls"] = [*items(message.get("tool_calls")), *_structured(new)]

    # ------------------------------------------------------------- streams

    def content(self, value: dict[str, Json]) -> str:
        content = obj(value.get("message")).get("content")
        return content if isinstance(content, str) else ""

    def calls(self, value: dict[str, Json]) -> bool:
        return bool(obj(value.get("message")).get("tool_calls"))

    def ends(self, event: Event) -> bool:
        return event.value is not None and event.value.get("done") is True

    def tail(self, held: list[Event], new: New) -> list[bytes]:
        base = next((event.value for event in held if event.value is not None), {})
        head: dict[str, Json] = {key: base[key] for key in _HEAD if key in base}
        made = [self._line(head, {"content": new.rest})] if new.rest else []
        if new.calls:
            made.append(self._line(head, {"content": "", "tool_calls": _structured(new)}))
        out: list[bytes] = []
        for event in held:
            if made and self.ends(event):
                out += made
                made = []
            if event.value is None:
                out.append(event.raw)
                continue
            message = obj(event.value.get("message"))
            if new.hide:
                message.pop("tool_calls", None)
            if "content" in message:
                message["content"] = ""
            if event.value.get("done") is True or message.get("thinking") or message.get("tool_calls"):
                out.append(self.frame(event.value))
        return out + made

    def frame(self, value: dict[str, Json]) -> bytes:
        return msgspec.json.encode(value) + b"\n"

    def _line(self, head: dict[str, Json], message: dict[str, Json]) -> bytes:
        return self.frame({**head, "message": {"role": "assistant", **message}, "done": False})


def _structured(new: New) -> list[dict[str, Json]]:
    return [{"function": {"name": call.name, "arguments": call.arguments or {}}} for call in new.calls]
