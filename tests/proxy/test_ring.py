"""The queue between proxy and recorder, and the memory that outlives both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from truecall.errors import UsageError
from truecall.proxy import ring as ring_room
from truecall.proxy.ring import Ring, memory

SMALL = 4096


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in the place of the system's shared memory."""
    place = tmp_path / "shm"
    place.mkdir()
    monkeypatch.setattr(ring_room, "_SHARED", place)
    yield place


def test_frames_come_out_in_order_around_the_end(tmp_path: Path) -> None:
    handle, _ = memory(tmp_path, SMALL)
    ring = Ring(handle)
    sent = [bytes([n % 256]) * (n % 700) for n in range(200)]
    got = []
    for frame in sent:
        while not ring.push(frame):
            oldest = ring.peek()
            assert oldest is not None
            got.append(oldest)
            ring.done(oldest)
    while (oldest := ring.peek()) is not None:
        got.append(oldest)
        ring.done(oldest)
    assert got == sent and ring.waiting == 0
    assert not ring.push(b"x" * SMALL) and not ring.fits(b"x" * SMALL)
    ring.close()
    os.close(handle)


def test_what_a_killed_run_left_is_there_for_the_next(tmp_path: Path) -> None:
    handle, name = memory(tmp_path, SMALL)
    ring = Ring(handle)
    ring.push(b"one")
    ring.secrets = ("k1",)
    ring.close()
    os.close(handle)  # as the end of a process does
    assert name is not None and name.stat().st_mode & 0o077 == 0
    handle, again = memory(tmp_path, SMALL)
    ring = Ring(handle)
    assert again == name and ring.peek() == b"one" and ring.secrets == ("k1",)
    ring.close()
    os.close(handle)


def test_two_runs_can_not_record_into_one_folder(tmp_path: Path) -> None:
    handle, _ = memory(tmp_path, SMALL)
    with pytest.raises(UsageError, match="another truecall is recording there"):
        memory(tmp_path, SMALL)
    other, _ = memory(tmp_path / "other", SMALL)
    os.close(handle)
    os.close(other)


def test_without_shared_memory_it_dies_with_its_processes(tmp_path: Path, shared: Path) -> None:
    handle, name = memory(tmp_path, SMALL)
    assert name is not None
    os.close(handle)
    name.chmod(0o644)  # somebody else could have read it
    handle, named = memory(tmp_path, SMALL)
    assert named is None and Ring(handle).push(b"x")
    os.close(handle)
    shared.rename(tmp_path / "gone")
    handle, named = memory(tmp_path / "b", SMALL)
    assert named is None and Ring(handle).push(b"x")
    os.close(handle)
