"""One turn of a log to its verdict, and to the outcome that is counted.

The verdict is `classify`'s. Two common kinds of turn, plain prose and calls that came out whole, are told here
without it: a test holds both ways to the same outcome.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from truecall.classify import judge, judge_exchange, judge_response
from truecall.classify.error_texts import is_error_text
from truecall.classify.tools import emission_of
from truecall.detector import detect
from truecall.records import (
    Call,
    CallVerdict,
    Choice,
    Delivery,
    Detection,
    Emission,
    EvidenceTier,
    Exchange,
    Failure,
    Flags,
    Json,
    Part,
    Request,
    Response,
    Timing,
    Uptake,
    Verdict,
)
from truecall.scan.outcome import (
    Outcome,
    cap_of,
    eligible,
    given_outcome,
    is_first,
    outcome_of,
    prose_outcome,
)
from truecall.scan.prefilter import Prefilter
from truecall.schema import Tool, Toolset, compile_tools
from truecall.sources import Turn
from truecall.wire import RequestView, read, read_request

_PLAIN_FINISH: Final = frozenset({None, "stop", "tool_calls"})


def judge_turn(turn: Turn) -> Verdict:
    """The verdict on one turn. Never raises on what a log holds.

    Where the log does not show what was surfaced, delivery is ``unknown`` beside what was emitted.
    """
    if turn.failure is not None:
        return _failed(turn, turn.failure)
    if turn.body is not None:
        verdict = _of_body(turn)
        if turn.error is None or verdict.flags.produced:
            return verdict
    if turn.error is not None:
        return judge(turn.status, {"error": {"message": turn.error}}, _list(turn), api="openai.chat")
    if turn.surfaced is None:
        return _emission_only(turn)
    return judge_response(_response(turn), _list(turn), request=_view(turn))


def _of_body(turn: Turn) -> Verdict:
    """The verdict on a response as received. A raw text beside it is that of its token ids."""
    api, view = turn.api or "openai.chat", _view(turn)
    tools = turn.tools if isinstance(turn.tools, list) else view.tools if view is not None else None
    response = read(turn.body, api, status=turn.status or 200)
    wrote = turn.text if turn.raw else None
    return judge_response(response, tools, status=turn.status or 200, request=view, detokenized=wrote)


def _failed(turn: Turn, failure: Failure) -> Verdict:
    body = turn.body if isinstance(turn.body, bytes) else b""
    request = Request(method="POST", url="")
    exchange = Exchange(
        request=request, timing=Timing(started_at=0.0), status=turn.status, body=body, failure=failure
    )
    return judge_exchange(exchange, _list(turn), api=turn.api or "openai.chat", request=_view(turn))


def _list(turn: Turn) -> Any:
    return turn.tools if isinstance(turn.tools, list) else None


def _view(turn: Turn) -> RequestView | None:
    """The request as far as the log tells it."""
    if turn.request is not None:
        return read_request(turn.request, turn.api or "openai.chat")
    if turn.tool_choice is None:
        return None
    asked = {"tool_choice": turn.tool_choice, "tools": _list(turn)}
    return read_request(asked, "openai.chat")


def _response(turn: Turn) -> Response:
    choice = Choice(
        content=turn.content if turn.raw else turn.text,
        reasoning=turn.reasoning,
        tool_calls=turn.surfaced or (),
        finish_reason=turn.finish_reason,
        raw_text=turn.text if turn.raw else None,
    )
    return Response(api="openai.chat", choices=(choice,), usage=turn.usage)


# --------------------------------------------------------------------------- nothing known of the interface


def _emission_only(turn: Turn) -> Verdict:
    """What the text shows; what became of it is unknown, but for a result that came back."""
    tier = EvidenceTier.RAW_TEXT if turn.raw else EvidenceTier.CONTENT
    text = turn.text
    if text is None:
        return Verdict(
            emission=Emission.UNKNOWN,
            delivery=Delivery.UNKNOWN,
            rule="turn.unknown.no_text",
            tier=EvidenceTier.NONE,
            cause=Part.UNKNOWN,
            flags=Flags(unknown=True),
            detail="the log holds no text of this turn",
        )
    found = detect(text, _list(turn))
    if not found.calls:
        plain = Response(api="openai.chat", choices=(_choice(turn, text),), usage=turn.usage)
        return judge_response(plain, _list(turn), request=_view(turn))
    return _of_detection(turn, found, tier)


def _choice(turn: Turn, text: str) -> Choice:
    raw = text if turn.raw else None
    content = None if turn.raw and not is_error_text(text) else text
    return Choice(content=content, reasoning=turn.reasoning, finish_reason=turn.finish_reason, raw_text=raw)


def _of_detection(turn: Turn, found: Detection, tier: EvidenceTier) -> Verdict:
    tools = compile_tools(_list(turn))
    delivery = Delivery.SURFACED if turn.observed else Delivery.UNKNOWN
    verdicts = tuple(_call(call, tools, delivery, turn) for call in found.calls)
    shown = next((v for v in verdicts if v.emission is Emission.VALID), verdicts[0])
    return Verdict(
        emission=shown.emission,
        delivery=delivery,
        rule=shown.rule,
        tier=tier,
        cause=shown.cause,
        uptake=shown.uptake,
        calls=verdicts,
        flags=Flags(valid_emitted=shown.emission is Emission.VALID, produced=True),
        notes=found.notes,
        detector=found.version,
        detail="the log does not show what the interface gave" if delivery is Delivery.UNKNOWN else "",
    )


def _call(call: Call, tools: Toolset, delivery: Delivery, turn: Turn) -> CallVerdict:
    emission, violations = emission_of(tools, call)
    return CallVerdict(
        emission=emission,
        delivery=delivery,
        rule="call.surfaced" if delivery is Delivery.SURFACED else "call.delivery_unknown",
        cause=Part.NONE if delivery is Delivery.SURFACED else Part.UNKNOWN,
        uptake=Uptake.OBSERVED if turn.observed else Uptake.UNKNOWN,
        name=call.name,
        arguments=call.arguments,
        dialect=call.dialect,
        emitted=call,
        violations=violations,
        defects=call.defects,
    )


# --------------------------------------------------------------------------- the kernel


class Kernel:
    """Turns to outcomes, with what is asked of a tool list again and again kept."""

    def __init__(self) -> None:
        self._sets: dict[int, tuple[Json, Toolset, Prefilter]] = {}

    def outcome(self, turn: Turn) -> tuple[Outcome, Verdict | None]:
        """The outcome of a turn, and its verdict where it was worked out."""
        quick = self._quick(turn)
        if quick is not None:
            return quick, None
        verdict = judge_turn(turn)
        return outcome_of(turn, verdict), verdict

    def held(self, tools: Json) -> tuple[Json, Toolset, Prefilter]:
        """A compiled tool list; lists are told apart by identity, and held so that it stays theirs."""
        held = self._sets.get(id(tools))
        if held is None or held[0] is not tools:
            if len(self._sets) >= 128:
                self._sets.clear()
            compiled = compile_tools(tools)
            held = self._sets[id(tools)] = (tools, compiled, Prefilter(compiled))
        return held

    def _quick(self, turn: Turn) -> Outcome | None:
        """The outcome of prose without markup, or of calls that came out whole; None: it takes a verdict."""
        surfaced, text = turn.surfaced, turn.text
        if (
            turn.body is not None
            or turn.error is not None
            or turn.request is not None
            or turn.raw
            or turn.failure
        ):
            return None
        if (
            surfaced is None
            or turn.usage is not None
            or turn.reasoning
            or turn.finish_reason not in _PLAIN_FINISH
        ):
            return None
        if turn.tool_choice is not None and turn.tool_choice != "auto":
            return None
        _, tools, prefilter = self.held(turn.tools)
        if text:
            if prefilter.may_call(text):
                if (
                    "</tool_call>" in text or '"arguments"' in text
                ):  # a call, most likely: don't read it twice
                    return None
                found = detect(text, turn.tools if isinstance(turn.tools, list) else None)
                if found.calls or found.notes:
                    return None
            if is_error_text(text):
                return None
        if surfaced:
            return self._surfaced(turn, tools)
        if not text or text.isspace() or turn.finish_reason == "tool_calls":
            return None
        about: Any = {
            "first": is_first(turn),
            "cap": cap_of(turn),
            "stripped": turn.stripped,
            "capped": turn.capped,
        }
        return prose_outcome(eligible(turn), **about)

    def _surfaced(self, turn: Turn, tools: Toolset) -> Outcome | None:
        if turn.finish_reason == "stop":
            return None
        for call in turn.surfaced or ():
            tool = tools.tools.get(call.name or "")
            if tool is None or not fits(tool, call.arguments):
                return None
        about: Any = {
            "first": is_first(turn),
            "cap": cap_of(turn),
            "stripped": turn.stripped,
            "capped": turn.capped,
        }
        return given_outcome(eligible(turn), turn.executed, turn.observed, **about)


def fits(tool: Tool, arguments: Json) -> bool:
    """Whether arguments as they came are one object that the tool's schema takes."""
    if isinstance(arguments, str):
        try:
            arguments = _decode(arguments)
        except (ValueError, RecursionError):
            return False
    return isinstance(arguments, dict) and not tool.check(arguments)


_decode: Final = msgspec.json.Decoder().decode
