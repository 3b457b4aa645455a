"""Runs after a module that used the browser: playwright's event loop must be gone by then."""

from __future__ import annotations

import asyncio


async def test_a_loop_of_its_own() -> None:
    assert asyncio.get_running_loop().is_running()
