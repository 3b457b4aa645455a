"""The texts of a log that a parser can be asked about: first turns, with what was written and the tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from truecall import evidence, wire
from truecall.detector import detect
from truecall.records import Detection, EvidenceTier, Json, Record
from truecall.schema import compile_tools
from truecall.sources import Bad, Options, Turn, read_file
from truecall.sources.files import expand


class Material(Record, frozen=True):
    """A text for the parsers. ``raw``: the stack's own parser had not touched it. ``group``: what it counts to."""

    id: str
    text: str
    tools: list[Json]
    found: Detection
    raw: bool = False
    group: str = ""


class Census(Record, frozen=True):
    """Turns that were not replayed, by reason."""

    skipped: dict[str, int]


def material(text: str, tools: list[Json], id: str = "", *, raw: bool = True, group: str = "") -> Material:
    """A text with its detection."""
    return Material(id=id, text=text, tools=tools, found=detect(text, tools), raw=raw, group=group)


def read(
    paths: Sequence[str],
    skipped: Counter[str],
    *,
    tools: Json = None,
    every: bool = False,
    groups: bool = True,
) -> Iterator[Material]:
    """The texts of logs of any known format, first turns only unless ``every``; ``skipped`` is counted up.

    Raises:
        InputError: a path that names nothing.
    """
    kept = Kept()
    for path in expand(list(paths)):
        group = _group(path, paths) if groups else ""
        for item in read_file(path, Options(tools=tools)):
            if isinstance(item, Bad):
                skipped["can't be read"] += 1
                continue
            made = _turn(item, kept, every, group)
            if isinstance(made, str):
                skipped[made] += 1
            else:
                yield made


def _group(path: str, paths: Sequence[str]) -> str:
    """The argument that a file came from."""
    for given in paths:
        if path == given or Path(path).is_relative_to(given):
            return given
    return path


class Kept:
    """Equal tool lists become one object, so that a worker gets each of them once."""

    def __init__(self) -> None:
        self._lists: dict[int, list[Json]] = {}

    def list(self, tools: list[Json]) -> list[Json]:
        """The first list that was equal to this."""
        return self._lists.setdefault(id(compile_tools(tools)), tools)


def _turn(turn: Turn, kept: Kept, every: bool, group: str) -> Material | str:
    """The text of a turn, or why it has none."""
    if turn.role != "agent":
        return "not the model under test"
    if not every and turn.position not in (0, None):
        return "not a first turn"
    if not isinstance(turn.tools, list) or not turn.tools:
        return "no tool list (give one with --tools)"
    text, raw = _text(turn)
    if text is None:
        return "no answer" if turn.error or turn.failure else "the log holds no text of it"
    place = turn.place
    where = f"{place.file}:{place.line or place.entry or place.offset or 0}"
    return material(text, kept.list(turn.tools), where, raw=raw, group=group)


def _text(turn: Turn) -> tuple[str | None, bool]:
    """What the model wrote, and whether that is so before any parser."""
    if turn.text is not None and turn.raw:
        return turn.text, True
    if turn.body is not None:
        api = turn.api or "openai.chat"
        response = wire.read(turn.body, api, status=turn.status)
        best = evidence.best(response, response.choices[0] if response.choices else None)
        if best.tier in evidence.STRONGER:
            return best.text, True
        if best.text is not None and best.tier is EvidenceTier.CONTENT:
            return best.text or None, False
    return turn.text or None, False
