"""What annotators and detector disagree on, the adjudicator's pack, and the answer that stands in the end.

The rule is `protocol.RULE`. The detector is one voice among the others: what is disputed does not depend on which
of them is alone, and undisputed texts stand among the disputed ones, so that the pack says nothing of either.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, Literal

from truecall.annotate.folder import ANSWERS, Annotation, read_answers
from truecall.annotate.pack import Pack, make_pack
from truecall.annotate.protocol import sealed
from truecall.annotate.records import Adjudication, Answer, PackRef
from truecall.errors import UsageError

Axis = Literal["call", "well_formed", "tool"]
AXES: Final[tuple[Axis, ...]] = ("call", "well_formed", "tool")


def label(answer: Answer, axis: Axis) -> str | None:
    """An answer to one question about the whole text; None: the question does not arise.

    ``well_formed`` is "no" where there is no call: the text holds no well-formed call.
    """
    if axis == "call":
        return answer.call
    if axis == "tool":
        return answer.tool
    return answer.well_formed if answer.call == "yes" else answer.call


def disputed_axes(answers: Sequence[Answer]) -> list[Axis]:
    """The questions to which not all give the same answer, or somebody's is unclear.

    Where a tool is named by some and others see no call, the question of the call is disputed, not the tool.
    """
    found: list[Axis] = []
    for axis in AXES:
        labels = {given for answer in answers if (given := label(answer, axis)) is not None}
        if len(labels) > 1 or "unclear" in labels:
            found.append(axis)
    return found


def voices(annotation: Annotation, number: int) -> list[Answer]:
    """The answers on one item: the annotators', then the detector's."""
    item = annotation.key.items[number]
    return [*(annotation.answers[name][number] for name in annotation.annotators), item.text.detector]


def disputed(annotation: Annotation) -> list[int]:
    """The items that are disputed. All annotators' answers have to be here."""
    return [n for n in range(len(annotation.key.items)) if disputed_axes(voices(annotation, n))]


def adjudicate(annotation: Annotation) -> tuple[Adjudication, Pack] | None:
    """The adjudicator's pack: all disputed items and as many others; None where nothing is disputed.

    Raises:
        UsageError: answers are missing, or the pack was made already.
    """
    key = annotation.key
    if annotation.waiting:
        raise UsageError(
            f"{annotation.path}: the answers of {', '.join(annotation.waiting)} are not here yet"
        )
    if annotation.adjudication is not None:
        raise UsageError(f"{annotation.path}: the pack is there already: pack-{key.adjudicator}.html")
    open_ones = disputed(annotation)
    if not open_ones:
        return None
    agreed = sorted(set(range(len(key.items))) - set(open_ones))
    dice = random.Random(f"{key.seed}/controls")
    controls = sorted(dice.sample(agreed, min(len(agreed), len(open_ones))))
    pack = make_pack(
        key.adjudicator, key.items, [*open_ones, *controls], key.toolsets, key.protocol_sha256, decides=True
    )
    made = Adjudication(
        pack=PackRef(sha256=pack.sha256, ids=pack.ids),
        disputed=tuple(open_ones),
        controls=tuple(controls),
        answers={
            name: read_answers(annotation.path / ANSWERS / f"{name}.json").sha256
            for name in annotation.annotators
        },
        protocol_sha256=key.protocol_sha256,
    )
    return sealed(made), pack


def final(annotation: Annotation, number: int, axis: Axis) -> str | None:
    """The answer that stands: the common one, else the adjudicator's; None: not there yet, or no question."""
    all_of_them = voices(annotation, number)
    if axis in disputed_axes(all_of_them):
        decided = (annotation.decided or {}).get(number)
        return None if decided is None else label(decided, axis)
    return next((given for answer in all_of_them if (given := label(answer, axis)) is not None), None)


def pending(annotation: Annotation) -> int:
    """Disputed items that the adjudicator has not decided."""
    return len(disputed(annotation)) if annotation.decided is None else 0
