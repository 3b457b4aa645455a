"""One answer or error, read against its evidence: which calls there are, and what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from truecall import evidence as evidence_room
from truecall.classify import calls as call_room
from truecall.classify import surfaced as surfaced_room
from truecall.classify import turns
from truecall.classify.summary import noted, of_calls
from truecall.detector import detect
from truecall.evidence import STRONGER
from truecall.records import (
    Call,
    CallTier,
    Choice,
    Delivery,
    Detection,
    Emission,
    Evidence,
    EvidenceTier,
    Json,
    Response,
    Span,
    SpanKind,
    Usage,
    Verdict,
)
from truecall.schema import Toolset, compile_tools
from truecall.wire import RequestView
from truecall.wire.values import decode

_CAPPED: Final = frozenset(
    {"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "incomplete"}
)
_FILTERED: Final = frozenset(
    {"content_filter", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "refusal"}
)
_BROKEN_OFF: Final = frozenset({"error", "abort", "cancelled"})
_SAYS_END: Final = frozenset({"stop", "end_turn"})
NOTHING_DETECTED: Final = detect("")


class Turn:
    """What is at hand for one verdict."""

    def __init__(
        self,
        response: Response,
        answer: Choice | None,
        tools: Sequence[Json] | None,
        request: RequestView | None,
        detokenized: str | None,
    ) -> None:
        self.response = response
        self.answer = answer
        self.offered = tools
        self.tools: Toolset = compile_tools(tools)
        self.request = request
        self.evidence = evidence_room.best(response, answer, detokenized=detokenized, request=request)

    @property
    def choice(self) -> str | None:
        """tool_choice: auto, required, named, none, or None where nothing was said."""
        return self.request.tool_choice if self.request is not None else None

    @property
    def forced(self) -> bool:
        """Whether the request constrains or begins the text."""
        request = self.request
        return request is not None and bool(
            request.tool_choice in ("required", "named") or request.constraint or request.prefill
        )

    def usage(self) -> Usage:
        """Token counts of the answer; nothing where one count covers several answers."""
        usage = self.response.usage
        return usage if usage is not None and len(self.response.choices) < 2 else Usage()

    def detect(self, text: str | None) -> Detection:
        return detect(text, self.offered) if text and text.strip() else NOTHING_DETECTED


def produced(answer: Choice | None) -> bool:
    """Whether an answer holds any text or call."""
    return answer is not None and bool(answer.content or answer.reasoning or answer.tool_calls)


# --------------------------------------------------------------------------- errors


def judge_error(turn: Turn, status: int | None) -> Verdict:
    """An error status, or no answer at all. The body is read before anything is called infrastructure."""
    response, answer = turn.response, turn.answer
    setting = call_room.Setting(tools=turn.tools, in_error=True)
    detection = turn.detect(turn.evidence.text)
    verdicts = call_room.from_evidence(detection.calls, (), (), setting)
    if answer is not None:  # "500 with a call in it"
        given = surfaced_room.read(
            answer.tool_calls, turn.tools, turn.offered, cut=None, stream=response.stream
        )
        verdicts += call_room.refused(given)
    if verdicts:
        found = Evidence(tier=EvidenceTier.ERROR_BODY, text=turn.evidence.text)
        return of_calls(verdicts, found, detection.version, notes=response.defects)
    page = "not_json" in response.defects and (status is None or status < 300)
    verdict = None if page else turns.refused(status, response.error, produced=produced(answer))
    if verdict is None:
        verdict = _no_answer(response, status)
    return noted(verdict, response.defects, detection.version)


def _no_answer(response: Response, status: int | None) -> Verdict:
    rule = "turn.not_an_answer"
    if not response.complete and not {"empty_body", "too_deep"} & set(response.defects):
        rule = "net.closed"  # the body begins as one and ends early
    said = ", ".join(response.defects) or "no choices"
    detail = f"status {status if status is not None else 'unknown'}: {said}"
    return turns.turn(Emission.UNKNOWN, Delivery.SERVER_ERROR, rule, detail=detail)


# --------------------------------------------------------------------------- answers


def judge_answer(turn: Turn, answer: Choice, status: int | None) -> Verdict:
    response, found = turn.response, turn.evidence
    cut = _cut(turn, answer)
    strong = found.text if found.tier in STRONGER else None
    setting = call_room.Setting(
        tools=turn.tools,
        cut=cut,
        stream=response.stream,
        choice_none=turn.choice == "none",
        forced=turn.forced,
        one_call=turn.request is not None and turn.request.parallel_tool_calls is False,
        in_error=found.tier is EvidenceTier.ERROR_BODY,
        silent=strong is not None and not strong.strip(),
    )
    given = surfaced_room.read(
        answer.tool_calls,
        turn.tools,
        turn.offered,
        cut=cut,
        stream=response.stream,
        prefilled=turn.request is not None and turn.request.prefill,
        twice="duplicate_chunk" in response.defects,
    )
    left = turn.detect(answer.content)
    notes = list(response.defects)
    if strong is not None:
        detection = left if strong == answer.content else turn.detect(strong)
        thought = _in_reasoning(turn.detect(answer.reasoning).calls)
        emitted = detection.calls or _named_payload(turn, strong)
        verdicts = call_room.from_evidence(emitted, (*left.calls, *thought), given, setting)
    else:
        detection = left
        calls = (*left.calls, *_thought(turn, answer, left, given))
        if not calls and not given:
            calls = _named_payload(turn, answer.content)
        verdicts, more = call_room.from_content(calls, given, setting)
        notes += more
    notes += [*detection.notes, *_claims(turn, answer, cut)]
    if verdicts:
        return of_calls(verdicts, found, detection.version, notes=notes, forced=turn.forced)
    verdict = turns.no_call(
        answer,
        turn.usage(),
        tier=found.tier,
        evidence_text=strong,
        cut=cut,
        required=turn.choice in ("required", "named"),
    )
    if response.error is not None and verdict.rule != "call.stated":
        verdict = turns.refused(status, response.error, produced=produced(answer)) or verdict
    return noted(verdict, notes, detection.version, forced=turn.forced)


def _thought(
    turn: Turn, answer: Choice, left: Detection, given: Sequence[surfaced_room.Surfaced]
) -> tuple[Call, ...]:
    """Calls in the reasoning field count only when no call and no answer follows it (DESIGN §2)."""
    if given or left.calls or (answer.content or "").strip():
        return ()
    return _in_reasoning(turn.detect(answer.reasoning).calls)


def _in_reasoning(calls: Sequence[Call]) -> tuple[Call, ...]:
    return tuple(msgspec.structs.replace(call, in_reasoning=True) for call in calls)


def _named_payload(turn: Turn, text: str | None) -> tuple[Call, ...]:
    """Under a named choice the constraint may leave the arguments alone in the text: they are the call."""
    name = turn.request.tool_name if turn.request is not None and turn.choice == "named" else None
    if name is None or text is None or text.lstrip()[:1] != "{":
        return ()
    arguments, tool = decode(text.strip()), turn.tools.get(name)
    if not isinstance(arguments, dict) or tool is None or tool.check(arguments):
        return ()
    call = Call(
        name=name,
        arguments=arguments,
        dialect="arguments_only",
        well_formed=True,
        tier=CallTier.STRONG,
        span=Span(kind=SpanKind.CALL, start=0, end=len(text)),
        offered=True,
        violations=(),
    )
    return (call,)


def _cut(turn: Turn, answer: Choice) -> str | None:
    """What ended the answer early. finish_reason is a claim: counts decide where they are known."""
    response = turn.response
    limit = turn.request.max_tokens if turn.request is not None else None
    spent = turn.usage().completion_tokens
    if limit is not None and spent is not None and spent >= limit:
        return "budget"
    if answer.finish_reason in _CAPPED:
        return "budget"
    if answer.finish_reason in _FILTERED:
        return "filter"
    broken = response.stream and response.error is not None and answer.finish_reason is None
    if broken or answer.finish_reason in _BROKEN_OFF:
        return "stream"
    return None if response.complete else "stream"


def _claims(turn: Turn, answer: Choice, cut: str | None) -> list[str]:
    """Side observations on what the answer says of itself."""
    finish, called = answer.finish_reason, bool(answer.tool_calls)
    says_call, says_end = finish in turns.SAYS_CALL, finish in _SAYS_END
    # A named call ends with "stop" by the API's own rules; Ollama knows no other word.
    hides_call = says_end and called and turn.choice != "named"
    hides_call = hides_call and turn.response.api in ("openai.chat", "anthropic.messages")
    notes = []
    if (says_call and not called) or hides_call or ((says_call or says_end) and cut == "budget"):
        notes.append("finish_reason_lies")
    if turn.request is not None and not turn.tools.names:
        notes.append("no_tools_offered")
    if called and turn.choice == "none":
        notes.append("none_ignored")
    if len(turn.response.choices) > 1:
        notes.append("several_choices")
    return notes
