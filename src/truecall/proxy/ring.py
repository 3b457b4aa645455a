"""A queue of byte frames in memory that two processes share: one writes, one reads, neither waits.

What was pushed survives the end of the writer; what was not yet taken survives the end of the reader. Where the
memory has a name (``memory``), it survives the end of both, and the next run in the same folder takes it up.
Nothing of it is on a disk. Layout: head and tail (bytes ever written, bytes ever read; 8 bytes each), the reader's
sleeping mark, the secrets that must not be written, then the ring. Each number has one writer and is stored by one
aligned 8-byte write.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import mmap
import os
import struct
from pathlib import Path
from typing import Final

import msgspec

from truecall.errors import UsageError

SIZE: Final = 64 << 20
_SECRETS: Final = 64  # where they begin
_DATA: Final = 64 << 10  # bytes before the ring itself
_LENGTH: Final = struct.Struct("<I")
_SHARED: Final = Path("/dev/shm")


def memory(folder: Path, size: int = SIZE) -> tuple[int, Path | None]:
    """The memory file for the record in ``folder``, and its name; what a killed run left is in it still.

    Without a name (it dies with its processes) where the system has no shared memory, or little. The handle is
    locked and can be given to a child.

    Raises:
        UsageError: another run records there.
    """
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]
    path = _SHARED / f"truecall-{os.getuid()}-{digest}"
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if _taken(handle, folder) or _made(handle, size):
                return handle, path
            path.unlink()
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
    handle = os.memfd_create("truecall-ring", os.MFD_CLOEXEC)
    os.ftruncate(handle, size + _DATA)
    return handle, None


def _taken(handle: int, folder: Path) -> bool:
    """Locks the file; whether it holds a ring of ours already."""
    facts = os.fstat(handle)
    if facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise PermissionError("somebody else's file")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"{folder}: another truecall is recording there") from None
    return facts.st_size > 0


def _made(handle: int, size: int) -> bool:
    """Gives the file its size, where that leaves as much for others: memory that is not there kills a writer."""
    room = os.fstatvfs(handle)
    if room.f_bavail * room.f_frsize < 2 * (size + _DATA):
        return False
    os.posix_fallocate(handle, 0, size + _DATA)
    return True


class Ring:
    """One end of the queue, over a shared memory file."""

    def __init__(self, handle: int) -> None:
        self._map = mmap.mmap(handle, 0)
        self._numbers = memoryview(self._map)[:_SECRETS].cast("Q")
        self._size = len(self._map) - _DATA

    def close(self) -> None:
        self._numbers.release()
        self._map.close()

    @property
    def waiting(self) -> int:
        """Bytes pushed and not yet done with."""
        return self._numbers[0] - self._numbers[1]

    @property
    def head(self) -> int:
        """Bytes ever pushed."""
        return self._numbers[0]

    @property
    def tail(self) -> int:
        """Bytes ever done with."""
        return self._numbers[1]

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be written of the frames, by the runs that pushed them."""
        (size,) = _LENGTH.unpack_from(self._map, _SECRETS)
        start = _SECRETS + _LENGTH.size
        return msgspec.msgpack.decode(self._map[start : start + size], type=tuple[str, ...]) if size else ()

    @secrets.setter
    def secrets(self, value: tuple[str, ...]) -> None:
        data = msgspec.msgpack.encode(value)
        if len(data) > _DATA - _SECRETS - _LENGTH.size:
            raise UsageError("the environment holds more keys than can be kept out of the record")
        start = _SECRETS + _LENGTH.size
        self._map[start : start + len(data)] = data
        _LENGTH.pack_into(self._map, _SECRETS, len(data))

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
