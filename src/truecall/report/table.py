"""A report's numbers as CSV: one line for each number, with all that belongs to it."""

from __future__ import annotations

import csv
import io
from typing import Any

from truecall.report.data import Measure, ReportData

COLUMNS = ("section", *Measure.__struct_fields__)


def table(report: ReportData) -> str:
    """All numbers, tidy: rates and intervals are fractions, what is undefined is empty with a reason."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(COLUMNS)
    for section in report.sections:
        for measure in section.measures:
            writer.writerow([_safe(section.name), *(_safe(getattr(measure, name)) for name in COLUMNS[1:])])
    return target.getvalue()


def _safe(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula; None is empty."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return "" if value is None else value
