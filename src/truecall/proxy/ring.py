"""A queue of byte frames in memory that two processes share: one writes, one reads, neither waits.

What was pushed survives the end of the writer; what was not yet taken survives the end of the reader. Layout:
head and tail (bytes ever written, bytes ever read; 8 bytes each), the reader's sleeping mark, then the ring.
Each number has one writer and is stored by one aligned 8-byte write.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import Final

SIZE: Final = 64 << 20
_DATA: Final = 64  # bytes before the ring itself
_LENGTH: Final = struct.Struct("<I")


class Ring:
    """One end of the queue, over a shared memory file."""

    def __init__(self, handle: int) -> None:
        self._map = mmap.mmap(handle, 0)
        self._numbers = memoryview(self._map)[:_DATA].cast("Q")
        self._size = len(self._map) - _DATA

    @staticmethod
    def create(size: int = SIZE) -> int:
        """A new, empty memory file; the handle can be given to a child."""
        handle = os.memfd_create("truecall-ring", os.MFD_CLOEXEC)
        os.ftruncate(handle, size + _DATA)
        return handle

    def close(self) -> None:
        self._numbers.release()
        self._map.close()

    @property
    def waiting(self) -> int:
        """Bytes pushed and not yet done with."""
        return self._numbers[0] - self._numbers[1]

    @property
    def sleeping(self) -> bool:
        """Whether the reader has asked to be woken."""
        return bool(self._numbers[2])

    @sleeping.setter
    def sleeping(self, value: bool) -> None:
        self._numbers[2] = int(value)

    def push(self, frame: bytes) -> bool:
        """Adds a frame; False when there is no room for it now."""
        head = self._numbers[0]
        need = len(frame) + 4
        if need > self._size - (head - self._numbers[1]):
            return False
        self._write(head, _LENGTH.pack(len(frame)) + frame)
        self._numbers[0] = head + need  # last: the reader sees whole frames only
        return True

    def fits(self, frame: bytes) -> bool:
        """Whether the frame could ever be pushed."""
        return len(frame) + 4 <= self._size

    def peek(self) -> bytes | None:
        """The oldest frame, which stays until ``done``; None when there is none."""
        tail = self._numbers[1]
        if self._numbers[0] == tail:
            return None
        (size,) = _LENGTH.unpack(self._read(tail, 4))
        return self._read(tail + 4, size)

    def done(self, frame: bytes) -> None:
        """The frame that ``peek`` gave has been dealt with."""
        self._numbers[1] += len(frame) + 4

    def _write(self, at: int, data: bytes) -> None:
        start = at % self._size
        room = self._size - start
        base = _DATA + start
        if len(data) <= room:
            self._map[base : base + len(data)] = data
        else:
            self._map[base : base + room] = data[:room]
            self._map[_DATA : _DATA + len(data) - room] = data[room:]

    def _read(self, at: int, size: int) -> bytes:
        start = at % self._size
        room = self._size - start
        base = _DATA + start
        if size <= room:
            return self._map[base : base + size]
        return self._map[base : base + room] + self._map[_DATA : _DATA + size - room]
