"""The measured coverage: the page, the table in the code and the measurement itself say the same."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from truecall.funnel.coverage import ENOUGH, FLOOR, MEASURED, POOLED, SHAPES, measured, measured_pooled
from truecall.stats import clopper_pearson, wilson

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "interval_coverage", ROOT / "scripts" / "interval_coverage.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def table(name: str) -> tuple[list[str], dict[int, tuple[float | None, ...]]]:
    """Column names and rows of a table of the page; None where it says that there is no interval."""
    page = (ROOT / "docs" / "coverage_of_intervals.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- table: {name} -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert found is not None
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in found[1].splitlines()]
    cells = {
        int(line[0]): [None if cell == "none" else float(cell) for cell in line[1:]] for line in lines[2:]
    }
    return lines[0][1:], {n: tuple(row) for n, row in cells.items()}


def test_the_code_holds_the_pages_table() -> None:
    names, rows = table("per_seed")
    assert tuple(names) == SHAPES
    assert rows == MEASURED
    assert {n: row[0] for n, row in table("pooled")[1].items()} == POOLED


def test_the_warnings_limit_follows_the_table() -> None:
    """``ENOUGH`` is the smallest size from which all shapes are held often enough."""
    enough = [size for size in MEASURED if all(min(MEASURED[s]) >= FLOOR for s in MEASURED if s >= size)]
    assert min(enough) == ENOUGH


@pytest.mark.parametrize("name", ["per_seed", "bca", "pooled", "exact", "paired", "others"])
def test_every_table_has_the_whole_grid(script: ModuleType, name: str) -> None:
    names, rows = table(name)
    assert names == [column for column, _ in script.TABLES[name]]
    assert tuple(rows) == script.SIZES


@pytest.mark.parametrize(("n", "p", "column"), [(8, 0.5, 2), (20, 0.1, 3)])
def test_enumerated_cells_are_measured_again(script: ModuleType, n: int, p: float, column: int) -> None:
    held = script.of_counts(lambda k, m: script.resampled_rate(k, m, "percentile"), n, p)
    assert round(100 * held, 1) == MEASURED[n][column]


def test_exact_intervals_hold_at_least_what_they_say(script: ModuleType) -> None:
    for n in (4, 10, 50):
        for p in (0.02, 0.1, 0.5):
            assert script.of_counts(clopper_pearson, n, p) >= 0.95
            assert script.of_pairs(script.combined, min(n, 10), p / 2, p / 3) >= 0.95
    assert script.of_counts(wilson, 8, 0.02) < 0.9  # and the measure can see one that does not


def test_the_sentence_takes_the_next_smaller_size() -> None:
    assert measured(9) == measured(8) != measured(10)
    assert measured(3) == measured(4)
    worst = min(MEASURED[8])
    assert f"{worst:.0f} %" in measured(8)


def test_pooled_rates_are_warned_of_where_the_table_says_so() -> None:
    assert f"{POOLED[8]:.0f} %" in measured_pooled(9)
    assert [n for n in POOLED if measured_pooled(n)] == [n for n in POOLED if POOLED[n] < FLOOR]
