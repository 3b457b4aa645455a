"""The irrelevance block corrected, and the overall and rank that follow, as bounds where entries can't be settled.

Credit is right for ABSTAINED. MALFORMED and CALLED get none. EMPTY and SERVING_ERROR can't be settled entry by
entry: the lower bound takes them as no abstention, the upper one leaves the credit that they have.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

from truecall.audits.bfcl.gated import GatedCategory
from truecall.audits.bfcl.load import IRRELEVANCE, is_relevance
from truecall.audits.bfcl.table import WEIGHTS, Leaderboard, Row
from truecall.audits.gate import GateState
from truecall.records import Record

Weighing = Literal["none", "lost", "abstained", "model_empty", "undecided"]


class Weighed(Record, frozen=True):
    """What a run's empty results speak for, as a whole; per entry it stays open.

    ``lost``: text was generated and lost (the run never shows a call where one is due). ``abstained``: the same
    interface shows calls where they are due. ``model_empty``: at most the end token was generated.
    """

    reading: Weighing
    empty: int
    why: str


class Bounds(Record, frozen=True):
    """A number in percent known only within bounds."""

    low: float
    high: float


class CorrectedRow(Record, frozen=True):
    """A row with the block corrected. ``examined``: categories whose result files were at hand.

    ``block`` and ``overall`` are bounds in percent, ``best_rank`` and ``worst_rank`` the ranks that they allow
    beside the others. ``as_weighed``: the overall when EMPTY is taken as the run speaks for; None where that is
    undecided or changes nothing.
    """

    model: str
    run: str | None
    rank: int
    published: float
    block: Bounds
    overall: Bounds
    examined: tuple[str, ...]
    best_rank: int
    worst_rank: int
    touched: bool = True
    as_weighed: Bounds | None = None


def weigh(categories: Sequence[GatedCategory], row: Row | None) -> Weighed:
    """What the empty irrelevance results of one run speak for, by its relevance and its token counts."""
    empty = [c for c in categories if c.category in IRRELEVANCE and c.every.states.get("EMPTY")]
    count = sum(c.every.states["EMPTY"] for c in empty)
    if not count:
        return Weighed(reading="none", empty=0, why="no empty result")
    spans = [c.every.empty_tokens for c in empty if c.every.empty_tokens is not None]
    if spans and max(high for _, high in spans) <= 1:
        return Weighed(reading="model_empty", empty=count, why="at most one token was generated for each")
    due = [c for c in categories if is_relevance(c.category) and c.every.entries]
    if due:
        total = sum(c.every.entries for c in due)
        called = sum(c.every.states.get("CALLED", 0) for c in due)
        lost = sum(c.every.states.get("EMPTY", 0) for c in due)
        said = f"{called} of {total} relevance entries hold a call, {lost} are empty"
        if called * 2 >= total:
            return Weighed(reading="abstained", empty=count, why=said)
        whole = all(c.every.states["EMPTY"] == c.every.entries for c in empty)
        if lost == total and whole:
            return Weighed(reading="lost", empty=count, why=f"{said}; nothing else was ever stored")
        return Weighed(reading="undecided", empty=count, why=said)
    if row is not None and row.relevance is not None and row.relevance >= 50:
        return Weighed(reading="abstained", empty=count, why=f"published relevance {row.relevance:.2f} %")
    return Weighed(reading="undecided", empty=count, why="no relevance results at hand")


def corrected_rows(
    table: Leaderboard, runs: dict[str, tuple[str, list[GatedCategory], Weighed]]
) -> tuple[CorrectedRow, ...]:
    """Every row, by its place in the table. ``runs``: row model -> (run, its gated categories, its empties' weight).

    Rows that were not examined and lack the signature stand as published (``touched`` False).
    """
    blocks = [_touch(row, runs.get(row.model)) for row in table.rows]
    spans = [
        Bounds(low=row.overall, high=row.overall) if block is None else _overall(row, block[0])
        for row, block in zip(table.rows, blocks, strict=True)
    ]
    lows, highs = sorted(span.low for span in spans), sorted(span.high for span in spans)
    out = []
    for row, block, mine in zip(table.rows, blocks, spans, strict=True):
        published = Bounds(low=row.blocks["irrelevance"], high=row.blocks["irrelevance"])
        span, weighed, examined = block or (published, None, ())
        run = runs.get(row.model)
        out.append(
            CorrectedRow(
                model=row.model,
                run=run[0] if run else None,
                rank=row.rank,
                published=row.overall,
                block=span,
                overall=mine,
                examined=examined,
                touched=block is not None,
                best_rank=1 + len(lows) - bisect_right(lows, mine.high),
                worst_rank=len(highs) - bisect_right(highs, mine.low) + (mine.high <= mine.low),
                as_weighed=None if weighed is None else _overall(row, weighed),
            )
        )
    return tuple(out)


_Touched = tuple[Bounds, Bounds | None, tuple[str, ...]]


def _touch(row: Row, run: tuple[str, list[GatedCategory], Weighed] | None) -> _Touched | None:
    """(block, block as weighed, categories examined) of a row; None where it stands as published."""
    categories = run[1] if run else []
    examined = tuple(c.category for c in categories if c.category in IRRELEVANCE)
    if not examined and "signature" not in row.flags:
        return None
    block = _block(row, categories, None)
    weighed = _block(row, categories, run[2].reading) if run else None
    return block, weighed if weighed != block else None, examined


def _overall(row: Row, block: Bounds) -> Bounds:
    """The published overall with the block exchanged."""
    weight = WEIGHTS["irrelevance"] / 100
    published = row.blocks["irrelevance"]
    return Bounds(
        low=row.overall - weight * (published - block.low),
        high=row.overall - weight * (published - block.high),
    )


def _block(row: Row, categories: Sequence[GatedCategory], reading: Weighing | None) -> Bounds:
    """The block's bounds: the mean of its two categories; one without files keeps what it was given at most."""
    published = row.blocks["irrelevance"]
    low = high = 0.0
    for name in IRRELEVANCE:
        got = next((c for c in categories if c.category == name and c.every.entries), None)
        if got is not None:
            span = accuracy(got, reading)
            low, high = low + span.low, high + span.high
        else:
            high += row.parts.get(name, _rest(published, categories))
    return Bounds(low=low / 2, high=min(high / 2, published))


def _rest(published: float, categories: Sequence[GatedCategory]) -> float:
    """What the block's mean leaves for a category, given the credit of the other where it is known."""
    other = next((c for c in categories if c.category in IRRELEVANCE and c.credited is not None), None)
    taken = 0.0
    if other is not None and other.credited is not None and other.every.entries:
        taken = 100 * other.credited.entries / other.every.entries
    return min(100.0, max(0.0, 2 * published - taken))


def accuracy(category: GatedCategory, reading: Weighing | None) -> Bounds:
    """An irrelevance category's corrected accuracy in percent. ``reading`` None: each EMPTY is left open.

    Where the credit is not known from the files, the gate's states stand alone.
    """
    states = (category.credited or category.every).states
    total = max(category.every.entries, 1)
    sure = states.get(str(GateState.ABSTAINED), 0)
    empty = states.get(str(GateState.EMPTY), 0)
    errors = states.get(str(GateState.SERVING_ERROR), 0)
    low = sure + (empty if reading == "abstained" else 0)
    high = sure + errors + (0 if reading == "lost" else empty)
    return Bounds(low=100 * low / total, high=100 * high / total)
