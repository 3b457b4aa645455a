"""Texts for the benches: made from a seed, so that two runs read the same, and real ones where at hand."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Json = Any

TOOLS: list[Json] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name}.",
            "parameters": {"type": "object", "properties": properties, "required": list(properties)[:1]},
        },
    }
    for name, properties in (
        ("get_weather", {"city": {"type": "string"}, "days": {"type": "integer"}}),
        ("search_docs", {"query": {"type": "string"}, "limit": {"type": "integer"}}),
        ("run_shell", {"command": {"type": "string"}, "cwd": {"type": "string"}}),
        ("write_file", {"path": {"type": "string"}, "body": {"type": "string"}}),
    )
]

PLAIN = """
the model a server that it reads and text of in which we find two three some very long short answer question
because however when while after before result value number list table file folder command line error message
can should would is was are were has had time day weather city Oslo Lisbon (see above) however, fast slow 42
"""
WORDS = PLAIN.split()


class Corpus(NamedTuple):
    """Texts of one kind and the tool list that goes with each."""

    name: str
    texts: list[str]
    tools: list[Json]


def _sentence(rng: random.Random) -> str:
    words = rng.choices(WORDS, k=rng.randrange(6, 22))
    return " ".join(words).capitalize() + rng.choice((". ", ". ", "? ", ": ", ".\n"))


def _prose(rng: random.Random, size: int) -> str:
    parts = [_sentence(rng) for _ in range(size // 40)]
    return "".join(parts)[:size]


def _code(rng: random.Random, lines: int) -> str:
    made = [f"def step_{rng.randrange(99)}(items, limit={rng.randrange(9)}):"]
    made += [
        f"    items[{number}] = {{'key': [{number}, \"a\"], 'n': limit * {number}}}"
        for number in range(lines)
    ]
    return "```python\n" + "\n".join(made) + "\n```\n"


def _call(rng: random.Random) -> str:
    name, arguments = rng.choice(
        (
            ("get_weather", {"city": rng.choice(WORDS).title(), "days": rng.randrange(9)}),
            ("search_docs", {"query": _prose(rng, 90).strip(), "limit": rng.randrange(50)}),
            ("run_shell", {"command": f"ls -la | grep '{rng.choice(WORDS)}' > \"out.txt\"", "cwd": "."}),
            ("write_file", {"path": "a.py", "body": _code(rng, 4)}),
        )
    )
    payload = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{payload}\n</tool_call>"


def _hermes(rng: random.Random) -> str:
    return "\n".join(_call(rng) for _ in range(rng.choice((1, 1, 1, 2))))


def _mixed(rng: random.Random) -> str:
    parts = [_prose(rng, 300), _code(rng, 6), _prose(rng, 200)]
    if rng.random() < 0.5:
        parts += [
            "```json\n" + json.dumps({"status": "ok", "items": [1, 2, {"id": 3}]}, indent=2) + "\n```\n"
        ]
    if rng.random() < 0.5:
        parts.append(_call(rng))
    return "\n".join(parts)


def _long(rng: random.Random) -> str:
    parts: list[str] = []
    while sum(map(len, parts)) < 49_000:
        parts.append(_prose(rng, 1500) if rng.random() < 0.7 else _code(rng, 20))
    return "\n".join([*parts, _call(rng), _call(rng)])


def made(seed: int) -> list[Corpus]:
    """The four corpora of the goals: hermes calls, prose, mixed with fences, 50 kB texts."""
    rng = random.Random(seed)
    kinds: tuple[tuple[str, Callable[[random.Random], str], int], ...] = (
        ("calls", _hermes, 200),
        ("prose", lambda r: _prose(r, r.randrange(300, 2500)), 200),
        ("mixed", _mixed, 100),
        ("50 kB", _long, 10),
    )
    return [Corpus(name, [make(rng) for _ in range(count)], [TOOLS] * count) for name, make, count in kinds]


def real(paths: list[Path]) -> Corpus | None:
    """The texts of case files, each with its own tools; None where no file is there."""
    rows = [
        json.loads(line)
        for path in paths
        if path.is_file()
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    rows = [row for row in rows if isinstance(row.get("raw"), str) and row.get("kind", "text") == "text"]
    if not rows:
        return None
    return Corpus("real cases", [row["raw"] for row in rows], [row.get("tools") for row in rows])
