"""The table of sources, and the ways to read a file by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from truecall.errors import InputError
from truecall.sources import files
from truecall.sources.base import Bad, Head, Item, Options, Place, Source
from truecall.sources.bfcl import BfclSource
from truecall.sources.chat import ChatSource
from truecall.sources.har import HarSource
from truecall.sources.inspect_ai import InspectSource
from truecall.sources.lm_eval import LmEvalSource
from truecall.sources.otel import OtelSource
from truecall.sources.parquet import ParquetSource
from truecall.sources.runs import RunSource
from truecall.sources.tau2 import Tau2Source
from truecall.sources.taubench import TauBenchSource
from truecall.sources.trl import TrlSource
from truecall.sources.verl import VerlSource

_ALL: Final[tuple[Source, ...]] = (
    *(
        ParquetSource(),
        InspectSource(),
        HarSource(),
        RunSource(),
        OtelSource(),
        Tau2Source(),
        TauBenchSource(),
    ),
    *(LmEvalSource(), TrlSource(), VerlSource(), BfclSource(), ChatSource()),
)

SOURCES: Final[dict[str, Source]] = {source.name: source for source in _ALL}
"""All sources by name, in the order in which they are asked: a narrow format before a wide one."""


def source_of(path: str) -> Source | None:
    """The source that reads this file; None: no known format."""
    return by_head(files.head(path))


def by_head(head: Head) -> Source | None:
    """The first source that takes a file which begins so."""
    return next((source for source in SOURCES.values() if source.sniff(head)), None)


def read_file(
    path: str,
    options: Options | None = None,
    *,
    source: str | None = None,
    start: int = 0,
    end: int | None = None,
    label: str = "",
) -> Iterator[Item]:
    """The turns of one file, and what could not be read of it. Damage in the middle ends it with a `Bad`.

    ``label``: what the file is called in places, where not by its path. ``start``, ``end``: the part of a plain
    file of lines, in bytes (`files.lines`).

    Raises:
        InputError: it can't be opened, or is of no known format.
    """
    options = options or Options()
    try:
        found = SOURCES[source] if source is not None else source_of(path)
    except files.READ_ERRORS as error:
        raise InputError(f"{path}: can't be read ({error})") from None
    if found is None:
        raise InputError(f"{path}: of no format that is known ({', '.join(SOURCES)})")
    data = files.filled(files.lines(path, start, end)) if found.lines else path
    yield from guarded(found.read(data, label or path, options), label or path)


def guarded(items: Iterator[Item], path: str) -> Iterator[Item]:
    """``items``, with a file that breaks off or is damaged told as one bad entry."""
    try:
        yield from items
    except (*files.READ_ERRORS, InputError, RecursionError) as error:
        said = str(error).removeprefix(f"{path}: ") or type(error).__name__
        yield Bad(place=Place(file=path), reason=f"breaks off: {said}")
