"""Two archives of one model's first turns: served with a parser of another dialect, and with its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from truecall.replay.forms import FORMS

from .recorded import TOOLS

CITIES = ("Oslo", "Lisbon", "Rome", "Lima", "Kyiv")

PARSER = '''
import json
import re

BLOCK = re.compile(r"<tool_call>\\n(.*?)\\n</tool_call>", re.DOTALL)

def parse(text, tools):
    """Reads hermes blocks, all or nothing, as a server's parser would."""
    try:
        calls = [json.loads(block) for block in BLOCK.findall(text)]
    except ValueError:
        return [], text
    return calls, (text if not calls else text[: text.find("<tool_call>")])
'''


def write(folder: Path, turns: int = 40) -> tuple[Path, Path]:
    """(mismatched, matched): the same answers, written as fences and bare objects, and as hermes blocks.

    Every fifth turn is prose. In the mismatched archive one call has a payload that does not parse, another lacks an
    argument that the schema requires.
    """
    bare, fenced = FORMS["bare_json"]["bare_json"], FORMS["fenced_json"]["fenced_json"]
    hermes = FORMS["hermes"]["hermes"]
    one, other = [], []
    for number in range(turns):
        if number % 5 == 4:
            text = other_text = "It will be fine."
        else:
            call: list[tuple[str, dict[str, Any]]] = [
                ("get_weather", {"city": CITIES[number % 5], "days": number})
            ]
            text, other_text = (fenced if number % 2 else bare)(call), hermes(call)
        if number == 0:
            text = text.replace("}}", "}")
        if number == 1:
            text = text.replace('"city"', '"town"')
        one.append(_line(number, text))
        other.append(_line(number, other_text))
    mismatched, matched = folder / "mismatched.jsonl", folder / "matched.jsonl"
    mismatched.write_text("".join(one), encoding="utf-8")
    matched.write_text("".join(other), encoding="utf-8")
    return mismatched, matched


def _line(number: int, text: str) -> str:
    messages = [
        {"role": "user", "content": "What is the weather?"},
        {"role": "assistant", "content": text},
        {"role": "user", "content": "Thank you."},
        {"role": "assistant", "content": "You are welcome."},
    ]
    return json.dumps({"id": number, "messages": messages, "tools": TOOLS, "model": "m"}) + "\n"
