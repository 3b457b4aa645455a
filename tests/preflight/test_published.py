"""What programs read: the JSON report and the JUnit file, held to their goldens and to the published schema.

``UPDATE_GOLDENS=1 pytest tests/preflight/test_published.py`` writes the goldens again; then read the difference.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema_rs
import msgspec
import pytest

from tests.faults.engine import Profile
from tests.preflight.conftest import Examine
from truecall.preflight.junit import junit
from truecall.preflight.report import Report

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
GOLDENS: dict[str, str | Profile] = {
    "ready": Profile(),
    "closed_gate": Profile(gate=False),
    "erasing_parser": Profile(parser="qwen3_coder"),
    "llamacpp_without_tools": Profile(engine="llamacpp", template_renders_tools=False, required="ignored"),
    "no_answer": "nginx-502",
}
VOLATILE = {"created_at": 0, "seconds": 0, "warm_up_seconds": 0, "truecall": "x", "detector": "x"}


def masked(value: Any) -> Any:
    """The report without what differs from run to run: ports, times, versions."""
    if isinstance(value, dict):
        return {k: VOLATILE[k] if k in VOLATILE else masked(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [masked(v) for v in value]
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", value) if isinstance(value, str) else value


def same_as_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDENS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def as_json(report: Report) -> dict[str, Any]:
    return {"schema_version": report.schema_version, **msgspec.to_builtins(report)}


@pytest.mark.parametrize("name", GOLDENS)
async def test_json_and_junit_are_as_published(examine: Examine, name: str) -> None:
    report = await examine(GOLDENS[name], timeout=30.0)
    data = as_json(report)
    schema = json.loads((ROOT / "docs" / "schemas" / "preflight.json").read_text("utf-8"))
    jsonschema_rs.validator_for(schema).validate(data)
    same_as_golden(f"{name}.json", json.dumps(masked(data), indent=1, ensure_ascii=False) + "\n")
    stable = msgspec.convert(masked(data), Report)
    same_as_golden(f"{name}.junit.xml", junit(stable).decode() + "\n")


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda p: p.stem)
def test_a_golden_is_still_read_as_a_report(path: Path) -> None:
    """A report of an earlier version can be compared with as long as its schema version stands."""
    report = msgspec.convert(json.loads(path.read_text("utf-8")), Report)
    assert report.schema_version == 1 and report.probes


def test_the_published_schemas_are_those_of_the_records() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/make_schemas.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


async def test_junit_is_xml_whatever_a_server_wrote(examine: Examine) -> None:
    report = await examine(Profile(writes="\x00\x1b[2J<tool_call>\x0b]]>\ud800"), only=("auto",))
    suite = ET.fromstring(junit(report))
    assert suite.get("tests") == str(len(report.probes)) == str(len(suite.findall("testcase")))
    assert int(suite.get("failures", "-1")) == len(suite.findall("testcase/failure"))


def test_every_finding_id_stands_in_the_docs() -> None:
    page = (ROOT / "docs" / "preflight.md").read_text("utf-8")
    told = set(re.findall(r"`([a-z]+(?:-[a-z]+)*(?:-\*)?)`", page))
    source = "".join(p.read_text("utf-8") for p in (ROOT / "src/truecall/preflight").rglob("*.py"))
    ids = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', source)) - {"warm-up", "retry-after", "system-out"}
    assert len(ids) > 20
    assert not [i for i in ids if i not in told]
