"""The same kernel over Ray Data, for collections that outgrow a machine. Needs the extra ``ray``.

Local paths, and those that every node sees, are cut into the same pieces as for the process pool and mapped over
Ray's workers. Paths with a scheme (``s3://``, ``gs://``, ``az://`` …) are read by Ray's own reader, a whole file a
row, and cut by the worker that has it. The numbers are the same.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from truecall.errors import CannotTell, UsageError
from truecall.scan.kernel import Kernel
from truecall.scan.run import Lines, ScanOptions, check, cores, skipped, spare_collections
from truecall.scan.tally import Tally
from truecall.scan.units import Done, Piece, pieces, sniffed, work
from truecall.sources import files

_SHARES = 8
"""Requests for each worker where there is work for so many: each costs Ray's driver some 40 ms."""

_MOST = 64
"""Pieces in one request."""


def start(address: str | None, workers: int = 0) -> None:
    """Connects to a Ray cluster, or starts one on this machine with so many workers.

    Raises:
        UsageError: Ray is not installed.
        CannotTell: the cluster can't be reached.
    """
    try:
        import ray
    except ImportError:
        raise UsageError("--ray needs Ray (pip install 'truecall[ray]')") from None
    about: dict[str, Any] = {"ignore_reinit_error": True, "log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        about |= {"num_cpus": workers or cores(), "include_dashboard": False}
    try:
        ray.init(address=address, **about)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise CannotTell(f"Ray at {address or 'this machine'}: {str(error).splitlines()[0][:200]}") from None
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells every step of every data set
    warnings.filterwarnings("ignore", module=r"ray\.data")


def scan_on_ray(paths: list[str], options: ScanOptions) -> Tally:
    """The tally of all files, counted by Ray's workers; `start` goes before it.

    Raises:
        InputError: a local path names nothing.
        CannotTell: no file is of a known format.
    """
    import ray

    remote = [path for path in paths if "://" in path]
    local = [path for path in paths if "://" not in path]
    total = Tally(options.by)
    if local:
        _add(total, _local(ray, local, options, total))
    if remote:
        _add(total, _remote(ray, remote, options))
    if not total.files and not total.bad_files and remote:
        raise CannotTell("no log of a known format among the files that Ray read")
    return total


def _add(total: Tally, found: Iterable[list[Done]]) -> None:
    lines = Lines()
    for some in found:
        for done in some:
            lines.place(done)
            total.merge(done.tally)


# --------------------------------------------------------------------------- paths that workers see


def _local(ray: Any, paths: list[str], options: ScanOptions, total: Tally) -> Iterable[list[Done]]:
    found = [sniffed(path) for path in files.expand(paths)]
    check(found)
    total.skipped += skipped(found, options)
    todo = list(pieces(found, sample=options.sample, seed=options.seed, shard=options.shard, workers=1))
    together = max(1, min(_MOST, len(todo) // (_SHARES * (options.workers or cores()))))
    rows = [
        {"number": number, "todo": pickle.dumps(todo[at : at + together])}
        for number, at in enumerate(range(0, len(todo), together))
    ]
    found_rows = _mapped(ray, ray.data.from_items(rows, override_num_blocks=len(rows)), options, _Pieces)
    return _in_order(found_rows)


def _in_order(rows: Iterable[tuple[int, list[Done]]]) -> Iterator[list[Done]]:
    """What workers finish as it comes, put in the order of the pieces: line numbers count on from piece to piece."""
    early: dict[int, list[Done]] = {}
    following = 0
    for number, done in rows:
        early[number] = done
        while following in early:
            yield early.pop(following)
            following += 1


def _mapped(
    ray: Any, rows: Any, options: ScanOptions, worker: type, share: float = 1.0
) -> Iterator[tuple[int, list[Done]]]:
    """``share``: cores that one worker holds; what reads the files needs some too."""
    pool = ray.data.ActorPoolStrategy(size=options.workers or cores())
    done = rows.map_batches(
        worker, fn_constructor_args=(options,), batch_size=1, compute=pool, num_cpus=share
    )
    for row in done.iter_rows():
        yield int(row["number"]), pickle.loads(row["done"])


class _Pieces:
    """A worker that counts pieces."""

    def __init__(self, options: ScanOptions) -> None:
        spare_collections()
        self._options = options
        self._reading = options.reading()
        self._kernel = Kernel()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        out = []
        for packed in batch["todo"]:
            todo: list[Piece] = pickle.loads(packed)
            out.append([work(piece, self._options.by, self._reading, self._kernel) for piece in todo])
        return {"number": batch["number"], "done": [pickle.dumps(some) for some in out]}


# --------------------------------------------------------------------------- object stores


def _remote(ray: Any, paths: list[str], options: ScanOptions) -> Iterable[list[Done]]:
    rows = ray.data.read_binary_files(paths, include_paths=True)
    return (done for _, done in _mapped(ray, rows, options, _Files, share=0.5))


class _Files:
    """A worker that counts whole files which Ray read."""

    def __init__(self, options: ScanOptions) -> None:
        spare_collections()
        self._options = options
        self._reading = options.reading()
        self._kernel = Kernel()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        pairs = list(zip(batch["path"], batch["bytes"], strict=True))
        done = [pickle.dumps(self._file(str(path), bytes(data))) for path, data in pairs]
        return {"number": [0] * len(pairs), "done": done}

    def _file(self, uri: str, data: bytes) -> list[Done]:
        options = self._options
        handle, name = tempfile.mkstemp(prefix="truecall-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            found = sniffed(name)
            if found.source is None:
                tally = Tally(options.by)
                tally.skipped.append(f"{uri}: {found.reason}")
                return [Done(uri, 0, None, 0, tally, None)]
            todo = pieces(
                [found._replace(label=uri)], sample=options.sample, seed=options.seed, shard=options.shard
            )
            return [work(piece, options.by, self._reading, self._kernel) for piece in todo]
        finally:
            with contextlib.suppress(OSError):
                Path(name).unlink()
