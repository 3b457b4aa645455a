"""The data of every room: exchanges, responses, detections, verdicts, findings.

Nothing here imports anything of ours, does I/O or decides anything. All records are frozen and
encode to JSON as they stand (``msgspec.json``). ``None`` means "unknown", never "zero" or "no".
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import msgspec

Json = Any
"""A decoded JSON value."""

Headers = tuple[tuple[str, str], ...]
"""Header fields in the order received; names as received."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of all records: frozen, and defaults are left out when encoded. Fields are given by name."""


# --------------------------------------------------------------------------- exchanges


class FailureKind(StrEnum):
    """How an exchange failed before a whole response was there."""

    REFUSED = "refused"  # TCP connection refused
    DNS = "dns"  # the host name does not resolve
    TLS = "tls"  # handshake or certificate
    UNREACHABLE = "unreachable"  # no route, reset while connecting
    TIMEOUT_CONNECT = "timeout_connect"
    TIMEOUT_FIRST_BYTE = "timeout_first_byte"
    TIMEOUT_BETWEEN_BYTES = "timeout_between_bytes"
    TIMEOUT_TOTAL = "timeout_total"  # bytes kept dripping past the exchange's whole time
    CLOSED_BEFORE_RESPONSE = "closed_before_response"
    CLOSED_MID_STREAM = "closed_mid_stream"  # headers came, the body ended early
    NOT_HTTP = "not_http"  # bytes came that are no HTTP response
    TOO_LARGE = "too_large"  # the body passed the limit; what came before it is kept
    BAD_ENCODING = "bad_encoding"  # content-encoding could not be undone


class Failure(Record, frozen=True):
    """A typed transport failure; ``detail`` is one line without secrets."""

    kind: FailureKind
    detail: str = ""


class Chunk(Record, frozen=True):
    """One piece of a body as it arrived: ``at`` in seconds since the request was sent, ``size`` in bytes."""

    at: float
    size: int


class Timing(Record, frozen=True):
    """Seconds since the request began; None where the point was not reached."""

    started_at: float  # POSIX time
    first_byte: float | None = None
    total: float | None = None


class Request(Record, frozen=True):
    """An HTTP request as sent, secrets already replaced in ``headers`` and ``url``."""

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""


class Exchange(Record, frozen=True):
    """One HTTP request and all that came back.

    ``body`` holds the bytes after content-encoding was undone (``received`` counts the bytes on the
    wire); it is whole unless ``failure`` says otherwise. ``status`` is None when no response line came.
    """

    request: Request
    timing: Timing
    status: int | None = None
    headers: Headers = ()
    body: bytes = b""
    received: int = 0
    chunks: tuple[Chunk, ...] = ()
    failure: Failure | None = None

    def header(self, name: str) -> str | None:
        """The first value of a response header, or None."""
        low = name.lower()
        return next((value for key, value in self.headers if key.lower() == low), None)


# --------------------------------------------------------------------------- responses


class Api(StrEnum):
    """Wire formats, by the names that cases and run folders use."""

    OPENAI_CHAT = "openai.chat"
    OPENAI_COMPLETIONS = "openai.completions"
    OPENAI_RESPONSES = "openai.responses"
    ANTHROPIC = "anthropic.messages"
    GEMINI = "gemini.generateContent"
    OLLAMA_CHAT = "ollama.chat"


class ToolCall(Record, frozen=True):
    """A structured call as the interface gave it.

    ``arguments`` is the text received (OpenAI wires) or the decoded object (Ollama, Anthropic, Gemini);
    None when the field was absent.
    """

    name: str | None = None
    arguments: Json = None
    id: str | None = None
    index: int | None = None


class Usage(Record, frozen=True):
    """Token counts as claimed by the server."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class ErrorBody(Record, frozen=True):
    """An error as the body states it. ``generation`` is model text that the error carries, if any."""

    message: str
    type: str | None = None
    code: str | int | None = None
    generation: str | None = None


class Choice(Record, frozen=True):
    """One sampled answer. ``content`` None: absent or null; "" : an empty string came."""

    index: int = 0
    content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    token_ids: tuple[int, ...] | None = None
    logprob_text: str | None = None  # text joined from the bytes of logprobs
    raw_text: str | None = None  # text before parsing, where the stack gives it beside the message


class Response(Record, frozen=True):
    """A response body read by its wire format; a stream is assembled to the same record.

    ``defects`` names what was odd about the form (``no_done``, ``error_event``, ``index_reused``, …; the
    list stands in ``wire/``). ``complete`` is False when the stream or body ended before its terminator.
    """

    api: str
    choices: tuple[Choice, ...] = ()
    id: str | None = None
    model: str | None = None
    fingerprint: str | None = None
    usage: Usage | None = None
    error: ErrorBody | None = None
    stream: bool = False
    complete: bool = True
    defects: tuple[str, ...] = ()
    prompt_text: str | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    extra: dict[str, Json] = msgspec.field(default_factory=dict)  # engine fields worth keeping (timings, …)


# --------------------------------------------------------------------------- detection


class SpanKind(StrEnum):
    CONTENT = "content"
    REASONING = "reasoning"
    CALL = "call"
    FENCE = "fence"


class Span(Record, frozen=True, gc=False):
    """A stretch of the text, in characters: ``text[start:end]``."""

    kind: SpanKind
    start: int
    end: int


class CallTier(StrEnum):
    """Evidence that a text is a call; nested: tight is also strong, strong is also weak."""

    TIGHT = "tight"
    STRONG = "strong"
    WEAK = "weak"


class Violation(Record, frozen=True):
    """One way in which arguments break their JSON Schema.

    ``kind`` is the schema keyword in plain words: missing, unknown, type, enum, const, pattern, range,
    length, format, combination, not_object, schema_invalid. ``path`` is a JSON pointer into the arguments.
    """

    kind: str
    path: str
    detail: str = ""


class Recovered(Record, frozen=True):
    """A reading of a malformed payload after the named repairs."""

    name: str | None
    arguments: dict[str, Json] | None
    repairs: tuple[str, ...]


class Call(Record, frozen=True, gc=False):
    """One call that the model wrote, read from text.

    ``arguments`` is the payload parsed without repair, else None. ``well_formed`` judges the payload
    alone: wrapper faults are ``defects`` and leave it true. ``offered`` is None without a tool list.
    ``violations`` is None where no schema was known or the arguments do not parse.
    """

    name: str | None
    arguments: dict[str, Json] | None
    dialect: str
    well_formed: bool
    tier: CallTier
    span: Span
    in_reasoning: bool = False
    offered: bool | None = None
    defects: tuple[str, ...] = ()
    violations: tuple[Violation, ...] | None = None
    recovered: Recovered | None = None

    def reading(self) -> dict[str, Json] | None:
        """The arguments, or those of the recovered reading."""
        if self.arguments is not None:
            return self.arguments
        return self.recovered.arguments if self.recovered else None


class Detection(Record, frozen=True, gc=False):
    """What a text holds: ``spans`` partition it exactly, ``calls`` in order of their start.

    ``notes`` names what a reader must know of the text as a whole: ``unclosed_reasoning``,
    ``hallucinated_observation``, ``capped`` and the like.
    """

    spans: tuple[Span, ...]
    calls: tuple[Call, ...]
    notes: tuple[str, ...] = ()
    version: str = ""

    @property
    def emitted(self) -> bool:
        """True when at least one call was written."""
        return bool(self.calls)


# --------------------------------------------------------------------------- evidence and verdict


class EvidenceTier(StrEnum):
    """Where the model's text came from, strongest first (DESIGN §1)."""

    TOKEN_IDS = "token_ids"
    RAW_TEXT = "raw_text"
    LOGPROB_BYTES = "logprob_bytes"
    ERROR_BODY = "error_body"
    CONTENT = "content"
    TOOL_CALLS = "tool_calls"
    NONE = "none"


class Evidence(Record, frozen=True):
    """The best text of what the model wrote in one answer. ``text`` None: nothing is known of it."""

    tier: EvidenceTier
    text: str | None
    note: str = ""


class Emission(StrEnum):
    """What the model did."""

    VALID = "valid"
    INVALID_ARGUMENTS = "invalid_arguments"
    WRONG_NAME = "wrong_name"
    MALFORMED = "malformed"
    NO_CALL = "no_call"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"


class Delivery(StrEnum):
    """What the stack did."""

    SURFACED = "surfaced"
    LEAKED = "leaked"
    ERASED = "erased"
    MANGLED = "mangled"
    CUT_OFF = "cut_off"
    PHANTOM = "phantom"
    NOTHING = "nothing"
    REJECTED = "rejected"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"


class Uptake(StrEnum):
    """What the harness did, where a log tells."""

    EXECUTED = "executed"
    OBSERVED = "observed"
    DROPPED = "dropped"
    ALTERED = "altered"
    MISJUDGED = "misjudged"
    UNKNOWN = "unknown"


class Part(StrEnum):
    """The part of the composition that a finding or a loss is put down to."""

    GATE = "gate"
    TEMPLATE = "template"
    PARSER = "parser"
    CONSTRAINT = "constraint"
    STREAM = "stream"
    GATEWAY = "gateway"
    SERVER = "server"
    NETWORK = "network"
    BUDGET = "budget"
    MODEL = "model"
    HARNESS = "harness"
    UNKNOWN = "unknown"
    NONE = "none"  # nothing was lost


class CallVerdict(Record, frozen=True):
    """The verdict on one call. ``emitted`` is what was read, ``surfaced`` what the interface gave."""

    emission: Emission
    delivery: Delivery
    rule: str
    cause: Part = Part.NONE
    uptake: Uptake = Uptake.UNKNOWN
    name: str | None = None
    arguments: dict[str, Json] | None = None
    dialect: str | None = None
    emitted: Call | None = None
    surfaced: ToolCall | None = None
    violations: tuple[Violation, ...] = ()
    defects: tuple[str, ...] = ()


class Flags(Record, frozen=True):
    """What a turn's numbers are counted from."""

    valid_emitted: bool = False
    valid_surfaced: bool = False
    well_formed_lost: bool = False
    unknown: bool = False
    produced: bool = False  # evidence of at least one generated token
    forced: bool = False  # the text was made by a constraint: no evidence of what the model would do


class Verdict(Record, frozen=True):
    """The verdict on one turn: its calls, and the triple that stands for it.

    ``emission``/``delivery``/``uptake``/``cause``/``rule`` are those of the most severe call, by the order in
    ``classify.SEVERITY``, or the turn's own where there was no call. ``notes`` names side observations
    (``finish_reason_lies``, ``duplicated_in_content``, ``hallucinated_observation``, …).
    """

    emission: Emission
    delivery: Delivery
    rule: str
    tier: EvidenceTier
    cause: Part = Part.NONE
    uptake: Uptake = Uptake.UNKNOWN
    calls: tuple[CallVerdict, ...] = ()
    flags: Flags = Flags()
    notes: tuple[str, ...] = ()
    detail: str = ""  # one sentence: what decided
    detector: str = ""


# --------------------------------------------------------------------------- findings


class Count(Record, frozen=True):
    """``k`` of ``n`` trials; a rate is never shown without them."""

    k: int
    n: int


class Finding(Record, frozen=True):
    """One thing that is wrong (or worth knowing) about a stack, with its evidence and the change to make.

    ``id`` is stable over runs and versions, so that two preflights can be matched. ``severity``: ``broken``
    (calls are lost or refused), ``degraded`` (some forms are), ``note`` (worth knowing).
    """

    id: str
    part: Part
    severity: Literal["broken", "degraded", "note"]
    title: str
    sent: str = ""
    got: str = ""
    wrote: str = ""  # what the model wrote, where it differs from what came
    tier: EvidenceTier = EvidenceTier.NONE
    change: str = ""
    repeat: str = ""  # a curl line with the key as a variable
    count: Count | None = None
    detail: dict[str, Json] = msgspec.field(default_factory=dict)
