"""What the harness did with a call, read from the request that it sends next.

The next request of a conversation begins with the messages of the one before; what follows them is the answer as
the harness kept it, and the results. Where the messages were rewritten, a call is found by its id.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import msgspec

from truecall.records import Json, ToolCall, Uptake
from truecall.wire import RequestView
from truecall.wire.calls import arguments_object
from truecall.wire.request import content_text
from truecall.wire.values import obj, objects

_MOST: Final = 20_000  # answers that wait for their next request


class Awaiting(msgspec.Struct):
    """An answer whose next request has not come."""

    number: int
    calls: tuple[ToolCall, ...]
    prefix: bytes


class Uptakes:
    """Answers and the requests that follow them."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, Awaiting] = OrderedDict()
        self._by_prefix: dict[bytes, dict[int, Awaiting]] = {}
        self._by_id: dict[str, Awaiting] = {}

    def answered(self, number: int, chain: Sequence[bytes], calls: tuple[ToolCall, ...]) -> None:
        """An agent's turn was answered with these calls, as the harness got them. ``chain``: see ``prefixes``."""
        if not calls:
            return
        waiting = Awaiting(number, calls, chain[-1])
        self._waiting[number] = waiting
        self._by_prefix.setdefault(waiting.prefix, {})[number] = waiting
        for call in calls:
            if call.id:
                self._by_id[call.id] = waiting
        if len(self._waiting) > _MOST:
            self._forget(next(iter(self._waiting.values())))

    def asked(self, view: RequestView, chain: Sequence[bytes]) -> list[tuple[int, list[Uptake]]]:
        """What a request tells of earlier turns: (exchange number, one uptake for each of its calls)."""
        if not self._by_prefix or not view.messages:
            return []
        out: list[tuple[int, list[Uptake]]] = []
        messages = view.messages
        for place, prefix in enumerate(chain[:-1]):
            if prefix in self._by_prefix:
                waiting = _best(list(self._by_prefix[prefix].values()), messages[place])
                out.append((waiting.number, _compare(waiting.calls, messages[place:])))
                self._forget(waiting)
        for result in view.tool_results:
            found = self._by_id.get(result.id or "")
            if found is not None:
                at = next((i for i, m in enumerate(messages) if _names(m, found.calls)), None)
                if at is not None:
                    out.append((found.number, _compare(found.calls, messages[at:])))
                    self._forget(found)
        return out

    def _forget(self, waiting: Awaiting) -> None:
        del self._waiting[waiting.number]
        same = self._by_prefix[waiting.prefix]
        del same[waiting.number]
        if not same:
            del self._by_prefix[waiting.prefix]
        for call in waiting.calls:
            if call.id and self._by_id.get(call.id) is waiting:
                del self._by_id[call.id]


def _best(candidates: list[Awaiting], message: dict[str, Json]) -> Awaiting:
    """Of several samples of one request the one whose calls the message repeats, else the oldest."""
    return next((c for c in candidates if _names(message, c.calls)), candidates[0])


def prefixes(messages: tuple[dict[str, Json], ...]) -> list[bytes]:
    """The digests of the first 0, 1, 2 … messages."""
    digest = hashlib.blake2b(digest_size=16)
    out = [digest.digest()]
    for message in messages:
        calls = [obj(call.get("function")).get("name") for call in objects(message.get("tool_calls"))]
        kept = (message.get("role"), content_text(message.get("content")), message.get("tool_call_id"), calls)
        digest.update(msgspec.msgpack.encode(kept))
        out.append(digest.digest())
    return out


def _names(message: dict[str, Json], calls: tuple[ToolCall, ...]) -> bool:
    """Whether an assistant message repeats one of the calls by its id."""
    ids = {call.id for call in calls if call.id}
    return any(call.get("id") in ids for call in objects(message.get("tool_calls")))


def _compare(calls: tuple[ToolCall, ...], messages: tuple[dict[str, Json], ...]) -> list[Uptake]:
    """What became of the calls in the messages that follow: the answer as kept, then results."""
    kept = list(objects(messages[0].get("tool_calls"))) if messages[0].get("role") == "assistant" else []
    results: list[dict[str, Json]] = []
    for message in messages[1:]:
        if message.get("role") not in ("tool", "function"):
            break
        results.append(message)
    return [_one(call, place, kept, results) for place, call in enumerate(calls)]


def _one(call: ToolCall, place: int, kept: list[dict[str, Json]], results: list[dict[str, Json]]) -> Uptake:
    by_id = next((item for item in kept if call.id and item.get("id") == call.id), None)
    same = next((item for item in kept if _same(call, item)), None)
    found = by_id or same
    if found is None:
        return Uptake.ALTERED if place < len(kept) and not call.id else Uptake.DROPPED
    if not _same(call, found):
        return Uptake.ALTERED
    wanted = found.get("id")
    answered = any(result.get("tool_call_id") == wanted for result in results) if wanted else bool(results)
    return Uptake.OBSERVED if answered else Uptake.DROPPED


def _same(call: ToolCall, item: dict[str, Json]) -> bool:
    function = obj(item.get("function"))
    if function.get("name") != call.name:
        return False
    given, sent = call.arguments, function.get("arguments")
    return given == sent or (arguments_object(given) or {}) == (arguments_object(sent) or {})
