"""A run that is killed at any moment goes on to the same keys as an unbroken one.

At most the requests in flight are sent again, and marked.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.studies.conftest import connection, study
from truecall.run import runner
from truecall.run.result import read
from truecall.store import read_log

KILLS = 50
CONCURRENCY = 4
STUDY = study(
    seeds=6,
    conditions=["native", "text_tools"],
    limits={"turns": 12, "concurrency": CONCURRENCY, "nudges": 1},
)
Keys = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """A player in a process of its own, so that a killed run can't take it along."""
    command = [sys.executable, "-m", "tests.studies.player", "native", "0.004"]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def _start(path: Path, url: str) -> int:
    """A run in a child that is forked, not started: all modules are loaded in it already. Its process id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # on fork beside idle threads
        child = os.fork()
    if child:
        return child
    code = 1
    try:
        asyncio.run(runner.run(STUDY, path, connection(url)))
        code = 0
    finally:
        os._exit(code)


def _ended(child: int, within: float) -> int | None:
    """The child's exit code, or None where it still runs after ``within`` seconds."""
    deadline = time.monotonic() + within
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.002)


def exchanges(path: Path) -> Keys:
    return Counter(_key(line) for line in read_log(path) if line["kind"] == "exchange")


def _key(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["arm"], line["item"], line["seed"], line.get("sample"), line["turn"]


def check(path: Path, unbroken: Keys) -> tuple[int, int]:
    """The finished folder against an unbroken run's; returns how many requests were sent twice, and marked."""
    assert exchanges(path) == unbroken, "each key is completed once"
    episodes = Counter((line["arm"], line["seed"]) for line in read_log(path) if line["kind"] == "episode")
    assert set(episodes.values()) == {1} and len(episodes) == 12
    intents: dict[tuple[Any, ...], list[str]] = {}
    for line in read_log(path):
        if line["kind"] == "intent":
            intents.setdefault(_key(line), []).append(line.get("why", ""))
    again = 0
    for whys in intents.values():
        assert whys[0] == "" and all(why == "resent" for why in whys[1:]), whys
        again += len(whys) - 1
    return again, sum(whys.count("resent") for whys in intents.values())


def test_fifty_kills(tmp_path: Path, base_url: str) -> None:
    asyncio.run(runner.run(STUDY, tmp_path / "unbroken", connection(base_url)))
    unbroken = exchanges(tmp_path / "unbroken")
    assert set(unbroken.values()) == {1} and len(unbroken) > 60
    expected = [(a.name, a.episodes) for a in read(tmp_path / "unbroken").arms]
    chance = random.Random(5)
    kills = folders = again = 0
    while kills < KILLS:
        path = tmp_path / f"run{folders}"
        folders += 1
        in_flight = 0
        while True:
            child = _start(path, base_url)
            code = _ended(child, chance.uniform(0.03, 0.4))
            if code is not None:
                assert code == 0
                break
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            kills += 1
            in_flight += CONCURRENCY
        sent_again, marked = check(path, unbroken)
        assert sent_again == marked <= in_flight
        again += sent_again
        assert [(a.name, a.episodes) for a in read(path).arms] == expected
    assert again > 0, "no kill hit a request in flight: the test did not try what it is for"


async def test_an_interrupted_run_leaves_a_folder_that_goes_on(tmp_path: Path, player: Any) -> None:
    server = await player("native", delay=0.05)
    task = asyncio.create_task(runner.run(STUDY, tmp_path / "run", connection(server.base_url)))
    await asyncio.sleep(1.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.delay = 0.0
    outcome = await runner.run(STUDY, tmp_path / "run", connection(server.base_url))
    assert 0 < outcome.resent <= CONCURRENCY and outcome.left == 0
