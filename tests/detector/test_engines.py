"""The texts that engines' parsers were compared on, labelled by hand before any parser ran."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from truecall import detect

ROWS = [
    json.loads(line) for line in Path(__file__).with_name("engines.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_reads_the_labelled_calls(row: dict[str, Any]) -> None:
    found = detect(row["raw"], row["tools"]).calls
    wanted = row["expected"]["calls"]
    assert [call.name for call in found] == [call["name"] for call in wanted]
    for call, label in zip(found, wanted, strict=True):
        if label["arguments"] is not None:
            # As JSON, because 2 == 2.0 and 1 == True in Python.
            assert json.dumps(call.reading(), sort_keys=True) == json.dumps(
                label["arguments"], sort_keys=True
            )
