"""A scan from paths to one tally: planned, spread over processes, added up in order."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from truecall.errors import CannotTell
from truecall.records import Record
from truecall.scan.kernel import Kernel
from truecall.scan.tally import Tally
from truecall.scan.units import Done, Piece, Sniffed, pieces, sniffed, work
from truecall.sources import Bad, Options, Place, files

_ALONE = 8 << 20
"""Bytes under which starting workers costs more than they save."""


class ScanOptions(Record, frozen=True):
    """How to scan. ``by``: fields to group by; ``tools``: for turns whose log holds none; ``sample``: the share of
    entries to read, in (0, 1], chosen by ``seed``; ``shard``: (i, n), the i-th of n parts from 1; ``workers``: 0 is
    one for each core."""

    by: tuple[str, ...] = ()
    tools: Any = None
    sample: float = 1.0
    seed: int = 0
    shard: tuple[int, int] = (1, 1)
    workers: int = 0

    def reading(self) -> Options:
        """What the sources have to know of it."""
        own = ("file", "model", "step", "episode", "position", "role", "finish_reason", "status", "solved")
        return Options(tools=self.tools, fields=tuple(field for field in self.by if field not in own))


Told = Callable[[Done], None]


def scan(
    paths: list[str], options: ScanOptions | None = None, *, told: Told | None = None, entries: bool = False
) -> Tally:
    """The tally of all files that ``paths`` (files, folders, globs) stand for.

    ``told`` is called with each finished piece, in order; with ``entries`` it holds a JSON line for every turn.

    Raises:
        InputError: a path names nothing.
        CannotTell: no file is of a known format.
    """
    options = options or ScanOptions()
    found = [sniffed(path) for path in files.expand(paths)]
    return scan_files(found, options, told=told, entries=entries)


def scan_files(
    found: list[Sniffed], options: ScanOptions, *, told: Told | None = None, entries: bool = False
) -> Tally:
    """As `scan`, for files that were looked at before."""
    check(found)
    total = Tally(options.by)
    total.skipped = skipped(found, options)
    for done in counted(found, options, entries=entries):
        total.merge(done.tally)
        if told is not None:
            told(done)
    return total


def counted(found: list[Sniffed], options: ScanOptions, *, entries: bool = False) -> Iterator[Done]:
    """The finished pieces of the files in order, with line numbers that are the files'."""
    workers = options.workers or cores()
    if sum(file.size for file in found if file.source) < _ALONE:
        workers = 1
    todo = pieces(found, sample=options.sample, seed=options.seed, shard=options.shard, workers=workers)
    lines = Lines()
    for done in run(todo, options, workers, entries=entries):
        lines.place(done)
        yield done


def skipped(found: list[Sniffed], options: ScanOptions) -> list[str]:
    """The files that are not read, with the reason; the first shard tells them for all."""
    if options.shard[0] != 1:
        return []
    return [f"{file.path}: {file.reason}" for file in found if file.source is None]


def check(found: list[Sniffed]) -> None:
    """Raises CannotTell where no file can be read as a log."""
    if any(file.source for file in found):
        return
    first = f" (first: {found[0].path} {found[0].reason})" if found else ""
    raise CannotTell(
        f"no log of a known format among {len(found)} files{first}; docs/sources.md lists the formats"
    )


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Lines:
    """Makes line numbers those of the file, from the blocks that come one after another."""

    def __init__(self) -> None:
        self._path = ""
        self._end: int | None = None
        self._before = 0

    def place(self, done: Done) -> None:
        if done.start <= 0:
            self._path, self._before, self._end = done.path, 0, 0
        elif done.path != self._path or self._end != done.start:
            done.tally.forget_lines()
            self._end = None
            return
        done.tally.shift_lines(self._before)
        self._before += done.lines
        self._end = done.next


# --------------------------------------------------------------------------- processes


def run(
    todo: Iterable[Piece], options: ScanOptions, workers: int, *, entries: bool = False
) -> Iterator[Done]:
    """The finished pieces in order. A piece whose worker dies twice is told as a bad entry."""
    reading = options.reading()
    if workers <= 1:
        kernel = Kernel()
        for piece in todo:
            yield work(piece, options.by, reading, kernel, entries=entries)
        return
    yield from _Pool(options.by, reading, workers, entries).run(iter(todo))


class _Pool:
    """Workers with a window of pieces in flight, so that memory does not grow with the collection."""

    def __init__(self, by: tuple[str, ...], reading: Options, workers: int, entries: bool) -> None:
        self._start = (by, reading, entries)
        self._workers = workers
        self._window = 3 * workers
        self._flight: deque[tuple[Piece, Future[Done]]] = deque()
        self._pool = self._new(workers)

    def _new(self, workers: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            workers, mp_context=get_context(_method()), initializer=_begin, initargs=self._start
        )

    def run(self, todo: Iterator[Piece]) -> Iterator[Done]:
        try:
            for piece in todo:
                self._flight.append((piece, self._submit(piece)))
                if len(self._flight) >= self._window:
                    yield self._next()
            while self._flight:
                yield self._next()
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _submit(self, piece: Piece) -> Future[Done]:
        try:
            return self._pool.submit(_piece, piece)
        except BrokenProcessPool:
            broken: Future[Done] = Future()
            broken.set_exception(BrokenProcessPool())
            return broken

    def _next(self) -> Done:
        piece, future = self._flight.popleft()
        try:
            return future.result()
        except BrokenProcessPool:
            done = self._again(piece)
            self._pool = self._new(self._workers)
            self._flight = deque((p, self._submit(p)) for p, _ in self._flight)
            return done

    def _again(self, piece: Piece) -> Done:
        """A piece in a pool of its own, since any piece in flight may have killed the worker."""
        alone = self._new(1)
        try:
            return alone.submit(_piece, piece).result()
        except BrokenProcessPool:
            tally = Tally(self._start[0])
            tally.add_bad(
                Bad(place=Place(file=piece.path, offset=piece.start), reason="the worker that read it died")
            )
            return Done(piece.path, piece.start, piece.end, 0, tally, None)
        finally:
            alone.shutdown(wait=False)


def _method() -> str:
    """Fork where it is safe, in a process of one thread on Linux: workers then start without importing anything."""
    alone = sys.platform == "linux" and threading.active_count() == 1
    return "fork" if alone else "spawn"


def spare_collections() -> None:
    """What a worker holds at its start stays, and few collections of garbage are worth their time in it."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


_worker: tuple[tuple[str, ...], Options, bool, Kernel] | None = None


def _begin(by: tuple[str, ...], reading: Options, entries: bool) -> None:
    global _worker
    spare_collections()
    _worker = (by, reading, entries, Kernel())


def _piece(piece: Piece) -> Done:
    assert _worker is not None
    by, reading, entries, kernel = _worker
    return work(piece, by, reading, kernel, entries=entries)
