"""Colours and type of the charts: the page's own light tokens, and how names from outside become labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

from truecall.pages import asset
from truecall.report.words import seen

_TOKEN: Final = re.compile(r"--([\w-]+): (#[0-9a-f]{6})\b")
_USED: Final = ("paper", "ink", "quiet", "line", "series-1", "series-2", "series-3", "series-4", "bad")

FONT: Final = "sans-serif"
LABEL: Final = 260  # pixels for the names of groups
LONGEST: Final = 34  # characters of a name

SHAPES: Final = ("circle", "square", "triangle-up", "diamond")
"""By series, so that no one has to tell them apart by colour."""

DARK_TEXT, LIGHT_TEXT = "#000000", "#ffffff"
"""Text on a shaded cell: the cell keeps its colour in the dark, so its text must."""

TONES: Final = {
    **dict.fromkeys(("surfaced", "native call", "taken", "returned", "right", "ABSTAINED"), "series-1"),
    **dict.fromkeys(("leaked", "text call", "text", "in_text", "no_envelope", "MALFORMED"), "series-2"),
    **dict.fromkeys(
        ("erased", "rejected", "server_error", "request_failed", "SERVING_ERROR", "failed", "unreachable"),
        "bad",
    ),
    **dict.fromkeys(("mangled", "damaged", "phantom", "CALLED", "bad_payload"), "series-4"),
    **dict.fromkeys(("valid", "solved", "stream_loss"), "series-3"),
}
"""The token of an outcome. What is not listed is neither good nor a loss, and grey."""


ORDER: Final = ("series-1", "series-3", "series-2", "bad", "series-4", "quiet")
"""How outcomes follow each other in a bar: well, lost, failed, nothing."""


@cache
def tokens() -> dict[str, str]:
    """The light colours of the style sheet, by name."""
    root = asset("truecall.pages", "style.css").split("}", 1)[0]
    return {name: colour for name, colour in _TOKEN.findall(root) if name in _USED}


def series(number: int) -> str:
    """The colour of the n-th series."""
    return tokens()[f"series-{number % 4 + 1}"]


def tone(kind: str) -> str:
    """The colour of an outcome."""
    return tokens()[TONES.get(kind, "quiet")]


def ordered(kinds: Iterable[str]) -> list[str]:
    """Kinds of outcomes, each once: what went well first, then what was lost, failed, or nothing."""
    return sorted(dict.fromkeys(kinds), key=lambda kind: ORDER.index(TONES.get(kind, "quiet")))


def fill(kind: str, kinds: Sequence[str]) -> str:
    """The colour of a kind among others: where kinds share a tone, the later ones are lighter."""
    place = _place(kind, kinds)
    return tone(kind) if not place else f"{tone(kind)}{max(0x28, 0x98 - 0x28 * place):02x}"


def ink(kind: str, kinds: Sequence[str]) -> str:
    """The colour of text on it."""
    return tokens()["ink" if _place(kind, kinds) else "paper"]


def _place(kind: str, kinds: Sequence[str]) -> int:
    alike = [other for other in kinds if tone(other) == tone(kind)]
    return alike.index(kind)


def shade(value: float) -> tuple[str, str]:
    """The colour of a cell by its value from 0 to 1, and that of the text in it."""
    light, dark = (234, 241, 248), (11, 74, 138)
    value = min(1.0, max(0.0, value))
    mixed = [round(a + (b - a) * value) for a, b in zip(light, dark, strict=True)]
    bright = _luminance(*(part / 255 for part in mixed)) > 0.179  # there black and white are read alike
    return "#{:02x}{:02x}{:02x}".format(*mixed), DARK_TEXT if bright else LIGHT_TEXT


def _luminance(red: float, green: float, blue: float) -> float:
    """WCAG's relative luminance of a colour."""
    parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in (red, green, blue)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def labels(names: Iterable[str]) -> dict[str, str]:
    """A label for each name: nothing in it that can't be seen, cut to size, and no two alike."""
    made: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        if name in made:
            continue
        label = seen(name)
        if len(label) > LONGEST:  # names from one place begin alike: their ends are kept, too
            label = f"{label[: LONGEST // 2 - 1]}…{label[-LONGEST // 2 :]}"
        number = 2
        unique = label
        while unique in taken:
            unique, number = f"{label} ({number})", number + 1
        taken.add(unique)
        made[name] = unique
    return made


def config() -> dict[str, Any]:
    """What all charts share."""
    colours = tokens()
    text = {
        "labelColor": colours["ink"],
        "titleColor": colours["quiet"],
        "labelFontSize": 12,
        "titleFontSize": 12,
    }
    return {
        "background": None,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            **text,
            "domain": False,
            "ticks": False,
            "gridColor": colours["line"],
            "titleFontWeight": "normal",
            "labelPadding": 6,
            "titlePadding": 8,
            "labelLimit": LABEL,
        },
        "legend": {
            **text,
            "orient": "top",
            "title": None,
            "symbolSize": 80,
            "labelLimit": LABEL,
            "columnPadding": 18,
        },
        "title": {"color": colours["ink"], "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 8},
        "text": {"color": colours["ink"], "fontSize": 12},
    }
