"""Members of zip archives, zstd ones too (method 93, which Python's own reader learnt with 3.14)."""

from __future__ import annotations

import struct
import zipfile
from typing import Final

import zstandard

from truecall.errors import InputError

MAX_MEMBER: Final = 512 << 20
_ZSTD: Final = 93
_HEADER: Final = struct.Struct("<4s22xHH")


def member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of one member.

    Raises:
        InputError: it is larger than ``MAX_MEMBER``, or damaged.
    """
    if info.file_size > MAX_MEMBER:
        raise InputError(f"{info.filename}: larger than {MAX_MEMBER >> 20} MB")
    try:
        if info.compress_type != _ZSTD:
            with archive.open(info) as file:
                data = file.read(MAX_MEMBER + 1)
        else:
            data = _zstd(archive, info)
    except (
        zipfile.BadZipFile,
        zstandard.ZstdError,
        struct.error,
        OSError,
        EOFError,
        NotImplementedError,
    ) as error:
        raise InputError(f"{info.filename}: can't be read ({error})") from None
    if len(data) > MAX_MEMBER:
        raise InputError(f"{info.filename}: larger than it says")
    return data


def _zstd(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    file = archive.fp
    if file is None:
        raise EOFError("the archive is closed")
    file.seek(info.header_offset)
    magic, name, extra = _HEADER.unpack(file.read(_HEADER.size))
    if magic != b"PK\x03\x04":
        raise zipfile.BadZipFile("no local header")
    file.seek(name + extra, 1)
    packed = file.read(info.compress_size)
    return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True).read(MAX_MEMBER + 1)
