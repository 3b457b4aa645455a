"""Results of vLLM's and SGLang's parsers on 76 texts, recorded when the engines were first run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).with_name("data") / "recorded.jsonl"

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "w",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "run_tests",
            "description": "t",
            "parameters": {
                "type": "object",
                "properties": {"code": {"type": "string"}},
                "required": ["code"],
            },
        },
    },
]


class Recorded(NamedTuple):
    """A text under one engine: the calls by parser, and the parsers that left neither call nor whole text."""

    engine: str
    case: str
    text: str
    calls: dict[str, list[tuple[Any, Any]]]
    erased: set[str]


def recorded() -> list[Recorded]:
    """All records, both engines."""
    found = []
    for line in DATA.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        calls = {
            parser: [tuple(call) for call in json.loads(given)]
            for given, parsers in row["calls"].items()
            for parser in parsers
        }
        engine = row["engine"].partition("-")[0]
        found.append(Recorded(engine, row["case"], row["raw"], calls, set(row["erased"])))
    return found


TEXTS = {row.case: row.text for row in recorded()}
