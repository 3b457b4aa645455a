"""The published schemas are those of the records, and what is printed fits them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

from tests.audits.test_bfcl_folders import snapshot
from tests.audits.test_tau import tau, tau_file
from truecall.audits.bfcl.answer import Output
from truecall.audits.tau import TauOutput
from truecall.cli import execute as run

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"
KINDS = {"audit-bfcl": Output, "audit-tau": TauOutput}


@pytest.mark.parametrize("name", KINDS)
def test_published_schemas_are_up_to_date(name: str) -> None:
    made = json.loads(msgspec.json.encode(msgspec.json.schema(KINDS[name])))
    assert json.loads((SCHEMAS / f"{name}.json").read_text("utf-8")) == made


def test_what_is_printed_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bfcl", str(snapshot(tmp_path / "snap")), "--entries"]
    tau_words = ["tau-bench", str(tau_file(tmp_path, [tau(0, 1), tau(1, 0, error="x")])), "--entries"]
    for name, asked in (("audit-bfcl", words), ("audit-tau", tau_words)):
        assert run(["audit", *asked, "--json", "--no-lock"]) == 1
        printed = json.loads(capsys.readouterr().out)
        schema = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
        jsonschema_rs.validator_for(schema).validate(printed)
