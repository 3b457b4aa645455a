"""Where results are kept, and how they are named: ``run/0007``, ``preflight/0214`` … below the state directory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from truecall.errors import InputError, UsageError
from truecall.store.files import private_dir, state_dir


class Place(StrEnum):
    """A kind of result; its value is the folder below the state directory."""

    RUN = "runs"
    RECORD = "record"
    PREFLIGHT = "preflight"

    @property
    def word(self) -> str:
        """As it stands in names: ``run``, ``record``, ``preflight``."""
        return self.value.removesuffix("s")


def new_place(place: Place, home: Path | None = None) -> Path:
    """Takes the next id (``0001``, ``0002`` …) and makes its empty folder.

    Raises:
        UsageError: the folder can't be made.
    """
    base = (home or state_dir()) / place
    try:
        private_dir(base)
        number = max(map(int, ids(place, home)), default=0)
        while True:
            number += 1
            path = base / f"{number:04d}"
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                continue
            return path
    except OSError as error:
        raise UsageError(f"{base}: can't be written ({error.strerror}); set TRUECALL_HOME") from None


def ids(place: Place, home: Path | None = None) -> list[str]:
    """The ids that are taken, in no order."""
    base = (home or state_dir()) / place
    return [entry.name for entry in base.iterdir() if entry.name.isdecimal()] if base.is_dir() else []


def find_place(name: str | Path, places: Sequence[Place], home: Path | None = None) -> Path:
    """The folder of a result: by its id (``0007``, ``7``, ``run/0007``), else the path as it is, there or not.

    Raises:
        InputError: an id that more than one kind has, or none.
    """
    match = re.fullmatch(r"(?:([a-z]+)/)?(\d{1,9})", str(name))
    asked = [place for place in places if not match or match[1] in (None, place.word, place.value)]
    if match is None or not asked:
        return Path(name).expanduser()
    folders = {place: (home or state_dir()) / place / f"{int(match[2]):04d}" for place in asked}
    found = [place for place, path in folders.items() if path.is_dir()]
    if len(found) == 1:
        return folders[found[0]]
    words = " or ".join(place.word for place in asked)
    if found:
        names = " or ".join(f"{place.word}/{folders[place].name}" for place in found)
        raise InputError(f"{name}: there is more than one; say {names}")
    raise InputError(f"{name}: no {words} of that id")


def name_of(path: Path, home: Path | None = None) -> str:
    """How the user names this result: ``run/0007`` where it lies in the state directory, else its path."""
    for place in Place:
        if path.parent == (home or state_dir()) / place:
            return f"{place.word}/{path.name}"
    return str(path)
