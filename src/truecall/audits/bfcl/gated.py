"""The irrelevance and relevance categories of a run, entry by entry through the gate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from truecall.audits import gate
from truecall.audits.bfcl.load import Category, Questions, is_irrelevance, problems
from truecall.audits.gate import GateState
from truecall.audits.overrides import Disagreement, Overrides
from truecall.records import Json, Record
from truecall.sources.bfcl import Entry

CreditSource = Literal["score file", "table", "unknown"]


class GatedEntry(Record, frozen=True):
    """One entry of an irrelevance or relevance category.

    ``credited``: the benchmark counted it as right; None: not known. ``read_alone`` is the state that the stored
    result has when the scorer's mark is left aside. ``tier`` is the detector's, None where it read no call.
    ``names_offered``: an offered function's name stands in the text as a whole word (None: tools not at hand).
    """

    id: str
    model: str
    category: str
    file: str
    line: int | None
    state: GateState
    rule: str
    read_alone: GateState
    credited: bool | None = None
    tier: str | None = None
    well_formed: bool = False
    markers: tuple[str, ...] = ()
    name_key: bool = False
    names_offered: bool | None = None
    output_tokens: float | None = None


class Tally(Record, frozen=True):
    """Counts over a set of entries.

    ``markers``: texts that carry the literal opening; ``marked``: any that opens a call. ``tiers``: by detector, of
    texts with a call or an opening. ``without_name_key``: of the marked, those with no ``name=``, ``"name":`` or
    ``tool_name:``. ``names_offered``: texts in which an offered name stands, of those whose functions are at hand.
    """

    entries: int
    states: dict[str, int]
    markers: dict[str, int] = msgspec.field(default_factory=dict)
    tiers: dict[str, int] = msgspec.field(default_factory=dict)
    marked: int = 0
    without_name_key: int = 0
    names_offered: tuple[int, int] | None = None
    at_cap: int = 0
    empty_tokens: tuple[float, float] | None = None


class GatedCategory(Record, frozen=True):
    """A gated category of a run. ``credited`` None: not known from the files.

    ``alone`` holds the states by the stored result alone. ``cap``: the largest output count, where it looks like
    a token limit that was hit.
    """

    model: str
    category: str
    every: Tally
    credited: Tally | None
    credit_source: CreditSource
    alone: dict[str, int]
    cap: int | None = None
    problems: tuple[str, ...] = ()
    entries: tuple[GatedEntry, ...] = ()


def gated(
    category: Category,
    questions: Questions,
    overrides: Overrides,
    published: float | None,
    disagreements: list[Disagreement],
) -> GatedCategory:
    """The gate over a category. ``published``: its accuracy in the table, in percent, which tells 0 and all."""
    whole = {0.0: False, 100.0: True}.get(published) if published is not None else None
    entries: list[GatedEntry] = []
    source: CreditSource = "score file" if category.score is not None and not category.torn else "unknown"
    for entry in category.entries.values():
        credited = category.decided(entry.id)
        if credited is None and whole is not None:
            credited, source = whole, "table"
        item = _entry(entry, category, credited, questions.tools(category, entry.id))
        override = overrides.of(entry.model, category.name, entry.id)
        if override is not None:
            if override.state is not item.state:
                disagreements.append(Disagreement(override=override, model=entry.model, ruled=item.state))
            item = msgspec.structs.replace(item, state=override.state, rule="override")
        entries.append(item)
    cap = _cap(entries)
    right = [item for item in entries if item.credited]
    known = all(item.credited is not None for item in entries) and bool(entries)
    return GatedCategory(
        model=category.run.model,
        category=category.name,
        every=tally(entries, cap),
        credited=tally(right, cap) if known else None,
        credit_source=source,
        alone=_states(entries, lambda item: item.read_alone),
        cap=cap,
        problems=tuple(problems(category)),
        entries=tuple(entries),
    )


def _entry(entry: Entry, category: Category, credited: bool | None, tools: list[Json] | None) -> GatedEntry:
    failed = entry.traceback is not None
    decoded = None if credited is None else credited is not is_irrelevance(category.name)
    alone = gate.read(entry.result, tools=tools, failed=failed)
    reading = (
        gate.read(entry.result, decoded=decoded, tools=tools, failed=failed) if decoded is not None else alone
    )
    if not entry.has_result and not failed:
        alone = reading = gate.Reading(GateState.EMPTY, "no_result")
    text = entry.result if isinstance(entry.result, str) else ""
    tier = gate.best_tier(alone.calls)
    return GatedEntry(
        id=entry.id,
        model=entry.model,
        category=category.name,
        file=entry.place.file,
        line=entry.place.line,
        state=reading.state,
        rule=reading.rule,
        read_alone=alone.state,
        credited=credited,
        tier=str(tier) if tier else None,
        well_formed=any(call.well_formed for call in alone.calls),
        markers=tuple(gate.markers_in(text)),
        name_key=gate.has_name_key(text),
        names_offered=_names_offered(text, tools) if text else None,
        output_tokens=entry.output_tokens,
    )


def _names_offered(text: str, tools: list[Json] | None) -> bool | None:
    if tools is None:
        return None
    names = [tool.get("name") for tool in tools if isinstance(tool, dict)]
    return any(
        re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) is not None
        for name in names
        if isinstance(name, str) and name
    )


def _cap(entries: list[GatedEntry]) -> int | None:
    """The largest output count, where it is a power of two or several entries end at it, as at a limit."""
    largest = int(max((item.output_tokens or 0 for item in entries), default=0))
    if largest < 256:
        return None
    several = sum(item.output_tokens == largest for item in entries) > 1
    return largest if several or largest & (largest - 1) == 0 else None


def _states(entries: Iterable[GatedEntry], state: Callable[[GatedEntry], GateState]) -> dict[str, int]:
    counts = Counter(str(state(item)) for item in entries)
    return {str(name): counts[str(name)] for name in GateState if counts[str(name)]}


def tally(entries: list[GatedEntry], cap: int | None) -> Tally:
    """Counts over ``entries``; ``cap`` as in `GatedCategory`."""
    markers = Counter(marker for item in entries for marker in item.markers)
    tiers: Counter[str] = Counter(item.tier or "none" for item in entries if item.markers or item.tier)
    named = [item.names_offered for item in entries if item.names_offered is not None]
    empty = [
        item.output_tokens
        for item in entries
        if item.state is GateState.EMPTY and item.output_tokens is not None
    ]
    marked = [item for item in entries if any(m not in ("<tools>",) for m in item.markers)]
    return Tally(
        entries=len(entries),
        states=_states(entries, lambda item: item.state),
        markers=dict(markers.most_common()),
        tiers={name: tiers[name] for name in ("tight", "strong", "weak", "none") if tiers[name]},
        marked=len(marked),
        without_name_key=sum(not item.name_key for item in marked),
        names_offered=(sum(named), len(named)) if named else None,
        at_cap=sum(item.output_tokens == cap for item in entries) if cap else 0,
        empty_tokens=(min(empty), max(empty)) if empty else None,
    )


def as_row(item: GatedEntry) -> dict[str, Any]:
    """An entry as a flat row for tables."""
    row: dict[str, Any] = msgspec.to_builtins(item)
    row["markers"] = " ".join(item.markers)
    return {name: row.get(name) for name in GatedEntry.__struct_fields__}
