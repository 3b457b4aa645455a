"""The rules by which a verdict is reached, and the combinations of emission and delivery that are legal.

Every verdict names one of ``RULES``, or a refusal's rule from ``stacks`` (``gate.*``, ``request.*``, …).
``docs/verdicts.md`` is made from these tables (scripts/make_docs.py), and tests hold the code to them.
"""

from __future__ import annotations

from typing import Final

from truecall.records import Delivery as D
from truecall.records import Emission as E
from truecall.records import Part, Record


class Rule(Record, frozen=True):
    """A stable id, what it says, the part that it puts the loss down to, and what shows it.

    ``case``: an id of the test cases, or ``test:NAME`` for the test ``test_NAME``.
    """

    id: str
    says: str
    cause: Part
    case: str


def _rule(name: str, cause: Part, says: str, case: str) -> Rule:
    return Rule(id=name, says=says, cause=cause, case=case)


RULES: Final = (
    # a call
    _rule("call.surfaced", Part.NONE, "The interface gave the call as structured data.", "ok-sse-parallel"),
    _rule(
        "call.leaked.content",
        Part.PARSER,
        "The call stands in the content, as text; the interface did not give it as a call.",
        "http-portal-tool-call-in-content",
    ),
    _rule(
        "call.leaked.reasoning",
        Part.PARSER,
        "The call stands in the reasoning field alone, and no call or answer follows it.",
        "test:reasoning_swallowed",
    ),
    _rule(
        "call.asked_as_text",
        Part.NONE,
        "tool_choice was none: a call left in the text is what was asked for, no loss.",
        "test:choice_none",
    ),
    _rule(
        "call.erased.evidence",
        Part.PARSER,
        "Stronger evidence than the message shows the call; it is neither in the content nor surfaced.",
        "test:erased",
    ),
    _rule(
        "call.erased.parallel",
        Part.HARNESS,
        "parallel_tool_calls was false: the stack surfaced one call and dropped this one.",
        "test:parallel_calls_dropped",
    ),
    _rule(
        "call.erased.error_body",
        Part.PARSER,
        "Only an error holds the call: the model ran, the client got the error.",
        "http-llamacpp-500-q36-write",
    ),
    _rule(
        "call.stated",
        Part.PARSER,
        "The server says that a call was attempted (error text, finish reason) and withholds it.",
        "http-gemini-empty-content-object",
    ),
    _rule(
        "call.mangled.changed",
        Part.PARSER,
        "The surfaced call has another name or other arguments than the text that the model wrote.",
        "test:mangled_against_evidence",
    ),
    _rule(
        "call.mangled.doubled",
        Part.STREAM,
        "The same arguments (or name, or the arguments' end) stand twice in one call, or an empty object beside "
        "them: a stream was put together wrongly.",
        "sse-duplicate-args-chunk",
    ),
    _rule(
        "call.mangled.concatenated",
        Part.STREAM,
        "Several calls' arguments stand glued together in one call, or came under one index, which clients join.",
        "http-groq-three-merged",
    ),
    _rule(
        "call.mangled.cut",
        Part.STREAM,
        "The arguments are not whole: they end before their JSON does, and neither budget nor stream ended "
        "there; or they lack the beginning that a prefill gave, or never came in a stream though the tool "
        "needs some.",
        "sse-hermes-lost-last-brace",
    ),
    _rule(
        "call.mangled.name",
        Part.PARSER,
        "The surfaced name carries markup, a prefix or the payload itself.",
        "http-glm52-name-with-tag",
    ),
    _rule(
        "call.mangled.markup",
        Part.PARSER,
        "Markup of the dialect, a closing tag or control token, is left behind the arguments.",
        "test:markup_behind_arguments",
    ),
    _rule(
        "call.mangled.nameless",
        Part.STREAM,
        "An entry has no name: a call was split over two entries, or the stack put garbage there.",
        "http-minimax-two-entries",
    ),
    _rule(
        "call.cut_off.budget",
        Part.BUDGET,
        "The token budget ended inside the call.",
        "http-truncated-finish-tool-calls",
    ),
    _rule(
        "call.cut_off.stream",
        Part.STREAM,
        "The stream or connection ended inside the call.",
        "test:stream_cut_inside_call",
    ),
    _rule(
        "call.cut_off.filter",
        Part.SERVER,
        "A content filter ended the answer inside the call.",
        "test:filtered",
    ),
    _rule(
        "call.phantom",
        Part.PARSER,
        "The interface surfaced a call that the model's own text does not hold.",
        "test:phantom",
    ),
    _rule(
        "call.delivery_unknown",
        Part.UNKNOWN,
        "A log holds the call as the model wrote it, and not what the interface gave.",
        "test:logs_of_text_alone",
    ),
    # a turn without one
    _rule("turn.no_call", Part.MODEL, "The model wrote an answer and no call.", "test:prose_answer"),
    _rule(
        "turn.required_ignored",
        Part.CONSTRAINT,
        "A call was required, the model answered in prose: the constraint was not enforced.",
        "http-gemma4-required-prose",
    ),
    _rule(
        "turn.truncated.budget",
        Part.BUDGET,
        "The token budget ended before any call: right-censored.",
        "test:truncated_prose",
    ),
    _rule(
        "turn.truncated.stream",
        Part.STREAM,
        "The stream or connection ended before any call: right-censored.",
        "test:stream_cut_before_call",
    ),
    _rule(
        "turn.truncated.filter",
        Part.SERVER,
        "A content filter ended the answer before any call: right-censored.",
        "test:filtered",
    ),
    _rule(
        "turn.empty",
        Part.MODEL,
        "The model ran and stopped at once: at most its end token was generated.",
        "test:one_token_empty",
    ),
    _rule(
        "turn.zero_usage",
        Part.SERVER,
        "Prompt and completion counts are both zero: nothing ran behind this answer.",
        "http-ollama-null-zero-usage",
    ),
    _rule(
        "turn.unknown.tokens_vanished",
        Part.PARSER,
        "More tokens were generated than the content and reasoning that came can hold: text was taken away.",
        "http-ollama-empty-coder-stream-native",
    ),
    _rule(
        "turn.unknown.finish_says_call",
        Part.PARSER,
        "finish_reason says that there is a call, there is no call and no text: it was taken away.",
        "http-mlxlm-finish-toolcalls-empty",
    ),
    _rule(
        "turn.unknown.empty",
        Part.UNKNOWN,
        "An empty answer without token counts: nobody can say what was generated.",
        "http-abort-normalised-to-stop",
    ),
    _rule(
        "turn.unknown.reasoning_only",
        Part.UNKNOWN,
        "Reasoning came, no answer; the token counts do not show that nothing else was written.",
        "test:reasoning_only",
    ),
    _rule(
        "turn.unknown.no_text",
        Part.UNKNOWN,
        "A log holds neither text nor calls of the turn.",
        "test:logs_without_a_text",
    ),
    _rule(
        "turn.error_text",
        Part.HARNESS,
        "The assistant's text is an error that a harness or gateway saved as an answer.",
        "test:error_saved_as_text",
    ),
    _rule(
        "turn.not_an_answer",
        Part.GATEWAY,
        "The body is no answer of this API (HTML, another format, nothing).",
        "test:not_an_answer",
    ),
    # the network
    _rule(
        "net.unreachable",
        Part.NETWORK,
        "No connection: refused, no such host, TLS, no route.",
        "test:failures",
    ),
    _rule("net.timeout", Part.NETWORK, "Time ran out before the answer was whole.", "test:failures"),
    _rule(
        "net.closed",
        Part.NETWORK,
        "The body or connection ended before the answer was whole.",
        "test:failures",
    ),
    _rule("net.not_http", Part.NETWORK, "What came back is not HTTP, or not decodable.", "test:failures"),
    _rule(
        "net.too_large",
        Part.SERVER,
        "The body passed the size limit and the rest was dropped.",
        "test:failures",
    ),
)

BY_ID: Final[dict[str, Rule]] = {rule.id: rule for rule in RULES}

CALL_EMISSIONS: Final = frozenset({E.VALID, E.INVALID_ARGUMENTS, E.WRONG_NAME, E.MALFORMED})
"""The emissions of a turn or call in which the model attempted a call."""

LOST: Final = frozenset({D.LEAKED, D.ERASED, D.MANGLED})
"""Deliveries in which the stack lost or changed a whole call."""

_CALL: Final = frozenset({D.SURFACED, D.LEAKED, D.ERASED, D.MANGLED, D.NOTHING, D.UNKNOWN})

LEGAL: Final[dict[E, frozenset[D]]] = {
    E.VALID: _CALL,
    E.INVALID_ARGUMENTS: _CALL,
    E.WRONG_NAME: _CALL,
    E.MALFORMED: _CALL | {D.CUT_OFF},
    E.NO_CALL: frozenset({D.NOTHING, D.PHANTOM}),
    E.TRUNCATED: frozenset({D.NOTHING, D.PHANTOM, D.TIMEOUT, D.SERVER_ERROR}),
    E.EMPTY: frozenset({D.NOTHING, D.PHANTOM}),
    E.NOT_RUN: frozenset({D.REJECTED, D.RATE_LIMITED, D.SERVER_ERROR, D.TIMEOUT, D.UNREACHABLE, D.UNKNOWN}),
    E.UNKNOWN: frozenset({D.UNKNOWN, D.SERVER_ERROR, D.TIMEOUT}),
}
"""Emission -> the deliveries that may stand beside it.

``nothing`` beside a call: tool_choice was none, the call was asked for as text. ``unknown`` beside a call: a log
holds the text alone; beside ``not_run``: an answer came, but its counts say that nothing ran.
"""

SEVERITY: Final = (
    D.ERASED,
    D.MANGLED,
    D.LEAKED,
    D.PHANTOM,
    D.CUT_OFF,
    D.UNKNOWN,
    D.SURFACED,
    D.NOTHING,
)
"""Which call's triple a turn shows: the first of these deliveries that it has."""

EMISSION_SEVERITY: Final = (
    E.VALID,
    E.INVALID_ARGUMENTS,
    E.WRONG_NAME,
    E.MALFORMED,
    E.NO_CALL,
    E.TRUNCATED,
    E.EMPTY,
)
"""Within one delivery: a lost valid call weighs most; among surfaced calls the order is reversed."""
