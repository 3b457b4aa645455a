"""What the harness itself costs: CPU per turn at concurrency 64 against an instant server, the store included.

The server is a process of its own that answers every chat request with the same tool call, so that every episode
is a loop that is observed to its cap. Goals: under 1.5 ms of CPU a turn; memory flat over 100,000 turns. Exit 1
where one is missed.

    python bench/run.py [--turns N] [--cap TURNS] [--concurrency N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOAL_MS = 1.5
GOAL_GROWTH = 1.10  # resident memory at the end against that after the first tenth

ANSWER = json.dumps(
    {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "instant",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": None, "tool_calls": [{
                "id": "call00000", "type": "function",
                "function": {"name": "open_box", "arguments": "{\"code\": \"A-100\"}"},
            }],
        }}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320},
    }
).encode()  # fmt: skip
MODELS = b'{"object": "list", "data": [{"id": "instant", "object": "model"}]}'


class Instant(asyncio.Protocol):
    """Just enough of HTTP/1.1: whole requests with a content length, answers kept alive."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[:end].lower()
            at = head.find(b"content-length:")
            size = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.data) < end + 4 + size:
                return
            self.data = self.data[end + 4 + size :]
            known = head.startswith((b"post /v1/chat", b"get /v1/models"))
            body = ANSWER if head.startswith(b"post") else MODELS
            status = b"200 OK" if known else b"404 Not Found"
            self.transport.write(  # type: ignore[attr-defined]
                b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                % (status, len(body), body)
            )


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Instant, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def resident_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def stored_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def measure(port: int, turns: int, cap: int, concurrency: int) -> bool:
    from truecall.config import resolve
    from truecall.run import runner
    from truecall.run.study import checked

    limits = {"turns": cap, "loops": "observe", "concurrency": concurrency}
    episodes = turns // cap
    study = checked({"tasks": ["chain"], "seeds": episodes, "limits": limits}, "bench")
    done = 0
    marks: list[tuple[int, float, float]] = []
    began_cpu, began = time.process_time(), time.monotonic()

    def count(key: object, ended: object) -> None:
        nonlocal done
        done += cap
        if done % max(cap, turns // 10 // cap * cap) == 0:
            marks.append((done, time.process_time() - began_cpu, resident_mb()))

    with tempfile.TemporaryDirectory() as folder:
        await runner.run(
            study, Path(folder, "run"), resolve(f"http://127.0.0.1:{port}/v1", environ={}), on_episode=count
        )
        size = stored_bytes(Path(folder))
    cpu, wall = time.process_time() - began_cpu, time.monotonic() - began
    for at, spent, memory in marks:
        print(f"  {at:>8,} turns   {1e3 * spent / at:5.2f} ms CPU a turn   {memory:6.1f} MB resident")
    each, growth = 1e3 * cpu / done, marks[-1][2] / marks[0][2]
    load = os.getloadavg()[0]
    print(
        f"{done:,} turns, episodes of {cap}, concurrency {concurrency}: {each:.2f} ms CPU a turn (goal {GOAL_MS})"
    )
    print(f"memory {marks[0][2]:.1f} to {marks[-1][2]:.1f} MB ({growth:.2f}, goal {GOAL_GROWTH})")
    print(
        f"{wall:.1f} s, {done / wall:,.0f} turns a second, {size / done:,.0f} bytes stored a turn, load {load:.1f}"
    )
    return each < GOAL_MS and growth < GOAL_GROWTH


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--cap", type=int, default=10)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return 0
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stdin is not None
        port = int(server.stdout.readline())
        good = asyncio.run(measure(port, options.turns, options.cap, options.concurrency))
        server.stdin.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
