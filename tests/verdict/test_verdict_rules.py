"""The tables of rules hold together, and each rule is shown by a case or a test."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_verdict_cases import ROWS, verdict_of

from truecall import judge, stacks
from truecall.classify import LEGAL, RULES, SEVERITY
from truecall.classify.rules import BY_ID, CALL_EMISSIONS, EMISSION_SEVERITY, Rule
from truecall.records import Delivery, Emission, Verdict
from truecall.stacks import refusals_status

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STATUS_RULES = {
    *(refusal.rule for refusal in refusals_status.BY_STATUS.values()),
    *(
        getattr(refusals_status, name).rule
        for name in ("CLIENT_ERROR", "SERVER_ERROR", "ERROR_EVENT", "HTML")
    ),
    refusals_status.REDIRECT.rule,
}
KNOWN_RULES = {*BY_ID, *STATUS_RULES, *(pattern.rule for pattern in stacks.patterns())}


def assert_legal(verdict: Verdict) -> None:
    """The triple, and every call's, is in the tables."""
    for part in (verdict, *verdict.calls):
        assert part.rule in KNOWN_RULES
        assert part.delivery in LEGAL[part.emission], (part.emission, part.delivery, part.rule)
    if verdict.calls:
        assert all(call.delivery in SEVERITY for call in verdict.calls)
    if verdict.emission in CALL_EMISSIONS and verdict.delivery is Delivery.NOTHING:
        assert verdict.rule == "call.asked_as_text"


def test_ids_are_unique() -> None:
    assert len(BY_ID) == len(RULES)


def test_every_emission_and_every_delivery_has_a_place() -> None:
    assert set(LEGAL) == set(Emission)
    assert set().union(*LEGAL.values()) == set(Delivery)
    call_deliveries = set().union(*(LEGAL[emission] for emission in CALL_EMISSIONS))
    assert call_deliveries | {Delivery.PHANTOM} == set(SEVERITY)
    assert set(EMISSION_SEVERITY) > CALL_EMISSIONS


def functions() -> dict[str, str]:
    """Test functions of this folder by name, with their source."""
    found: dict[str, str] = {}
    for path in HERE.glob("test_*.py"):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                found[node.name] = ast.get_source_segment(source, node) or ""
    return found


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_each_rule_is_shown(rule: Rule) -> None:
    if rule.case.startswith("test:"):
        name = f"test_{rule.case.removeprefix('test:')}"
        source = functions()[name]
        if name == "test_failures":
            source = (HERE / "test_verdict_turns.py").read_text("utf-8")
        assert f'"{rule.id}"' in source
        return
    verdict = verdict_of(next(row for _, row in ROWS if row["id"] == rule.case))
    assert rule.id in {verdict.rule, *(call.rule for call in verdict.calls)}


@pytest.mark.parametrize(("file", "row"), ROWS, ids=[row["id"] for _, row in ROWS])
def test_cases_are_legal(file: str, row: dict[str, Any]) -> None:
    assert_legal(verdict_of(row))


_LINES = (HERE.parent / "stacks" / "error_texts.jsonl").read_text("utf-8").splitlines()
ERROR_TEXTS: list[dict[str, Any]] = [json.loads(line) for line in _LINES]


@pytest.mark.parametrize("row", ERROR_TEXTS, ids=[f"{i}-{r['rule']}" for i, r in enumerate(ERROR_TEXTS)])
def test_known_errors_are_legal(row: dict[str, Any]) -> None:
    body = {"error": {"message": row["text"], "type": "error", "code": row["status"]}}
    verdict = judge(row["status"], body, None)
    assert_legal(verdict)
    assert verdict.emission is not Emission.NO_CALL
    if row["ran"] is False:
        assert verdict.emission is Emission.NOT_RUN
        assert not verdict.flags.produced
    else:
        assert verdict.emission is not Emission.NOT_RUN


@pytest.mark.parametrize(
    "status", [s for s in range(300, 600) if s in refusals_status.BY_STATUS or s % 50 == 0]
)
def test_statuses_are_legal(status: int) -> None:
    verdict = judge(status, b"", None)
    assert_legal(verdict)
    assert verdict.emission in (Emission.NOT_RUN, Emission.UNKNOWN)


def test_the_tables_in_the_docs_are_these() -> None:
    script = ROOT / "scripts" / "make_docs.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
