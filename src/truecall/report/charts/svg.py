"""Charts as SVG and PDF through vl-convert, and as SVG inside a page. Needs the extra ``report``."""

from __future__ import annotations

from typing import Any, Final
from xml.etree import ElementTree

import vl_convert

from truecall.report.charts import style
from truecall.report.charts.draw import spec
from truecall.report.charts.kinds import Chart
from truecall.report.words import seen

_SVG: Final = "http://www.w3.org/2000/svg"
_KEPT: Final = frozenset(
    {
        "width",
        "height",
        "viewBox",
        "fill",
        "fill-opacity",
        "stroke",
        "stroke-width",
        "stroke-opacity",
        "stroke-miterlimit",
    }
    | {
        "stroke-dasharray",
        "opacity",
        "transform",
        "d",
        "x",
        "y",
        "x1",
        "x2",
        "y1",
        "y2",
        "cx",
        "cy",
        "r",
        "dx",
        "dy",
    }
    | {"text-anchor", "font-family", "font-size", "font-weight", "font-style", "display"}
)
"""Attributes that draw. The rest (ids, classes, roles of single marks) is left out of pages."""


def file_svg(chart: Chart) -> str:
    """The chart as an SVG file on white, for a paper."""
    return str(vl_convert.vegalite_to_svg(_on_white(chart)))


def file_pdf(chart: Chart) -> bytes:
    """The chart as a PDF file on white."""
    return bytes(vl_convert.vegalite_to_pdf(_on_white(chart)))


def _on_white(chart: Chart) -> dict[str, Any]:
    made = spec(chart)
    made["config"]["background"] = "#ffffff"
    return made


def page_svg(chart: Chart, label: str) -> str:
    """The chart as one ``<svg>`` element for a page: its colours are the page's variables, its type the page's.

    It holds shapes and text alone: no style, no script, no reference. ``label`` names it to those who can't see it.
    """
    root = ElementTree.fromstring(vl_convert.vegalite_to_svg(spec(chart)))
    variables = {colour: f"var(--{name})" for name, colour in style.tokens().items()}
    _clean(root, variables)
    root.set("role", "img")
    root.set("aria-label", seen(label))
    root.set("class", "chart wide-chart" if float(root.get("width", "0")) > 480 else "chart")
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, variables: dict[str, str]) -> None:
    element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
    own = dict(element.attrib)
    element.attrib.clear()
    for name, value in own.items():
        if name in ("fill", "stroke"):
            _colour(element, name, value, variables)
        elif name == "font-family":
            element.set(name, "inherit")
        elif name in _KEPT:
            element.set(name, value)
    for child in list(element):
        if child.get("display") == "none" or child.get("d") == "":
            element.remove(child)
        else:
            _clean(child, variables)


def _colour(element: ElementTree.Element, name: str, value: str, variables: dict[str, str]) -> None:
    """A colour of ours as its variable; an alpha in the last two digits becomes an opacity."""
    if value in variables or len(value) != 9:
        element.set(name, variables.get(value, value))
        return
    element.set(name, variables.get(value[:7], value[:7]))
    element.set(f"{name}-opacity", f"{int(value[7:], 16) / 255:.2f}")
