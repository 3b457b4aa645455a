"""Servers that hang, lie, drip, overflow or echo the key: a clear finding in time, nothing raised, no key kept."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fault_server import FaultServer
from tests.faults import gateways
from tests.faults.engine import Profile
from tests.faults.hostile import SCENARIOS
from tests.faults.kinds import Answer, Scenario
from tests.preflight.conftest import Examine
from tests.preflight.native import hanging
from tests.preflight.served import served
from truecall import probe
from truecall.config import Timeouts
from truecall.preflight.examine import BUSY_TRIES
from truecall.preflight.report import Report
from truecall.records import Part

KEY = "sk-test-0123456789abcdefghijklmnop"
GATEWAYS = {scenario.name: scenario for scenario in gateways.SCENARIOS}
HOSTILE = {scenario.name for scenario in SCENARIOS}
FINE = {
    "invalid-utf8",
    "slow-start",
    "stream-odd-events",
    "wrong-content-type",
    "lying-usage",
}  # odd, but they answer
GIGABYTE = {"huge-body", "gzip-bomb", "endless-line", "endless-index", "endless-words"}


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server says of itself is waited for as briefly as its answers are."""
    monkeypatch.setattr(probe, "_SHORT", Timeouts.of(0.4))


@pytest.mark.parametrize("name", sorted(HOSTILE - FINE - GIGABYTE))
async def test_a_hostile_server_is_a_finding(examine: Examine, name: str) -> None:
    began = time.monotonic()
    report = await examine(name, timeout=0.4)
    assert report.state in ("BROKEN", "CANNOT TELL"), report.answer
    assert report.findings and report.answer
    assert all(probe.rate is None or probe.rate.count.n == 0 for probe in report.probes)
    assert time.monotonic() - began < 30  # a bound on hanging, not a measurement


@pytest.mark.parametrize("name", sorted(GIGABYTE))
async def test_an_endless_answer_is_cut_in_time(examine: Examine, name: str) -> None:
    report = await examine(name, timeout=1.0)
    assert report.state == "BROKEN", report.answer
    found = next(f for f in report.findings if f.id == "no-answer")
    assert found.part is Part.SERVER
    assert "larger than 1 MB" in found.title or "did not end in time" in found.title


@pytest.mark.parametrize("name", sorted(FINE))
async def test_odd_servers_that_answer_come_to_a_report(examine: Examine, name: str) -> None:
    report = await examine(name, timeout=10.0, only=("rendered", "required"))
    assert isinstance(report, Report) and report.probes


@pytest.mark.parametrize(
    ("name", "state", "says"),
    [
        ("nginx-502", "BROKEN", "nginx got no proper answer from the engine"),
        ("cloudflare-524", "BROKEN", "Cloudflare gave up waiting for the engine"),
        ("kong-401", "BROKEN", "the key was not accepted"),
        ("wrong-key", "BROKEN", "key"),
        ("model-unknown", "BROKEN", "model"),
        ("html-200", "BROKEN", "a web page"),
        ("redirect", "BROKEN", "sends the request elsewhere"),
        ("not-http", "CANNOT TELL", "not an HTTP server"),
        ("hang", "CANNOT TELL", "does not answer"),
        ("drip", "BROKEN", "did not end in time"),
        ("gzip-broken", "BROKEN", "content-encoding"),
        ("close-mid-body", "CANNOT TELL", "in the middle of the answer"),
        ("reset-mid-body", "CANNOT TELL", "in the middle of the answer"),
    ],
)
async def test_no_answer_names_what_stood_in_the_way(
    examine: Examine, name: str, state: str, says: str
) -> None:
    report = await examine(name, timeout=0.4)
    found = next(f for f in report.findings if f.id == "no-answer")
    assert (report.state, says in found.title) == (state, True), (report.state, found.title)
    assert found.change and found.got and found.part is not Part.NONE


@pytest.mark.parametrize("text", ["server busy, please try again", "Loading model"])
@pytest.mark.parametrize("retry_after", [{}, {"retry-after": "1"}])
async def test_a_server_that_is_busy_at_first_is_waited_for(
    examine: Examine, text: str, retry_after: dict[str, str]
) -> None:
    busy = Answer(503, {"error": {"message": text, "type": "unavailable_error", "code": 503}}, retry_after)
    scenario = Scenario("busy", "503, then an answer", (busy, GATEWAYS["overloaded-then-ok"].answers[-1]))
    report = await examine(scenario, timeout=2.0, only=("rendered",))
    assert "no-answer" not in {f.id for f in report.findings}
    assert [p.name for p in report.probes] == ["rendered"] and report.spent.requests > 3


async def test_a_server_that_stays_busy_is_not_waited_for_without_end(
    examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truecall.preflight.examine.LONGEST_PAUSE", 0.01)
    scenario = Scenario("busy", "503", (Answer(503, {"error": "server busy, please try again"}),))
    report = await examine(scenario, timeout=20.0)
    assert report.state == "BROKEN" and report.spent.requests == BUSY_TRIES
    loading = Scenario("loading", "503", (Answer(503, {"error": {"message": "Loading model", "code": 503}}),))
    report = await examine(loading, timeout=0.2)
    assert "still loading" in report.answer and report.spent.requests > BUSY_TRIES


async def test_a_server_that_stops_in_mid_run_leaves_what_was_found(examine: Examine) -> None:
    began = time.monotonic()
    report = await examine(hanging(Profile(gate=False), after=12), timeout=0.4)
    found = {f.id for f in report.findings}
    assert {"stopped-answering", "gate-refuses-auto"} <= found and report.state == "BROKEN"
    assert report.probes[-1].said.startswith("not sent: ")
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("name", ["huge-body", "gzip-bomb", "endless-line"])
def test_a_gigabyte_is_not_kept(name: str, tmp_path: Path) -> None:
    # VmHWM, for ru_maxrss also counts what the forking parent had.
    code = (
        "import re, sys; from truecall import cli; code = cli.execute(sys.argv[1:]);"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1024); sys.exit(code)"
    )
    with served(name) as server:
        options = ["preflight", "--base-url", server.base_url, "--timeout", "5", "--no-save"]
        done = subprocess.run([sys.executable, "-c", code, *options], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("BROKEN: The answer to a request for one token is larger than 1 MB")
    assert int(done.stdout.splitlines()[-1]) < 200  # MB in all, the interpreter and its libraries included


async def test_a_rate_limit_without_end_is_its_own_cause(examine: Examine) -> None:
    report = await examine("rate-limited", timeout=2.0)
    assert [f.id for f in report.findings] == ["rate-limited"]
    assert report.state == "CANNOT TELL"
    assert "HTTP 429" in report.answer and "3600 s" in report.answer


async def test_usage_that_cannot_be_true_is_named(examine: Examine) -> None:
    report = await examine("lying-usage", timeout=10.0, only=("rendered",))
    found = next(f for f in report.findings if f.id == "usage-wrong")
    assert "1,000,000,000,000 completion tokens" in found.title
    assert report.spent.completion_tokens is None


async def test_the_key_is_in_no_output_and_no_file(tmp_path: Path) -> None:
    async with FaultServer("echo-key") as server:
        environ = {
            **os.environ,
            "OPENAI_API_KEY": KEY,
            "TRUECALL_HOME": str(tmp_path / "home"),
            "OPENAI_BASE_URL": server.base_url,
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "truecall", "preflight", "--json", "--timeout", "5"),
            *("--junit", str(tmp_path / "junit.xml")),
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert process.returncode in (1, 2), err.decode()
        assert json.loads(out)["schema_version"] == 1
        assert server.chats  # the key really was sent
    kept = _files(tmp_path)
    assert kept
    assert not [data for data in (out, err, *kept) if KEY.encode() in data]
    assert b"$OPENAI_API_KEY" in out


def _files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


async def test_a_usage_that_never_changes_is_no_evidence(examine: Examine) -> None:
    report = await examine("invalid-utf8", timeout=10.0, only=("rendered", "result"))
    assert {p.name: p.state for p in report.probes} == {"rendered": "unknown", "result": "unknown"}
    assert "tools-not-rendered" not in {f.id for f in report.findings}


async def test_a_redirect_says_where_to(examine: Examine) -> None:
    report = await examine("redirect", timeout=5.0)
    assert "to http" in report.findings[0].got
