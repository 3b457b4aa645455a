"""What a stack is asked, what it is known by, and what is known of it afterwards. No I/O.

`probe.py` sends ``PROBES`` and fills ``Observations``; ``stacks.recognise`` reads them. Sources of every
signal and path: the engines' own code and live servers, as listed in ``docs/findings/contracts.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from truecall.records import Headers, Json, Record
from truecall.stacks.advice import COMMON, LOST, PARSER_FINDINGS
from truecall.stacks.refusals import Pattern

# ------------------------------------------------------------------ what to ask a server about itself


class Probe(Record, frozen=True):
    """One request that reads what a server says of itself.

    ``path`` is also the key in ``Observations.seen``. A path below ``/v1`` goes to the API base that the user
    gave, every other to the server's root, as ``Connection.url`` builds them. ``model`` marks a body that needs the
    model's name: ``{"model": name}``.
    """

    path: str
    method: Literal["GET", "POST"] = "GET"
    model: bool = False


PROBES: tuple[Probe, ...] = (
    Probe(path="/v1/models"),
    Probe(path="/version"),  # vLLM
    Probe(path="/tokenizer_info"),  # vLLM, with --enable-tokenizer-info-endpoint
    Probe(path="/server_info"),  # SGLang; vLLM in development mode
    Probe(path="/get_server_info"),  # SGLang, older
    Probe(path="/model_info"),  # SGLang
    Probe(path="/get_model_info"),  # SGLang, older
    Probe(path="/props"),  # llama.cpp
    Probe(path="/health"),
    Probe(path="/"),  # Ollama says so here
    Probe(path="/api/version"),  # Ollama
    Probe(path="/api/ps"),  # Ollama: digest of what is loaded
    Probe(path="/api/show", method="POST", model=True),  # Ollama
    Probe(path="/api/v1/models"),  # LM Studio
    Probe(path="/api/v0/models"),  # LM Studio, older
    Probe(path="/info"),  # TGI
)
PROBE_PATHS: tuple[str, ...] = tuple(probe.path for probe in PROBES)


class Seen(Record, frozen=True):
    """One answer of the server: ``body`` decoded JSON, else text, else None; ``status`` None: no answer."""

    status: int | None = None
    headers: Headers = ()
    body: Json = None

    def header(self, name: str) -> str:
        """The first value of a header in lower case, or ""."""
        low = name.lower()
        return next((value for key, value in self.headers if key.lower() == low), "").lower()

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def object(self) -> dict[str, Any]:
        """The body of a successful answer when it is a JSON object, else an empty one."""
        return self.body if self.ok and isinstance(self.body, dict) else {}


class Observations(Record, frozen=True):
    """All that was seen of a server: ``seen`` by probe path, and one chat answer of any status."""

    seen: dict[str, Seen] = msgspec.field(default_factory=dict)
    chat: Seen | None = None
    model: str | None = None  # the model asked for, where the user or an earlier step named it

    def at(self, *paths: str) -> dict[str, Any]:
        """The JSON object of the first of ``paths`` that answered with one, else an empty one."""
        return next((found for p in paths if (found := self.seen.get(p, Seen()).object)), {})

    def every(self) -> list[Seen]:
        """All answers that came, the chat answer first."""
        answers = [self.chat] if self.chat else []
        return [s for s in (*answers, *self.seen.values()) if s.status is not None]

    def header_values(self, name: str) -> set[str]:
        """The values of one header over all answers, in lower case."""
        return {value for s in self.every() if (value := s.header(name))}

    def chat_object(self) -> dict[str, Any]:
        """The chat answer's JSON object, whatever its status."""
        return self.chat.body if self.chat and isinstance(self.chat.body, dict) else {}

    def models(self) -> list[dict[str, Any]]:
        """The entries of ``/v1/models``."""
        data = self.at("/v1/models").get("data")
        return [m for m in data if isinstance(m, dict)] if isinstance(data, list) else []

    def chosen_model(self) -> dict[str, Any]:
        """The entry of the model asked for, else the first."""
        entries = self.models()
        return next((m for m in entries if m.get("id") == self.model), entries[0] if entries else {})

    def owners(self) -> set[str]:
        """Who ``/v1/models`` says owns the models."""
        return {str(m["owned_by"]).lower() for m in self.models() if m.get("owned_by")}

    def fingerprint(self) -> str:
        return str(self.chat_object().get("system_fingerprint") or "")


# ------------------------------------------------------------------ what is known of it


class Fact(Record, frozen=True):
    """A value and how it is known. ``inferred``: concluded from behaviour, not stated by the server."""

    value: Json = None
    origin: Literal["probed", "declared", "inferred", "unknown"] = "unknown"


UNKNOWN = Fact()


def probed(value: Json) -> Fact:
    """A fact that the server stated; nothing stated (None or "") is unknown."""
    return UNKNOWN if value is None or value == "" else Fact(value=value, origin="probed")


class Gateway(Record, frozen=True):
    """Something between client and engine, by its marks."""

    name: str
    signals: tuple[str, ...]


class StackInfo(Record, frozen=True):
    """The serving side as far as it shows itself.

    ``engine`` is a name of ``stacks.ENGINES``. ``capabilities`` and ``tools`` are what the engine claims of
    the model (``tools`` True/False: it can be given tools). ``chat_template`` is the template's text.
    """

    engine: str
    title: str
    signals: tuple[str, ...] = ()
    gateways: tuple[Gateway, ...] = ()
    version: Fact = UNKNOWN
    model: Fact = UNKNOWN
    model_path: Fact = UNKNOWN
    digest: Fact = UNKNOWN
    quantisation: Fact = UNKNOWN
    chat_template: Fact = UNKNOWN
    tool_parser: Fact = UNKNOWN
    reasoning_parser: Fact = UNKNOWN
    context_length: Fact = UNKNOWN
    capabilities: Fact = UNKNOWN
    tools: Fact = UNKNOWN
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """``vLLM 0.32.0 behind nginx``."""
        text = f"{self.title} {self.version.value}" if self.version.value else self.title
        names = " and ".join(g.name for g in self.gateways)
        return f"{text} behind {names}" if names else text


# ------------------------------------------------------------------ what to send it


EvidenceKind = Literal["token_ids", "raw_text", "logprob_bytes", "none"]
Way = Literal["guided", "prefill", "oracle", "echo"]


class EngineRequest(Record, frozen=True):
    """A POST request; ``path`` as in a probe."""

    path: str
    body: dict[str, Json]


class LoopbackRequest(Record, frozen=True):
    """A request that makes the stack read a given text. ``way`` says how strongly it proves what it shows.

    ``guided`` and ``prefill`` go the whole way of a chat answer; ``oracle`` asks the engine's parser alone
    (its answer is read by ``Stack.read_oracle``); ``echo`` depends on the model repeating the text.
    ``stream`` False: this way says nothing of streaming.
    """

    way: Way
    path: str
    body: dict[str, Json]
    stream: bool = True


ECHO = "Repeat the following text word for word, with nothing before or after it:\n\n"


class Stack:
    """What is known of one engine. Subclasses state their differences; this one knows nothing.

    All methods are pure; requests are returned, not sent.
    """

    name: str = ""
    title: str = ""
    evidence_kind: EvidenceKind = "none"
    ways: tuple[Way, ...] = ("echo",)
    refusals: tuple[Pattern, ...] = ()
    findings: ClassVar[Mapping[str, str]] = {}  # finding id -> the change to make, see advice()

    def signals(self, seen: Observations) -> list[str]:
        """The marks of this engine in what was seen, each from a different place; two recognise it."""
        return []

    def describe(self, seen: Observations) -> StackInfo:
        """What the server tells of itself, by this engine's ways of telling."""
        return StackInfo(engine=self.name, title=self.title, model=served_model(seen))

    def evidence_fields(self, body: dict[str, Json]) -> dict[str, Json]:
        """Fields to add to a chat request so that the answer carries what the model wrote.

        They leave prompt and sampling alone. Fields that the request sets itself are not touched.
        """
        return {}

    def detokenize(self, ids: Sequence[int], model: str | None = None) -> EngineRequest | None:
        """The request that turns token ids into text, special tokens kept; None: ids can't be asked for."""
        return None

    def read_detokenized(self, body: Json) -> str | None:
        """The text in the answer to ``detokenize``."""
        return None

    def loopback(
        self, text: str, tools: Sequence[Json], model: str, way: Way | None = None
    ) -> LoopbackRequest | None:
        """A request after which the stack has to parse ``text``; None where it knows no such way.

        ``way`` None takes the strongest of ``ways``.
        """
        chosen = way or (self.ways[0] if self.ways else None)
        if chosen != "echo" or "echo" not in self.ways:
            return None
        budget = 64 + len(text)  # a token is at least a character
        return LoopbackRequest(
            way="echo",
            path="/v1/chat/completions",
            body={
                **chat_body(model, tools, [{"role": "user", "content": ECHO + text}]),
                "max_tokens": budget,
            },
        )

    def read_oracle(self, body: Json) -> tuple[str, list[dict[str, Json]]] | None:
        """The text left over and the calls in a parser oracle's answer; None where it holds neither."""
        return None

    def advice(self, finding: str, info: StackInfo, dialect: str | None = None) -> str:
        """What to change about a finding or refusal on this engine, as exact as it is known; "" if it isn't.

        ``dialect`` is what the model writes; for a parser mismatch it decides the flag.
        """
        refusal = next((p for p in self.refusals if p.rule == finding), None)
        if refusal is not None:
            return refusal.change
        if dialect and (finding in PARSER_FINDINGS or finding.endswith(LOST)):
            change = self.parser_advice(info, dialect)
            if change:
                return change
        return self.findings.get(finding) or COMMON.get(finding, "")

    def parser_advice(self, info: StackInfo, dialect: str) -> str:
        """What makes this engine read ``dialect``; "" where that isn't known, or is the case already."""
        return ""


def chat_body(model: str, tools: Sequence[Json], messages: Sequence[Json]) -> dict[str, Json]:
    """A chat request that any engine takes, at temperature 0."""
    return {
        "model": model,
        "messages": list(messages),
        "tools": list(tools),
        "tool_choice": "auto",
        "temperature": 0,
    }


def served_model(seen: Observations) -> Fact:
    """The model that answers: the server's name for it, else the one asked for."""
    entry = seen.chosen_model()
    if seen.model and entry.get("id") != seen.model:
        return Fact(value=seen.model, origin="declared")
    return probed(entry.get("id"))
