"""OpenAI responses: a response object, or its stream of typed events.

Source: OpenAI API reference (Responses, streaming events). The API has no finish_reason: the record's is
``incomplete_details.reason``, else ``status``. A stream's finished item is what a client uses; where the
deltas say something else the defect ``done_differs`` is named.
"""

from __future__ import annotations

from truecall.records import Api, Choice, Json, ToolCall
from truecall.wire.assembler import Assembler
from truecall.wire.error_bodies import read_error
from truecall.wire.openai_chat import read_usage
from truecall.wire.values import integer, items, join, obj, objects, text, word

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_EXTRA = ("service_tier", "status", "truncation")
# Delta events, by what their text belongs to.
_DELTAS = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning.delta": "reasoning",
    "response.reasoning_summary_text.delta": "summary",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "arguments",
}
# The same, whole: what a client has where no delta came.
_DONE = {
    "response.output_text.done": ("content", "text"),
    "response.function_call_arguments.done": ("arguments", "arguments"),
    "response.custom_tool_call_input.done": ("arguments", "input"),
}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.done"})


class _Item:
    """One output item: as it was added, the deltas since, and whether the finished form came."""

    def __init__(self) -> None:
        self.item: dict[str, Json] = {}
        self.finished = False
        self.pieces: dict[str, list[str]] = {}

    @property
    def kind(self) -> str:
        """The item's type; without one, what its deltas say."""
        stated = word(self.item.get("type"))
        if stated:
            return stated
        return "function_call" if "arguments" in self.pieces else "reasoning" if self._thinks() else "message"

    def _thinks(self) -> bool:
        return "reasoning" in self.pieces or "summary" in self.pieces

    def said(self, what: str) -> str | None:
        """The item's text of one sort: of the finished item, else of the deltas."""
        stated = _stated(self.item, what)
        if self.finished and stated is not None:
            return stated
        return join(self.pieces[what]) if what in self.pieces else stated

    def differs(self) -> bool:
        """Whether the finished item says something else than its deltas."""
        return self.finished and any(
            join(pieces) != (_stated(self.item, what) or "") for what, pieces in self.pieces.items()
        )


class ResponsesAssembler(Assembler):
    """A response object or its events to a ``Response`` with one choice."""

    api = Api.OPENAI_RESPONSES.value

    def __init__(self, *, stream: bool = True, failed: bool = False) -> None:
        super().__init__(stream=stream, failed=failed)
        self._items: dict[int, _Item] = {}
        self._finish: str | None = None
        self._begun = False

    def take(self, body: dict[str, Json], event: str | None) -> None:
        """One response object or event."""
        kind = word(body.get("type")) or event or ""
        if not kind.startswith("response."):
            self._response(body, whole=True)
            self.done = self.done or self.stream
        elif isinstance(body.get("response"), dict):
            self._response(body["response"], whole=kind in _ENDS)
            self.done = self.done or kind in _ENDS
        elif kind in ("response.output_item.added", "response.output_item.done"):
            item = self._at(body)
            item.item = obj(body.get("item"))
            item.finished = kind.endswith("done")
        elif kind in _DELTAS and isinstance(body.get("delta"), str):
            if integer(body.get("output_index")) not in self._items:
                self.defects.add("orphan_delta")
            self._at(body).pieces.setdefault(_DELTAS[kind], []).append(body["delta"])
        elif kind in _DONE and isinstance(body.get(_DONE[kind][1]), str):
            what, key = _DONE[kind]
            self._at(body).pieces.setdefault(what, [body[key]])

    def choices(self) -> tuple[Choice, ...]:
        """The one choice, or none when no response began."""
        if not self._begun:
            return ()
        drafts = [item for _, item in sorted(self._items.items())]
        if any(item.differs() for item in drafts):
            self.defects.add("done_differs")
        return (
            Choice(
                content=_all(drafts, "message", "content"),
                refusal=_all(drafts, "message", "refusal"),
                reasoning=_all(drafts, "reasoning", "reasoning") or _all(drafts, "reasoning", "summary"),
                tool_calls=tuple(_call(item) for item in drafts if item.kind in _CALLS),
                finish_reason=self._finish,
            ),
        )

    def _at(self, body: dict[str, Json]) -> _Item:
        self._begun = True
        index = integer(body.get("output_index"))
        if index is None:
            self.defects.add("missing_index")
            index = max(self._items, default=0)
        return self._items.setdefault(index, _Item())

    def _response(self, response: dict[str, Json], *, whole: bool) -> None:
        self._begun = self._begun or "output" in response or "status" in response
        for key in ("id", "model"):
            if found := word(response.get(key)):
                self.head.setdefault(key, found)
        self.usage = read_usage(response.get("usage")) or self.usage
        if not whole:
            return
        status = word(response.get("status"))
        self._finish = word(obj(response.get("incomplete_details")).get("reason")) or status or self._finish
        if isinstance(response.get("error"), dict) and response["error"]:
            self._fail_with(response)
        for key in _EXTRA:
            self.keep(key, response.get(key))
        for index, item in enumerate(objects(response.get("output"))):
            draft = self._items.setdefault(index, _Item())
            if not draft.finished:
                draft.item, draft.finished = item, True

    def _fail_with(self, response: dict[str, Json]) -> None:
        self.fail(read_error({"error": response["error"]}))


def _call(item: _Item) -> ToolCall:
    given = item.item
    arguments: Json = item.said("arguments")
    if arguments is None:  # against the API, but then it is what came
        arguments = given.get(_CALLS[item.kind])
    return ToolCall(
        name=word(given.get("name")),
        arguments=arguments,
        id=word(given.get("call_id")) or word(given.get("id")),
    )


def _stated(item: dict[str, Json], what: str) -> str | None:
    """The text of one sort that an item itself holds."""
    if what == "arguments":
        return text(item.get(_CALLS.get(word(item.get("type")) or "", "arguments")))
    kinds = {
        "content": ("content", "output_text", "text"),
        "refusal": ("content", "refusal", "refusal"),
        "reasoning": ("content", "reasoning_text", "text"),
        "summary": ("summary", "summary_text", "text"),
    }
    field, kind, key = kinds[what]
    if what == "content" and isinstance(item.get(field), str):
        return text(item[field])
    parts = [part for part in items(item.get(field)) if isinstance(part, dict)]
    found = [part[key] for part in parts if part.get("type") == kind and isinstance(part.get(key), str)]
    return join(found) if found else None


def _all(drafts: list[_Item], kind: str, what: str) -> str | None:
    found = [said for item in drafts if item.kind == kind and (said := item.said(what)) is not None]
    return join(found) if found else None
