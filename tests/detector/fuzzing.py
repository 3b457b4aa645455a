"""Mutated and generated texts for the detector, and what must hold of every one of them.

A text is a function of (seed, number) alone, so that any failure can be made again.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from markers import FRAGMENTS, MARKERS

from truecall import Detector, detect
from truecall.records import Detection

Json = Any

TOOLS: list[Json] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
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
            "parameters": {"type": "object", "properties": {"code": {"type": "string"}}},
        },
    },
]
ODD_TOOLS: tuple[Json, ...] = (
    None,
    [],
    [{"name": "get_weather", "input_schema": {"type": "object"}}],
    [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "nonsense"}}}],
    [{"type": "function"}, None, 3, {"function": {"name": 5}}, {"name": "", "parameters": []}],
    {"name": "get_weather"},
)

WRAPS = (("<think>", "</think>"), ("```json\n", "\n```"), ('"', '"'), ("> ", ""), ("[", "]"), ("`", "`"))
SWAPS = (('"', "'"), ('"', '\\"'), ("\\", ""), ("\n", ""), ("\n", "\\n"), ("|", "｜"))

FILLER = "The list was read, and the next step is plain enough to go on with it now. "

Seed = tuple[str, Json]
"""A text and the tool list that goes with it."""

BUILT_IN: tuple[Seed, ...] = tuple((text, TOOLS) for text in FRAGMENTS if len(text) > 20)


def seeds(paths: Iterable[Path]) -> list[Seed]:
    """The texts of JSON-lines case files (``raw``, with ``tools``), after the built-in ones."""
    found = list(BUILT_IN)
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line) if line.strip() else {}
            if isinstance(row.get("raw"), str):
                found.append((row["raw"], row.get("tools", TOOLS)))
    return found


def _slice(rng: random.Random, text: str) -> tuple[int, int]:
    start = rng.randrange(len(text) + 1)
    return start, min(len(text), start + rng.choice((1, 1, 2, 5, 20, 80)))


def _generated(rng: random.Random) -> str:
    return "".join(
        rng.choice(MARKERS if rng.random() < 0.45 else FRAGMENTS) for _ in range(rng.randrange(1, 14))
    )


def _mutate(rng: random.Random, text: str, others: Sequence[Seed]) -> str:
    start, end = _slice(rng, text)
    kind = rng.randrange(13)
    if kind == 0:
        return text[:start] + text[end:]
    if kind == 1:
        return text[:end] + text[start:end] * rng.choice((1, 2, 7)) + text[end:]
    if kind in (2, 3):
        return text[:start] + rng.choice(MARKERS) + text[start:]
    if kind in (4, 5):
        return text[:start] + rng.choice(FRAGMENTS) + text[end:]
    if kind == 6:
        return text[:start]
    if kind == 7:
        return text[start:]
    if kind == 8:
        other = rng.choice(others)[0]
        return text[:start] + other[rng.randrange(len(other) + 1) :]
    if kind == 9:
        before, after = rng.choice(WRAPS)
        return before + text + after
    if kind == 10:
        return text.replace(*rng.choice(SWAPS))
    if kind == 11:
        return text[:start] + text[start:end].swapcase() + text[end:]
    return text[:start] + chr(rng.choice((rng.randrange(0x80), rng.randrange(0x110000)))) + text[end:]


def _long(rng: random.Random, corpus: Sequence[Seed]) -> str:
    """Several texts one after the other: a stream settles a call only when enough stands behind it."""
    parts = []
    for _ in range(rng.randrange(2, 7)):
        parts.append(rng.choice(corpus)[0] if rng.random() < 0.6 else FILLER * rng.randrange(1, 6))
        parts.append(rng.choice(("\n", "\n\n", " ", "", "</think>", "\n```\n")))
    return "".join(parts)


def make(seed: int, number: int, corpus: Sequence[Seed]) -> Seed:
    """Text ``number`` of the run ``seed``.

    A fifth is generated; the rest are cases mutated one to four times, one in seventeen of them several in a row.
    """
    rng = random.Random(f"{seed}:{number}")
    if rng.random() < 0.2:
        text, tools = _generated(rng), TOOLS
    else:
        text, tools = rng.choice(corpus)
        if rng.random() < 0.06:
            text += _long(rng, corpus)
        for _ in range(rng.choice((1, 1, 2, 4))):
            text = _mutate(rng, text, corpus)[:20_000]
    if rng.random() < 0.06:
        tools = rng.choice(ODD_TOOLS)
    return text, tools


def check_shape(text: str, found: Detection) -> None:
    """Spans partition ``text``; calls stand in it, in order and without overlap."""
    at = 0
    for span in found.spans:
        assert span.start == at and span.end > span.start, f"spans are no partition at {at}: {found.spans}"
        at = span.end
    assert at == len(text), f"spans end at {at} of {len(text)}"
    before = 0
    for call in found.calls:
        assert before <= call.span.start < call.span.end <= len(text), f"call out of place: {call.span}"
        before = call.span.start
        assert call.arguments is None or isinstance(call.arguments, dict)
        assert call.arguments is None or call.recovered is None, "a parsed payload needs no recovery"
    assert found.emitted == bool(found.calls)


def pieces(rng: random.Random, text: str) -> list[str]:
    """A way of cutting ``text``: by characters, by words as tokenizers do, or anywhere, with empty pieces too."""
    if rng.random() < 0.1 and len(text) <= 400:
        return list(text)
    if rng.random() < 0.2:
        return re.findall(r"\s?\w{1,6}|\W", text)
    cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.choice((1, 3, 8, 30))))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def check_split(
    text: str, tools: Json, parts: Sequence[str], whole: Detection, reasoning_open: bool | None = None
) -> None:
    """A text fed in ``parts`` ends in the whole text's result, and nothing said on the way is taken back."""
    reader = Detector(tools, reasoning_open=reasoning_open)
    said = [reader.feed(part) for part in parts]
    last = reader.finish()
    assert last == whole, f"split {[len(part) for part in parts]}: {last} is not {whole}"
    before = 0
    for early in said:
        count = len(early.calls)
        assert count >= before, f"settled calls taken back: {count} after {before}"
        assert early.calls == whole.calls[:count], f"taken back: {early.calls} of {whole.calls}"
        assert early.emitted in (None, whole.emitted), f"emitted {early.emitted} taken back"
        assert early.settled <= len(text)
        before = count


def check(text: str, tools: Json, rng: random.Random) -> Detection:
    """All of it for one text; with what is known of the prompt in three ways."""
    reasoning_open = rng.choice((None, None, False, True))
    found: Detection = detect(text, tools, reasoning_open=reasoning_open)
    check_shape(text, found)
    check_split(text, tools, pieces(rng, text), found, reasoning_open)
    return found
