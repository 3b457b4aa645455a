"""One audit from what was asked to its report and lock: local paths, archives and addresses alike."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from truecall import __version__
from truecall.audits import bfcl, lock, remote, tau, tau_files
from truecall.audits.bfcl.answer import answer
from truecall.audits.lock import Lock
from truecall.audits.overrides import read_overrides
from truecall.errors import InputError
from truecall.records import Record
from truecall.sources.bfcl_folder import Folder

Kind = Literal["bfcl", "tau-bench", "tau2"]
Say = Callable[[str], None]


class Asked(Record, frozen=True):
    """What an audit is to read. ``inputs`` are paths or addresses; an empty ``categories`` or ``models`` means all."""

    kind: Kind
    inputs: tuple[str, ...]
    questions: str | None = None
    override: str | None = None
    categories: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


@contextmanager
def opened(asked: Asked, say: Say) -> Iterator[list[Path]]:
    """The inputs as local paths. What was fetched or unpacked is gone afterwards.

    Raises UsageError, InputError or CannotTell, as `remote.fetch` does.
    """
    with tempfile.TemporaryDirectory(prefix="truecall-audit-") as scratch:
        paths = []
        for index, given in enumerate(asked.inputs):
            place = Path(scratch) / str(index)
            if remote.is_url(given):
                count = remote.fetch(given, place, asked.models, say)
                say(f"{count} files from {given}")
                paths.append(place)
            elif Path(given).is_file() and asked.kind == "bfcl" and _is_archive(Path(given)):
                if not remote.unpack(Path(given).read_bytes(), place):
                    raise InputError(f"{given}: no BFCL files in this archive")
                paths.append(place)
            else:
                paths.append(Path(given))
        yield paths


def _is_archive(path: Path) -> bool:
    with path.open("rb") as stream:
        head = stream.read(512)
    if head[:2] == b"\x1f\x8b" and not path.name.endswith((".tgz", ".tar.gz")):
        return False
    return head[:2] == b"\x1f\x8b" or remote.is_archive(head)


def run_bfcl(asked: Asked, say: Say, base: Path) -> tuple[bfcl.Report, Lock]:
    """A BFCL audit and its lock; ``base`` is the folder that the lock's paths are relative to."""
    with opened(asked, say) as paths:
        inputs = bfcl.gather(paths, Path(asked.questions) if asked.questions else None)
        overrides = read_overrides(Path(asked.override) if asked.override else None)
        report = bfcl.audit(
            inputs, overrides, categories=asked.categories or None, models=asked.models or None
        )
        _drop_unused(inputs.folder)
        files = [lock.digest(path, inputs.shown[path]) for path in inputs.folder.files()]
    if asked.override:
        files.append(lock.digest(Path(asked.override), f"override/{Path(asked.override).name}"))
    return report, Lock(
        kind="bfcl",
        inputs=tuple(_kept(given, base) for given in asked.inputs),
        rules=report.rules,
        detector=report.detector,
        truecall=__version__,
        files=tuple(files),
        report_sha256=lock.report_digest(report),
        answer=answer(report),
        override=_kept(asked.override, base) if asked.override else None,
        questions=_kept(asked.questions, base) if asked.questions else None,
        categories=asked.categories,
        models=asked.models,
    )


def _drop_unused(folder: Folder) -> None:
    """Leaves only the question files of categories that some run has."""
    needed = {name for run in folder.runs for name in run.categories()}
    folder.questions = {name: path for name, path in folder.questions.items() if name in needed}
    folder.answers = {name: path for name, path in folder.answers.items() if name in needed}


def run_tau(asked: Asked, say: Say, base: Path) -> tuple[tau.TauReport, Lock]:
    """A tau-bench or tau2 audit and its lock."""
    if asked.kind == "bfcl":
        raise ValueError("run_bfcl audits BFCL")
    with opened(asked, say) as paths:
        report = tau.audit(paths, asked.kind)
        files = tuple(lock.digest(path, shown) for path, shown in tau_files.find(paths, asked.kind))
    return report, Lock(
        kind=asked.kind,
        inputs=tuple(_kept(given, base) for given in asked.inputs),
        rules=report.rules,
        detector=report.detector,
        truecall=__version__,
        files=files,
        report_sha256=lock.report_digest(report),
        answer=tau.answer(report),
    )


def _kept(given: str, base: Path) -> str:
    return given if remote.is_url(given) else lock.relative(Path(given), base)


def asked_by(locked: Lock, base: Path, at: tuple[str, ...] = ()) -> Asked:
    """What a lock's audit was asked; ``at``: where its inputs stand now, in their order, if they moved."""

    def here(given: str | None) -> str | None:
        if given is None or remote.is_url(given):
            return given
        return str(base / given)

    inputs = at or tuple(here(given) or "" for given in locked.inputs)
    return Asked(
        kind=locked.kind,
        inputs=inputs,
        questions=here(locked.questions),
        override=here(locked.override),
        categories=locked.categories,
        models=locked.models,
    )


def verify(path: Path, say: Say, at: tuple[str, ...] = ()) -> tuple[Lock, Lock, list[lock.Difference]]:
    """Repeats a lock's audit: the lock, what it is now, and how they differ.

    Raises InputError where the lock or its inputs are not there.
    """
    locked = lock.read(path)
    base = path.resolve().parent
    asked = asked_by(locked, base, at)
    _, now = run_bfcl(asked, say, base) if asked.kind == "bfcl" else run_tau(asked, say, base)
    return locked, now, lock.compare(locked, now)
