"""Where runs are kept, and how they are named: ``0001``, ``0002`` … below the state directory."""

from __future__ import annotations

import re
from pathlib import Path

from truecall.errors import InputError, UsageError
from truecall.store import private_dir, state_dir


def new_run(home: Path | None = None) -> tuple[str, Path]:
    """Takes the next id and makes its empty folder.

    Raises:
        UsageError: the folder can't be made.
    """
    base = (home or state_dir()) / "runs"
    try:
        private_dir(base)
        number = max((int(entry.name) for entry in base.iterdir() if entry.name.isdecimal()), default=0)
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


def find_run(name: str | Path, home: Path | None = None) -> Path:
    """The folder of a run: by its id (``0007``, ``7``, ``run/0007``), or as a path.

    Raises:
        InputError: there is none.
    """
    number = re.fullmatch(r"(?:runs?/)?(\d{1,9})", str(name))
    path = (home or state_dir()) / "runs" / f"{int(number[1]):04d}" if number else Path(name).expanduser()
    if not (path / "card.json").is_file():
        raise InputError(f"{name}: no run of that id, and no run folder of that name")
    return path
