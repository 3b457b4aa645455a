"""The audit of tau-bench and tau2-bench results: errors that were counted as failures, or dropped.

tau-bench stores an exception as reward 0; tau2 leaves an infrastructure error out. Neither is the model's failure
or success: the score is given with each treated right, and as bounds where a cause can't be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import comb
from pathlib import Path, PurePosixPath
from typing import Final

from truecall.audits.failures import OWN_CAUSES, cause_of
from truecall.audits.gate import GateState, read
from truecall.audits.tau_files import Kind, Simulation, find, simulations
from truecall.classify.error_texts import is_error_result
from truecall.detector import VERSION
from truecall.records import Record
from truecall.sources.base import Bad

RULES_VERSION: Final = "tau-1"
SCHEMA_VERSION: Final = 1
SUCCESS: Final = 1 - 1e-6


_OPEN: Final = frozenset({"unknown", "harness"})  # the model's call may have brought an exception about


def serving(cause: str) -> bool:
    """Whether a cause is the serving's: ``arguments`` and ``context`` are the model's own, some stay open."""
    return bool(cause) and cause not in OWN_CAUSES and cause not in _OPEN


class Score(Record, frozen=True):
    """A mean reward over ``n`` simulations; ``total`` is the sum of rewards. ``pass_k``: k -> pass^k over tasks."""

    total: float
    n: int
    rate: float | None
    pass_k: dict[str, float]


class TauEntry(Record, frozen=True):
    """A simulation that the audit points at. ``cause`` of its error; ``left``: replies with a call in the text."""

    file: str
    index: int
    task: str
    trial: str
    reward: float | None
    cause: str = ""
    error: str = ""
    left: int = 0


class TauReport(Record, frozen=True):
    """``published``: as the harness counts. ``treated``: serving errors left out, the model's own kept; bounds where
    causes are unknown. ``scores`` holds each treatment. ``left``: simulations with a call left in a reply's text.
    """

    kind: Kind
    simulations: int
    tasks: int
    errors: dict[str, int]
    published: Score
    scores: dict[str, Score]
    low: float | None
    high: float | None
    unrewarded: int
    left: int
    left_replies: int
    entries: tuple[TauEntry, ...]
    bad: tuple[Bad, ...]
    files: tuple[str, ...]
    not_knowable: tuple[str, ...]
    rules: str = RULES_VERSION
    detector: str = VERSION
    schema_version: int = SCHEMA_VERSION


class TauOutput(TauReport, frozen=True):
    """What ``--json`` prints: the report with its answer (docs/schemas/audit-tau.json)."""

    answer: str = ""


_NOT_KNOWABLE: Final = {
    "tau-bench": ("calls after the first of a reply: the harness drops them", "the raw responses"),
    "tau2": (
        "what the three tries before an infrastructure error held",
        "raw responses where raw_data was not kept",
    ),
}


def _cause(item: Simulation) -> str:
    """The cause of a simulation's error; "" without one, "unknown" where its text does not tell."""
    if item.error is None:
        return ""
    cause = cause_of(item.error, item.traceback)
    if cause != "unknown":
        return cause
    if item.dropped:
        return "infrastructure"
    return "server_error" if is_error_result(item.error) else "unknown"


def audit(paths: Sequence[Path], kind: Kind) -> TauReport:
    """Recount the result files under ``paths``. Raises InputError where there are none."""
    files = find(list(paths), kind)
    items: list[Simulation] = []
    bad: list[Bad] = []
    for path, shown in files:
        found, faults = simulations(path, kind, shown)
        items += found
        bad += faults
    return count(items, kind, tuple(bad), tuple(shown for _, shown in files))


def count(items: Sequence[Simulation], kind: Kind, bad: tuple[Bad, ...], files: tuple[str, ...]) -> TauReport:
    """The report over simulations."""
    causes = {id(item): _cause(item) for item in items}
    left = {id(item): sum(_holds_call(text) for text in item.replies) for item in items}

    def unknown(item: Simulation) -> bool:
        return causes[id(item)] in _OPEN

    kept = [item for item in items if not serving(causes[id(item)])]
    low = _score(kept, lambda item: 0.0 if unknown(item) else item.reward or 0.0)
    high = _score(kept, lambda item: 1.0 if unknown(item) else item.reward or 0.0)
    dropped = [item for item in items if item.error is None]
    scores = {
        "errors_as_failures": _score(
            items, lambda item: 0.0 if item.error is not None else item.reward or 0.0
        ),
        "errors_dropped": _score(dropped, lambda item: item.reward or 0.0),
        "serving_errors_dropped": low,
    }
    published = scores["errors_as_failures"] if kind == "tau-bench" else _score(
        [item for item in items if not item.dropped], lambda item: item.reward or 0.0
    )  # fmt: skip
    return TauReport(
        kind=kind,
        simulations=len(items),
        tasks=len({item.task for item in items}),
        errors=dict(Counter(cause for cause in causes.values() if cause).most_common()),
        published=published,
        scores=scores,
        low=low.rate,
        high=high.rate,
        unrewarded=sum(item.reward is None and item.error is None for item in items),
        left=sum(n > 0 for n in left.values()),
        left_replies=sum(left.values()),
        entries=tuple(
            _entry(item, causes[id(item)], left[id(item)])
            for item in items
            if causes[id(item)] or left[id(item)]
        ),
        bad=bad,
        files=files,
        not_knowable=_NOT_KNOWABLE[kind],
    )  # fmt: skip


def _holds_call(text: str) -> bool:
    return read(text).state in (GateState.CALLED, GateState.MALFORMED)


def _entry(item: Simulation, cause: str, left: int) -> TauEntry:
    return TauEntry(
        file=item.file, index=item.index, task=item.task, trial=item.trial, reward=item.reward, cause=cause,
        error=(item.error or "")[:400], left=left,
    )  # fmt: skip


def _score(items: Sequence[Simulation], reward: Callable[[Simulation], float]) -> Score:
    total = sum(reward(item) for item in items)
    return Score(
        total=total,
        n=len(items),
        rate=total / len(items) if items else None,
        pass_k=_pass_k(items, reward),
    )


def _pass_k(items: Sequence[Simulation], reward: Callable[[Simulation], float]) -> dict[str, float]:
    """pass^k (Yao et al. 2024): the mean over tasks of C(successes, k) / C(trials, k); all tasks have k trials."""
    tasks: dict[tuple[str, str], list[bool]] = {}
    for item in items:
        tasks.setdefault((_run_of(item.file), item.task), []).append(reward(item) >= SUCCESS)
    if not tasks:
        return {}
    most = min(len(trials) for trials in tasks.values())
    return {
        str(k): sum(comb(sum(trials), k) / comb(len(trials), k) for trials in tasks.values()) / len(tasks)
        for k in range(1, most + 1)
    }


def _run_of(file: str) -> str:
    """The run that a file belongs to: itself, or the folder whose simulations stand one a file."""
    path = PurePosixPath(file)
    return str(path.parent.parent) if path.parent.name == "simulations" else file


def answer(report: TauReport) -> str:
    """The answer in a sentence."""
    if not report.simulations:
        return "No simulation could be read."
    errors = sum(report.errors.values())
    lost = sum(n for cause, n in report.errors.items() if serving(cause))
    shown = _percent(report.published.rate)
    if not errors:
        return (
            f"Nothing found: no errors among {report.simulations} simulations; the score of {shown} stands."
        )
    if report.kind == "tau-bench":
        treated = (
            _percent(report.low)
            if report.low == report.high
            else f"{_percent(report.low)} to {_percent(report.high)}"
        )
        return (
            f"{errors} of {report.simulations} simulations ended in an error and were counted as failures: {shown} as "
            f"published, {treated} with the {lost} serving errors left out."
        )  # fmt: skip
    failed = _percent(report.scores["errors_as_failures"].rate)
    return (
        f"{errors} of {report.simulations} simulations ended in an infrastructure error and were left out: {shown} as "
        f"published, {failed} with them counted as failures."
    )


def _percent(rate: float | None) -> str:
    return "unknown" if rate is None else f"{100 * rate:.1f} %"
