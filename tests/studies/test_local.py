"""The whole way on the real embedded engine: unseen tools are no rate, a constraint makes calls, loops are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truecall.cli import execute

pytest.importorskip("xllamacpp")
pytestmark = pytest.mark.engine


def test_run_local(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUECALL_HOME", str(tmp_path))
    flags = ["--seeds", "1", "--turns", "3", "--max-tokens", "96", "--temperature", "0"]
    flags += ["--condition", "native", "--condition", "constrained"]
    assert execute(["run", "--local", "--json", *flags]) == 1
    data = json.loads(capsys.readouterr().out)
    native, constrained = data["arms"]
    assert data["answer"].startswith("In native the tools were never rendered")
    assert native["never_rendered"] and not constrained["never_rendered"]
    valid = next(n for n in constrained["numbers"]["numbers"] if n["name"] == "observed_fidelity")
    assert valid["yes"] > 0 and constrained["numbers"]["forced"] == valid["n"]
    assert execute(["card", "1", "--arm", "native", "--json"]) in (0, 1)
    [card] = json.loads(capsys.readouterr().out)["arms"]
    entries = card["card"]["entries"]
    assert entries["engine"] == {"value": "llamacpp", "origin": "probed"}
    assert entries["chat_template"]["origin"] == "probed" and entries["model_digest"]["value"].startswith(
        "sha256:"
    )
    assert card["faults"] == []
