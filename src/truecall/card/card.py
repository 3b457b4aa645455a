"""The card of an arm: what was measured on what, each entry probed, declared, inferred or unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

import msgspec

from truecall.records import Json, Record
from truecall.stacks import StackInfo
from truecall.stacks.base import UNKNOWN, Fact

ENTRIES: Final = {
    "engine": "serving engine",
    "engine_version": "its version",
    "gateway": "what stands before it",
    "model": "model as named in requests",
    "model_digest": "digest of the weights (an alias is none)",
    "quantisation": "quantisation",
    "chat_template": "sha256 of the chat template",
    "tool_parser": "tool-call parser",
    "reasoning_parser": "reasoning parser",
    "launch_flags": "launch flags",
    "wire": "HTTP API",
    "condition": "how tools are offered",
    "task": "task",
    "sampling": "sampling parameters",
    "seeds": "task-instance seeds",
    "sampling_seeds": "sampling seeds",
    "prompts": "sha256 of the prompts",
    "tools": "sha256 of the tool schemas",
    "harness_parser": "sha256 of the harness's own parser of text calls",
    "loop_policy": "what a loop does: stop or observe",
    "truecall": "version of truecall",
    "detector": "version of the detector",
}
"""All entries of a card, in order."""

OPTIONAL: Final = frozenset(
    {"gateway", "reasoning_parser", "launch_flags", "harness_parser", "sampling_seeds"}
)
"""Entries that may be unknown on a whole card: what does not show itself, or does not apply."""

_DIGEST = re.compile(
    r"(?:sha256[:-])?[0-9a-f]{64}|(?:sha1:)?[0-9a-f]{40}|(?:md5:)?[0-9a-f]{32}", re.IGNORECASE
)


class Card(Record, frozen=True):
    """What an arm was measured on. An entry that is missing from ``entries`` is unknown.

    ``declared`` and ``sent``: request parameters (temperature, max_tokens, …) as the study states them and as
    they stood in the request bodies; a parameter that was sent with several values has all of them, by JSON
    text, in ``sent_many``.
    """

    arm: str
    entries: dict[str, Fact] = msgspec.field(default_factory=dict)
    declared: dict[str, Json] = msgspec.field(default_factory=dict)
    sent: dict[str, Json] = msgspec.field(default_factory=dict)
    sent_many: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    def entry(self, name: str) -> Fact:
        """The entry, unknown where the card lacks it. KeyError for a name that no card has."""
        if name not in ENTRIES:
            raise KeyError(name)
        return self.entries.get(name, UNKNOWN)

    @property
    def missing(self) -> tuple[str, ...]:
        """Entries that a whole card needs and this one does not know."""
        return tuple(
            name for name in ENTRIES if name not in OPTIONAL and self.entry(name).origin == "unknown"
        )


def declared(value: Json) -> Fact:
    """A fact that a person or a study file states; None is unknown."""
    return UNKNOWN if value is None else Fact(value=value, origin="declared")


def digest(fact: Fact) -> Fact:
    """The fact if its value is a digest or a full revision; an alias (``qwen3:8b``, ``main``) leaves it unknown."""
    return fact if isinstance(fact.value, str) and _DIGEST.fullmatch(fact.value) else UNKNOWN


def hashed(value: Json) -> str:
    """The sha256 of a text, or of any other JSON value with its keys in order."""
    data = value.encode() if isinstance(value, str) else msgspec.json.encode(value, order="sorted")
    return f"sha256:{sha256(data).hexdigest()}"


_NO_PARAMETERS: Final = frozenset(
    {
        "messages",
        "prompt",
        "input",
        "contents",
        "system",
        "instructions",
        "tools",
        "model",
        "stream",
        "stream_options",
    }
)


def sent_parameters(
    bodies: Iterable[Mapping[str, Json]],
) -> tuple[dict[str, Json], dict[str, tuple[str, ...]]]:
    """``sent`` and ``sent_many`` of a card, from request bodies as sent (one level deep; Gemini and Ollama
    nest theirs: give those objects).

    A parameter that only some of the bodies hold counts the others as null.
    """
    texts: dict[str, dict[bytes, int]] = {}
    total = 0
    for body in bodies:
        total += 1
        for name, value in body.items():
            if name not in _NO_PARAMETERS:
                counts = texts.setdefault(name, {})
                text = msgspec.json.encode(value, order="sorted")
                counts[text] = counts.get(text, 0) + 1
    sent: dict[str, Json] = {}
    many: dict[str, tuple[str, ...]] = {}
    for name, counts in texts.items():
        values = [*counts, *([b"null"] if sum(counts.values()) < total and b"null" not in counts else [])]
        if len(values) == 1:
            sent[name] = msgspec.json.decode(values[0])
        else:
            many[name] = tuple(text.decode() for text in values)
    return sent, many


def from_stack(info: StackInfo) -> dict[str, Fact]:
    """The card's entries on the serving side, as far as the stack shows itself."""
    template = info.chat_template
    gateways = [gateway.name for gateway in info.gateways]
    return {
        "engine": Fact(value=info.engine, origin="probed" if info.signals else "unknown"),
        "engine_version": info.version,
        "gateway": Fact(value=gateways, origin="probed") if gateways else UNKNOWN,
        "model": info.model,
        "model_digest": digest(info.digest),
        "quantisation": info.quantisation,
        "chat_template": (
            Fact(value=hashed(template.value), origin=template.origin) if template.value else UNKNOWN
        ),
        "tool_parser": info.tool_parser,
        "reasoning_parser": info.reasoning_parser,
    }


def joined(*sources: Mapping[str, Fact]) -> tuple[dict[str, Fact], tuple[str, ...]]:
    """One set of entries from several, and the contradictions between them.

    What was probed stands before what was inferred, that before what was declared; a declared value that
    differs from a probed one is named.
    """
    rank = {"probed": 0, "inferred": 1, "declared": 2, "unknown": 3}
    best: dict[str, Fact] = {}
    quarrels = []
    for source in sources:
        for name, fact in source.items():
            old = best.get(name, UNKNOWN)
            if "unknown" not in (old.origin, fact.origin) and old.value != fact.value:
                quarrels.append(f"{name}: {old.origin} {old.value!r}, {fact.origin} {fact.value!r}")
            if rank[fact.origin] < rank[old.origin]:
                best[name] = fact
    return best, tuple(quarrels)
