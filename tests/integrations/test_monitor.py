"""The monitor for rollouts: counts, metrics, workers that add up, and that it never raises."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sources.samples import TEXT_CALL, TOOLS
from truecall.integrations import monitor as room
from truecall.integrations.monitor import COUNTERS, PREFIX, Monitor

PLACEHOLDER = TEXT_CALL.replace("Oslo", "<city>")


def test_counts_and_metrics() -> None:
    monitor = Monitor(TOOLS)
    monitor.turn(TEXT_CALL, parsed=[{"name": "get_weather"}])
    monitor.ran(executed=True, observed=True)
    monitor.turn(TEXT_CALL, parsed=[])
    monitor.turn(PLACEHOLDER, parsed=())
    monitor.turn("It is sunny.", parsed=[])
    monitor.turn(TEXT_CALL)
    counts = monitor.counts
    assert {name: n for name, n in counts.items() if n} == {
        "turns": 5, "emitted": 4, "emitted_valid": 4, "placeholder": 1, "accepted": 1, "lost": 2, "unknown": 1,
        "emitted_known": 3, "executed": 1, "observed": 1,
    }  # fmt: skip
    metrics = monitor.metrics()
    assert metrics[f"{PREFIX}emitted_rate"] == 4 / 5
    assert metrics[f"{PREFIX}accepted_rate"] == 1 / 4
    assert metrics[f"{PREFIX}lost_share"] == 2 / 3
    assert metrics[f"{PREFIX}cold_start"] == 0.0
    assert monitor.warning() == "2 of 3 turns with a whole tool call lost it before it was executed."


def test_cold_start() -> None:
    monitor = Monitor(TOOLS)
    for number in range(5):
        assert monitor.cold_start is False, number
        monitor.turn(TEXT_CALL, parsed=[])
    assert monitor.cold_start and "accepted none" in (monitor.warning() or "")
    monitor.turn(TEXT_CALL, parsed=[1])
    assert not monitor.cold_start
    unknown = Monitor(TOOLS)
    for _ in range(9):
        unknown.turn(TEXT_CALL)
    assert not unknown.cold_start and unknown.warning() is None


def test_workers_add_up() -> None:
    total, workers = Monitor(), [Monitor(TOOLS) for _ in range(3)]
    for number, worker in enumerate(workers):
        for _ in range(number + 1):
            worker.turn(TEXT_CALL, parsed=[1])
        total.add({**worker.counts, "foreign": 7})
    assert total.counts["turns"] == total.counts["accepted"] == 6
    total.reset()
    assert not any(total.counts.values()) and f"{PREFIX}emitted_rate" not in total.metrics()


class Broken:
    def __iter__(self) -> Any:
        raise RuntimeError("no")

    def model_dump(self, **_: Any) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("text", "tools", "parsed"),
    [
        (None, TOOLS, []),
        (3, None, None),
        ("\ud800" * 9 + "<tool_call>" * 900, TOOLS, []),
        ("{" * 20_000, TOOLS, []),
        (TEXT_CALL, [Broken()], []),
        (TEXT_CALL, [None, 3, "x"], []),
        (TEXT_CALL, TOOLS, Broken()),
        (TEXT_CALL, 7, []),
    ],
)
def test_it_never_raises(text: Any, tools: Any, parsed: Any) -> None:
    monitor = Monitor()
    monitor.turn(text, tools, parsed)
    monitor.turn(TEXT_CALL, TOOLS, [1])
    assert monitor.counts["turns"] == 2 and monitor.counts["accepted"] >= 1


def test_every_metric_is_documented() -> None:
    monitor = Monitor(TOOLS)
    monitor.turn(TEXT_CALL, parsed=[1])
    for name in monitor.metrics():
        assert name.removeprefix(PREFIX) in (room.__doc__ or ""), name
    assert set(monitor.counts) == set(COUNTERS)


def test_tools_of_many_prompts_are_told_apart() -> None:
    monitor = Monitor()
    for number in range(200):
        tools = [{"type": "function", "function": {"name": f"tool_{number}", "parameters": {}}}]
        monitor.turn(f'<tool_call>{{"name": "tool_{number}", "arguments": {{}}}}</tool_call>', tools, [1])
    assert monitor.counts["emitted_valid"] == 200
