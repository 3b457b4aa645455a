"""The texts that can be annotated: all that a model wrote in a turn, and what the detector says of it.

Runs, and every log that `truecall scan` reads. A turn is left out, and counted, where nobody could read what the
model wrote: no text was kept, or the interface took the call out of the text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from truecall import wire
from truecall.annotate.records import OTHER_TOOL, UNREADABLE, Answer, Passage, Text
from truecall.annotate.runs import Whole, whole_turns
from truecall.errors import InputError
from truecall.evidence import STRONGER, best
from truecall.records import Call, CallTier, Choice, Emission, Evidence, Json, Record, Verdict
from truecall.scan.kernel import judge_turn
from truecall.scan.outcome import outcome_of
from truecall.schema import compile_tools
from truecall.sources import Bad, Options, Turn, files, read_file
from truecall.sources.table import source_of
from truecall.store import Place, find_place
from truecall.wire.values import join, plain

NO_TOOLS: Final = "no tools were offered, or calls were forbidden"
FORCED: Final = "a constraint made the text"
TAKEN: Final = "the interface took the call out of the text"
NO_TEXT: Final = "no text came, or none was kept"
UNKNOWN: Final = "the verdict is unknown"

Passages = tuple[Passage, ...]


class LeftOut(Record, frozen=True):
    """A turn that can't be annotated, and why."""

    reason: str


Found = Text | LeftOut | Bad


def texts(paths: Sequence[str], tools: Json = None) -> Iterator[Found]:
    """The turns of runs (ids or folders) and logs, of each file once. ``tools``: those of turns whose log holds none.

    Raises:
        InputError: a path that names nothing, or holds no log of a known format.
    """
    read: set[str] = set()
    for path in paths:
        known = False
        named = path if Path(path).exists() else str(find_place(path, list(Place)))
        for file in files.expand([named]):
            source = source_of(file)
            if source is None:
                continue
            known = True
            if (real := os.path.realpath(file)) in read:
                continue
            read.add(real)
            if source.name == "truecall":
                yield from map(_of_run, whole_turns(Path(file).parent, tools))
                continue
            for item in read_file(file, Options(tools=tools), source=source.name):
                yield item if isinstance(item, Bad) else _of_log(item)
        if not known:
            raise InputError(f"{path}: no run, and no log of a known format (docs/sources.md)")


def _of_run(turn: Whole | Bad) -> Found:
    """A turn of a run folder."""
    if isinstance(turn, Bad):
        return turn
    verdict = turn.verdict
    if verdict is None:
        return LeftOut(reason=NO_TEXT)
    if not turn.may_call:
        return LeftOut(reason=NO_TOOLS)
    passages, taken = _written(turn.choice, turn.evidence)
    if why := _why_not(verdict, passages, taken, forced=verdict.flags.forced):
        return LeftOut(reason=why)
    return _text(turn.place, turn.group, passages, verdict, turn.tools)


def _of_log(turn: Turn) -> Found:
    """A turn of somebody's log."""
    verdict = judge_turn(turn)
    outcome = outcome_of(turn, verdict)
    if outcome.eligible is False:
        return LeftOut(reason=NO_TOOLS)
    if turn.body is not None:
        api = turn.api or "openai.chat"
        response = wire.read(turn.body, api, status=turn.status)
        choice = response.choices[0] if response.choices else None
        view = wire.read_request(turn.request, api) if turn.request is not None else None
        passages, taken = _written(choice, best(response, choice, request=view))
    elif turn.raw:
        passages, taken = _kept(("text", turn.text)), False
    else:
        passages, taken = _kept(("reasoning", turn.reasoning), ("content", turn.text)), bool(turn.surfaced)
    if why := _why_not(verdict, passages, taken, forced=outcome.forced):
        return LeftOut(reason=why)
    group = turn.model or "unknown model"
    return _text(_place(turn), group, passages, verdict, turn.tools, stripped=turn.stripped, cut=turn.capped)


def _written(choice: Choice | None, evidence: Evidence | None) -> tuple[Passages, bool]:
    """All that the model wrote, in order; and whether a part of it is gone, as the interface made calls of it."""
    if evidence is not None and evidence.tier in STRONGER:
        return _kept(("text", evidence.text)), False
    if choice is None:
        return (), False
    return _kept(("reasoning", choice.reasoning), ("content", choice.content)), bool(choice.tool_calls)


def _kept(*named: tuple[str, str | None]) -> Passages:
    return tuple(Passage(kind=kind, text=join((text,))) for kind, text in named if text and text.strip())


def _why_not(verdict: Verdict, passages: Passages, taken: bool, *, forced: bool) -> str:
    if forced:
        return FORCED
    if taken:
        return TAKEN
    if not passages:
        return NO_TEXT
    unknown = not verdict.calls and verdict.emission in (Emission.UNKNOWN, Emission.NOT_RUN)
    return UNKNOWN if unknown else ""


def _text(
    place: str,
    group: str,
    passages: Passages,
    verdict: Verdict,
    tools: Json,
    *,
    stripped: bool = False,
    cut: bool = False,
) -> Text:
    calls = [each.emitted for each in verdict.calls if each.emitted is not None]
    return Text(
        place=place,
        group=group,
        passages=passages,
        stratum=stratum_of(calls, stripped=stripped),
        detector=answer_of(calls, tools),
        verdict=(verdict.emission.value, verdict.delivery.value, verdict.rule),
        evidence=verdict.tier.value,
        tools=plain(tools),
        cut=cut,
    )


def stratum_of(calls: Sequence[Call], *, stripped: bool = False) -> str:
    """The best that the detector read: see `STRATA`. Where special tokens were stripped no call is tight."""
    if not calls:
        return "none"
    if not stripped and any(call.tier is CallTier.TIGHT for call in calls):
        return "tight"
    return "well_formed" if any(call.well_formed for call in calls) else "malformed"


def answer_of(calls: Sequence[Call], tools: Json) -> Answer:
    """What the detector answers to the questions that annotators are asked."""
    if not calls:
        return Answer(call="no")
    known = compile_tools(tools)
    tool = tool_label(calls[0].name, known.names) if known.names else None
    well_formed = any(call.well_formed for call in calls)
    return Answer(call="yes", well_formed="yes" if well_formed else "no", tool=tool)


def tool_label(name: str | None, offered: Sequence[str]) -> str:
    """How `Answer.tool` says a name."""
    if not name:
        return UNREADABLE
    return f"offered:{name}" if name in offered else OTHER_TOOL


def _place(turn: Turn) -> str:
    place = turn.place
    words = [place.file if place.line is None else f"{place.file}:{place.line}", place.entry]
    if turn.position is not None:
        words.append(f"turn {turn.position}")
    return ", ".join(filter(None, words))
