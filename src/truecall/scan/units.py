"""A collection cut into pieces of work: whole files, or the lines that begin in a stretch of a file.

Which pieces belong to a shard and which are in a sample is told from the file's path as given and the place
inside it, so that it is the same on every machine and in every run.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from truecall.scan.kernel import Kernel
from truecall.scan.lane import FIELDS, ChatLane
from truecall.scan.tally import Tally
from truecall.sources import SOURCES, Bad, Item, Line, Options, Place, files, read_file
from truecall.sources.table import by_head, guarded

STEP: Final = files.BLOCK
_FINE: Final = 64
"""A plain file is sampled by blocks where it has at least this many of them in the sample's size."""

_SMALL_BLOCK: Final = 256 << 10


class Piece(NamedTuple):
    """One piece of work. ``end`` None: the whole file. ``data``: decompressed lines that were read ahead."""

    path: str
    source: str
    start: int = 0
    end: int | None = None
    lines_keep: float = 1.0
    data: bytes | None = None
    seed: int = 0
    label: str = ""

    @property
    def name(self) -> str:
        """What the file is called: by its path, or by the address that it came from."""
        return self.label or self.path


class Sniffed(NamedTuple):
    """A file of the collection. ``source`` None: of no known format; ``reason`` says why it is not read."""

    path: str
    source: str | None
    size: int
    packed: bool
    reason: str = ""
    label: str = ""


def sniffed(path: str) -> Sniffed:
    """What a file is; one that can't be opened is told with the reason."""
    try:
        size = Path(path).stat().st_size
        if not size:
            return Sniffed(path, None, 0, False, "is empty")
        packed = bool(files.compression(path))
        source = by_head(files.head(path))
    except files.READ_ERRORS as error:
        return Sniffed(path, None, 0, False, f"can't be read ({getattr(error, 'strerror', None) or error})")
    if source is None:
        return Sniffed(path, None, size, packed, "of no known format")
    if source.name == "parquet" and find_spec("pyarrow") is None:
        return Sniffed(path, None, size, packed, "parquet needs pyarrow (pip install 'truecall[parquet]')")
    return Sniffed(path, source.name, size, packed)


def chance(seed: int, path: str, offset: int) -> float:
    """A number in [0, 1) that stands for a place in a file."""
    digest = hashlib.blake2b(f"{seed}\0{path}\0{offset}".encode("utf-8", "replace"), digest_size=8).digest()
    number: int = struct.unpack("<Q", digest)[0]
    return number / 2**64


def pieces(
    found: Iterable[Sniffed],
    *,
    sample: float = 1.0,
    seed: int = 0,
    shard: tuple[int, int] = (1, 1),
    workers: int = 1,
) -> Iterator[Piece]:
    """The pieces of a collection in order. Packed files of lines are cut only where they are few."""
    listed = list(found)
    many = len(listed) >= 2 * workers
    for file in listed:
        if file.source is None:
            continue
        for piece in _of_file(file, sample, seed, cut_packed=workers > 1 and not many and shard[1] == 1):
            mine = shard[1] == 1 or int(chance(-1, piece.name, piece.start) * shard[1]) == shard[0] - 1
            if mine:
                yield piece


def _of_file(file: Sniffed, sample: float, seed: int, *, cut_packed: bool) -> Iterator[Piece]:
    source = file.source or ""
    whole = Piece(file.path, source, lines_keep=sample, seed=seed, label=file.label)
    if not SOURCES[source].lines:
        yield whole
    elif file.packed:
        if not cut_packed:
            yield whole
            return
        try:
            for start, data in files.blocks(file.path):
                yield whole._replace(start=start, data=data)
        except files.READ_ERRORS:
            yield whole._replace(start=-1, data=b"")
    elif sample < 1 and file.size * sample >= _FINE * _SMALL_BLOCK:
        for start in range(0, file.size, _SMALL_BLOCK):
            if chance(seed, whole.name, start) < sample:
                yield whole._replace(start=start, end=start + _SMALL_BLOCK, lines_keep=1.0)
    else:
        for start in range(0, file.size, STEP):
            yield whole._replace(start=start, end=start + STEP)


# --------------------------------------------------------------------------- work


class Done(NamedTuple):
    """What a worker sends back. ``next``: where the piece that follows in the file begins; None: it was the last."""

    path: str
    start: int
    next: int | None
    lines: int
    tally: Tally
    entries: list[bytes] | None


def work(
    piece: Piece, by: tuple[str, ...], options: Options, kernel: Kernel, *, entries: bool = False
) -> Done:
    """Reads and counts one piece."""
    tally = Tally(by)
    out: list[bytes] | None = [] if entries else None
    counter = _Counted()
    if (
        piece.source == "chat"
        and piece.lines_keep >= 1
        and piece.start >= 0
        and not entries
        and FIELDS.issuperset(by)
    ):
        lane = ChatLane(tally, piece.name, options, kernel)
        for bad in guarded(lane.count(counter(_lines(piece))), piece.name):
            if isinstance(bad, Bad):
                tally.add_bad(bad)
    else:
        items = _items(piece, options, counter)
        tally.add(_sampled(items, piece) if piece.lines_keep < 1 else items, kernel, out)
    if piece.start == 0:
        tally.sources[piece.source] += 1
    tally.bytes = counter.size if SOURCES[piece.source].lines else _size(piece.path)
    following = piece.start + len(piece.data) if piece.data is not None else piece.end
    return Done(piece.name, piece.start, following, counter.lines, tally, out)


class _Counted:
    """Counts the lines that pass and their bytes."""

    def __init__(self) -> None:
        self.lines = 0
        self.size = 0

    def __call__(self, lines: Iterable[Line]) -> Iterator[Line]:
        for line in lines:
            self.lines = line.number
            self.size += len(line.data) + 1
            if line.data and not line.data.isspace():
                yield line


def _items(piece: Piece, options: Options, counter: _Counted) -> Iterator[Item]:
    source = SOURCES[piece.source]
    if not source.lines:
        return read_file(piece.path, options, source=piece.source, label=piece.label)
    if piece.start < 0:
        place = Place(file=piece.name)
        return iter([Bad(place=place, reason="breaks off: the compressed data is damaged or cut")])
    return guarded(source.read(counter(_lines(piece)), piece.name, options), piece.name)


def _lines(piece: Piece) -> Iterator[Line]:
    if piece.data is not None:
        return _from_bytes(piece.data, piece.start)
    return files.lines(piece.path, piece.start, piece.end)


def _from_bytes(data: bytes, offset: int) -> Iterator[Line]:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        yield Line(number, offset, line)
        offset += len(line) + 1


def _sampled(items: Iterable[Item], piece: Piece) -> Iterator[Item]:
    """Whole entries at random: all turns of one line or entry stay or go together."""
    last: Place | None = None
    keep = False
    number = 0
    for item in items:
        if item.place != last:
            last = item.place
            number += 1
            where = number if last.offset is None else last.offset
            keep = chance(piece.seed, piece.name, where) < piece.lines_keep
        if keep:
            yield item


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
