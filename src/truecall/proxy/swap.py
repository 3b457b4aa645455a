"""The interface swapped: calls that the stack lost given as ``tool_calls``, or given ones turned into text.

``surface`` delivers only what the detector holds for a tight call outside reasoning that the stack leaked or
erased: an offered name, arguments that fit its schema, nothing repaired, nothing renamed.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

import msgspec

from truecall import canonical
from truecall.classify import judge_response
from truecall.detector import detect
from truecall.evidence import without_end
from truecall.records import Call, CallTier, Choice, Delivery, Emission, Json, Response
from truecall.wire import RequestView
from truecall.wire.calls import arguments_object
from truecall.wire.values import objects

_LOST: Final = (Delivery.LEAKED, Delivery.ERASED)


class Swapped(NamedTuple):
    """How many calls were put into (or taken out of) an answer."""

    calls: int


class Plan(NamedTuple):
    """The calls to deliver from one choice, and the content that is left after the given place."""

    calls: list[Call]
    rest: str


def plan(
    response: Response, index: int, view: RequestView, text: str | None, *, given: int = 0
) -> Plan | None:
    """What ``surface`` makes of a choice; None: nothing is to be delivered.

    ``text`` is that of the choice's token ids, where it could be had. ``given``: characters of the content that
    the client has already; a call that begins in them is left there.
    """
    if view.tool_choice == "none" or not view.tools:
        return None
    choice = response.choices[index]
    verdict = judge_response(response, view.tools, request=view, detokenized=text, choice=index)
    lost = [v for v in verdict.calls if v.delivery in _LOST and v.emission is Emission.VALID]
    whole = [v for v in lost if v.emitted is not None and _sure(v.emitted)]
    if view.parallel_tool_calls is False:
        whole = [] if choice.tool_calls else whole[:1]
    if not whole:
        return None
    content = choice.content or ""
    spots = [call for call in detect(content, view.tools).calls if _sure(call)]
    calls: list[Call] = []
    cut: list[tuple[int, int]] = []
    for item in whole:
        call = item.emitted
        assert call is not None
        if item.delivery is Delivery.LEAKED:
            spot = next((s for s in spots if s.name == call.name and s.arguments == call.arguments), None)
            if spot is None or spot.span.start < given:
                continue
            spots.remove(spot)
            cut.append((spot.span.start, spot.span.end))
        calls.append(call)
    return Plan(calls, _without(content, cut, given)) if calls else None


def swap_whole(
    swap: str,
    value: dict[str, Json],
    response: Response,
    view: RequestView,
    texts: list[str | None],
    number: int,
) -> Swapped:
    """Changes a decoded chat completion in place, all its choices."""
    count = 0
    for index, choice in enumerate(objects(value.get("choices"))):
        message = choice.get("message")
        if not isinstance(message, dict) or index >= len(response.choices):
            continue
        text = texts[index] if index < len(texts) else None
        if swap == "surface":
            found = plan(response, index, view, text)
            if found is None:
                continue
            message["content"] = found.rest or None
            kept = message.get("tool_calls")
            kept = kept if isinstance(kept, list) else []
            message["tool_calls"] = kept + structured(found.calls, number, index, len(kept))
            choice["finish_reason"] = "tool_calls"
            count += len(found.calls)
        elif message.get("tool_calls"):
            read = response.choices[index]
            message["content"] = hidden_content(read, view, text)
            count += len(read.tool_calls)
            del message["tool_calls"]
            if choice.get("finish_reason") == "tool_calls":
                choice["finish_reason"] = "stop"
    return Swapped(count)


def structured(calls: list[Call], number: int, choice: int, first: int) -> list[dict[str, Json]]:
    """The calls as a chat completion has them. Ids are made from exchange, choice and place."""
    out: list[dict[str, Json]] = []
    for place, call in enumerate(calls, first):
        digest = hashlib.sha256(f"{number}.{choice}.{place}".encode()).hexdigest()[:24]
        arguments = msgspec.json.encode(call.arguments or {}).decode()
        function = {"name": call.name, "arguments": arguments}
        out.append({"id": f"call_{digest}", "type": "function", "function": function})
    return out


def hidden_text(choice: Choice, view: RequestView, text: str | None) -> str:
    """The calls of a choice as the text that a stack without a parser leaves.

    The model's own words where they are known, else the calls written as hermes text.
    """
    raw = text if text is not None else choice.raw_text or choice.logprob_text
    if raw is not None:
        raw = without_end(raw)
        calls = detect(raw, view.tools).calls
        if calls:
            return raw[calls[0].span.start :]
    written = [(call.name or "", arguments_object(call.arguments) or {}) for call in choice.tool_calls]
    return canonical.write("hermes", written)


def hidden_content(choice: Choice, view: RequestView, text: str | None) -> str:
    """The whole content that a stack without a parser gives."""
    calls = hidden_text(choice, view, text)
    content = choice.content or ""
    if not content.strip() or calls.startswith(content):
        return calls
    return content if content.endswith(calls) else content.rstrip("\n") + "\n" + calls


def _sure(call: Call) -> bool:
    return call.tier is CallTier.TIGHT and not call.in_reasoning and call.arguments is not None


def _without(content: str, cut: list[tuple[int, int]], given: int) -> str:
    """The content after ``given`` without the calls; white space that stood around them goes with them."""
    out = ""
    at = given
    for start, end in sorted(cut):
        out += content[at:start]
        at = end
    return (out.rstrip() + content[at:].rstrip() if cut else content[at:]).rstrip()
