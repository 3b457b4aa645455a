"""How numbers are written in a report."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

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


def methods(intervals: Iterable[Interval | None]) -> str:
    """``95 % intervals: wilson.``, each method once; empty without any interval."""
    found = dict.fromkeys(interval.method for interval in intervals if interval)
    return f"95 % intervals: {'; '.join(found)}." if found else ""


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


def some(names: Sequence[str], most: int = 40) -> str:
    """``a, b, c``; what does not fit is counted."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


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
