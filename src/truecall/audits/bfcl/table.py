"""The leaderboard tables: overall recomputed for every row, what the irrelevance block gives it, and its signature."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from truecall.records import Record
from truecall.sources.base import Bad, Place
from truecall.sources.bfcl import read_bytes, text_of

WEIGHTS: Final = {"non_live": 10, "live": 10, "irrelevance": 10, "multi_turn": 30, "agentic": 40}
"""V4's weights of the blocks in percent (bfcl-eval 2026.3.23, eval_runner_helper)."""

HIGH_IRRELEVANCE: Final = 50.0
LOW_RELEVANCE: Final = 25.0
SUSPECT_IRRELEVANCE: Final = 80.0
TOP: Final = 10

_PARTS: Final = {
    "non_live": ("Non-Live Simple AST", "Non-Live Multiple AST", "Non-Live Parallel AST",
                 "Non-Live Parallel Multiple AST"),
    "multi_turn": ("Multi Turn Base", "Multi Turn Miss Func", "Multi Turn Miss Param", "Multi Turn Long Context"),
    "agentic": ("Web Search Acc", "Memory Acc"),
}  # fmt: skip
_BLOCK: Final = {"non_live": "Non-Live AST Acc", "live": "Live Acc", "irrelevance": "Irrelevance Detection",
                 "multi_turn": "Multi Turn Acc"}  # fmt: skip


class Row(Record, frozen=True):
    """One row of a leaderboard; numbers in percent. ``rank`` is the published one.

    ``share``: percent of the published overall that the irrelevance block gives. ``parts``: published accuracies
    of irrelevance categories, where the other tables have them. ``missing``: blocks without a value, which count 0.
    ``flags``: ``signature`` (relevance 0, irrelevance at least 50), ``low_relevance`` (under 25 beside at least 80).
    """

    rank: int
    model: str
    link: str
    overall: float
    blocks: dict[str, float]
    weighted: float
    unweighted: float
    relevance: float | None
    share: float | None
    parts: dict[str, float] = msgspec.field(default_factory=dict)
    missing: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


class Fit(Record, frozen=True):
    """How far a formula stands from the published overall, in points, over all rows."""

    within: int
    rows: int
    largest: float
    mean: float
    least: float
    worst: str


class Controls(Record, frozen=True):
    """The first ten rows: the range of the block's share and of relevance, in percent; None where unknown."""

    rows: int
    share: tuple[float, float] | None
    relevance: tuple[float, float] | None


class Leaderboard(Record, frozen=True):
    """One table set. ``weighted`` and ``unweighted`` are None where the table lacks V4's blocks."""

    folder: str
    rows: tuple[Row, ...]
    weighted: Fit | None = None
    unweighted: Fit | None = None
    controls: Controls | None = None
    notes: tuple[str, ...] = ()


TOLERANCE: Final = 0.0075
"""Points by which a sum of numbers published with two decimals may be off: blocks' half-cents, weighted."""


def read_table(files: Mapping[str, Path], shown: Mapping[Path, str]) -> tuple[Leaderboard | None, list[Bad]]:
    """The leaderboard of the tables in one folder (``data_overall``, ``data_live``, ``data_non_live``).

    None without an overall table. Lines that can't be read are Bad.
    """
    bad: list[Bad] = []
    path = files.get("data_overall")
    if path is None:
        return None, bad
    lines = _lines(path, shown.get(path, str(path)), bad)
    parts = _parts(files, shown, bad)
    rows = [_row(line, parts.get(line["Model"], {}), index) for index, line in enumerate(lines, 1)]
    kept = tuple(row for row in rows if row is not None)
    folder = str(Path(shown.get(path, str(path))).parent)
    if not kept:
        return None, bad
    if not any("Memory Acc" in line or "Web Search Acc" in line for line in lines):
        note = "the table has no agentic block: it is none of V4's, and its overall is not recomputed"
        return Leaderboard(folder=folder, rows=kept, controls=_controls(kept), notes=(note,)), bad
    return (
        Leaderboard(
            folder=folder,
            rows=kept,
            weighted=_fit(kept, [row.weighted for row in kept]),
            unweighted=_fit(kept, [row.unweighted for row in kept]),
            controls=_controls(kept),
        ),
        bad,
    )


def _lines(path: Path, shown: str, bad: list[Bad]) -> list[dict[str, str]]:
    """The rows of a table by column name; rows without a model or with another length are Bad."""
    try:
        text, _ = text_of(read_bytes(path))
        read = list(csv.reader(io.StringIO(text, newline="")))
    except (ValueError, csv.Error) as error:
        bad.append(Bad(place=Place(file=shown), reason=str(error)))
        return []
    header = [cell.strip() for cell in read[0]] if read else []
    if "Model" not in header:
        bad.append(Bad(place=Place(file=shown, line=1), reason="a leaderboard table has a column Model"))
        return []
    out = []
    for number, cells in enumerate(read[1:], 2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            reason = f"{len(cells)} cells where the header has {len(header)}"
            bad.append(Bad(place=Place(file=shown, line=number), reason=reason))
            continue
        out.append({name: cell.strip() for name, cell in zip(header, cells, strict=True)})
    return out


def _parts(
    files: Mapping[str, Path], shown: Mapping[Path, str], bad: list[Bad]
) -> dict[str, dict[str, float]]:
    """Model -> category -> published accuracy in percent, of the irrelevance and relevance categories."""
    found: dict[str, dict[str, float]] = {}
    for table, columns in (
        ("data_non_live", {"Irrelevance Detection": "irrelevance"}),
        ("data_live", {"Irrelevance Detection": "live_irrelevance", "Relevance Detection": "live_relevance"}),
    ):
        path = files.get(table)
        for line in _lines(path, shown.get(path, str(path)), bad) if path else []:
            for column, category in columns.items():
                value = percent(line.get(column))
                if value is not None:
                    found.setdefault(line["Model"], {})[category] = value
    return found


def percent(cell: str | None) -> float | None:
    """A cell as percent; None for N/A and what is no number."""
    try:
        value = float((cell or "").strip().rstrip("%"))
    except ValueError:
        return None
    return value if 0 <= value <= 100 else None


def _row(line: dict[str, str], parts: dict[str, float], index: int) -> Row | None:
    overall = percent(line.get("Overall Acc"))
    if overall is None:
        return None
    blocks: dict[str, float] = {}
    missing = []
    for name in WEIGHTS:
        value = _block(line, name)
        if value is None:
            missing.append(name)
        blocks[name] = value or 0.0
    weighted = sum(blocks[name] * weight for name, weight in WEIGHTS.items()) / 100
    relevance = percent(line.get("Relevance Detection"))
    irrelevance = blocks["irrelevance"]
    known = dict(parts)
    if relevance is not None:
        known.setdefault("live_relevance", relevance)
    if irrelevance in (0.0, 100.0) and "irrelevance" not in missing:
        known = {"irrelevance": irrelevance, "live_irrelevance": irrelevance, **known}
    rank = line.get("Rank", "")
    return Row(
        rank=int(rank) if rank.isdecimal() and len(rank) < 9 else index,
        model=line["Model"],
        link=line.get("Model Link", ""),
        overall=overall,
        blocks=blocks,
        weighted=weighted,
        unweighted=sum(blocks.values()) / len(blocks),
        relevance=relevance,
        share=100 * WEIGHTS["irrelevance"] / 100 * irrelevance / overall if overall else None,
        parts=known,
        missing=tuple(missing),
        flags=_flags(relevance, irrelevance),
    )


def _block(line: dict[str, str], name: str) -> float | None:
    """A block's accuracy: its own column, or for agentic the mean of its two, a missing one counting 0."""
    if name in _BLOCK:
        return percent(line.get(_BLOCK[name]))
    values = [percent(line.get(column)) for column in _PARTS[name]]
    if all(value is None for value in values):
        return None
    return sum(value or 0.0 for value in values) / len(values)


def _flags(relevance: float | None, irrelevance: float) -> tuple[str, ...]:
    if relevance is None:
        return ()
    if relevance == 0 and irrelevance >= HIGH_IRRELEVANCE:
        return ("signature",)
    return ("low_relevance",) if relevance < LOW_RELEVANCE and irrelevance >= SUSPECT_IRRELEVANCE else ()


def _fit(rows: tuple[Row, ...], computed: list[float]) -> Fit:
    gaps = [abs(row.overall - value) for row, value in zip(rows, computed, strict=True)]
    worst = max(range(len(gaps)), key=gaps.__getitem__)
    row = rows[worst]
    return Fit(
        within=sum(gap <= TOLERANCE for gap in gaps),
        rows=len(gaps),
        largest=max(gaps),
        mean=sum(gaps) / len(gaps),
        least=min(gaps),
        worst=f"{row.model}: {row.overall:.2f} published, {computed[worst]:.2f} computed",
    )


def _controls(rows: tuple[Row, ...]) -> Controls:
    top = sorted(rows, key=lambda row: row.rank)[:TOP]
    shares = [row.share for row in top if row.share is not None]
    relevance = [row.relevance for row in top if row.relevance is not None]
    return Controls(
        rows=len(top),
        share=(min(shares), max(shares)) if shares else None,
        relevance=(min(relevance), max(relevance)) if relevance else None,
    )


_TAGS = re.compile(r"\((?:fc|prompt|vllm|sglang|[^)]*)\)")


def match_row(model: str, table: Leaderboard, named: Mapping[str, str]) -> Row | None:
    """The row of a model's folder: as ``named`` by hand, else by its name or link; None where none or several fit.

    Folder ``org_Name-FC`` stands for ``Name (FC)``; the organisation may be missing on either side.
    """
    if model in named:
        return next((row for row in table.rows if row.model == named[model]), None)
    wants = _forms(model)
    fits = [row for row in table.rows if _row_forms(row) & wants]
    if len(fits) > 1:
        calling = bool(re.search(r"[-_]fc\Z", model, re.IGNORECASE))
        fits = [row for row in fits if ("(fc" in row.model.lower()) == calling] or fits
    return fits[0] if len(fits) == 1 else None


def _row_forms(row: Row) -> set[str]:
    forms = _forms(_TAGS.sub("", row.model.lower()))
    tail = [part for part in row.link.rstrip("/").split("/") if part]
    if "huggingface.co" in row.link and len(tail) >= 2:
        forms |= {_plain(tail[-1]), _plain(tail[-2] + tail[-1])}
    return forms - {""}


def _forms(name: str) -> set[str]:
    """A name without signs, with and without the organisation before it and the mode behind it."""
    low = re.sub(r"[-_]fc\Z", "", name.strip().lower())
    forms = {_plain(low)}
    for sign in "/_":
        if sign in low:
            forms.add(_plain(low.partition(sign)[2]))
    return forms - {""}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())
