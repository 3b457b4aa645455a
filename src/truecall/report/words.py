"""How numbers are written in a report."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from truecall.records import Json
from truecall.stats import Interval


def points(value: float) -> str:
    """A difference in points, with its sign."""
    return f"{100 * value + 0.0:+.1f}"


def points_between(low: float, high: float) -> str:
    """A difference known within bounds."""
    return points(low) if low == high else f"{points(low)} to {points(high)}"


def limits(interval: Interval | None) -> str:
    """``[1.2, 3.4]`` in percent or points; empty without an interval."""
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]" if interval else ""


def counted(k: int, unknown: int, n: int) -> str:
    """``3 to 5 of 8``."""
    return f"{k} to {k + unknown} of {n}" if unknown else f"{k} of {n}"


def many(count: int, word: str) -> str:
    """``1 turn``, ``2 turns``."""
    return f"{count:,} {word}{'s' * (count != 1)}"


def tally(counts: Mapping[str, int], most: int = 12) -> str:
    """``valid 8, malformed 2``; what does not fit is counted."""
    shown = [f"{name} {count:,}" for name, count in list(counts.items())[:most]]
    return ", ".join(shown) + (f" and {len(counts) - most} more" if len(counts) > most else "")


def value(thing: Json) -> str:
    """A value of a card in words: a run of numbers as its ends, an object as its fields."""
    if isinstance(thing, bool):
        return "yes" if thing else "no"
    if isinstance(thing, dict):
        return ", ".join(f"{name} {value(item)}" for name, item in thing.items())
    if isinstance(thing, Sequence) and not isinstance(thing, str):
        items = list(thing)
        if (
            len(items) > 2
            and all(isinstance(i, int) for i in items)
            and items == list(range(items[0], items[-1] + 1))
        ):
            return f"{items[0]} to {items[-1]}"
        return ", ".join(value(item) for item in items)
    return "none" if thing is None else str(thing)


def size(count: int) -> str:
    """Bytes in words."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def seen(text: str) -> str:
    """Foreign text on one line, for SVG and Markdown: what can't be seen stands as its code point."""
    return "".join(char if _visible(char) else f"\\u{ord(char):04x}" for char in text)


def _visible(char: str) -> bool:
    return char == " " or unicodedata.category(char)[0] not in "CZ"
