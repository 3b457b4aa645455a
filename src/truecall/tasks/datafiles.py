"""Finds the data files of benchmarks that truecall does not ship: the user's own copy, or an installed package's."""

from __future__ import annotations

import gzip
import importlib.util
import os
from pathlib import Path
from typing import Any

import msgspec

from truecall.errors import InputError, UsageError

_LARGEST = 256 << 20


def find(variable: str, package: str, *candidates: str) -> Path:
    """The first of ``candidates`` (relative paths) below ``$variable``, or in an installed ``package``.

    The package is looked up, never imported. ``$variable`` may name the file itself.

    Raises:
        UsageError: there is none; the message says what to install or set.
    """
    named = os.environ.get(variable)
    if named:
        base = Path(named).expanduser()
        if base.is_file():
            return base
        bases = [base, base / "data", base / package / "data"]
    else:
        spec = importlib.util.find_spec(package)
        bases = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
        bases += [base.parent for base in bases] + [base / "data" for base in bases]
    for base in bases:
        for candidate in candidates:
            if (base / candidate).is_file():
                return base / candidate
    where = f"${variable} ({named})" if named else f"an installed {package}"
    raise UsageError(
        f"no {candidates[0]} in {where}: set {variable} to your copy's folder, or install {package} "
        "(with pip's --no-deps; only its data files are read)"
    )


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file, gzipped or not.

    Raises:
        InputError: it can't be read as that.
    """
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                data = file.read(_LARGEST + 1)
        else:
            with path.open("rb") as file:
                data = file.read(_LARGEST + 1)
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: can't be read ({error})") from None
    if len(data) > _LARGEST:
        raise InputError(f"{path}: larger than any such file")
    try:
        lines = [msgspec.json.decode(line) for line in data.splitlines() if line.strip()]
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{path}: is no JSON lines file ({error})") from None
    if not all(isinstance(line, dict) for line in lines):
        raise InputError(f"{path}: a line is no object")
    return lines
