"""Small BFCL snapshots made here, in the layout that BFCL writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("TRUECALL_SHARED") or Path(__file__).resolve().parents[3] / "shared")
BFCL = SHARED / "data" / "bfcl"
needs_published = pytest.mark.skipif(
    not BFCL.is_dir(), reason="the published BFCL data are not beside the project"
)

WEATHER = {
    "name": "weather.now",
    "description": "Current weather.",
    "parameters": {
        "type": "dict",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "where": {"type": "dict"}},
        "required": ["city"],
    },
}
ANSWER = [
    {"weather.now": {"city": ["Oslo", "Oslo, Norway"], "days": [3, ""], "where": [{"lat": [59.9]}, ""]}}
]

COLUMNS = (
    "Rank,Overall Acc,Model,Model Link,Non-Live AST Acc,Live Acc,Multi Turn Acc,Web Search Acc,Memory Acc,"
    "Relevance Detection,Irrelevance Detection"
)


def lines(path: Path, values: list[Any]) -> Path:
    """Writes JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def results(
    root: Path, model: str, category: str, stored: dict[str, Any], *, group: str = "non_live"
) -> Path:
    """A result file; ``stored`` maps ids to results, or to whole lines where the value has an id."""
    rows = []
    for index, (ident, value) in enumerate(stored.items()):
        whole = isinstance(value, dict) and "id" in value
        rows.append(value if whole else {"id": ident, "result": value, "output_token_count": 10 + index})
    return lines(root / "result" / model / group / f"BFCL_v4_{category}_result.json", rows)


def scores(
    root: Path, model: str, category: str, total: int, wrong: list[dict[str, Any]], *, group: str = "non_live"
) -> Path:
    """A score file with its header."""
    right = total - len(wrong)
    head = {"accuracy": right / total, "correct_count": right, "total_count": total}
    rows = [{"valid": False, "test_category": category, **line} for line in wrong]
    return lines(root / "score" / model / group / f"BFCL_v4_{category}_score.json", [head, *rows])


def wrong_ast(ident: str, kind: str, raw: Any, decoded: Any = None, answer: Any = None) -> dict[str, Any]:
    """A line of an AST category's score file."""
    line = {
        "id": ident, "error": ["said"], "error_type": kind, "prompt": {"id": ident, "function": [WEATHER]},
        "model_result_raw": raw, "possible_answer": ANSWER if answer is None else answer,
    }  # fmt: skip
    return line if decoded is None else {**line, "model_result_decoded": decoded}


def table(root: Path, rows: list[tuple[str, float, tuple[float, ...], float]], header: str = COLUMNS) -> Path:
    """An overall table.

    A row is (model, overall, (non-live, live, multi-turn, web, memory, irrelevance), relevance).
    """
    root.mkdir(parents=True, exist_ok=True)
    out = [header]
    for rank, (model, overall, (non_live, live, turns, web, memory, irrelevance), relevance) in enumerate(
        rows, 1
    ):
        cells = [non_live, live, turns, web, memory, relevance, irrelevance]
        out.append(
            f"{rank},{overall:.2f}%,{model},https://example.org," + ",".join(f"{c:.2f}%" for c in cells)
        )
    path = root / "data_overall.csv"
    path.write_text("\n".join(out), encoding="utf-8")
    return path
