"""What an annotation says in the end, or so far: one record, for the screen, for ``--json`` and for tables."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from truecall.annotate.disputes import AXES, disputed, disputed_axes, final, label, pending, voices
from truecall.annotate.folder import Annotation
from truecall.annotate.numbers import (
    AdjudicationNumbers,
    AxisNumbers,
    ToolNumbers,
    adjudication_numbers,
    axis_numbers,
    tool_numbers,
)
from truecall.records import Json, Record

SCHEMA_VERSION: Final = 1


class Output(Record, frozen=True):
    """``truecall annotate export --json``.

    ``waiting``: annotators whose answers are missing. ``pending``: disputed texts that wait for the adjudicator,
    None while annotators' answers are missing. ``turns``: those that the sample was drawn from; ``left_out``: turns
    that nobody could have read, by reason. ``rule`` was fixed when the packs were made; ``protocol_sha256`` is that
    of the rule and the questions.
    """

    truecall: str
    detector: str
    sources: tuple[str, ...]
    annotators: tuple[str, ...]
    adjudicator: str
    rule: Json
    protocol_sha256: str
    seed: int
    texts: int
    turns: int
    left_out: dict[str, int]
    waiting: tuple[str, ...]
    pending: int | None
    call: AxisNumbers
    well_formed: AxisNumbers
    tool: ToolNumbers
    adjudication: AdjudicationNumbers | None
    schema_version: int = SCHEMA_VERSION


def output(annotation: Annotation) -> Output:
    """All numbers of an annotation, as far as its answers carry them."""
    key = annotation.key
    return Output(
        truecall=key.truecall,
        detector=key.detector,
        sources=key.sources,
        annotators=tuple(annotation.annotators),
        adjudicator=key.adjudicator,
        rule=key.protocol["adjudication"],
        protocol_sha256=key.protocol_sha256,
        seed=key.seed,
        texts=len(key.items),
        turns=key.population.turns,
        left_out=key.population.left_out,
        waiting=tuple(annotation.waiting),
        pending=None if annotation.waiting else pending(annotation),
        call=axis_numbers(annotation, "call"),
        well_formed=axis_numbers(annotation, "well_formed"),
        tool=tool_numbers(annotation),
        adjudication=adjudication_numbers(annotation),
    )


def rows(annotation: Annotation) -> Iterator[dict[str, str | int | float]]:
    """One row for each text, with every answer and its weight, so that all numbers can be computed elsewhere.

    ``weight``: the turns of the population that the text stands for, N / n of its stratum. An answer that is not
    there, or a question that does not arise, is "".
    """
    key = annotation.key
    sampled: dict[str, int] = {}
    for item in key.items:
        sampled[item.text.stratum] = sampled.get(item.text.stratum, 0) + 1
    whole = not annotation.waiting
    for number, item in enumerate(key.items):
        text = item.text
        row: dict[str, str | int | float] = {
            "text": number + 1,
            "place": text.place,
            "group": text.group,
            "sha256": item.sha256,
            "stratum": text.stratum,
            "weight": key.population.size(text.stratum) / sampled[text.stratum],
            "emission": text.verdict[0],
            "delivery": text.verdict[1],
            "evidence": text.evidence,
        }
        for axis in AXES:
            row[f"{axis}_detector"] = label(text.detector, axis) or ""
            for name in annotation.annotators:
                given = annotation.answers.get(name, {}).get(number)
                row[f"{axis}_{name}"] = (label(given, axis) if given is not None else None) or ""
            decided = (annotation.decided or {}).get(number)
            row[f"{axis}_{key.adjudicator}"] = (label(decided, axis) if decided is not None else None) or ""
            row[f"{axis}_final"] = (final(annotation, number, axis) if whole else None) or ""
        row["disputed"] = " ".join(disputed_axes(voices(annotation, number))) if whole else ""
        yield row


def next_step(annotation: Annotation) -> str:
    """What is to be done now, in one line."""
    where = shlex.quote(str(annotation.path))
    if annotation.waiting:
        return f"send the packs of {', '.join(annotation.waiting)}; then truecall annotate add {where} FILE…"
    if annotation.decided is not None or not disputed(annotation):
        return f"truecall annotate export {where}"
    if annotation.adjudication is None:
        return f"truecall annotate adjudicate {where}"
    name = annotation.key.adjudicator
    return f"send pack-{name}.html to {name}; then truecall annotate add {where} FILE"
