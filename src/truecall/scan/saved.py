"""Scan results as files: written once, read back, added up over shards, and kept by file digest."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Final

import msgspec

from truecall.detector import VERSION as DETECTOR
from truecall.errors import InputError, UsageError
from truecall.records import Record
from truecall.scan.run import ScanOptions, Told, check, counted, skipped
from truecall.scan.summary import Report, report
from truecall.scan.tally import Tally
from truecall.scan.units import Sniffed
from truecall.sources import files
from truecall.store import private_dir, state_dir, write_private

FORMAT: Final = 1
_LARGEST: Final = 1 << 30


class Saved(Record, frozen=True):
    """A scan's result: how it was made, and what was counted. ``settings`` are those that change the counts."""

    settings: dict[str, Any]
    shards: tuple[int, ...]
    of: int
    tally: Tally
    notes: tuple[str, ...] = ()

    def report(self) -> Report:
        """The numbers."""
        return report(self.tally, detector=DETECTOR, notes=self.notes)


def settings(options: ScanOptions) -> dict[str, Any]:
    """What two scans must have in common to be added up."""
    tools = None if options.tools is None else _digest(msgspec.json.encode(options.tools))
    return {
        "by": list(options.by),
        "tools": tools,
        "sample": options.sample,
        "seed": options.seed,
        "detector": DETECTOR,
        "format": FORMAT,
    }


def result(tally: Tally, options: ScanOptions) -> Saved:
    """The result of one scan."""
    index, of = options.shard
    notes = []
    if options.sample < 1:
        notes.append(f"a sample of {options.sample:.3g} of the entries, seed {options.seed}")
    return Saved(settings=settings(options), shards=(index,), of=of, tally=tally, notes=tuple(notes))


def merge(results: list[tuple[str, Saved]]) -> Saved:
    """All shards as one result. ``results``: each with the name to call it by.

    Raises:
        UsageError: they were not made in the same way, or a shard comes twice or not at all.
    """
    name, first = results[0]
    total = Tally(first.tally.by)
    seen: dict[int, str] = {}
    for where, one in results:
        if one.settings != first.settings or one.of != first.of:
            raise UsageError(f"{where}: was not made in the same way as {name} ({_differs(first, one)})")
        for index in one.shards:
            if first.of > 1 and index in seen:
                raise UsageError(f"{where}: shard {index} of {first.of} is in {seen[index]} already")
            seen[index] = where
        total.merge(one.tally)
    missing = sorted(set(range(1, first.of + 1)) - set(seen))
    notes = list(first.notes)
    if missing:
        notes.append(f"shards {', '.join(map(str, missing))} of {first.of} are missing")
    return Saved(
        settings=first.settings, shards=tuple(sorted(seen)), of=first.of, tally=total, notes=tuple(notes)
    )


def _differs(one: Saved, other: Saved) -> str:
    if one.of != other.of:
        return f"{one.of} shards against {other.of}"
    return ", ".join(key for key in one.settings if one.settings.get(key) != other.settings.get(key))


# --------------------------------------------------------------------------- files


def write(path: Path, saved: Saved) -> None:
    """Writes a result for the user alone, whole or not at all."""
    data = {
        "kind": "scan",
        "format": FORMAT,
        "settings": saved.settings,
        "shards": list(saved.shards),
        "of": saved.of,
        "notes": list(saved.notes),
        "report": msgspec.to_builtins(saved.report()),
        "tally": saved.tally.plain(),
    }
    private_dir(path.parent)
    write_private(path, msgspec.json.encode(data) + b"\n")


def read(path: Path) -> Saved:
    """Reads a result.

    Raises:
        InputError: the file can't be read, or is no scan's result.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path}: too large for a scan's result")
        data = msgspec.json.decode(path.read_bytes())
        if data["kind"] != "scan" or data["format"] != FORMAT:
            raise InputError(f"{path}: is no result of `truecall scan` of this version")
        return Saved(
            settings=data["settings"],
            shards=tuple(data["shards"]),
            of=data["of"],
            tally=Tally.from_plain(data["tally"]),
            notes=tuple(data["notes"]),
        )
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from None
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no result of `truecall scan` ({error})") from None


def new_path(home: Path | None = None) -> Path:
    """Where the next result is kept: ``scan/0001.json`` and so on below the state directory."""
    base = (home or state_dir()) / "scan"
    taken = [
        int(m[1])
        for p in (base.iterdir() if base.is_dir() else ())
        if (m := re.fullmatch(r"(\d+)\.json", p.name))
    ]
    return base / f"{max(taken, default=0) + 1:04d}.json"


# --------------------------------------------------------------------------- incremental


def scan_incremental(
    found: list[Sniffed], options: ScanOptions, cache: Path, *, told: Told | None = None
) -> Tally:
    """As `scan_files`, but a file whose bytes were counted before in the same way is taken from ``cache``.

    Raises:
        CannotTell: no file is of a known format.
    """
    check(found)
    private_dir(cache)
    about = _digest(msgspec.json.encode([settings(options), list(options.shard)]))
    total = Tally(options.by)
    total.skipped = skipped(found, options)
    kept_as: dict[str, Path] = {}
    changed: list[Sniffed] = []
    for file in found:
        if file.source is not None:
            kept_as[file.path] = cache / f"{_key(file, about)}.json"
            tally = _kept(kept_as[file.path])
            if tally is None:
                changed.append(file)
            else:
                total.merge(tally)
    fresh: dict[str, Tally] = {file.path: Tally(options.by) for file in changed}
    for done in counted(changed, options):
        fresh[done.path].merge(done.tally)
        if told is not None:
            told(done)
    for path, tally in fresh.items():
        write_private(kept_as[path], msgspec.json.encode(tally.plain()), sync=False)
        total.merge(tally)
    return total


def _key(file: Sniffed, about: str) -> str:
    digest = hashlib.sha256()
    try:
        with Path(file.path).open("rb") as source:
            while block := source.read(files.BLOCK):
                digest.update(block)
    except OSError:
        digest.update(b"can't be read")
    return _digest(f"{digest.hexdigest()} {about} {file.source} {file.path}".encode("utf-8", "replace"))


def _kept(path: Path) -> Tally | None:
    try:
        return Tally.from_plain(msgspec.json.decode(path.read_bytes()))
    except (OSError, msgspec.MsgspecError, KeyError, TypeError, ValueError, IndexError):
        return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
