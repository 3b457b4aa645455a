"""What is asked of an annotator, and what becomes of disagreement: fixed, hashed, and carried by every pack.

The questions follow DESIGN §2 and the table in docs/detector.md, in plain words.
"""

from __future__ import annotations

import hashlib
from typing import Final, TypeVar

import msgspec

from truecall.annotate.records import Adjudication, Key
from truecall.records import Json

Sealed = TypeVar("Sealed", Key, Adjudication)

QUESTIONS: Final = {
    "call": "Did the model make a tool call in this text?",
    "well_formed": "Is a call well-formed?",
    "tool": "Which tool does the first call name?",
}

IS_A_CALL: Final = (
    "The model itself tries to use a tool now, in whatever syntax: tags, JSON, code-like, Action and Action Input.",
    "It counts when it is broken, cut off, names a tool that is not offered, or has wrong arguments.",
    "It counts wherever it stands: after long prose, after a code block, at the very end.",
    "In a fenced block it counts if it calls an offered tool and is the model's own act, not an illustration.",
    "In the reasoning it counts only if no later call and no answer follows the reasoning.",
)

IS_NO_CALL: Final = (
    "An example, a quotation, documentation of a format, or an instruction to the reader how to call a tool.",
    "An imagined or promised call: “I could call …”, “suppose the user asks …”. A refusal that names a tool.",
    "The list of tools repeated, or a tool's result.",
    "Source code that only mentions a tool, or that solves the task itself.",
    "A text that ends before any call begins.",
)

IS_WELL_FORMED: Final = (
    "Yes, if name and arguments of at least one call are whole and can be read as they stand, in that call's syntax.",
    "Missing or odd tags around it do not matter. A tool that is not offered, or arguments that do not fit it, "
    "do not matter either.",
    "No, if something must be guessed, added or repaired: a missing bracket or quote, a cut end, no name.",
)

RULE: Final = (
    "An item is disputed where the annotators and the detector do not all give the same answer to a question, or "
    "an annotator's answer is “unclear”. All disputed items go to the adjudicator, among as many undisputed ones, "
    "drawn at random, as there are. The adjudicator has not annotated, sees no verdict and no earlier answer, and "
    "answers yes or no. That answer stands for each disputed question. Undisputed answers stand as they are, and "
    "the adjudicator's answers to undisputed items change nothing: they are reported."
)


def protocol() -> dict[str, Json]:
    """Everything that was agreed on before the first answer."""
    return {
        "questions": dict(QUESTIONS),
        "is_a_call": list(IS_A_CALL),
        "is_no_call": list(IS_NO_CALL),
        "is_well_formed": list(IS_WELL_FORMED),
        "adjudication": RULE,
    }


def digest(value: Json) -> str:
    """The SHA-256 of a JSON value, keys sorted."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


def sealed(record: Sealed) -> Sealed:
    """The record with its ``sha256``, the digest of all else in it: a change by hand is seen."""
    bare = msgspec.structs.replace(record, sha256="")
    return msgspec.structs.replace(record, sha256=digest(msgspec.to_builtins(bare)))
