"""Turns without a call, refused and failed requests: what can be said of them, and what can't."""

from __future__ import annotations

import re
from typing import Final

from truecall import stacks
from truecall.classify.error_texts import is_error_text
from truecall.classify.rules import BY_ID, LEGAL
from truecall.records import (
    Choice,
    Delivery,
    Emission,
    ErrorBody,
    EvidenceTier,
    Failure,
    FailureKind,
    Flags,
    Part,
    Usage,
    Verdict,
)
from truecall.stacks.refusals_status import BY_STATUS

_UNREACHABLE: Final = frozenset(
    {FailureKind.REFUSED, FailureKind.DNS, FailureKind.TLS, FailureKind.UNREACHABLE}
)
_TIMEOUTS: Final = frozenset(
    {
        FailureKind.TIMEOUT_CONNECT,
        FailureKind.TIMEOUT_FIRST_BYTE,
        FailureKind.TIMEOUT_BETWEEN_BYTES,
        FailureKind.TIMEOUT_TOTAL,
    }
)
_RULE_OF_FAILURE: Final = {
    FailureKind.TOO_LARGE: "net.too_large",
    FailureKind.NOT_HTTP: "net.not_http",
    FailureKind.BAD_ENCODING: "net.not_http",
}

_REREAD_429: Final = frozenset({Delivery.REJECTED, Delivery.SERVER_ERROR})

SAYS_CALL: Final = frozenset({"tool_calls", "tool_use", "function_call"})
"""finish_reasons by which an answer claims that it holds a call."""

_STATES_ATTEMPT: Final = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "malformed_function_call", "unexpected_tool_call"}
)

_END_TOKENS: Final = 1  # generated where nothing was written: the token that ends the turn
_AFTER_REASONING: Final = 3  # the token that closes the reasoning, a line break, the end token
_MARKERS: Final = 8  # special tokens around a text, which it does not show


def turn(
    emission: Emission,
    delivery: Delivery,
    rule: str,
    *,
    tier: EvidenceTier = EvidenceTier.NONE,
    cause: Part | None = None,
    detail: str = "",
    produced: bool = False,
) -> Verdict:
    """A verdict on a turn without a call. ``cause`` None: the rule's own."""
    known = BY_ID.get(rule)
    return Verdict(
        emission=emission,
        delivery=delivery,
        rule=rule,
        tier=tier,
        cause=cause if cause is not None else known.cause if known else Part.UNKNOWN,
        detail=detail or (known.says if known else ""),
        flags=Flags(unknown=emission is Emission.UNKNOWN, produced=produced),
    )


# --------------------------------------------------------------------------- the network


def failed(failure: Failure, *, produced: bool) -> Verdict:
    """No whole response came. ``produced``: some text of the model had come before it broke."""
    kind = failure.kind
    detail = f"{kind}: {failure.detail}" if failure.detail else str(kind)
    emission = Emission.TRUNCATED if produced else Emission.UNKNOWN
    if kind in _UNREACHABLE:
        return turn(Emission.NOT_RUN, Delivery.UNREACHABLE, "net.unreachable", detail=detail)
    if kind in _TIMEOUTS:
        if kind is FailureKind.TIMEOUT_CONNECT:
            emission = Emission.NOT_RUN
        return turn(emission, Delivery.TIMEOUT, "net.timeout", detail=detail, produced=produced)
    rule = _RULE_OF_FAILURE.get(kind, "net.closed")
    return turn(emission, Delivery.SERVER_ERROR, rule, detail=detail, produced=produced)


# --------------------------------------------------------------------------- errors


def refused(status: int | None, error: ErrorBody | None, *, produced: bool = False) -> Verdict | None:
    """An error answer, or an error inside one, that holds no call to be read; None when it is no error.

    ``produced``: some text of the model came before the error. Whether the model ran is told by the error's
    own words first, then by the status.
    """
    if status is not None and 300 <= status < 400:
        error = None  # what a redirect's page says does not matter
    message = error.message if error is not None else ""
    found = stacks.refusal(status, error, message)
    if found is None:
        return None
    if status == 429 and not found.ran and found.delivery in _REREAD_429:  # its words may name the limit
        found = BY_STATUS[429]
    detail = " ".join(message.split())[:300] or found.title
    if found.attempted and _states_attempt(error):
        return stated(detail, part=found.part)
    emission = Emission.NOT_RUN if found.ran is False else Emission.UNKNOWN
    if produced and not found.ran:
        emission = Emission.TRUNCATED
    delivery = found.delivery if found.delivery in LEGAL[emission] else Delivery.SERVER_ERROR
    return Verdict(
        emission=emission,
        delivery=delivery,
        rule=found.rule,
        tier=EvidenceTier.ERROR_BODY if found.ran else EvidenceTier.NONE,
        cause=found.part,
        detail=detail,
        flags=Flags(unknown=emission is Emission.UNKNOWN, produced=bool(found.ran) or produced),
    )


def stated(detail: str, *, part: Part = Part.PARSER) -> Verdict:
    """The server says that the model attempted a call, and withholds it."""
    return Verdict(
        emission=Emission.MALFORMED,
        delivery=Delivery.ERASED,
        rule="call.stated",
        tier=EvidenceTier.ERROR_BODY,
        cause=part,
        detail=detail,
        flags=Flags(produced=True),
    )


_NAMES_PAYLOAD: Final = re.compile(r"pars(?:e|ing) (?:the )?(?:tool|function)", re.IGNORECASE)
_DENIES_CALL: Final = re.compile(
    r"(?:did|does|would) ?n[o']t call|no (?:tool|function) calls?\b", re.IGNORECASE
)
_SPEAKS_OF_CALL: Final = re.compile(r"tool|function", re.IGNORECASE)
_MARKUP: Final = re.compile(r"[<{\[(`]")


def _states_attempt(error: ErrorBody | None) -> bool:
    """Whether an error that stands for an attempted call really says so.

    Where it shows what the model wrote, and no call was read from it, the text must at least look like one.
    """
    if error is None:
        return True
    text = error.generation or ""
    words = (
        f"{error.message.replace(text, ' ') if text else error.message} {error.type or ''} {error.code or ''}"
    )
    if _DENIES_CALL.search(words):
        return False
    if not text or _NAMES_PAYLOAD.search(words):
        return True
    return bool(_SPEAKS_OF_CALL.search(words) and _MARKUP.search(text))


def _saved_error(text: str, tier: EvidenceTier) -> Verdict:
    """An error that a harness or gateway saved as the assistant's text."""
    detail = " ".join(text.split())[:300]
    known = stacks.refusal(None, ErrorBody(message=text))
    emission, delivery = Emission.UNKNOWN, Delivery.SERVER_ERROR
    if known is not None and known.ran is False:
        emission, delivery = Emission.NOT_RUN, known.delivery
    elif known is not None and known.delivery is Delivery.TIMEOUT:
        delivery = Delivery.TIMEOUT
    return turn(emission, delivery, "turn.error_text", tier=tier, detail=detail)


# --------------------------------------------------------------------------- answers


def no_call(
    choice: Choice,
    usage: Usage,
    *,
    tier: EvidenceTier,
    evidence_text: str | None,
    cut: str | None,
    required: bool,
) -> Verdict:
    """An answer came in which no call is to be seen, by the evidence of ``tier``.

    ``evidence_text``: the text of a tier above ``content``, else None. ``usage`` counts this choice alone.
    """
    if choice.finish_reason in _STATES_ATTEMPT and not evidence_text:
        return stated(f"finish_reason {choice.finish_reason}; the text is withheld")
    if evidence_text is None and is_error_text(choice.content):
        return _saved_error(choice.content or "", tier)
    generated = usage.completion_tokens
    if generated is None and choice.token_ids is not None:
        generated = len(choice.token_ids)
    text = evidence_text if evidence_text is not None else choice.content
    if text and text.strip():
        missing = _missing(choice, generated, usage) if evidence_text is None and cut is None else 0
        if missing:
            detail = f"{missing} tokens more were generated than the text that came can hold"
            return _unknown("tokens_vanished", detail, produced=True, tier=tier)
        return _prose(tier, cut, required)
    if choice.refusal:
        return turn(Emission.NO_CALL, Delivery.NOTHING, "turn.no_call", tier=tier, produced=True)
    if evidence_text is not None:
        return _wrote_nothing(generated, cut, tier, "the model's own text is empty")
    if choice.reasoning and choice.reasoning.strip():
        return _reasoning_only(generated, usage, tier, cut)
    if choice.finish_reason in SAYS_CALL:
        detail = f"finish_reason {choice.finish_reason}, no call, no text"
        return _unknown("finish_says_call", detail, produced=bool(generated))
    return _empty(generated, usage, cut)


def _unknown(
    what: str, detail: str = "", *, produced: bool = False, tier: EvidenceTier = EvidenceTier.NONE
) -> Verdict:
    rule = f"turn.unknown.{what}"
    return turn(Emission.UNKNOWN, Delivery.UNKNOWN, rule, tier=tier, detail=detail, produced=produced)


def _missing(choice: Choice, generated: int | None, usage: Usage) -> int:
    """Tokens beyond what content and reasoning can be made of; a token is at least a byte of text."""
    if generated is None:
        return 0
    thought = usage.reasoning_tokens
    if thought is None:
        thought = len((choice.reasoning or "").encode())
    return max(0, generated - thought - len((choice.content or "").encode()) - _MARKERS)


def _prose(tier: EvidenceTier, cut: str | None, required: bool) -> Verdict:
    if cut is not None:
        return turn(Emission.TRUNCATED, Delivery.NOTHING, f"turn.truncated.{cut}", tier=tier, produced=True)
    rule = "turn.required_ignored" if required else "turn.no_call"
    return turn(Emission.NO_CALL, Delivery.NOTHING, rule, tier=tier, produced=True)


def _reasoning_only(generated: int | None, usage: Usage, tier: EvidenceTier, cut: str | None) -> Verdict:
    if cut is not None:
        return turn(Emission.TRUNCATED, Delivery.NOTHING, f"turn.truncated.{cut}", tier=tier, produced=True)
    thought = usage.reasoning_tokens
    if generated is not None and thought is not None and generated - thought <= _AFTER_REASONING:
        return turn(Emission.NO_CALL, Delivery.NOTHING, "turn.no_call", tier=tier, produced=True)
    return _unknown("reasoning_only", produced=True, tier=tier)


def _empty(generated: int | None, usage: Usage, cut: str | None) -> Verdict:
    """Nothing came and nothing stronger is known: only the counts can say more."""
    if generated is None:
        return _unknown("empty", "an empty answer without token counts")
    if generated == 0 and usage.prompt_tokens == 0:
        return turn(Emission.NOT_RUN, Delivery.UNKNOWN, "turn.zero_usage", detail="usage 0 + 0")
    thought = usage.reasoning_tokens or 0
    written = generated - thought
    if written > _END_TOKENS:
        return _unknown("tokens_vanished", f"{written} tokens were generated, none came", produced=True)
    detail = f"{generated} tokens generated, {thought} of them reasoning"
    return _wrote_nothing(generated, cut, EvidenceTier.NONE, detail)


def _wrote_nothing(generated: int | None, cut: str | None, tier: EvidenceTier, detail: str) -> Verdict:
    """The model ran and wrote no text; where the budget was as small as that, nothing can be said of it."""
    produced = bool(generated)
    if cut is not None and produced:
        rule = f"turn.truncated.{cut}"
        return turn(Emission.TRUNCATED, Delivery.NOTHING, rule, tier=tier, detail=detail, produced=True)
    return turn(Emission.EMPTY, Delivery.NOTHING, "turn.empty", tier=tier, detail=detail, produced=produced)
