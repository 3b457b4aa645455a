"""The judgement rules of docs/detector.md: each has a case here, and each case its rule there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from truecall.detector import detect

HERE = Path(__file__).parent
RULES: list[dict[str, Any]] = [
    json.loads(line) for line in (HERE / "rules.jsonl").read_text(encoding="utf-8").splitlines()
]
DOCS = HERE.parents[1] / "docs" / "detector.md"


@pytest.mark.parametrize("case", RULES, ids=[f"{i}-{r['rule']}" for i, r in enumerate(RULES)])
def test_rule(case: dict[str, Any]) -> None:
    found = detect(case["raw"], case["tools"])
    assert [[call.name, call.reading()] for call in found.calls] == case["calls"]
    if "tier" in case:
        assert {str(call.tier) for call in found.calls} == {case["tier"]}
    if "defects" in case:
        assert [(call.well_formed, call.arguments) for call in found.calls] == [(False, None)]
        assert [list(call.defects) for call in found.calls] == [case["defects"]]
    if "notes" in case:
        assert list(found.notes) == case["notes"]


CALL = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
OFFERED = [
    {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
]
LEADS: list[dict[str, Any]] = [
    json.loads(line) for line in (HERE / "leads.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("case", LEADS, ids=[case["lead"] for case in LEADS])
def test_lead(case: dict[str, Any]) -> None:
    """What the last words before a call make of it; markers of its own take more to undo."""
    forms = [f"```json\n{CALL}\n```", CALL]
    if case["act"]:
        forms.append(f"<tool_call>\n{CALL}\n</tool_call>")
    for form in forms:
        assert detect(f"{case['lead']}\n{form}", OFFERED).emitted is case["act"], form


def test_docs_and_cases_name_the_same_rules() -> None:
    text = DOCS.read_text(encoding="utf-8").partition("## Judgement")[2].partition("## Streams")[0]
    documented = set(re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE))
    assert documented == {case["rule"] for case in RULES}
