"""Figures as files for a paper: SVG and PDF on white. Needs the extra ``report``."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from truecall.report.charts.svg import file_pdf, file_svg
from truecall.report.data import Figure, ReportData


def drawn_figures(report: ReportData, folder: Path) -> tuple[dict[Path, bytes], dict[int, Path]]:
    """Every figure as SVG and PDF below ``folder``, by path; and the SVG's path of each, by the figure's ``id()``."""
    files, places = {}, {}
    for figure, name in named(report):
        places[id(figure)] = path = folder / f"{name}.svg"
        files[path] = file_svg(figure.chart).encode()
        files[folder / f"{name}.pdf"] = file_pdf(figure.chart)
    return files, places


def named(report: ReportData) -> list[tuple[Figure, str]]:
    """Each figure with its file's name, unlike the others: ``funnel``, ``funnel-2``."""
    times: Counter[str] = Counter()
    found = []
    for figure in report.figures():
        plain = re.sub(r"[^a-z0-9]+", "-", figure.name.lower()).strip("-")
        times[plain] += 1
        found.append((figure, plain if times[plain] == 1 else f"{plain}-{times[plain]}"))
    return found
