"""``audit.lock``: what an audit read and by which rules, so that anyone can verify it at any time.

The report's digest leaves versions out: a newer detector that reads the same is no difference.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from truecall.errors import InputError
from truecall.records import Record

SCHEMA_VERSION = 1


class LockedFile(Record, frozen=True):
    """One input by its name under the path that was given, its SHA-256 and its size in bytes."""

    path: str
    sha256: str
    bytes: int


class Lock(Record, frozen=True):
    """An audit's inputs, options and outcome. Paths are relative to the lock's folder where they can be."""

    kind: Literal["bfcl", "tau-bench", "tau2"]
    inputs: tuple[str, ...]
    rules: str
    detector: str
    truecall: str
    files: tuple[LockedFile, ...]
    report_sha256: str
    answer: str
    override: str | None = None
    questions: str | None = None
    categories: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    schema_version: int = msgspec.field(default=SCHEMA_VERSION)


class Difference(Record, frozen=True):
    """One way in which an audit is not what its lock says."""

    what: str
    locked: str
    found: str


def digest(path: Path, shown: str) -> LockedFile:
    """An input as locked. Raises InputError where it can't be read."""
    try:
        with path.open("rb") as stream:
            value = hashlib.file_digest(stream, "sha256")
        return LockedFile(path=shown, sha256=value.hexdigest(), bytes=path.stat().st_size)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def report_digest(report: Record) -> str:
    """SHA-256 of a report's content, without the versions of rules, detector and schema."""
    plain = msgspec.to_builtins(report)
    for name in ("rules", "detector", "schema_version"):
        plain.pop(name, None)
    return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()


def write(lock: Lock, path: Path) -> None:
    """Writes a lock whole or not at all. Raises InputError where another kind of file stands there."""
    if path.exists():
        read(path)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(lock), indent=1) + b"\n")
        fresh.replace(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def read(path: Path) -> Lock:
    """A lock file. Raises InputError where it can't be read or is no lock of this version."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    try:
        lock = msgspec.json.decode(raw, type=Lock)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{path}: is no audit.lock ({error})") from None
    if lock.schema_version > SCHEMA_VERSION:
        raise InputError(f"{path}: written by a newer truecall (schema {lock.schema_version})")
    return lock


def compare(locked: Lock, now: Lock) -> list[Difference]:
    """How a repeated audit differs from its lock: files first, then versions, then the report."""
    old, new = _by_name(locked.files), _by_name(now.files)
    out = [
        Difference(what=name, locked=_short(old.get(name)), found=_short(new.get(name)))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    for what in ("rules", "report_sha256", "answer"):
        was, is_now = getattr(locked, what), getattr(now, what)
        if was != is_now:
            out.append(Difference(what=what, locked=was, found=is_now))
    return out


def _by_name(files: Sequence[LockedFile]) -> dict[str, tuple[str, ...]]:
    out: dict[str, tuple[str, ...]] = {}
    for file in files:
        out[file.path] = tuple(sorted((*out.get(file.path, ()), file.sha256)))
    return out


def _short(digests: tuple[str, ...] | None) -> str:
    return " ".join(value[:12] for value in digests) if digests else "not there"


def relative(path: Path, to: Path) -> str:
    """A path as the lock keeps it: relative to the lock's folder, absolute on another drive."""
    try:
        return Path(os.path.relpath(path, to)).as_posix()
    except ValueError:
        return str(path)
