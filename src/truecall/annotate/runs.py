"""The turns of a run folder, each judged anew by the detector that is to be validated."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from truecall import tasks, wire
from truecall.records import Choice, Evidence, Json, Record, Verdict
from truecall.run.cards import load_card
from truecall.run.study import Arm, arms_of
from truecall.sources import Bad
from truecall.sources import Place as LogPlace
from truecall.store import name_of
from truecall.store.index import TurnRow, open_index
from truecall.store.turns import WholeTurn

_MAY: Final = frozenset({"agent", "prompt"})
_NEVER: Final = frozenset({"no_tools", "tools_forbidden", "simulator", "judge"})
_PAGE: Final = 500


class Whole(Record, frozen=True):
    """One turn. ``verdict`` None: its answer was not kept. ``group``: the arm, or the model.

    ``may_call``: an agent's turn, with tools that it was not forbidden to call.
    """

    place: str
    group: str
    may_call: bool
    verdict: Verdict | None
    choice: Choice | None
    evidence: Evidence | None
    tools: Json


def whole_turns(path: Path, tools: Json = None) -> Iterator[Whole | Bad]:
    """The turns of a run, a recording or a preflight, in the order of the log, the last attempt of each.

    ``tools``: those of turns whose request names none.
    """
    with open_index(path) as index:
        arms = _arms(path) if any(arm is not None for arm, _ in index.values("arm")) else {}
        after = 0
        while rows := index.page(after=after, limit=_PAGE):
            after = rows[-1].id
            for row in rows:
                turn = index.turn(row.id)
                offered = _in_prompt(row, arms) or turn.tools or tools
                place = f"{name_of(path)} {row.key}"
                if turn.faults and not _left_out(turn):
                    yield Bad(place=LogPlace(file=place), reason="; ".join(turn.faults))
                    continue
                seen = msgspec.structs.replace(turn, tools=None if offered is None else tuple(offered))
                choices = turn.response.choices if turn.response is not None else ()
                yield Whole(
                    place=place,
                    group=row.arm or row.model or "unknown model",
                    may_call=_may_call(row, turn, offered),
                    verdict=seen.judged(),
                    choice=choices[turn.choice] if turn.choice < len(choices) else None,
                    evidence=turn.evidence,
                    tools=None if offered is None else list(offered),
                )


def _left_out(turn: WholeTurn) -> bool:
    """The run was told to keep no texts (``--keep``)."""
    body = turn.line.get("body")
    return isinstance(body, dict) and "kept" in body


def _may_call(row: TurnRow, turn: WholeTurn, offered: Json) -> bool:
    """By what the recorder saw; else by the request, where it is known."""
    if row.role in _NEVER:
        return False
    if row.role in _MAY or not isinstance(turn.request, dict):
        return True
    return bool(offered) and wire.read_request(turn.request, turn.api).tool_choice != "none"


def _arms(path: Path) -> dict[str, Arm]:
    return {arm.name: arm for arm in arms_of(load_card(path).study)}


def _in_prompt(row: TurnRow, arms: dict[str, Arm]) -> list[dict[str, Json]] | None:
    """The tools of a condition that offers them as text, made again from the seed."""
    arm = arms.get(row.arm or "")
    if arm is None or row.seed is None or arm.factors.condition in ("native", "native_hint"):
        return None
    return _task(arm.task).make(row.seed).tools(arm.factors.schema)


_task = cache(tasks.get)
