"""verl's agent loop, watched: two lines in a module that its workers import.

    from truecall.integrations.verl import watch
    watch()

``VERL_USE_EXTERNAL_MODULES=your_module`` makes every verl process import such a module. The tool parsers' results
are then counted as they are made, with the text decoded from the same ids, special tokens kept. With
``watch(loop=ToolAgentLoop)`` executed and observed calls are counted too, and every rollout carries its counts in
``extra_fields["truecall"]``, so that a trainer can add them up over all workers: `totals` does.

verl gives a turn to its parser only when the response's length and the turn limits allow another one: turns that end
an episode that way are not seen. Made for verl 0.9.1.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, Final

from truecall.integrations.monitor import Monitor

KEY: Final = "truecall"
"""Where a rollout's counts stand in ``AgentLoopOutput.extra_fields``, and so in ``batch.non_tensor_batch``."""

_episode: ContextVar[Monitor | None] = ContextVar("truecall_episode", default=None)


class WatchedParser:
    """A verl tool parser whose results a monitor sees; in all else it is the parser inside."""

    def __init__(self, parser: Any, monitor: Monitor) -> None:
        self._parser = parser
        self._monitor = monitor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    async def extract_tool_calls(
        self, responses_ids: list[int], tools: Any = None, *rest: Any, **more: Any
    ) -> Any:
        """As the parser's own; what it returns or raises goes through unchanged."""
        try:
            result = await self._parser.extract_tool_calls(responses_ids, tools, *rest, **more)
        except Exception:
            self._tell(responses_ids, tools, [])
            raise
        self._tell(responses_ids, tools, _calls(result))
        return result

    def _tell(self, ids: list[int], tools: Any, calls: Any) -> None:
        for monitor in {id(m): m for m in (self._monitor, _episode.get()) if m is not None}.values():
            try:
                text = self._parser.tokenizer.decode(ids)
            except Exception:  # a tokenizer's fault must not end a rollout
                monitor.counts["turns"] += 1
                monitor.counts["faults"] += 1
                continue
            monitor.turn(text, tools, calls)


def _calls(result: Any) -> Any:
    """The calls in a parser's result: (content, calls)."""
    return result[1] if isinstance(result, tuple) and len(result) > 1 else None


def watch(monitor: Monitor | None = None, *, loop: type | None = None, parser: type | None = None) -> Monitor:
    """Makes verl's tool parsers tell a monitor what they returned; gives that monitor.

    ``loop``: an agent loop class (verl's ToolAgentLoop) whose tool runs are counted too. ``parser``: verl's
    ToolParser, imported by default. Calling it again changes only the monitor.

    Raises:
        ImportError: verl is not installed and ``parser`` was not given.
    """
    monitor = monitor if monitor is not None else Monitor()
    if parser is None:
        from verl.experimental.agent_loop.tool_parser import ToolParser

        parser = ToolParser
    base: Any = parser
    original = getattr(base, "_truecall_original", None) or base.get_tool_parser

    def get_tool_parser(name: str, *arguments: Any, **more: Any) -> WatchedParser:
        return WatchedParser(original(name, *arguments, **more), monitor)

    base._truecall_original = original
    base.get_tool_parser = staticmethod(get_tool_parser)
    if loop is not None:
        _watch_loop(loop, monitor)
    return monitor


def _watch_loop(loop: Any, monitor: Monitor) -> None:
    if getattr(loop, "_truecall_watched", False):
        return
    run, call_tool = loop.run, loop._call_tool

    @functools.wraps(run)
    async def watched_run(self: Any, *arguments: Any, **more: Any) -> Any:
        own = Monitor()
        token = _episode.set(own)
        try:
            output = await run(self, *arguments, **more)
        finally:
            _episode.reset(token)
        fields = getattr(output, "extra_fields", None)
        if isinstance(fields, dict):
            fields[KEY] = dict(own.counts)
        return output

    @functools.wraps(call_tool)
    async def watched_call(self: Any, tool_call: Any, *arguments: Any, **more: Any) -> Any:
        response = await call_tool(self, tool_call, *arguments, **more)
        refused = str(getattr(_first(response), "text", "") or "").startswith(_REFUSED)
        for one in (monitor, _episode.get()):
            if one is not None:
                one.ran(executed=not refused, observed=True)
        return response

    loop.run, loop._call_tool, loop._truecall_watched = watched_run, watched_call, True


_REFUSED: Final = ("Unknown function ", "Invalid JSON in arguments ")
"""How verl's tool responses begin where no tool ran (`tool_agent_loop.py`)."""


def _first(response: Any) -> Any:
    return response[0] if isinstance(response, tuple) and response else response


def totals(counts: Iterable[Any]) -> dict[str, float]:
    """The metrics of many rollouts: ``totals(batch.non_tensor_batch["truecall"])``. None among them is passed over."""
    monitor = Monitor()
    for one in counts:
        if isinstance(one, dict):
            monitor.add(one)
    return monitor.metrics()
