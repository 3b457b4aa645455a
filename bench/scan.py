"""Throughput and memory of `truecall scan`, beside the floor: a typed decode and one marker pass over the same text.

    python bench/scan.py [--mb 1000] [--workers 0] [--dir DIR] [--rounds 3] [--ray] [--check]

The file of conversations is made from a seed (system, user, model and tool messages, a tool list; one model turn
in three holds a structured call, one in forty a call left in the text, the rest prose and code). The floor decodes
every line with msgspec into structs that hold role, content and tool calls, and lets one aho-corasick automaton
of call markers run over every model text, in the same number of processes, each on its share of the same blocks.
Both run in turns. Memory is the sum of the peaks of the process and its workers.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import ahocorasick_rs
import msgspec

from corpora import TOOLS, _code, _prose
from truecall.scan import ScanOptions, scan
from truecall.scan.run import cores

BLOCK = 4 << 20
MARKERS = [
    "<tool_call>",
    "<function=",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "```json",
    '{"name"',
    "Action:",
    "<invoke",
]
GOAL, MEMORY = 0.5, 300.0


class Message(msgspec.Struct):
    role: str
    content: str | None = None
    tool_calls: list[Any] | None = None


class Conversation(msgspec.Struct):
    messages: list[Message]


# ------------------------------------------------------------------------------------- the file


def conversation(rng: random.Random, number: int) -> bytes:
    """One line: a system prompt, two to four rounds of user, call, result and answer."""
    messages: list[Any] = [{"role": "system", "content": _prose(rng, 600)}]
    for turn in range(rng.randrange(2, 5)):
        messages.append({"role": "user", "content": _prose(rng, rng.randrange(80, 400))})
        kind = rng.random()
        arguments = json.dumps({"city": rng.choice(("Oslo", "Lisbon")), "days": rng.randrange(9)})
        if kind < 0.5:
            call = {
                "id": f"c{turn}",
                "type": "function",
                "function": {"name": "get_weather", "arguments": arguments},
            }
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": _prose(rng, 700)})
        elif kind < 0.54:
            text = f'<tool_call>\n{{"name": "get_weather", "arguments": {arguments}}}\n</tool_call>'
            messages.append({"role": "assistant", "content": text})
            continue
        answer = _prose(rng, rng.randrange(200, 1600))
        if kind > 0.8:
            answer += "\n" + _code(rng, 12)
        messages.append({"role": "assistant", "content": answer})
    entry = {
        "id": f"e{number}",
        "model": rng.choice(("model-a", "model-b")),
        "tools": TOOLS,
        "messages": messages,
    }
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


def make(path: Path, size: int, seed: int = 1) -> None:
    """A file of ``size`` bytes: 4,000 different conversations, over and over under new numbers."""
    rng = random.Random(seed)
    lines = [conversation(rng, number) for number in range(4000)]
    written = number = 0
    with path.open("wb") as file:
        while written < size:
            line = lines[number % len(lines)].replace(b'"id": "e', b'"id": "e%d-' % number, 1)
            file.write(line)
            written += len(line)
            number += 1


# ------------------------------------------------------------------------------------- the floor


def floor_block(job: tuple[str, int, int]) -> tuple[int, int]:
    """(model texts, markers found) in the lines that begin in a block."""
    path, start, end = job
    decode = msgspec.json.Decoder(Conversation).decode
    automaton = ahocorasick_rs.AhoCorasick(MARKERS)
    with Path(path).open("rb") as file:
        file.seek(start)
        data = file.read(end - start) + file.readline()
    if start:
        data = data.partition(b"\n")[2]
    texts = hits = 0
    for line in data.split(b"\n"):
        if not line:
            continue
        for message in decode(line).messages:
            if message.role == "assistant" and message.content:
                texts += 1
                hits += len(automaton.find_matches_as_indexes(message.content))
    return texts, hits


def warm(_: int) -> int:
    return 0


class Floor:
    """The floor's processes, started once."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
        list(self.pool.map(warm, range(workers * 2)))

    def run(self, path: Path) -> float:
        size = path.stat().st_size
        jobs = [(str(path), start, min(size, start + BLOCK)) for start in range(0, size, BLOCK)]
        begun = time.perf_counter()
        found = list(self.pool.map(floor_block, jobs))
        assert sum(texts for texts, _ in found) > 0
        return time.perf_counter() - begun


def peak_mb() -> float:
    """Peak resident memory of this process and of its largest child, in MB (Linux counts in kB)."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return (own + child * cores()) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ray", action="store_true", help="Ray on local workers beside the process pool.")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    workers = arguments.workers or cores()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        path = Path(folder) / "chat.jsonl"
        make(path, arguments.mb << 20)
        options = ScanOptions(workers=workers, by=("model",))
        ours: list[float] = []
        floors: list[float] = []
        floor = Floor(workers)
        for _ in range(arguments.rounds):
            floors.append(floor.run(path))
            begun = time.perf_counter()
            tally = scan([str(path)], options)
            ours.append(time.perf_counter() - begun)
        floor.pool.shutdown()
        memory = peak_mb()
        ratio = min(floors) / min(ours)
        paired = statistics.median(f / o for f, o in zip(floors, ours, strict=True))
        size = path.stat().st_size / 1e6
        print(f"{size:,.0f} MB, {tally.turns:,} turns, {workers} processes")
        print(f"floor {size / min(floors):,.0f} MB/s, scan {size / min(ours):,.0f} MB/s (start-up included)")
        print(f"scan / floor {ratio:.2f} (best), {paired:.2f} (paired median); goal {GOAL}")
        print(f"peak memory {memory:,.0f} MB; goal under {MEMORY:,.0f}")
        met = ratio >= GOAL and memory < MEMORY
        if arguments.ray:
            met = ray_beside(path, options, arguments.rounds) and met
    return 0 if met or not arguments.check else 1


def ray_beside(path: Path, options: ScanOptions, rounds: int) -> bool:
    """Ray Data over the same file with as many workers, by turns with the pool; True within 1.3 of the pool.

    What a file of one block takes is the start-up of either, and is taken off.
    """
    from truecall.scan.on_ray import scan_on_ray, start

    small = path.with_name("block.jsonl")
    make(small, BLOCK - (1 << 20))
    start(None, options.workers)
    scan_on_ray([str(small)], options)  # the first run starts the workers' processes and imports
    took: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, run in (("Ray", scan_on_ray), ("pool", scan)):
            for file in (small, path):
                begun = time.perf_counter()
                run([str(file)], options)
                took.setdefault(f"{name} {file.name}", []).append(time.perf_counter() - begun)
    best = {name: min(times) for name, times in took.items()}
    print(", ".join(f"{name} {seconds:.2f} s" for name, seconds in best.items()))
    ray, pool = (best[f"{name} {path.name}"] - best[f"{name} {small.name}"] for name in ("Ray", "pool"))
    print(f"Ray / pool, start-up apart: {ray / pool:.2f}; goal 1.3")
    return ray <= 1.3 * pool


if __name__ == "__main__":
    sys.exit(main())
