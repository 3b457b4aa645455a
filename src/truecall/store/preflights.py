"""Preflight reports with the requests that they stand on, kept by number."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from truecall.errors import InputError
from truecall.records import Exchange, Record, Verdict
from truecall.redact import Redactor
from truecall.store.files import state_dir
from truecall.store.folder import RunFolder
from truecall.store.places import Place, find_place, ids, new_place

_LARGEST_REPORT = 256 << 20
_REPORT = "report.json"


class Asked(Record, frozen=True):
    """A request of a preflight. ``text``: that of the answer's token ids, where they were turned back."""

    probe: str
    exchange: Exchange
    verdict: Verdict
    text: str | None = None


def save_preflight(
    report: Mapping[str, Any],
    asked: Sequence[Asked] = (),
    *,
    redactor: Redactor | None = None,
    home: Path | None = None,
) -> str:
    """Keeps a finished report that has no folder yet; returns its id. Nothing is left where that fails."""
    path = new_place(Place.PREFLIGHT, home)
    try:
        with RunFolder(path, redactor=redactor) as folder:
            for number, each in enumerate(asked, 1):
                about: dict[str, Any] = {"texts": [each.text]} if each.text is not None else {}
                folder.exchange(each.exchange, n=number, probe=each.probe, **about)
                folder.append("verdict", {"n": number, "verdicts": [each.verdict]})
            folder.write(_REPORT, {**report, "id": path.name})
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    return path.name


def load_preflight(name: str | Path, *, home: Path | None = None) -> dict[str, Any]:
    """The report with this id (``0214``, ``214``, ``preflight/0214``), or in this folder or JSON file.

    Raises:
        InputError: there is none, or it can't be read.
    """
    path = find_place(name, [Place.PREFLIGHT], home)
    source = path / _REPORT if path.is_dir() else path
    try:
        if source.stat().st_size > _LARGEST_REPORT:
            raise InputError(f"{source}: too large for a report")
        value = msgspec.json.decode(source.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{name}: no finished preflight of that id, and no such file") from None
    except OSError as error:
        raise InputError(f"{source}: can't be read ({error.strerror})") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{source}: is no JSON ({error})") from None
    if not isinstance(value, dict):
        raise InputError(f"{source}: is no preflight report")
    return value


def latest_preflight(home: Path | None = None) -> str | None:
    """The id of the newest preflight that came to a report, or None."""
    base = (home or state_dir()) / Place.PREFLIGHT
    done = [name for name in ids(Place.PREFLIGHT, home) if (base / name / _REPORT).is_file()]
    return max(done, key=int, default=None)
