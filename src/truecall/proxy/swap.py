"""The interface swapped: calls that the stack lost given as calls, or given ones turned into text.

``surface`` delivers only what the detector holds for a tight call outside reasoning that the stack leaked or
erased: an offered name, arguments that fit its schema, nothing repaired, nothing renamed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from truecall import canonical
from truecall.classify import judge_response
from truecall.detector import detect
from truecall.evidence import without_end
from truecall.proxy.forms import Form, New
from truecall.records import Call, CallTier, Choice, Delivery, Emission, Json, Response
from truecall.wire import RequestView
from truecall.wire.calls import arguments_object

_LOST: Final = (Delivery.LEAKED, Delivery.ERASED)


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
    form: Form,
    swap: str,
    value: dict[str, Json],
    response: Response,
    view: RequestView,
    texts: list[str | None],
    number: int,
) -> int:
    """Changes a decoded answer in place, all its choices; how many calls were put in or taken out."""
    count = 0
    for index, choice in enumerate(response.choices):
        text = texts[index] if index < len(texts) else None
        if swap == "surface":
            found = plan(response, index, view, text)
            if found is not None:
                form.whole(value, index, New(found.rest, found.rest, found.calls, False, number))
                count += len(found.calls)
        elif choice.tool_calls:
            content = hidden_content(choice, view, text)
            form.whole(value, index, New(content, content, [], True, number))
            count += len(choice.tool_calls)
    return count


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
