"""Structured calls from OpenAI tool-call objects and from the deltas of a stream.

Source: OpenAI chat completions API reference; how servers part from it: docs/wire.md.
"""

from __future__ import annotations

from typing import Final

from truecall.records import Json, ToolCall
from truecall.wire.values import NOTHING, decode, encode, integer, is_json, items, join, obj, plain, word

_ESCAPE, _QUOTE = "\\", '"'
_UNNUMBERED: Final = -1


class CallDraft:
    """One call in the making: pieces as they came."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.pieces: list[str] = []
        self.value: Json = NOTHING
        self._clean: list[str] = []  # the pieces without those that look sent twice
        self._clean_length = 0
        self._begun = False
        self._depth = 0
        self._in_string = self._escaped = False
        self._scanned = 0  # pieces that the balance has seen

    def add_arguments(self, value: Json) -> None:
        """One piece of the arguments, or the whole as an object."""
        if value is None:
            return
        if not isinstance(value, str):
            self.value = plain(value)
            return
        self._clean_up(value)
        self.pieces.append(value)

    def closed(self) -> bool:
        """Whether the arguments so far are a balanced object or array. Each piece is scanned once."""
        for piece in self.pieces[self._scanned :]:
            self._scan(piece)
        self._scanned = len(self.pieces)
        return self._begun and self._depth == 0 and not self._in_string

    def full(self) -> bool:
        """Whether nothing more can belong to the arguments: an object came, or balanced text."""
        return self.closed() or bool(self.value is not NOTHING and self.value)

    def finish(self, defects: set[str]) -> ToolCall:
        """The call as received; a piece that came twice is named, never taken out."""
        arguments: Json = None
        if self.pieces:
            arguments = join(self.pieces)
            if self._clean != self.pieces and not is_json(arguments) and is_json(join(self._clean)):
                defects.add("duplicate_chunk")
            if self.value is not NOTHING:
                arguments += encode(self.value)
        elif self.value is not NOTHING:
            arguments = self.value
        return ToolCall(name=self.name, arguments=arguments, id=self.id, index=self.index)

    def _clean_up(self, piece: str) -> None:
        """Keep the reading in which nothing comes twice.

        Linear: a snapshot is no shorter than what it repeats.
        """
        if self._clean_length and len(piece) >= self._clean_length and piece.startswith("".join(self._clean)):
            self._clean = [piece]  # all so far and more: a snapshot, not a delta
            self._clean_length = len(piece)
        elif not self.pieces or len(piece) < 2 or piece != self.pieces[-1]:
            self._clean.append(piece)
            self._clean_length += len(piece)

    def _scan(self, piece: str) -> None:
        self._begun = self._begun or bool(piece)
        for char in piece:
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif char == _ESCAPE:
                    self._escaped = True
                elif char == _QUOTE:
                    self._in_string = False
            elif char == _QUOTE:
                self._in_string = True
            elif char in "{[":
                self._depth += 1
            elif char in "}]":
                self._depth -= 1


class CallDrafts:
    """All calls of one choice. ``whole`` takes a complete call object, ``delta`` a piece of a stream."""

    def __init__(self, defects: set[str], *, text_arguments: bool = True) -> None:
        self._defects = defects
        self._text_arguments = text_arguments
        self._all: list[CallDraft] = []
        self._open: dict[int, CallDraft] = {}  # by index: the call that deltas go to
        self._by_id: dict[str, CallDraft] = {}

    def __bool__(self) -> bool:
        return bool(self._all)

    def whole(self, calls: Json) -> None:
        """The ``tool_calls`` field of a whole message."""
        for item in self._listed(calls):
            call_id, name, arguments = self._fields(item)
            draft = self._new(integer(item.get("index")), call_id)
            draft.name = name
            self._add_arguments(draft, arguments)

    def delta(self, calls: Json) -> None:
        """The ``tool_calls`` field of a delta."""
        for item in self._listed(calls):
            self._delta(item)

    def legacy(self, call: Json, *, stream: bool) -> None:
        """The ``function_call`` field, from before ``tool_calls``."""
        if not isinstance(call, dict) or not call:
            return
        self._defects.add("legacy_function_call")
        if stream:
            self._delta({"index": _UNNUMBERED, "function": call})
        else:
            self.whole([{"function": call}])

    def finish(self) -> tuple[ToolCall, ...]:
        """The calls in the order of their indices, else of their arrival."""
        drafts = self._all
        indices = self._open.keys() - {_UNNUMBERED}
        if indices != set(range(len(indices))):
            self._defects.add("index_gap")
        for draft in drafts:
            if draft.index == _UNNUMBERED:
                draft.index = None
        if all(draft.index is not None for draft in drafts):
            drafts = sorted(drafts, key=lambda draft: draft.index or 0)
        return tuple(draft.finish(self._defects) for draft in drafts)

    def _listed(self, calls: Json) -> list[dict[str, Json]]:
        if calls is None:
            return []
        if isinstance(calls, dict):
            self._defects.add("tool_calls_not_list")
            calls = [calls]
        found = [item for item in items(calls) if isinstance(item, dict)]
        if not isinstance(calls, list) or len(found) < len(calls):
            self._defects.add("tool_calls_not_list")
        return found

    def _fields(self, item: dict[str, Json]) -> tuple[str | None, str | None, Json]:
        """(id, name, arguments) of a call object, in OpenAI's form or the flat one."""
        if isinstance(item.get("custom"), dict):  # OpenAI custom tools: free text input
            inner = item["custom"]
            return word(item.get("id")), word(inner.get("name")), inner.get("input")
        inner = item.get("function")
        if not isinstance(inner, dict):
            if "name" in item or "arguments" in item:
                self._defects.add("flat_call")
                inner = item
            else:
                inner = obj(inner)
        return word(item.get("id")), word(inner.get("name")), inner.get("arguments")

    def _delta(self, item: dict[str, Json]) -> None:
        call_id, name, arguments = self._fields(item)
        index = integer(item.get("index"))
        if index is None:
            self._defects.add("missing_index")
            draft = self._without_index(call_id, name)
        else:
            draft = self._at(index, call_id, name, arguments)
        if draft.id is None:
            self._identify(draft, call_id)
        self._add_name(draft, name)
        self._add_arguments(draft, arguments)

    def _without_index(self, call_id: str | None, name: str | None) -> CallDraft:
        """A known id goes to its call, a new id or name begins one, the rest continues the last."""
        if call_id is not None and call_id in self._by_id:
            return self._by_id[call_id]
        last = self._all[-1] if self._all else None
        if last is None or call_id is not None:
            return self._new(None, call_id)
        if name is not None and (name != last.name or last.closed()):
            return self._new(None, None)
        return last

    def _at(self, index: int, call_id: str | None, name: str | None, arguments: Json) -> CallDraft:
        draft = self._open.get(index)
        if draft is None:
            draft = self._open[index] = self._new(index, call_id)
        elif self._is_second(draft, call_id, name, arguments):
            self._defects.add("index_reused")
            draft = self._open[index] = self._new(index, call_id)
        elif call_id is not None and draft.id is not None and call_id != draft.id:
            self._defects.add("id_changed")  # servers that make a new id for every delta
        return draft

    def _is_second(self, draft: CallDraft, call_id: str | None, name: str | None, arguments: Json) -> bool:
        """Whether a delta at a known index begins another call."""
        starts = not isinstance(arguments, str) or not arguments or arguments.lstrip()[:1] == "{"
        if call_id is not None and draft.id is not None and call_id != draft.id:
            if name is None:
                return bool(arguments) and starts and draft.closed()
            return name != draft.name or starts
        if name is None or draft.name is None or call_id is not None or not draft.pieces:
            return False
        if draft.id is not None and not any(draft.pieces):
            return False  # a call that began with an id, and its name still comes in pieces
        if name == draft.name:  # no id to tell by: another call begins where the last one is whole
            return bool(arguments) and starts and draft.closed() and arguments != draft.pieces[-1]
        return draft.closed() or not name.startswith(draft.name)

    def _add_name(self, draft: CallDraft, name: str | None) -> None:
        if name is None:
            return
        if draft.name is None:
            draft.name = name
        elif name == draft.name:
            self._defects.add("name_repeated")
        elif name.startswith(draft.name):
            draft.name = name  # the name so far and more
            self._defects.add("name_repeated")
        else:
            draft.name += name

    def _add_arguments(self, draft: CallDraft, arguments: Json) -> None:
        if self._text_arguments and not isinstance(arguments, (str, type(None))):
            self._defects.add("arguments_not_text")
        draft.add_arguments(arguments)

    def _new(self, index: int | None, call_id: str | None) -> CallDraft:
        draft = CallDraft(index)
        self._all.append(draft)
        self._identify(draft, call_id)
        return draft

    def _identify(self, draft: CallDraft, call_id: str | None) -> None:
        draft.id = call_id
        if call_id is not None:
            self._by_id.setdefault(call_id, draft)


def arguments_object(arguments: Json) -> dict[str, Json] | None:
    """Arguments as an object, decoded where they are text; None when they are none."""
    value = decode(arguments) if isinstance(arguments, str) else arguments
    return value if isinstance(value, dict) else None
