"""The audit of BFCL results: a published snapshot, or a run of one's own, recounted from its files.

`audit` reads the files and gives the `Report`; nothing of the benchmark's own code is run. Rules:
bfcl-eval 2026.3.23 (its eval_runner, eval_runner_helper and ast_checker, written anew).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from truecall.audits.bfcl.categories import CategoryAudit, audit_category
from truecall.audits.bfcl.corrected import CorrectedRow, Weighed, corrected_rows, weigh
from truecall.audits.bfcl.gated import GatedCategory, gated
from truecall.audits.bfcl.load import IRRELEVANCE, Category, Questions, is_irrelevance, is_relevance, load_run
from truecall.audits.bfcl.table import Leaderboard, Row, match_row, read_table
from truecall.audits.overrides import Disagreement, Overrides
from truecall.detector import VERSION
from truecall.errors import InputError
from truecall.records import Record
from truecall.sources.base import Bad, Place
from truecall.sources.bfcl_folder import Folder, Run, absolute, find, installed_questions

RULES_VERSION: Final = "bfcl-2026.3.23"
SCHEMA_VERSION: Final = 1
MAX_BAD_LISTED: Final = 200

NOT_KNOWABLE: Final = (
    "finish_reason and the raw response: BFCL does not store them",
    "the text beside a stored list of calls, empty or not",
)


class RunAudit(Record, frozen=True):
    """One model's run. ``row``: its row's model in the table; None where none fits. ``table`` names the table."""

    model: str
    root: str
    row: str | None
    table: str | None
    gated: tuple[GatedCategory, ...]
    categories: tuple[CategoryAudit, ...]
    weighed: Weighed
    relevance: float | None = None


class LeaderboardAudit(Record, frozen=True):
    """One table, with the corrected ranking: a row of ``corrected`` for each row of the table, in its order."""

    table: Leaderboard
    corrected: tuple[CorrectedRow, ...]


class Report(Record, frozen=True):
    """All that an audit found. ``files``: those read. ``others``: files under the paths that are none of BFCL's."""

    leaderboards: tuple[LeaderboardAudit, ...]
    runs: tuple[RunAudit, ...]
    disagreements: tuple[Disagreement, ...]
    bad: tuple[Bad, ...]
    bad_count: int
    files: tuple[str, ...]
    others: int
    doubled: tuple[str, ...] = ()
    not_knowable: tuple[str, ...] = NOT_KNOWABLE
    rules: str = RULES_VERSION
    detector: str = VERSION
    schema_version: int = SCHEMA_VERSION


class Inputs(msgspec.Struct):
    """What an audit reads: the folder's layout, and the names by which files and snapshots are shown."""

    folder: Folder
    shown: dict[Path, str]
    roots: dict[Path, str]


def gather(paths: Sequence[Path], questions: Path | None = None, *, installed: bool = True) -> Inputs:
    """The BFCL files under ``paths``, and question files from ``questions`` or an installed ``bfcl_eval``.

    Raises InputError where nothing of BFCL's is found.
    """
    folder = find(paths)
    if not folder.runs and not folder.tables:
        where = ", ".join(map(str, paths))
        raise InputError(
            f"{where}: no BFCL files (result/<model>/…_result.json, score/<model>/…_score.json, data_overall.csv)"
        )
    shown = {path: _shown(path, paths) for path in folder.files()}
    extra = questions if questions is not None else installed_questions() if installed else None
    if extra is not None:
        more = find([extra])
        folder.questions = more.questions | folder.questions
        folder.answers = more.answers | folder.answers
        shown |= {path: f"questions/{path.name}" for path in more.questions.values()}
        shown |= {path: f"questions/possible_answer/{path.name}" for path in more.answers.values()}
    roots = {run.root: _shown(run.root, paths) for run in folder.runs}
    return Inputs(folder=folder, shown=shown, roots=roots)


def _shown(path: Path, roots: Sequence[Path]) -> str:
    """A file by its place under the path that was given, so that reports do not depend on where that stands."""
    for root in roots:
        whole = absolute(root)
        if path == whole and path.is_file():
            return path.name
        if path.is_relative_to(whole):
            return path.relative_to(whole).as_posix()
    return "/".join(path.parts[-5:] if path.is_file() else path.parts[-1:])


def audit(
    inputs: Inputs,
    overrides: Overrides | None = None,
    *,
    categories: Iterable[str] | None = None,
    models: Iterable[str] | None = None,
) -> Report:
    """Recount everything under ``inputs``. ``categories`` and ``models`` (parts of a name) narrow it down.

    What the files hold is data: bad lines are listed, contradictions noted, and nothing raises for them.
    """
    overrides = overrides or Overrides()
    folder, shown = inputs.folder, inputs.shown
    bad: list[Bad] = []
    disagreements: list[Disagreement] = []
    tables: dict[Path, Leaderboard] = {}
    for place, files in sorted(folder.tables.items()):
        table, faults = read_table(files, shown)
        bad += faults
        if table is not None:
            tables[place] = table
    questions = Questions(folder)
    wanted = None if categories is None else list(categories)
    runs: list[RunAudit] = []
    rows: dict[int, dict[str, tuple[str, list[GatedCategory], Weighed]]] = {}
    for run in folder.runs:
        if models is not None and not any(name.lower() in run.model.lower() for name in models):
            continue
        loaded, faults = load_run(run, wanted, shown)
        bad += faults
        if not loaded:
            continue
        table, row = _table_of(run, tables, overrides.models)
        found = _audit_run(
            run, inputs.roots[run.root], loaded, questions, overrides, table, row, disagreements
        )
        runs.append(found)
        if table is not None and row is not None:
            kept = rows.setdefault(id(table), {})
            kept.setdefault(row.model, (run.model, list(found.gated), found.weighed))
    disagreements += _unused(overrides, runs)
    bad += questions.bad
    return Report(
        leaderboards=tuple(
            LeaderboardAudit(table=table, corrected=corrected_rows(table, rows.get(id(table), {})))
            for table in tables.values()
        ),
        runs=tuple(runs),
        disagreements=tuple(disagreements),
        bad=tuple(bad[:MAX_BAD_LISTED]),
        bad_count=len(bad),
        files=tuple(sorted(shown.values())),
        others=len(folder.other),
        doubled=tuple(path.name for path in folder.doubled),
    )


def _audit_run(
    run: Run,
    root: str,
    loaded: list[Category],
    questions: Questions,
    overrides: Overrides,
    table: Leaderboard | None,
    row: Row | None,
    disagreements: list[Disagreement],
) -> RunAudit:
    gates, others = [], []
    for category in loaded:
        if is_irrelevance(category.name) or is_relevance(category.name):
            published = row.parts.get(category.name) if row is not None else None
            gates.append(gated(category, questions, overrides, published, disagreements))
        else:
            others.append(audit_category(category, questions))
    gates.sort(key=lambda found: (found.category not in IRRELEVANCE, found.category))
    return RunAudit(
        model=run.model,
        root=root,
        row=row.model if row is not None else None,
        table=table.folder if table is not None and row is not None else None,
        gated=tuple(gates),
        categories=tuple(others),
        weighed=weigh(gates, row),
        relevance=row.relevance if row is not None else None,
    )


def _table_of(
    run: Run, tables: Mapping[Path, Leaderboard], named: Mapping[str, str]
) -> tuple[Leaderboard | None, Row | None]:
    """The table that has the run's row: one inside its own snapshot, else one that stands in no snapshot."""
    own = [place for place in tables if place.is_relative_to(run.root)]
    others = [place for place in tables if place not in own]
    for place in own:
        row = match_row(run.model, tables[place], named)
        if row is not None:
            return tables[place], row
    fits = [(tables[place], match_row(run.model, tables[place], named)) for place in ([] if own else others)]
    hits = [(table, row) for table, row in fits if row is not None]
    return hits[0] if len(hits) == 1 else (None, None)


def _unused(overrides: Overrides, runs: Sequence[RunAudit]) -> list[Disagreement]:
    """Overrides that fit no gated entry: most often a typing error, so they are shown."""
    seen = {
        (found.model, found.category, entry.id)
        for run in runs
        for found in run.gated
        for entry in found.entries
    }
    return [
        Disagreement(override=item)
        for item in overrides.entries
        if not any(overrides_fit(item.model, model) and overrides_fit(item.category, category) and item.id == entry
                   for model, category, entry in seen)
    ]  # fmt: skip


def overrides_fit(given: str, value: str) -> bool:
    """Whether an override's model or category stands for ``value``; the empty one stands for any."""
    return given in ("", value)


def without_entries(report: Report) -> Report:
    """The report with counts alone."""
    runs = tuple(
        msgspec.structs.replace(
            run,
            gated=tuple(msgspec.structs.replace(found, entries=()) for found in run.gated),
            categories=tuple(msgspec.structs.replace(found, listed=()) for found in run.categories),
        )
        for run in report.runs
    )
    return msgspec.structs.replace(report, runs=runs)


__all__ = [
    "RULES_VERSION", "SCHEMA_VERSION", "Bad", "Inputs", "LeaderboardAudit", "Place", "Report", "RunAudit", "audit",
    "gather", "without_entries",
]  # fmt: skip
