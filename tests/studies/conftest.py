"""Studies in tests: small ones, from plain data, against the player."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.studies.player import Mode, Player
from truecall.config import Connection, resolve
from truecall.run import runner
from truecall.run.result import RunResult, read
from truecall.run.runner import Outcome
from truecall.run.study import Study, checked

CHAIN = {"tasks": ["chain"], "seeds": 3, "limits": {"turns": 12}}


def study(**fields: Any) -> Study:
    """A study of the task chain with three seeds; ``fields`` replace or add to it."""
    return checked({**CHAIN, **fields}, "test")


def connection(base_url: str, timeout: float = 10) -> Connection:
    return resolve(base_url, timeout=timeout, environ={})


Start = Callable[..., Awaitable[Player]]


@pytest_asyncio.fixture
async def player() -> AsyncIterator[Start]:
    """Starts a player in a mode; all are stopped after the test."""
    started: list[Player] = []

    async def start(mode: Mode = "native", **options: Any) -> Player:
        server = await Player(mode, **options).__aenter__()
        started.append(server)
        return server

    yield start
    for server in started:
        await server.__aexit__()


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., Awaitable[tuple[RunResult, Outcome]]]:
    """Runs a study into a folder and reads it back."""

    async def run(
        what: Study, base_url: str, folder: str = "run", patience: float = 10, **options: Any
    ) -> tuple[RunResult, Outcome]:
        path = tmp_path / folder
        outcome = await runner.run(what, path, connection(base_url, patience), **options)
        return read(path), outcome

    return run
