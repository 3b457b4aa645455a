"""Anthropic messages: a message object, or its stream of typed events.

Source: Anthropic API reference (Messages, streaming). ``stop_reason`` is kept as it came. A streamed
``input`` that does not parse stays text, so that a cut call can be seen.
"""

from __future__ import annotations

from truecall.records import Api, Choice, Json, ToolCall, Usage
from truecall.wire.assembler import Assembler
from truecall.wire.values import NOTHING, count, decode, integer, join, obj, objects, plain, text, word


class _Block:
    """A content block and the deltas that it got."""

    def __init__(self, block: dict[str, Json]) -> None:
        self.block = block
        self.kind = word(block.get("type")) or ""
        self.pieces: list[str] = [
            block[key] for key in ("text", "thinking") if isinstance(block.get(key), str)
        ]
        self.json_pieces: list[str] = []
        self.waits = False  # streamed, and its end did not come

    def call(self) -> ToolCall:
        given = self.block.get("input")
        arguments = plain(given)
        if self.waits and not given:  # a block begins with {}, whatever its input is to be
            arguments = None
        if self.json_pieces and any(self.json_pieces):
            whole = join(self.json_pieces)
            value = decode(whole)
            arguments = whole if value is NOTHING else plain(value)
        return ToolCall(name=word(self.block.get("name")), arguments=arguments, id=word(self.block.get("id")))


class AnthropicAssembler(Assembler):
    """A message or the events of one to a ``Response`` with one choice."""

    api = Api.ANTHROPIC.value

    def __init__(self, *, stream: bool = True, failed: bool = False) -> None:
        super().__init__(stream=stream, failed=failed)
        self._begun = False
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        self._stop: str | None = None
        self._counts: dict[str, int] = {}

    def take(self, body: dict[str, Json], event: str | None) -> None:
        """One message or event."""
        kind = word(body.get("type")) or event
        if kind == "message" or (kind is None and isinstance(body.get("content"), list)):
            self._message(body)
            self.done = self.done or self.stream
        elif kind == "message_start":
            self._message(obj(body.get("message")))
        elif kind == "content_block_start":
            self._start(integer(body.get("index")), obj(body.get("content_block")))
        elif kind == "content_block_delta":
            self._delta(integer(body.get("index")), obj(body.get("delta")))
        elif kind == "content_block_stop":
            block = self._open.pop(integer(body.get("index")) or 0, None)
            if block is not None:
                block.waits = not block.json_pieces
        elif kind == "message_delta":
            self._begun = True
            self._stop = word(obj(body.get("delta")).get("stop_reason")) or self._stop
            self._count(body.get("usage"))
        elif kind == "message_stop":
            self.done = True

    def choices(self) -> tuple[Choice, ...]:
        """The one choice, or none when no message began."""
        if not self._begun:
            return ()
        return (
            Choice(
                content=self._text("text"),
                reasoning=self._text("thinking"),
                tool_calls=tuple(block.call() for block in self._blocks if block.kind == "tool_use"),
                finish_reason=self._stop,
            ),
        )

    def _message(self, message: dict[str, Json]) -> None:
        self._begun = True
        for key in ("id", "model"):
            if found := word(message.get(key)):
                self.head.setdefault(key, found)
        content = message.get("content")
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else objects(content):
            self._blocks.append(_Block(block))
        self._stop = word(message.get("stop_reason")) or self._stop
        self.keep("stop_sequence", message.get("stop_sequence"))
        self._count(message.get("usage"))

    def _start(self, index: int | None, block: dict[str, Json]) -> None:
        self._begun = True
        draft = _Block(block)
        draft.waits = True
        if index is None:
            self.defects.add("missing_index")
            index = len(self._blocks)
        if index in self._open:
            self.defects.add("index_reused")
        self._open[index] = draft
        self._blocks.append(draft)

    def _delta(self, index: int | None, delta: dict[str, Json]) -> None:
        if index is None:
            self.defects.add("missing_index")
        block = self._open.get(index) if index is not None else (self._blocks[-1] if self._blocks else None)
        if block is None:
            self.defects.add("orphan_delta")
            if delta.get("type") not in ("text_delta", "thinking_delta", "input_json_delta"):
                return
            self._start(len(self._blocks) if index is None else index, _begun_by(delta))
            block = self._blocks[-1]
        for key in ("text", "thinking"):
            if isinstance(delta.get(key), str):
                block.pieces.append(delta[key])
        if isinstance(delta.get("partial_json"), str):
            block.json_pieces.append(delta["partial_json"])

    def _text(self, kind: str) -> str | None:
        found = [join(block.pieces) for block in self._blocks if block.kind == kind]
        return join(found) if found else None

    def _count(self, usage: Json) -> None:
        """Counts are cumulative: a later one replaces an earlier one."""
        for key in ("input_tokens", "output_tokens", "cache_read_input_tokens"):
            if (number := count(obj(usage).get(key))) is not None:
                self._counts[key] = number
        if self._counts:
            self.usage = Usage(
                prompt_tokens=self._counts.get("input_tokens"),
                completion_tokens=self._counts.get("output_tokens"),
                cached_tokens=self._counts.get("cache_read_input_tokens"),
            )


def _begun_by(delta: dict[str, Json]) -> dict[str, Json]:
    """The block that an orphan delta would belong to."""
    kinds = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "tool_use"}
    return {"type": kinds.get(text(delta.get("type")) or "", "text")}
