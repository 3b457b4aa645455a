"""The worst turns of a run folder: what the model wrote, marked, beside what the interface returned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from truecall import wire
from truecall.classify import SEVERITY
from truecall.classify.rules import BY_ID
from truecall.detector import detect
from truecall.errors import TruecallError
from truecall.evidence import best
from truecall.pages import Mark, marks_of
from truecall.records import Delivery, Detection, EvidenceTier, Json, Response
from truecall.report.data import Badge, Example, Examples, Excerpt, Note, Part, Tone
from truecall.report.share import Mask
from truecall.store.index import Index, TurnRow, open_index
from truecall.store.turns import WholeTurn

MOST: Final = 16
_OF_A_KIND: Final = 2
_PAGE: Final = 500
_LOOKED_AT: Final = 5000  # rows of each delivery
_LENGTH: Final = 3000  # characters of a text
_LEAD: Final = 600  # of them at most before the first call
_FINE: Final = frozenset({Delivery.SURFACED, Delivery.NOTHING, Delivery.UNKNOWN})
_FAILED: Final = (
    *(Delivery.SERVER_ERROR, Delivery.REJECTED, Delivery.TIMEOUT),
    Delivery.UNREACHABLE,
    Delivery.RATE_LIMITED,
)
_WORST: Final = tuple(str(d) for d in (*SEVERITY, *_FAILED) if d not in _FINE)

_WARN: Final = frozenset(
    {"leaked", "mangled", "cut_off", "phantom", "malformed", "invalid_arguments", "wrong_name"}
)

Tools = Callable[[TurnRow], Sequence[Json] | None]
"""The tools of a turn whose request has no field for them; None where they can't be had."""


def worst(path: Path, mask: Mask, *, role: str | None = None, tools: Tools = lambda _: None) -> Part:
    """The worst turns of a folder, at most two of a rule in an arm. ``role``: only turns of this role."""
    block: Examples | Note
    try:
        block = _worst(path, mask, role, tools)
    except TruecallError as error:  # a damaged log: the numbers that could be read stand without it
        block = Note(text=f"No examples: {mask.places(str(error))}", tone="warn")
    else:
        if not block.items:
            block = Note(text="No call was lost and no request failed: there is no example to show.")
    return Part(title="Worst examples", blocks=(block,))


def _worst(path: Path, mask: Mask, role: str | None, tools: Tools) -> Examples:
    where: dict[str, object] = {} if role is None else {"role": role}
    with open_index(path) as index:
        rows = _chosen(index, where)
        of = index.count({**where, "delivery": _WORST})
        items = tuple(_example(row, _as_kept(index.turn(row.id)), mask, tools(row)) for row in rows)
    return Examples(items=items, of=of)


def _chosen(index: Index, where: dict[str, object]) -> list[TurnRow]:
    """By severity, some of each arm and rule: more of the same would show nothing new."""
    chosen: list[TurnRow] = []
    for delivery in _WORST:
        seen: Counter[tuple[str | None, str | None]] = Counter()
        for row in _first(index, {**where, "delivery": delivery}):
            kind = (row.arm, row.rule)
            seen[kind] += 1
            if seen[kind] <= _OF_A_KIND:
                chosen.append(row)
    return chosen[:MOST]


def _first(index: Index, where: dict[str, object]) -> Iterator[TurnRow]:
    """The first rows of a kind: enough to meet every arm, not all of a long run."""
    after = 0
    for _ in range(_LOOKED_AT // _PAGE):
        rows = index.page(where, after=after, limit=_PAGE)
        yield from rows
        if len(rows) < _PAGE:
            return
        after = rows[-1].id


def _as_kept(turn: WholeTurn) -> WholeTurn:
    """The turn with the shape of its answer, where the run kept only that (``--keep``), and a word on it."""
    kept = turn.line.get("body")
    if not isinstance(kept, dict) or "kept" not in kept:
        return turn
    faults = (*turn.faults, f"its text was not kept (--keep {kept['kept']})")
    if "shape" not in kept or turn.exchange is None:
        return msgspec.structs.replace(turn, faults=faults)
    response = wire.read(kept["shape"], turn.api, status=turn.exchange.status)
    choice = response.choices[turn.choice] if turn.choice < len(response.choices) else None
    evidence = best(response, choice)
    found = detect(evidence.text, turn.tools) if evidence.text is not None else None
    return msgspec.structs.replace(turn, response=response, evidence=evidence, detection=found, faults=faults)


def _example(row: TurnRow, turn: WholeTurn, mask: Mask, tools: Sequence[Json] | None) -> Example:
    offered = turn.tools or tools or ()
    evidence = turn.evidence
    text = evidence.text if evidence is not None else None
    found = detect(text, list(offered)) if text and tools and not turn.tools else turn.detection
    known = str(row.tier or (evidence.tier if evidence else EvidenceTier.NONE))
    known += "".join(f"; {mask.places(fault)}" for fault in turn.faults)
    return Example(
        title=_title(row),
        verdict=badges(row.emission, row.delivery, row.cause),
        why=said(row.rule),
        evidence=known,
        wrote=None if text is None else excerpt(mask.text(text, offered), found),
        returned=tuple(_returned(row, turn, mask, offered)),
    )


def _title(row: TurnRow) -> str:
    known = {
        "": row.arm or row.model,
        "exchange ": None if row.arm else row.key,
        " ": row.item if row.arm else None,
        "seed ": row.seed,
        "sampling seed ": row.sample,
        "turn ": row.position,
    }
    return " · ".join(f"{name}{value}".strip() for name, value in known.items() if value is not None)


def badges(emission: str | None, delivery: str | None, cause: str | None = None) -> tuple[Badge, ...]:
    """A verdict's words, set apart by how bad they are."""
    words = [word for word in (emission, delivery) if word]
    shown = [Badge(word=word, tone=tone_of(word)) for word in words]
    return (*shown, *([Badge(word=f"by the {cause}")] if cause and cause not in ("none", "unknown") else []))


def tone_of(word: str) -> Tone:
    """The tone of an emission or delivery."""
    if word in _WARN:
        return "warn"
    if word in ("surfaced", "valid"):
        return "good"
    return "bad" if word in _WORST else "plain"


def said(rule: str | None) -> str:
    """A rule by its id, and what it says."""
    known = BY_ID.get(rule or "")
    return f"{known.says} ({rule})" if known is not None else (rule or "")


# --------------------------------------------------------------------------- the two sides


def excerpt(text: str, found: Detection | None, length: int = _LENGTH) -> Excerpt:
    """The text around its first call, with what the detector saw in it."""
    marks = marks_of(found) if found is not None else []
    first = next((m.start for m in marks if m.kind == "call"), 0)
    start = 0 if len(text) <= length else max(0, first - _LEAD)
    end = min(len(text), start + length)
    moved = [
        Mark(m.kind, max(m.start - start, 0), min(m.end, end) - start, m.label)
        for m in marks
        if m.end > start and m.start < end
    ]
    return Excerpt(text=text[start:end], marks=tuple(moved), before=start, after=len(text) - end)


def _returned(
    row: TurnRow, turn: WholeTurn, mask: Mask, tools: Sequence[Json]
) -> Iterable[tuple[str, Excerpt]]:
    exchange, response = turn.exchange, turn.response
    if exchange is None or response is None:
        yield "nothing known", excerpt("", None)
        return
    if exchange.failure is not None:
        yield "failed", excerpt(f"{exchange.failure.kind}: {mask.text(exchange.failure.detail)}", None)
    if exchange.status is not None and exchange.status != 200:
        yield "HTTP status", excerpt(str(exchange.status), None)
    if response.error is not None:
        yield "error", excerpt(mask.text(response.error.message, tools), None)
    yield from answer(response, turn.choice, mask, tools)
    if row.condition not in (None, "native", "native_hint") and row.delivery == "leaked":
        yield "the harness's parser", excerpt("took no call from this text", None)


def answer(
    response: Response, number: int, mask: Mask, tools: Sequence[Json] = ()
) -> Iterable[tuple[str, Excerpt]]:
    """What one sampled answer held, field by field."""
    if number >= len(response.choices):
        return
    choice = response.choices[number]
    yield "tool_calls", excerpt(_calls(choice.tool_calls, mask, tools), None)
    yield "content", excerpt("null" if choice.content is None else mask.text(choice.content, tools), None)
    if choice.reasoning:
        yield "reasoning", excerpt(mask.text(choice.reasoning, tools), None)
    yield "finish_reason", excerpt(str(choice.finish_reason), None)


def _calls(calls: Sequence[object], mask: Mask, tools: Sequence[Json]) -> str:
    lines = []
    for call in calls:
        arguments = getattr(call, "arguments", None)
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        lines.append(f"{getattr(call, 'name', None)}({mask.text(text, tools)})")
    return "\n".join(lines) or "[]"
