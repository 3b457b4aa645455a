"""OpenAI chat completions: calls stand in ``tool_calls`` of a message, or of the deltas of chunks."""

from __future__ import annotations

from typing import Final

from truecall.proxy.forms.base import Event, Form, New, arguments_text
from truecall.records import Json
from truecall.stacks.base import Stack
from truecall.wire.values import items, obj, objects

_HEAD: Final = ("id", "object", "created", "model", "system_fingerprint")
_ENDINGS: Final = ("stop", "tool_calls", "length")  # finish reasons that a swap makes untrue


class Chat(Form):
    """See the module."""

    def __init__(self) -> None:
        self._next = 0  # index of the next call in a stream

    def asks(self, stack: Stack, body: dict[str, Json]) -> dict[str, Json]:
        if body.get("stream") is True and stack.name == "llamacpp":
            return {}  # its stream has no evidence to give
        return stack.evidence_fields(body)

    def blank(self, text: str, model: str | None) -> dict[str, Json]:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {"id": "chatcmpl-truecall", "object": "chat.completion", "created": 0, "model": model}
        return {**head, "choices": [choice]}

    def whole(self, value: dict[str, Json], choice: int, new: New) -> None:
        given = list(objects(value.get("choices")))[choice]
        message = obj(given.get("message"))
        message["content"] = new.content or None
        kept = items(message.get("tool_calls"))
        if new.hide:
            message.pop("tool_calls", None)
            if given.get("finish_reason") == "tool_calls":
                given["finish_reason"] = "stop"
        else:
            message["tool_calls"] = [*kept, *_structured(new, len(kept), choice)]
            given["finish_reason"] = "tool_calls"

    # ------------------------------------------------------------- streams

    def content(self, value: dict[str, Json]) -> str:
        return "".join(d["content"] for d in _deltas(value) if isinstance(d.get("content"), str))

    def calls(self, value: dict[str, Json]) -> bool:
        return any(delta.get("tool_calls") for delta in _deltas(value))

    def ends(self, event: Event) -> bool:
        if event.value is None:
            return b"[DONE]" in event.raw
        choices = objects(event.value.get("choices"))
        return any(choice.get("finish_reason") is not None for choice in choices)

    def passed(self, value: dict[str, Json]) -> None:
        calls = (call for delta in _deltas(value) for call in objects(delta.get("tool_calls")))
        places = [call["index"] for call in calls if isinstance(call.get("index"), int)]
        self._next = max([self._next, *(place + 1 for place in places)])

    def tail(self, held: list[Event], new: New) -> list[bytes]:
        for event in held:
            self.passed(event.value or {})
        first = self._next
        base = next((event.value for event in held if event.value is not None), {})
        head: dict[str, Json] = {key: base[key] for key in _HEAD if key in base}
        made = [self._chunk(head, {"content": new.rest})] if new.rest else []
        for index, call in enumerate(_structured(new, first), first):
            made.append(self._chunk(head, {"tool_calls": [{"index": index, **call}]}))
        out: list[bytes] = []
        for event in held:
            if made and self.ends(event):
                out += made
                made = []
            if event.value is None:
                out.append(event.raw)
            elif (kept := self._emptied(event, new.hide)) is not None:
                out.append(kept)
        return out + made

    def _chunk(self, head: dict[str, Json], delta: dict[str, Json]) -> bytes:
        return self.frame({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    def _emptied(self, event: Event, hide: bool) -> bytes | None:
        """A held chunk without its content (and calls); None: nothing is left of it."""
        value = event.value or {}
        finish = "stop" if hide else "tool_calls"
        changed = left = False
        for choice in objects(value.get("choices")):
            delta = choice.get("delta")
            if isinstance(delta, dict):
                for key in ("content", "tool_calls") if hide else ("content",):
                    changed |= delta.pop(key, None) is not None
                left |= any(item is not None for item in delta.values())
            if choice.get("finish_reason") is not None:
                left = True
                if choice["finish_reason"] in _ENDINGS:
                    changed |= choice["finish_reason"] != finish
                    choice["finish_reason"] = finish
        if not changed:
            return event.raw
        return self.frame(value) if left or value.get("usage") is not None else None


def _structured(new: New, first: int, choice: int = 0) -> list[dict[str, Json]]:
    """The new calls as a chat completion has them, numbered from ``first``."""
    return [
        {
            "id": f"call_{new.ident(place, choice)}",
            "type": "function",
            "function": {"name": call.name, "arguments": arguments_text(call)},
        }
        for place, call in enumerate(new.calls, first)
    ]


def _deltas(value: dict[str, Json]) -> list[dict[str, Json]]:
    choices = objects(value.get("choices"))
    return [delta for choice in choices if isinstance(delta := choice.get("delta"), dict)]
