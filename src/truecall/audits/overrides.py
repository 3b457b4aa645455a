"""The override file of an audit: states that a person gave to entries, and models named by hand.

JSON: ``{"entries": [{"model", "category", "id", "state", "why"}], "models": {"<folder>": "<row of the table>"}}``.
``model`` and ``category`` may be left out. What an override changes is shown beside what the rules say.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from truecall.audits.gate import GateState
from truecall.errors import InputError
from truecall.records import Record


class Override(Record, frozen=True):
    """One entry's state by hand. An empty model or category stands for any."""

    id: str
    state: GateState
    model: str = ""
    category: str = ""
    why: str = ""


class Overrides(Record, frozen=True):
    """An override file. ``models`` maps a model's folder to its row in the table."""

    entries: tuple[Override, ...] = ()
    models: dict[str, str] = msgspec.field(default_factory=dict)

    def of(self, model: str, category: str, entry_id: str) -> Override | None:
        """The first override that fits the entry; None where there is none."""
        for item in self.entries:
            if item.id == entry_id and item.model in ("", model) and item.category in ("", category):
                return item
        return None


class Disagreement(Record, frozen=True):
    """An override beside the rules' own state. ``ruled`` None: no entry fits the override."""

    override: Override
    model: str = ""
    ruled: GateState | None = None


def read_overrides(path: Path | None) -> Overrides:
    """The overrides of a file; none without one.

    Raises InputError where the file can't be read or has another form.
    """
    if path is None:
        return Overrides()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Overrides)
    except OSError as error:
        raise InputError(f"--override {path}: {error.strerror or error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"--override {path}: {error}") from None
