"""What preflight's tests share: a preflight of one fake engine or faulty server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from tests.fault_server import FaultServer
from tests.faults.engine import Profile
from tests.faults.kinds import Scenario
from truecall import preflight
from truecall.client import Client
from truecall.config import resolve
from truecall.preflight.report import Report
from truecall.preflight.request_file import OwnRequest

Examine = Callable[..., Awaitable[Report]]


@pytest.fixture
async def examine() -> AsyncIterator[Examine]:
    """``await examine(profile_or_scenario, only=…, own=…, timeout=…)`` gives the report."""

    async def run(
        what: str | Profile | Scenario,
        *,
        only: Sequence[str] = (),
        own: OwnRequest | None = None,
        timeout: float = 20.0,  # noqa: ASYNC109 - an option of the connection
    ) -> Report:
        async with FaultServer(what) as server:
            connection = resolve(server.base_url, timeout=timeout, environ={})
            async with Client(connection) as client:
                return await preflight.run(client, only=only, own=own)

    yield run
