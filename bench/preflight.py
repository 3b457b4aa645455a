"""What a preflight costs by itself: its own CPU time a request, beside a bare aiohttp client that sends the same.

python bench/preflight.py [--rounds N]

The server is the tests' fake engine in another process, which answers at once. Both clients send the same
requests in turn, round by round; the table gives CPU milliseconds of this process per request.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path

import aiohttp

from truecall import preflight
from truecall.client import Client
from truecall.config import resolve
from truecall.records import Exchange

ROOT = Path(__file__).parent.parent


class Recording(Client):
    """A client that keeps what it sent, so that the floor can send it again."""

    sent: list[tuple[str, str, bytes]]

    async def send(self, method: str, target: str, **options: object) -> Exchange:  # type: ignore[override]
        exchange = await super().send(method, target, **options)  # type: ignore[arg-type]
        self.sent.append((method, exchange.request.url, exchange.request.body))
        return exchange


async def ours(base_url: str) -> tuple[float, list[tuple[str, str, bytes]]]:
    async with Recording(resolve(base_url, environ={})) as client:
        client.sent = []
        began = time.process_time()
        report = await preflight.run(client)
        spent = time.process_time() - began
        assert report.state == "READY", report.answer
        return spent, client.sent


async def floor(requests: list[tuple[str, str, bytes]]) -> float:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        began = time.process_time()
        for method, url, body in requests:
            async with session.request(method, url, data=body or None) as response:
                await response.read()
        return time.process_time() - began


async def measure(base_url: str, rounds: int) -> None:
    await ours(base_url)  # imports and first use are not the preflight's cost
    mine: list[float] = []
    bare: list[float] = []
    count = 0
    for _ in range(rounds):
        spent, requests = await ours(base_url)
        count = len(requests)
        mine.append(1000 * spent / count)
        bare.append(1000 * await floor(requests) / count)
    own = [a - b for a, b in zip(mine, bare, strict=True)]
    print(f"{count} requests a preflight, {rounds} rounds, CPU ms per request: median (min to max)")
    for name, values in (("preflight", mine), ("bare aiohttp", bare), ("difference", own)):
        print(f"  {name:14} {statistics.median(values):6.2f} ({min(values):.2f} to {max(values):.2f})")
    print(f"  ratio          {statistics.median(mine) / statistics.median(bare):6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.fault_server", "--scenario", "engine-good"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        asyncio.run(measure(server.stdout.readline().strip(), options.rounds))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
