"""The main job on a real server with a real model: the embedded engine, with both of its templates."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from truecall import cli

pytest.importorskip("xllamacpp")


def examined(capsys: pytest.CaptureFixture[str], template: str, *only: str) -> Any:
    options = ["--local", "--chat-template", template, "--only", ",".join(only), "--json", "--no-save"]
    code = cli.execute(["preflight", *options, "--fail-on", "never"])
    out = capsys.readouterr().out
    assert code == 0, out[:500]
    return json.loads(out)


@pytest.mark.engine
def test_the_models_own_template_shows_it_no_tools(capsys: pytest.CaptureFixture[str]) -> None:
    report = examined(capsys, "own", "auto", "loopback", "required")
    found = {f["id"]: f for f in report["findings"]}
    assert found["tools-not-rendered"]["part"] == "template"
    assert found["required-not-enforced"]["part"] == "constraint"
    assert report["state"] == "BROKEN"
    probes = {p["name"]: p for p in report["probes"]}
    # Never that the model does not call tools: it never saw one.
    assert probes["auto"]["state"] == "unknown" and "rate" not in probes["auto"]
    assert "model" not in {f["part"] for f in report["findings"]}
    assert "wrote no valid call" not in report["answer"]
    assert set(probes["loopback"]["data"]["table"].values()) == {"leaked"}
    assert "no-parser" not in found  # one cause is told once


@pytest.mark.engine
def test_a_template_that_renders_tools_makes_a_parser(capsys: pytest.CaptureFixture[str]) -> None:
    report = examined(capsys, "hermes", "loopback", "required", "shapes")
    probes = {p["name"]: p for p in report["probes"]}
    assert probes["rendered"]["state"] == "ok"
    table = probes["loopback"]["data"]["table"]
    assert probes["loopback"]["data"]["way"] == "prefill"
    assert (table["hermes"], table["bare_json"], table["fenced_json"]) == ("surfaced", "leaked", "leaked")
    assert probes["shapes"]["data"]["outcomes"]["nested"] == "surfaced"
    [required] = [f for f in report["findings"] if f["id"] == "required-not-enforced"]
    assert required["detail"]["looped"] is True  # prose up to the budget: the grammar only forbids the end
    assert report["endpoint"]["facts"]["template_dialect"]["value"] == "hermes"


@pytest.mark.engine
def test_sigterm_leaves_no_engine_and_no_folder_behind(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    environ = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "TRUECALL_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "truecall", "preflight", "--local", "--chat-template", "hermes"]
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not list((tmp_path / "tmp").glob("truecall-engine-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.stderr is not None
    while "at most" not in process.stderr.readline():  # said when the engine is up
        pass
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not list((tmp_path / "tmp").glob("truecall-engine-*"))
