"""Files as bytes: plain, gzip and zstd, in blocks of lines or whole, within limits."""

from __future__ import annotations

import glob
import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

import msgspec
import zstandard

from truecall.errors import InputError
from truecall.records import Json
from truecall.sources.base import Head, Line
from truecall.wire.values import NOTHING, decode

BLOCK: Final = 4 << 20
"""Bytes read at a time, and the size of the piece of a plain file that one worker takes."""

MAX_LINE: Final = 64 << 20
"""A longer line is no log line: it is skipped and counted as bad."""

MAX_WHOLE: Final = 512 << 20
"""Bytes (after decompression) of a file that has to be read whole."""

_HEAD: Final = 256 << 10
_FIRST_LINE: Final = 8 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BOM: Final = b"\xef\xbb\xbf"

READ_ERRORS: Final = (OSError, EOFError, zlib.error, zstandard.ZstdError)
"""What reading a damaged or vanished file can raise."""

TOO_LONG: Final = b"\0too long"
"""Stands for a line over MAX_LINE."""


def compression(path: str) -> str:
    """``gz``, ``zst`` or ``""``, by the file's first bytes."""
    with Path(path).open("rb") as file:
        magic = file.read(4)
    if magic.startswith(_GZIP):
        return "gz"
    return "zst" if magic == _ZSTD else ""


def open_bytes(path: str) -> IO[bytes]:
    """The file's content, decompressed as it is read."""
    kind = compression(path)
    if kind == "gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    file = Path(path).open("rb")  # noqa: SIM115 - handed to the caller
    if kind == "zst":
        unpacker = zstandard.ZstdDecompressor()
        return cast("IO[bytes]", unpacker.stream_reader(file, read_across_frames=True, closefd=True))
    return file


def read_whole(path: str) -> bytes:
    """All bytes of a file that can't be read in pieces.

    Raises:
        InputError: it is larger than ``MAX_WHOLE``.
    """
    with open_bytes(path) as file:
        data = file.read(MAX_WHOLE + 1)
    if len(data) > MAX_WHOLE:
        raise InputError(f"{path}: larger than {MAX_WHOLE >> 20} MB, and of a format that is read whole")
    return data.removeprefix(_BOM)


def fields(data: Json) -> dict[str, Json]:
    """The fields of a JSON object, left undecoded (``msgspec.Raw``) where it is strict JSON; {} for any other value.

    ``data``: bytes or Raw; what is decoded already comes back as it is.
    """
    value = _parts(data, dict[str, msgspec.Raw])
    return value if isinstance(value, dict) else {}


def elements(data: Json) -> Iterator[Json]:
    """The elements of a JSON list, decoded one at a time; none for any other value. ``data`` as for `fields`."""
    value = _parts(data, list[msgspec.Raw])
    for part in value if isinstance(value, list) else ():
        yield plain(part)


def plain(data: Json) -> Json:
    """A field's value, decoded."""
    return decode(bytes(data)) if isinstance(data, msgspec.Raw) else data


def _parts(data: Json, kind: Any) -> Json:
    if not isinstance(data, bytes | msgspec.Raw):
        return data
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):  # NaN and the like, or another kind of value
        return decode(bytes(data))


def head(path: str) -> Head:
    """The beginning of a file. Raises what ``READ_ERRORS`` lists."""
    pieces: list[bytes] = []
    size = 0
    ended = False  # a long first line is read to its end: its value tells the format
    with open_bytes(path) as file:
        try:
            while (size < _HEAD or not ended) and size < _FIRST_LINE and (piece := file.read(4096)):
                pieces.append(piece)
                size += len(piece)
                ended = ended or b"\n" in (piece if size > len(piece) else piece.lstrip())
        except READ_ERRORS:
            if not pieces:  # damage further on is told when the file is read
                raise
    data = b"".join(pieces).removeprefix(_BOM)
    return Head(name=Path(path).name, data=data[:_HEAD], first=_first_value(data))


def _first_value(data: bytes) -> Json:
    line = data.lstrip().partition(b"\n")[0]
    for candidate in (line, data):
        value = decode(candidate) if candidate else NOTHING
        if value is not NOTHING:
            return value
    return None


# --------------------------------------------------------------------------- lines


def lines(path: str, start: int = 0, end: int | None = None) -> Iterator[Line]:
    """The lines that begin in the bytes [start, end) of a plain file, or all of a compressed one.

    Numbers count from 1 at ``start``. Blank lines come too.
    """
    with open_bytes(path) as file:
        skipped = 0
        if start:
            file.seek(start - 1)
            skipped = _rest_of_line(file)
        begin = start - 1 + skipped if start else 0
        yield from split(file.read if end is None else _up_to(file, end - begin), begin, end)


def _up_to(file: IO[bytes], size: int) -> Callable[[int], bytes]:
    """A reader of about ``size`` bytes and then line by line: what lies behind the last line is not wanted."""
    left = size + len(_BOM)  # a mark alone would pass for an empty file

    def read(most: int) -> bytes:
        nonlocal left
        block = file.read(min(most, left)) if left > 0 else file.readline(most)
        left -= len(block)
        return block

    return read


def filled(found: Iterable[Line]) -> Iterator[Line]:
    """Lines that are not blank."""
    return (line for line in found if line.data and not line.data.isspace())


def _rest_of_line(file: IO[bytes]) -> int:
    """Reads to behind the next line end; the bytes read."""
    size = 0
    while True:
        piece = file.readline(BLOCK)
        size += len(piece)
        if not piece or piece.endswith(b"\n"):
            return size


def split(read: Callable[[int], bytes], offset: int = 0, end: int | None = None) -> Iterator[Line]:
    """Lines from a reader that stands at byte ``offset``; the last begins before byte ``end``."""
    number = 0
    carry: list[bytes] = []
    size = 0
    first = offset == 0
    mark = 0
    while True:
        block = read(BLOCK)
        if first:
            first = False
            mark = len(_BOM) if block.startswith(_BOM) else 0
            block = block[mark:]
        parts = block.split(b"\n")
        if len(parts) == 1 and block:  # no line end in it
            size += len(block)
            carry = [*carry, block] if size <= MAX_LINE else []
            continue
        if carry or size:
            whole = size + len(parts[0])
            parts[0] = b"".join([*carry, parts[0]]) if whole <= MAX_LINE else TOO_LONG
            longer = 0 if whole <= MAX_LINE else whole - len(TOO_LONG)
        else:
            longer = 0
        if not block and not size:
            return
        last = parts.pop() if block else b""
        for part in parts:
            if end is not None and offset >= end:
                return
            number += 1
            yield Line(number, offset, part)
            offset += len(part) + longer + mark + 1
            longer = mark = 0
        if not block:
            return
        carry, size = ([last], len(last)) if last else ([], 0)


def blocks(path: str) -> Iterator[tuple[int, bytes]]:
    """A compressed file in pieces that end with a line: (byte offset, bytes), each of about ``BLOCK``."""
    offset = 0
    carry = b""
    with open_bytes(path) as file:
        while block := file.read(BLOCK):
            data = carry + block
            cut = data.rfind(b"\n") + 1
            if not cut:
                if len(data) > MAX_LINE:
                    raise InputError(f"{path}: a line of more than {MAX_LINE >> 20} MB")
                carry = data
                continue
            yield offset, data[:cut]
            offset += cut
            carry = data[cut:]
    if carry:
        yield offset, carry


# --------------------------------------------------------------------------- what the user named


_NEVER: Final = frozenset(
    {".lock", ".py", ".md", ".html", ".png", ".svg", ".csv", ".yaml", ".yml", ".toml", ".bin", ".safetensors"}
)


def expand(paths: list[str] | tuple[str, ...]) -> list[str]:
    """The files that paths, folders and globs stand for, each once, in order.

    In a folder hidden files, the blobs of run folders and what is no log by its name are left out.

    Raises:
        InputError: a path that names nothing.
    """
    found: dict[str, None] = {}
    for path in paths:
        if Path(path).is_dir():
            found.update(dict.fromkeys(_in_folder(path)))
        elif Path(path).exists():
            found[path] = None
        else:
            matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - absolute patterns too
            if not matches:
                raise InputError(f"{path}: no such file or folder, and no file fits it")
            for match in matches:
                found.update(dict.fromkeys(_in_folder(match) if Path(match).is_dir() else [match]))
    return list(found)


def _in_folder(folder: str) -> Iterator[str]:
    for base, folders, names in os.walk(folder):
        if "log.jsonl" in names:  # a run folder: its other files hold the same turns again
            folders[:] = [name for name in folders if name != "blobs"]
            names = [name for name in names if name == "log.jsonl"]
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and Path(name).suffix.lower() not in _NEVER:
                yield str(Path(base) / name)
