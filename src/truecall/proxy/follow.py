"""Reads a run folder's log as it grows: lines in order, exchanges put together again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec


class Follower:
    """The lines of a log, from its start on, as far as they are whole. Holds one line at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = (folder / "log.jsonl").open("rb")

    def close(self) -> None:
        self._file.close()

    def next(self) -> dict[str, Any] | None:
        """The next line; None when there is none yet. What is no JSON object is left out."""
        while True:
            at = self._file.tell()
            line = self._file.readline()
            if not line.endswith(b"\n"):
                self._file.seek(at)
                return None
            try:
                value = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError):
                continue
            if isinstance(value, dict):
                return value


def last_number(folder: Path) -> int:
    """The highest exchange number in a folder's log, 0 for a new one."""
    if not (folder / "log.jsonl").exists():
        return 0
    follower = Follower(folder)
    highest = 0
    try:
        while (line := follower.next()) is not None:
            number = line.get("n")
            if isinstance(number, int):
                highest = max(highest, number)
    finally:
        follower.close()
    return highest
