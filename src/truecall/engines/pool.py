"""Several workers of one engine at once. Results come in the order of the jobs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from truecall.engines.base import Health, Hello, Job, Launch, Parse
from truecall.engines.worker import START_SECONDS, TEXT_SECONDS, Worker

BATCH: Final = 512
_BATCH_TEXT: Final = 1 << 20  # characters: a batch is cut short at about this size


class Pool:
    """Workers of one engine. Use as a context manager.

    Args:
        size: how many processes. The first is started when it is needed; the others once the work has lasted as
            long as that start took, so that a short run does not wait for what it does not need.
        cpu: as for `Worker`.
    """

    def __init__(
        self,
        launch: Launch,
        size: int = 1,
        *,
        text_seconds: float = TEXT_SECONDS,
        start_seconds: float = START_SECONDS,
        cpu: bool = False,
    ) -> None:
        self.launch = launch
        self._workers = [
            Worker(launch, text_seconds=text_seconds, start_seconds=start_seconds, cpu=cpu)
            for _ in range(max(1, size))
        ]
        self._free = list(self._workers)
        self._changed = threading.Condition()
        self._began: float | None = None  # when the first batch came
        self._start_cost: float | None = None  # seconds that the first worker took to start
        self._threads = ThreadPoolExecutor(len(self._workers), thread_name_prefix=f"engine-{launch.engine}")

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def health(self) -> Health:
        """What became of the workers so far."""
        total = Health()
        for worker in self._workers:
            total += worker.health
        return total

    @property
    def pids(self) -> list[int]:
        """The processes at work."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    def hello(self) -> Hello:
        """What the first worker says of itself. Raises CannotTell where it does not start."""
        before = time.monotonic()
        said = self._workers[0].hello()
        if self._start_cost is None:
            self._start_cost = time.monotonic() - before
        return said

    def warm(self) -> None:
        """Start every worker now, at the same time."""
        for done in [self._threads.submit(worker.hello) for worker in self._workers]:
            done.result()

    def run(self, jobs: Iterable[Job]) -> Iterator[Parse]:
        """The result of each job, in order; a few batches are under way at a time."""
        waiting: deque[Future[list[Parse]]] = deque()
        for batch in batches(jobs):
            waiting.append(self._threads.submit(self._batch, batch))
            if len(waiting) > 2 * len(self._workers):
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()

    def close(self) -> None:
        """End all workers; what is under way ends with them."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads.shutdown(wait=True)
        for worker in self._workers:
            worker.close()

    def _batch(self, jobs: list[Job]) -> list[Parse]:
        worker = self._take()
        try:
            if worker is self._workers[0]:
                self.hello()
            return list(worker.run(jobs))
        finally:
            with self._changed:
                self._free.append(worker)
                self._changed.notify()

    def _take(self) -> Worker:
        """A free worker; one that is not started yet only when the work has lasted long enough to be worth it."""
        with self._changed:
            self._began = self._began or time.monotonic()
            while True:
                ready = [worker for worker in self._free if worker.pid is not None]
                cold = [worker for worker in self._free if worker.pid is None]
                none_yet = len(cold) == len(self._workers)
                cost, lasted = self._start_cost, time.monotonic() - self._began
                if ready or none_yet or (cold and cost is not None and lasted > cost):
                    chosen = (ready or cold)[0]
                    self._free.remove(chosen)
                    return chosen
                self._changed.wait(0.1)


def batches(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Jobs in batches of bounded number and size."""
    batch: list[Job] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += len(job.text)
        if len(batch) >= BATCH or size >= _BATCH_TEXT:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
