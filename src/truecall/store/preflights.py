"""Preflight reports, kept by number."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from truecall.errors import InputError, UsageError
from truecall.redact import Redactor
from truecall.store.files import private_dir, state_dir
from truecall.store.folder import RunFolder

_LARGEST_REPORT = 256 << 20
_REPORT = "report.json"


def new_preflight(home: Path | None = None) -> tuple[str, Path]:
    """Takes the next id (``0001``, ``0002`` …) and makes its empty folder.

    Raises:
        UsageError: the folder can't be made.
    """
    base = (home or state_dir()) / "preflight"
    try:
        private_dir(base)
        number = max((int(name) for name in _ids(base)), default=0)
        while True:
            number += 1
            path = base / f"{number:04d}"
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                continue
            return path.name, path
    except OSError as error:
        raise UsageError(f"{base}: can't be written ({error.strerror}); set TRUECALL_HOME") from None


def save_preflight(
    report: Mapping[str, Any], *, redactor: Redactor | None = None, home: Path | None = None
) -> str:
    """Keeps a finished report that has no folder yet; returns its id. Nothing is left where that fails."""
    ident, path = new_preflight(home)
    try:
        with RunFolder(path, redactor=redactor) as folder:
            folder.write(_REPORT, {**report, "id": ident})
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    return ident


def load_preflight(name: str | Path, *, home: Path | None = None) -> dict[str, Any]:
    """The report with this id (``0214``, ``214``, ``preflight/0214``), or in this folder or JSON file.

    Raises:
        InputError: there is none, or it can't be read.
    """
    source = _preflight_path(str(name), (home or state_dir()) / "preflight")
    try:
        if source.stat().st_size > _LARGEST_REPORT:
            raise InputError(f"{source}: too large for a report")
        value = msgspec.json.decode(source.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{name}: no preflight of that id and no such file") from None
    except OSError as error:
        raise InputError(f"{source}: can't be read ({error.strerror})") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{source}: is no JSON ({error})") from None
    if not isinstance(value, dict):
        raise InputError(f"{source}: is no preflight report")
    return value


def latest_preflight(home: Path | None = None) -> str | None:
    """The id of the newest preflight that came to a report, or None."""
    base = (home or state_dir()) / "preflight"
    done = [name for name in _ids(base) if (base / name / _REPORT).is_file()]
    return max(done, key=int, default=None)


def _preflight_path(name: str, base: Path) -> Path:
    number = re.fullmatch(r"(?:preflight/)?(\d{1,9})", name)
    if number:
        return base / f"{int(number[1]):04d}" / _REPORT
    path = Path(name).expanduser()
    return path / _REPORT if path.is_dir() else path


def _ids(base: Path) -> list[str]:
    return [entry.name for entry in base.iterdir() if entry.name.isdecimal()] if base.is_dir() else []
