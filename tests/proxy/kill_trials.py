"""Kills a recording proxy, its recorder or both at a random moment under load, and looks at what is left.

Where both were killed, another run in the same folder takes up what they left. Held to: every line is JSON but a
torn last one, which the next run cuts off; blobs are whole; no exchange is there twice; of the answers that clients
got whole none is missing.
``python -m tests.proxy.kill_trials --trials 200`` prints the count of each outcome.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.proxy.upstream import WEATHER, serving
from truecall.store import exchange_of

CLIENTS = 8


@dataclass
class Outcome:
    """``fault`` "" when all held. ``missing``: answered whole and not in the record."""

    answered: int
    recorded: int
    missing: int
    fault: str = ""


def trial(folder: Path, what: str, seed: int) -> Outcome:
    """One run that is killed (``what``: proxy, recorder, both) at a moment drawn with ``seed``."""
    answered = asyncio.run(_run(folder, what, random.Random(seed)))
    return _look(folder, answered)


async def _run(folder: Path, what: str, rng: random.Random) -> set[str]:
    answered: set[str] = set()
    async with serving() as upstream:
        proxy, port = await _start(upstream.url, folder)
        recorder = _child_of(proxy.pid)
        first = asyncio.Event()
        clients = [asyncio.create_task(_client(port, n, answered, first)) for n in range(CLIENTS)]
        await asyncio.wait_for(first.wait(), 60)
        await asyncio.sleep(rng.uniform(0, 0.3))
        if what in ("recorder", "both"):
            os.kill(recorder, signal.SIGKILL)
        if what in ("proxy", "both"):
            proxy.kill()
        else:
            await asyncio.sleep(0.3)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        if what == "recorder":
            proxy.send_signal(signal.SIGINT)
        await proxy.communicate()
        await asyncio.to_thread(_await_end, recorder)
        if what == "both":
            again, _ = await _start(upstream.url, folder)
            again.send_signal(signal.SIGINT)
            await again.communicate()
    return answered


async def _start(url: str, folder: Path) -> tuple[asyncio.subprocess.Process, int]:
    """A recording proxy and its port."""
    command = [sys.executable, "-m", "truecall", "record", "--upstream", url, "--out", str(folder)]
    proxy = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert proxy.stderr is not None
    line = (await proxy.stderr.readline()).decode()
    return proxy, int(line.split("127.0.0.1:")[1].split("/")[0].split(" ")[0])


async def _client(port: int, name: int, answered: set[str], first: asyncio.Event) -> None:
    """Sends requests over one connection; notes each whose answer came whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for count in range(100_000):
            mark = f"{name}-{count}"
            messages = [{"role": "user", "content": mark + " x" * (count % 5) * 1500}]
            body = json.dumps({"model": "m", "messages": messages, "tools": [WEATHER]}).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            got = await reader.readuntil(b"\r\n\r\n")
            length = int(got.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            answered.add(mark)
            first.set()
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


def _child_of(pid: int) -> int:
    """The recorder of a proxy: its only child."""
    for _ in range(200):
        tasks = Path(f"/proc/{pid}/task").glob("*/children")  # a thread of the proxy starts it
        children = [child for task in tasks for child in task.read_text().split()]
        if children:
            return int(children[0])
        time.sleep(0.01)
    raise AssertionError("no recorder was started")


def _await_end(pid: int) -> None:
    for _ in range(3000):
        state = Path(f"/proc/{pid}/stat")
        try:
            if state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.02)


def _look(folder: Path, answered: set[str]) -> Outcome:
    log = folder / "log.jsonl"
    data = log.read_bytes() if log.exists() else b""
    whole, _, torn = data.rpartition(b"\n")
    recorded: list[str] = []
    fault = ""
    for text in whole.split(b"\n") if whole else []:
        try:
            line = msgspec.json.decode(text)
            if line["kind"] == "exchange":
                body = msgspec.json.decode(exchange_of(folder, line).request.body)
                recorded.append(body["messages"][0]["content"].split(" ")[0])
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
    if torn:
        fault = fault or "a torn line was left"
    if len(recorded) != len(set(recorded)):
        fault = fault or "an exchange was recorded twice"
    missing = len(answered - set(recorded))
    if missing:
        fault = fault or f"{missing} answered exchanges are missing"
    return Outcome(len(answered), len(recorded), missing, fault)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as base:
        for seed in range(options.seed, options.seed + options.trials):
            what = ("proxy", "recorder", "both")[seed % 3]
            outcome = trial(Path(base) / str(seed), what, seed)
            counts[f"{what}: {outcome.fault or 'held'}"] += 1
            counts[f"{what}: answers"] += outcome.answered
            counts[f"{what}: answers missing"] += outcome.missing
            if outcome.fault:
                print(f"trial {seed}: {outcome}", flush=True)
            if seed % 20 == 19:
                print(dict(counts), flush=True)
    for name, count in sorted(counts.items()):
        print(f"{count:>8}  {name}")


if __name__ == "__main__":
    main()
