"""Undoes content-encoding in bounded memory: a bomb ends at the limit, not in the swap.

gzip and deflate by zlib (raw deflate too, as some servers send it), zstd by zstandard. Others (br) are not
asked for and not undone.
"""

from __future__ import annotations

import zlib
from typing import Protocol

import zstandard

# Four bytes of zstd can stand for 128 kB (a block of one repeated byte): a slice makes 2 MB at most.
_ZSTD_SLICE = 64
_ZSTD_WINDOW = 8 << 20  # what RFC 9659 allows on the web


class DecodeError(Exception):
    """The bytes are not what the content-encoding field says."""


class Decoder(Protocol):
    """One body's decoder. ``feed`` returns at most ``room`` + 1 bytes: the caller sees what is over."""

    def feed(self, data: bytes, room: int) -> bytes:
        """Decodes the next piece. Raises DecodeError."""
        ...

    def finish(self) -> None:
        """The body has ended. Raises DecodeError where the encoded stream has not."""
        ...


class _Plain:
    def feed(self, data: bytes, room: int) -> bytes:
        return data[: room + 1]

    def finish(self) -> None:
        return None


class _Zlib:
    def __init__(self, kind: str) -> None:
        self._gzip = kind == "gzip"
        self._engine = zlib.decompressobj(31 if self._gzip else 15)
        self._begun = False
        self._first = b""

    def feed(self, data: bytes, room: int) -> bytes:
        out = bytearray()
        data = self._chosen(data)
        while data and len(out) <= room:
            try:
                piece = self._engine.decompress(data, room - len(out) + 1)
            except zlib.error as error:
                raise DecodeError(str(error)) from None
            out += piece
            data = self._rest(piece)
        return bytes(out)

    def _chosen(self, data: bytes) -> bytes:
        """The bytes to decode now; the first two of "deflate" tell whether it has the zlib wrapper."""
        if self._begun:
            return data
        data = self._first + data
        if not self._gzip and len(data) < 2:
            self._first = data
            return b""
        if not self._gzip and (data[0] & 15 != 8 or int.from_bytes(data[:2], "big") % 31):
            self._engine = zlib.decompressobj(-15)
        self._begun = bool(data)
        return data

    def _rest(self, piece: bytes) -> bytes:
        """What is still to be read: the tail of this member, or the members after it."""
        if not self._engine.eof:
            return self._engine.unconsumed_tail if piece else b""
        rest = self._engine.unused_data.lstrip(b"\0") if self._gzip else b""
        if rest:
            self._engine = zlib.decompressobj(31)
        return rest

    def finish(self) -> None:
        if (self._begun or self._first) and not self._engine.eof:
            raise DecodeError("the compressed data ends early")


class _Zstd:
    def __init__(self) -> None:
        self._engine = self._fresh()
        self._begun = False

    @staticmethod
    def _fresh() -> zstandard.ZstdDecompressionObj:
        return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()

    def feed(self, data: bytes, room: int) -> bytes:
        out = bytearray()
        for at in range(0, len(data), _ZSTD_SLICE):
            piece = data[at : at + _ZSTD_SLICE]
            while piece:
                try:
                    out += self._engine.decompress(piece)
                except zstandard.ZstdError as error:
                    raise DecodeError(str(error)) from None
                self._begun = True
                piece = self._engine.unused_data if self._engine.eof else b""
                if piece:
                    self._engine = self._fresh()
            if len(out) > room:
                return bytes(out[: room + 1])
        return bytes(out)

    def finish(self) -> None:
        if self._begun and not self._engine.eof:
            raise DecodeError("the compressed data ends early")


def decoder(encoding: str | None) -> Decoder:
    """The decoder for a content-encoding field.

    Raises:
        DecodeError: an encoding that is not known here, or several at once.
    """
    kind = (encoding or "").strip().lower().removeprefix("x-")
    if kind in {"", "identity"}:
        return _Plain()
    if kind in {"gzip", "deflate"}:
        return _Zlib(kind)
    if kind == "zstd":
        return _Zstd()
    raise DecodeError(f"content-encoding {kind[:40]!r} is not known")
