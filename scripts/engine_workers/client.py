"""One engine's parsers for the benches: orders by name, over truecall's own workers."""

from __future__ import annotations

from typing import Any

from truecall.engines import Job, Launch, Worker
from truecall.engines.registry import WORKERS


class Engine:
    """An engine's parsers, run by the Python of its environment. Use as a context manager."""

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        script = WORKERS / f"{name.lower()}_worker.py"
        self._worker = Worker(Launch(engine=name, python=python, script=str(script)), cpu=True)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker."""
        self._worker.close()

    def ask(self, *, do: str, **order: Any) -> dict[str, Any]:
        """``parsers``: names and version; ``time``: CPU seconds and calls of ``texts`` through ``parser``.

        A first text is not timed: what an engine makes once for a tool list is not part of a text.
        """
        if do == "parsers":
            hello = self._worker.hello()
            return {"parsers": list(hello.parsers), "version": hello.version}
        if do != "time":
            raise ValueError(f"no order {do!r}")
        jobs = [Job(order["parser"], text, order["tools"]) for text in order["texts"]]
        list(self._worker.run(jobs[:1]))
        results = list(self._worker.run(jobs))
        return {"seconds": sum(r.seconds for r in results), "calls": sum(len(r.calls) for r in results)}
