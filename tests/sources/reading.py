"""Reading a file as the tests look at it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from truecall.scan import judge_turn
from truecall.sources import Bad, Options, Turn, read_file, source_of

Told = tuple[str, str, bool | None]


def told(path: Path, options: Options | None = None) -> list[Told | str]:
    """(emission, delivery, observed) of each turn; a bad entry by its reason."""
    out: list[Told | str] = []
    for item in read_file(str(path), options):
        if isinstance(item, Bad):
            out.append(item.reason)
        else:
            verdict = judge_turn(item)
            out.append((verdict.emission.value, verdict.delivery.value, item.observed))
    return out


def source_name(path: Path) -> str | None:
    found = source_of(str(path))
    return found.name if found else None


def turns(path: Path) -> list[Turn]:
    return [item for item in read_file(str(path)) if isinstance(item, Turn)]


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path
