"""The same request to several stacks: what came of the first turn of every episode, stack by stack."""

from __future__ import annotations

from collections import Counter

from truecall.funnel import Turn
from truecall.funnel.turns import FAILED
from truecall.records import Delivery, Emission, Record
from truecall.run.result import RunResult


class Row(Record, frozen=True):
    """One endpoint, task and condition: first turns by what came of them (`kind`)."""

    endpoint: str
    task: str
    condition: str
    cells: dict[str, int]


def table(result: RunResult) -> list[Row]:
    """A row for each arm of a study with several endpoints; none where there is only one."""
    if len(result.card.study.endpoints) < 2:
        return []
    rows = []
    for arm in result.arms:
        firsts = [kind(episode.turns[0]) for episode in arm.episodes if episode.turns]
        factors = [arm.arm.factors.condition, arm.arm.factors.schema]
        rows.append(
            Row(
                endpoint=arm.arm.endpoint,
                task=arm.arm.task,
                condition="/".join(factors),
                cells=dict(Counter(firsts).most_common()),
            )
        )
    return sorted(rows, key=lambda row: (row.task, row.condition))


def kind(turn: Turn) -> str:
    """What came of a turn, in one word.

    ``native call`` (surfaced), ``text call`` (left in the text), ``erased``, ``damaged``, ``rejected`` and the
    other failures of a request by their own names, ``empty``, ``truncated``, ``no call``, ``unknown``.
    """
    if turn.delivery in FAILED:
        return str(turn.delivery)
    words = {
        Delivery.SURFACED: "native call",
        Delivery.LEAKED: "text call",
        Delivery.ERASED: "erased",
        Delivery.MANGLED: "damaged",
        Delivery.CUT_OFF: "truncated",
        Delivery.PHANTOM: "phantom",
    }
    if turn.delivery in words:
        return words[turn.delivery]
    return {
        Emission.EMPTY: "empty",
        Emission.NOT_RUN: "empty",
        Emission.TRUNCATED: "truncated",
        Emission.NO_CALL: "no call",
    }.get(turn.emission, "unknown")
