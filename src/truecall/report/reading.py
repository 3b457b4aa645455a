"""What the user named, read: told by its content, and made into sections."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from truecall import __version__
from truecall.audits import bfcl, lock, tau, work
from truecall.audits.bfcl.answer import Output
from truecall.audits.explain import Explained, explain
from truecall.audits.tau import TauOutput
from truecall.detector import VERSION
from truecall.errors import InputError
from truecall.preflight.report import SCHEMA_VERSION as PREFLIGHT_SCHEMA
from truecall.preflight.report import Report as Preflight
from truecall.replay.matrix import MatrixOutput, TemplatesOutput
from truecall.replay.tally import Report as Replay
from truecall.report import of_bfcl, of_parsers, of_preflight, of_record, of_run, of_scan, of_tau, versus
from truecall.report.data import ReportData, Section
from truecall.report.share import Mask
from truecall.run.cards import load_card
from truecall.run.result import RunResult
from truecall.run.result import read as read_run
from truecall.scan import saved
from truecall.store import state_dir
from truecall.store.places import Place, find_place, name_of

T = TypeVar("T")
Say = Callable[[str], None]
_LARGEST: Final = 1 << 30
_EXAMPLES: Final = 8
_TELLING: Final = (
    *(("MALFORMED", True), ("SERVING_ERROR", True), ("in_text", False), ("request_failed", False)),
    *(("EMPTY", True), ("MALFORMED", False), ("SERVING_ERROR", False), ("rejected", False)),
)
"""States of entries and whether they were credited: what was lost or counted wrongly, the most telling first."""

_WHAT: Final = (
    "a run folder (truecall run, record, preflight) or its id, a scan's saved result, an audit.lock, or what audit, "
    "replay, matrix or preflight print with --json"
)


class _Made(NamedTuple):
    """A section, and what is behind it where several are held against each other."""

    section: Section
    run: RunResult | None = None
    preflight: Preflight | None = None


def load(names: Sequence[str], *, share: bool = False, say: Say = lambda _: None) -> ReportData:
    """A report on everything that is named, in that order. Results of one kind are also held against each other.

    ``share``: prompts, values, addresses and paths are kept back. ``say`` is told what takes its time (an audit that
    is repeated from its lock).

    Raises:
        InputError: a name is nothing that a report can be made from, or can't be read.
    """
    mask = Mask(share)
    made = _apart([_section(name, mask, say) for name in names])
    sections = [each.section for each in made]
    runs = [(each.section.name, each.run) for each in made if each.run is not None]
    preflights = [(each.section.name, each.preflight) for each in made if each.preflight is not None]
    together = []
    if len(runs) > 1:
        together.append(_runs(runs))
    if len(preflights) > 1:
        together.append(of_preflight.beside(preflights, mask))
    title = sections[0].title if len(sections) == 1 else f"{len(sections)} results"
    return ReportData(
        title=title,
        sections=(*together, *sections),
        made_at=time.time(),
        truecall=__version__,
        detector=VERSION,
        shared=share,
    )


def _apart(made: Sequence[_Made]) -> list[_Made]:
    """The same with names unlike each other: paths that were kept back may end alike."""
    times: Counter[str] = Counter()
    apart = []
    for each in made:
        name = each.section.name
        times[name] += 1
        unlike = f"{name} ({times[name]})" if times[name] > 1 else name
        apart.append(each._replace(section=msgspec.structs.replace(each.section, name=unlike)))
    return apart


def _runs(runs: Sequence[tuple[str, RunResult]]) -> Section:
    """Several studies against each other."""
    arms = {f"{name}:{arm.name}": arm for name, run in runs for arm in run.arms}
    views = [
        (name, arm, view)
        for name, run in runs
        for arm, view in zip(
            (a for a in run.arms if a.numbers is not None), of_run.views_of(run.arms, f"{name}:"), strict=True
        )
    ]
    crossed = next(
        (run.card.study.factorial for _, run in runs if run.card.study.factorial is not None), None
    )
    parts = versus.conditions_by_models(views)
    parts += versus.comparisons(arms, crossed, versus.across(runs))
    return Section(
        kind="runs",
        name="",
        title="Runs against each other",
        answer=f"{len(runs)} runs with {len(arms)} arms stand side by side; each has its own section below.",
        parts=tuple(parts),
    )


# --------------------------------------------------------------------------- one name


def _section(name: str, mask: Mask, say: Say) -> _Made:
    path = _path(name)
    if path.is_dir():
        return _folder(path, mask)
    data = _json(path, name)
    try:
        return _result(path, data, name, mask, say)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InputError(
            f"{name}: looks like a result of truecall's and holds what truecall never writes ({said})"
        ) from error


def _result(path: Path, data: dict[str, Any], name: str, mask: Mask, say: Say) -> _Made:
    shown = mask.path(name, "result")
    if data.get("kind") == "scan" and "tally" in data:
        return _Made(of_scan.section(saved.read(path), shown, mask))
    if "report_sha256" in data:
        return _Made(_audit(path, shown, mask, say))
    if "leaderboards" in data:
        report = _as(Output, data, name)
        note = "The texts of entries are not in this file: give audit.lock for examples."
        return _Made(of_bfcl.section(report, report.answer, shown, mask, (), (note,)))
    if "simulations" in data and "scores" in data:
        found = _as(TauOutput, data, name)
        return _Made(of_tau.section(found, found.answer, shown, mask, ()))
    if "probes" in data and "findings" in data:
        return _preflight(data, shown, mask, name)
    if "splits" in data and "rows" in data:
        return _Made(of_parsers.replay(_as(Replay, data, name), shown, mask))
    if "engines" in data and "texts" in data:
        return _Made(of_parsers.matrix(_as(MatrixOutput, data, name), shown))
    if "meetings" in data:
        return _Made(of_parsers.meetings(_as(TemplatesOutput, data, name), shown))
    raise InputError(f"{name}: nothing that a report can be made from; give {_WHAT}")


def _path(name: str) -> Path:
    """The file or folder of this name or id."""
    scan = re.fullmatch(r"scan/(\d{1,9})", name)
    if scan:
        return state_dir() / "scan" / f"{int(scan[1]):04d}.json"
    path = find_place(name, tuple(Place))
    if not path.exists():
        raise InputError(f"{name}: no such file or folder; give {_WHAT}")
    return path


def _folder(path: Path, mask: Mask) -> _Made:
    name = name_of(path)
    shown = mask.path(name, "result") if name == str(path) else name
    if (path / "card.json").is_file():
        card = _json(path / "card.json", name)
        if "study" in card:
            load_card(path)
            result = read_run(path)
            return _Made(of_run.section(result, shown, mask), run=result)
        if "upstream" in card:
            return _Made(of_record.section(path, card, shown, mask))
    if (path / "report.json").is_file():
        return _preflight(_json(path / "report.json", name), shown, mask, name)
    raise InputError(f"{name}: no finished result in this folder; give {_WHAT}")


def _preflight(data: dict[str, Any], shown: str, mask: Mask, name: str) -> _Made:
    version = data.get("schema_version", 1)
    if isinstance(version, int) and version > PREFLIGHT_SCHEMA:
        raise InputError(f"{name}: written by a newer truecall (schema {version})")
    report = _as(Preflight, data, name)
    return _Made(of_preflight.section(report, shown, mask), preflight=report)


def _json(path: Path, name: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:  # what has no size of its own, a device say, may have no end
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise InputError(f"{name}: larger than any result of truecall's")
        value = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise InputError(f"{name}: can't be read ({error.strerror})") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError(f"{name}: nothing that a report can be made from; give {_WHAT}") from None
    if not isinstance(value, dict):
        raise InputError(f"{name}: nothing that a report can be made from; give {_WHAT}")
    return value


def _as(kind: type[T], data: dict[str, Any], name: str) -> T:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{name}: looks like a result of truecall's and can't be read as one ({error})"
        ) from None


# --------------------------------------------------------------------------- audits, by their locks


def _audit(path: Path, shown: str, mask: Mask, say: Say) -> Section:
    """An audit made again from its lock; where it is not what the lock says, that is told."""
    locked = lock.read(path)
    base = path.resolve().parent
    asked = work.asked_by(locked, base)
    say(f"repeating the {locked.kind} audit of {path.name}")
    if asked.kind != "bfcl":
        found, now = work.run_tau(asked, say, base)
        return of_tau.section(found, tau.answer(found), shown, mask, _changed(locked, now))
    report, now = work.run_bfcl(asked, say, base)
    examples = _explained(asked, report, say)
    return of_bfcl.section(report, now.answer, shown, mask, examples, _changed(locked, now))


def _changed(locked: lock.Lock, now: lock.Lock) -> list[str]:
    found = lock.compare(locked, now)
    if not found:
        return []
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return [
        f"Not what the lock says: {', '.join(d.what for d in found[:3])}{more} differ. These are the numbers of now."
    ]


def _explained(asked: work.Asked, report: bfcl.Report, say: Say) -> list[Explained]:
    """Entries in full, the most telling of each run first."""
    wanted = _telling(report)
    found = []
    with work.opened(asked, say) as paths:
        inputs = bfcl.gather(paths, Path(asked.questions) if asked.questions else None)
        for model, entry in wanted:
            found += [item for item in explain(inputs, report, entry, model) if item.model == model][:1]
    return found


def _telling(report: bfcl.Report) -> list[tuple[str, str]]:
    """(model, entry) of what is worth showing, at most two of a kind in a category of a run."""
    chosen: list[tuple[int, str, str]] = []
    for run in report.runs:
        gated = [
            (str(e.state), bool(e.credited), e.category, e.id) for gate in run.gated for e in gate.entries
        ]
        others = [(str(j.outcome), False, j.category, j.id) for c in run.categories for j in c.listed]
        seen: Counter[tuple[str, bool, str]] = Counter()
        for state, credited, category, entry in (*gated, *others):
            seen[state, credited, category] += 1
            if (state, credited) in _TELLING and seen[state, credited, category] <= 2:
                chosen.append((_TELLING.index((state, credited)), run.model, entry))
    return [(model, entry) for _, model, entry in sorted(chosen)[:_EXAMPLES]]
