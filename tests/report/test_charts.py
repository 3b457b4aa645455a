"""Charts: what they draw, that nothing else is in them, and that they can be told apart and read."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest

from tests.report.hostile import NAME
from truecall.funnel import Step
from truecall.pages import asset
from truecall.report.charts import style
from truecall.report.charts.kinds import (
    Chart,
    Dot,
    Dots,
    Estimate,
    Forest,
    Funnel,
    Heat,
    HeatCell,
    Scatter,
    Slice,
    Spot,
    Stack,
)
from truecall.report.charts.svg import file_pdf, file_svg, page_svg

GROUPS = ("plain", NAME, "a name that is far too long for any chart, and then goes on", "")
STEPS = (Step(name="sent", k=8, unknown=0, n=8), Step(name="emitted", k=3, unknown=2, n=8))
CHARTS: dict[str, Chart] = {
    "funnel": Funnel(panels=tuple((group, STEPS) for group in GROUPS)),
    "forest": Forest(
        series=("naive", "emitted"),
        estimates=tuple(
            Estimate(group=group, series=series, low=low, high=high, interval=interval, n="8 turns")
            for group in GROUPS
            for series, low, high, interval in (("naive", 0.25, 0.5, (0.1, 0.6)), ("emitted", None, None, None))
        ),
        beside=tuple(
            Estimate(group=group, series="non-response", low=0.125, high=0.125, interval=None, n="8 turns")
            for group in GROUPS
        ),
    ),
    "dots": Dots(
        series=("observed",),
        dots=tuple(Dot(group=g, series="observed", name=f"{i}", value=i % 3 / 2) for g in GROUPS for i in range(9)),
        means=tuple((group, "observed", 0.5) for group in GROUPS),
    ),
    "values": Heat(
        cells=tuple(HeatCell(row=g, column=h, value=0.7, text="70.0 %") for g in GROUPS for h in GROUPS),
        row_title="arm",
        column_title="condition",
    ),
    "tones": Heat(
        cells=tuple(
            HeatCell(row=g, column="x", value=None, text=t)
            for g, t in zip(GROUPS, ("surfaced", "leaked", "erased", NAME), strict=True)
        ),
        row_title="dialect",
        column_title="stack",
        scale="tone",
    ),
    "stack": Stack(
        slices=tuple(
            Slice(group=g, kind=k, count=n)
            for g in GROUPS
            for n, k in enumerate(("native call", "no call", "empty", NAME), 1)
        ),
        unit="turns",
    ),
    "scatter": Scatter(x_title="x", y_title="y", spots=tuple(Spot(name=g, x=0, y=99, told=True) for g in GROUPS)),
}  # fmt: skip

_ELEMENTS = {"svg", "g", "path", "rect", "line", "text", "tspan", "title"}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_in_a_page_is_shapes_and_text_alone(name: str) -> None:
    made = page_svg(CHARTS[name], f"label {NAME}")
    root = ElementTree.fromstring(made)
    assert root.get("role") == "img" and (root.get("aria-label") or "").startswith("label evil<script>")
    assert {element.tag for element in root.iter()} <= _ELEMENTS
    names = set(itertools.chain.from_iterable(element.attrib for element in root.iter()))
    assert names.isdisjoint({"style", "id", "href", "onclick", "onload"})
    assert not any("url(" in value for element in root.iter() for value in element.attrib.values())
    shown = " ".join(element.text or "" for element in root.iter())
    assert "plain" in shown or name == "tones"
    assert "<script" in shown or "script" in shown  # as text
    colours = {element.get(k) for element in root.iter() for k in ("fill", "stroke")}
    assert colours.isdisjoint(style.tokens().values())  # the page's own variables stand in their place


@pytest.mark.parametrize("name", CHARTS)
def test_a_figure_of_a_paper_is_whole(name: str) -> None:
    svg = file_svg(CHARTS[name])
    assert ElementTree.fromstring(svg).tag.endswith("svg") and "var(" not in svg
    assert file_pdf(CHARTS[name]).startswith(b"%PDF")


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_a_table_too(name: str) -> None:
    grid = CHARTS[name].grid()
    assert grid.rows and all(len(row) == len(grid.head) for row in grid.rows)


def test_labels_are_unlike_each_other_and_visible() -> None:
    names = [*GROUPS, "x" * 60 + "1" + "y" * 60, "x" * 60 + "2" + "y" * 60, "\u202eb", "b"]
    made = style.labels(names)
    assert len(set(made.values())) == len(names)
    assert all(len(label) <= style.LONGEST + 4 and label.isprintable() for label in made.values())


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG's contrast of two colours."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_on_shaded_cells_can_be_read() -> None:
    least = min(contrast(*style.shade(step / 100)) for step in range(101))
    assert least >= 4.5


def test_shapes_stand_out_from_the_page() -> None:
    colours = style.tokens()
    for name in ("series-1", "series-2", "series-3", "series-4", "bad", "quiet", "ink"):
        assert contrast(colours[name], colours["paper"]) >= 3


def _colours(block: int) -> dict[str, str]:
    """The tokens of the style sheet's first (light) or second (dark) block of them."""
    roots = re.findall(r":root \{(.*?)\}", asset("truecall.pages", "style.css"), re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", roots[block]))


def _over(colour: str, alpha: float, back: str) -> str:
    parts = [
        round(int(colour[i : i + 2], 16) * alpha + int(back[i : i + 2], 16) * (1 - alpha)) for i in (1, 3, 5)
    ]
    return "#" + "".join(f"{part:02x}" for part in parts)


@pytest.mark.parametrize("block", [0, 1], ids=["light", "dark"])
def test_text_on_bars_can_be_read_in_both_schemes(block: int) -> None:
    shown, names = _colours(block), {colour: name for name, colour in style.tokens().items()}
    kinds = [
        "surfaced",
        "native call",
        "leaked",
        "text",
        "erased",
        "failed",
        "mangled",
        "no call",
        "empty",
        "truncated",
    ]
    for kind in kinds:
        fill, text = style.fill(kind, kinds), shown[names[style.ink(kind, kinds)]]
        alpha = int(fill[7:] or "ff", 16) / 255
        assert contrast(_over(shown[names[fill[:7]]], alpha, shown["paper"]), text) >= 4.5, kind


def test_unknown_outcomes_are_drawn_grey_and_ordered_last() -> None:
    kinds = style.ordered(["empty", "erased", "native call", "text call", "never heard of"])
    assert kinds == ["native call", "text call", "erased", "empty", "never heard of"]
    assert style.fill("never heard of", kinds) != style.fill("empty", kinds)
