"""``truecall preflight`` as a command: every option, every way to end, what is kept, and where the key goes."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import trustme

from tests.fault_server import Running
from tests.faults.engine import Profile
from tests.preflight.native import hanging
from tests.preflight.served import served
from truecall import cli, probe
from truecall.store.index import open_index

KEY = "sk-test-0123456789abcdefghijklmnop"
SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"
FAST = ("--only", "required,none")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own, no address and no key from the environment."""
    path = tmp_path / "home"
    monkeypatch.setenv("TRUECALL_HOME", str(path))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return path


def preflight(*args: object) -> int:
    return cli.execute(["preflight", *map(str, args)])


def report(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = preflight(*args, "--json")
    return code, json.loads(capsys.readouterr().out)


# --------------------------------------------------------------------------- what is said


def test_the_screen_answers_first_then_shows_the_evidence(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    with served(Profile(parser="qwen3_coder")) as server:
        assert preflight("--base-url", server.base_url) == 1
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith(
        "BROKEN: The model calls; this server's parser erases the call. Change --tool-call-parser"
    )
    assert "qwen3_coder to hermes" in lines[0]
    assert any(line.startswith("endpoint   vLLM") for line in lines)
    assert any("qwen3_coder (inferred by loopback)" in line for line in lines)
    assert "model wrote (token_ids): <tool_call>" in out and "client got: content null" in out
    assert "at most" in err and "completion tokens" in err
    repeat = next(line for line in lines if "repeat: curl -sS" in line)
    body = Path(repeat.rpartition("@")[2])
    assert body.parent == home / "preflight" / "0001" and json.loads(body.read_text())["messages"]
    assert lines[-1].endswith("saved as preflight/0001")
    assert max(len(line) for line in lines[1:] if "repeat:" not in line) <= 100


def test_what_is_kept_is_for_the_user_alone(home: Path) -> None:
    with served(Profile()) as server:
        assert preflight("--base-url", server.base_url, *FAST) == 0
    files = [path for path in home.rglob("*") if path.is_file()]
    assert files and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)


def test_the_requests_are_kept_with_their_verdicts(home: Path) -> None:
    with served(Profile(parser="qwen3_coder")) as server:
        assert preflight("--base-url", server.base_url) == 1
    folder = home / "preflight" / "0001"
    spent = json.loads((folder / "report.json").read_text())["spent"]["requests"]
    with open_index(folder) as index:
        assert 0 < index.count() <= spent and index.count({"emission": None}) == index.bad == 0
        assert {"warm-up", "auto", "loopback"} <= {item for item, _ in index.values("item")}
        lost = index.page({"item": "auto", "delivery": "erased", "tier": "token_ids"})
        assert lost and "<tool_call>" in lost[0].excerpt
        turn = index.turn(lost[0].id)
        assert turn.judged() == turn.verdict and turn.faults == () and turn.tools
        assert turn.detection is not None and turn.detection.calls[0].dialect == "hermes"


def test_no_save_keeps_nothing_and_prints_the_whole_curl_line(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    with served(Profile(none_calls=True)) as server:
        assert preflight("--base-url", server.base_url, *FAST, "--no-save") == 0
    out = capsys.readouterr().out
    assert "-d '{" in out and "saved as" not in out
    assert not home.exists()


def test_plain_glyphs_where_the_terminal_has_no_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    with served(Profile()) as server:
        preflight("--base-url", server.base_url)
    assert capsys.readouterr().out.isascii()


def test_plan_sends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with served(Profile()) as server:
        assert preflight("--base-url", server.base_url, "--plan") == 0
        assert server.received == []
    out = capsys.readouterr().out
    assert "warm-up" in out and "nothing was sent" in out
    assert re.search(
        r"at most \d+ chat requests and [\d,]+ completion tokens \([\d,]+ if the model thinks first\)", out
    )


@pytest.mark.parametrize("engine", ["vllm", "llamacpp", "tgi"])
def test_no_more_is_spent_than_was_told(capsys: pytest.CaptureFixture[str], engine: Any) -> None:
    with served(Profile(engine=engine, model_calls=False, required="loops")) as server:
        preflight("--base-url", server.base_url, "--json")
        asked = sum(r.json.get("max_tokens", 0) for r in server.chats)
        sent = len(server.chats)
    told = capsys.readouterr().err
    found = re.search(r"at most (\d+) chat requests and ([\d,]+) completion tokens", told)
    assert found is not None
    assert sent <= int(found[1]) and asked <= int(found[2].replace(",", "")), (sent, asked, told)


def test_only_sends_what_the_named_probes_build_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert preflight("--only", "shapes", "--plan") == 0
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert shown[1:5] == ["warm-up", "rendered", "loopback", "shapes"]
    with served(Profile()) as server:
        code, found = report(capsys, "--base-url", server.base_url, "--only", "shapes")
    assert code == 0 and [p["name"] for p in found["probes"]] == ["rendered", "loopback", "shapes"]


# --------------------------------------------------------------------------- the ways to end


@pytest.mark.parametrize(
    ("profile", "fail_on", "code"),
    [
        (Profile(), "degraded", 0),
        (Profile(none_calls=True), "broken", 0),
        (Profile(none_calls=True), "degraded", 1),
        (Profile(none_calls=True), "never", 0),
    ],
)
def test_fail_on(profile: Profile, fail_on: str, code: int) -> None:
    with served(profile) as server:
        assert preflight("--base-url", server.base_url, *FAST, "--fail-on", fail_on) == code


def test_a_server_that_cannot_be_reached_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    with served(Profile()) as server:
        url = server.base_url
    assert preflight("--base-url", url, "--timeout", 2) == 2
    out = capsys.readouterr().out
    assert out.startswith("CANNOT TELL: Nothing listens at this address.") and "Traceback" not in out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--only", "nosuch"], "--only nosuch: no such probe; there are rendered, auto"),
        (["--only", "own"], "--only own: needs --request FILE"),
        (["--request", "/no/such/file"], "--request /no/such/file: No such file or directory"),
        (["--again", "7", "--baseline", "x.json"], "give one"),
        (["--again", "7"], "7: no preflight of that id"),
        (["--baseline", "/no/such/file"], "no such file"),
        (["--local", "--base-url", "http://h"], "name two endpoints"),
        (["--chat-template", "hermes"], "--chat-template: goes with --local"),
        (["--beside", "http://h/v1", "--junit", "x.xml"], "--beside"),
        (["--api-key-env", "NO_SUCH_VARIABLE"], "the variable is not set"),
        (["--ca-bundle", "/no/such.pem"], "no such file"),
        (["--timeout", "0"], "--timeout 0"),
        (["--header", "nocolon"], "--header"),
        (["--base-url", "ftp://h"], "no http or https URL"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_a_users_mistake_is_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], args: list[str], says: str
) -> None:
    assert preflight(*args) == 2
    out, err = capsys.readouterr()
    assert out == "" and says in err
    assert len(err.strip().splitlines()) == 1


def test_a_baseline_that_is_no_report_is_told_before_anything_is_sent(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    newer, other = tmp_path / "newer.json", tmp_path / "other.json"
    newer.write_text('{"schema_version": 99}')
    other.write_text('{"schema_version": 1, "state": "FINE"}')
    with served(Profile()) as server:
        assert preflight("--base-url", server.base_url, "--baseline", newer) == 2
        assert "newer truecall (schema 99)" in capsys.readouterr().err
        assert preflight("--base-url", server.base_url, "--baseline", other) == 2
        assert "is no preflight report" in capsys.readouterr().err
        assert server.received == []


def test_a_junit_file_that_cannot_be_written_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with served(Profile()) as server:
        assert preflight("--base-url", server.base_url, *FAST, "--junit", "/no/such/folder/x.xml") == 2
    assert "--junit /no/such/folder/x.xml" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_tells_what_it_found(home: Path, number: signal.Signals) -> None:
    with served(hanging(Profile(gate=False), after=12)) as server:
        command = [sys.executable, "-m", "truecall", "preflight", "--base-url", server.base_url]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while len(server.chats) < 13 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out.startswith("BROKEN: vLLM was started without tool calling")
    assert "interrupted; not sent or not finished" in out.replace("\n           ", " ")
    assert "Traceback" not in err


# --------------------------------------------------------------------------- before and after


def test_again_says_what_is_fixed_with_its_counts(capsys: pytest.CaptureFixture[str]) -> None:
    with served(Profile(parser="qwen3_coder")) as server:
        assert preflight("--base-url", server.base_url, "--only", "auto,loopback") == 1
    with served(Profile(none_calls=True)) as server:
        code, after = report(capsys, "--again", "1", "--base-url", server.base_url)
    assert code == 0
    changes = {c["id"]: c for c in after["changes"]}
    assert changes["call-erased"] == {
        "id": "call-erased", "change": "fixed", "before": {"k": 5, "n": 5}, "after": {"k": 0, "n": 5},
    }  # fmt: skip
    assert changes["parser-mismatch"]["change"] == "fixed"
    assert after["answer"].startswith(
        "call-erased (5/5 → 0/5), parser-mismatch fixed, nothing new. Tools reach"
    )
    assert {p["name"] for p in after["probes"]} == {"rendered", "auto", "loopback"}  # those of then
    assert after["compared_with"] == "0001"


def test_again_repeats_the_users_request_at_the_same_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    body = {"messages": [{"role": "user", "content": "use f"}], "tools": tools, "max_tokens": 50}
    (tmp_path / "failing.json").write_text(json.dumps(body))
    with served(Profile(parser="qwen3_coder")) as server:
        options = ("--base-url", server.base_url, "--request", tmp_path / "failing.json", "--only", "own")
        assert preflight(*options) == 1
        (tmp_path / "failing.json").unlink()
        code, after = report(capsys, "--again", "preflight/0001")
        assert code == 1
    [change] = [c for c in after["changes"] if c["id"] == "own-erased"]
    assert change["change"] == "unchanged" and change["before"] == change["after"] == {"k": 10, "n": 10}


def test_a_baseline_shows_what_is_new_and_what_could_not_be_compared(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with served(Profile(none_calls=True)) as server:
        _, before = report(capsys, "--base-url", server.base_url, *FAST)
    (tmp_path / "baseline.json").write_text(json.dumps(before))
    profile = Profile(required="ignored", model_calls=False)
    with served(profile) as server:
        options = (
            "--base-url",
            server.base_url,
            "--only",
            "required",
            "--baseline",
            tmp_path / "baseline.json",
        )
        code, after = report(capsys, *options)
    assert code == 0
    assert {c["id"]: c["change"] for c in after["changes"]} == {
        "none-not-respected": "gone",
        "required-not-enforced": "new",
    }


def test_beside_puts_the_difference_down_to_its_part(capsys: pytest.CaptureFixture[str]) -> None:
    with served(Profile()) as one, served(Profile(engine="llamacpp", parser="none")) as other:
        assert preflight("--base-url", one.base_url, "--beside", other.base_url) == 1
        out = capsys.readouterr().out
        assert "vLLM" in out and "llama.cpp" in out and "parser" in out
        _, both = report(capsys, "--base-url", one.base_url, "--beside", other.base_url)
    rows = {row["probe"]: row.get("differs", []) for row in both["table"]}
    assert rows["loopback"] == ["parser"] and rows["rendered"] == []
    assert [r["state"] for r in both["reports"]] == ["READY", "BROKEN"]
    schema = json.loads((SCHEMAS / "preflight-beside.json").read_text("utf-8"))
    jsonschema_rs.validator_for(schema).validate(both)
    assert both["schema_version"] == 1 and all(r["schema_version"] == 1 for r in both["reports"])


class Embedded:
    """Stands for the embedded engine: a fake one, gone after the block as the real one is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, profile: Profile) -> None:
        self.templates: list[str] = []
        self.profile = profile
        monkeypatch.setattr("truecall.local.embedded", self)

    @contextmanager
    def __call__(self, *, chat_template: str, progress: object) -> Iterator[Running]:
        self.templates.append(chat_template)
        with served(self.profile) as server:
            yield server


def test_after_a_local_run_the_next_step_is_one_that_works(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Embedded(monkeypatch, Profile(parser="qwen3_coder"))
    options = ("--local", "--chat-template", "hermes", "--only", "auto")
    assert preflight(*options) == 1
    out = capsys.readouterr().out
    assert "curl" not in out and "--upstream" not in out  # nothing listens there any more
    assert "repeat: truecall preflight --local --again 0001" in out
    assert preflight("--again", "1") == 2
    err = capsys.readouterr().err
    assert "embedded engine, which is gone: add --local" in err and len(err.strip().splitlines()) == 1
    engine.profile = Profile()
    code, after = report(capsys, "--local", "--again", "0001")
    assert (code, engine.templates) == (0, ["hermes", "hermes"])
    assert {c["id"]: c["change"] for c in after["changes"]} == {"call-erased": "fixed"}
    assert preflight(*options, "--no-save") == 0
    assert "repeat: truecall preflight --local --chat-template hermes" in capsys.readouterr().out


# --------------------------------------------------------------------------- where to, and with which key


def test_the_usual_ports_are_tried_without_a_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with served(Profile()) as server:
        monkeypatch.setattr(probe, "LOCAL_PORTS", (int(server.base_url.split(":")[2].split("/")[0]),))
        monkeypatch.setattr(probe.find_local, "__defaults__", (probe.LOCAL_PORTS,))
        assert preflight(*FAST) == 0
        assert f"taking {server.base_url}" in capsys.readouterr().err
        sent = [r for r in server.received if "authorization" in {k.lower() for k in r.headers}]
    assert server.chats and not sent


def test_no_server_on_the_usual_ports_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe.find_local, "__defaults__", ((9,),))
    assert preflight() == 2
    assert "no server answers on the usual local ports" in capsys.readouterr().err


def test_a_report_from_elsewhere_does_not_take_the_key_along(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(Profile()) as server:
        _, before = report(capsys, "--base-url", server.base_url, *FAST)
        (tmp_path / "foreign.json").write_text(json.dumps(before))
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        server.received.clear()
        assert preflight("--again", tmp_path / "foreign.json") == 0
        keyed = ["Authorization" in r.headers or "authorization" in r.headers for r in server.received]
        assert keyed and not any(keyed)
        server.received.clear()
        assert preflight("--again", "1") == 0  # our own record of where we went with this environment's key
        assert any(KEY in r.headers.get("Authorization", "") for r in server.chats)


def test_a_private_authority(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    with served(Profile(), tls) as server:
        assert preflight("--base-url", server.base_url, *FAST) == 2
        out = capsys.readouterr().out
        assert out.startswith("CANNOT TELL: The TLS handshake failed.") and "--ca-bundle" in out
        assert preflight("--base-url", server.base_url, *FAST, "--ca-bundle", bundle) == 0
        assert preflight("--base-url", server.base_url, *FAST, "--insecure") == 0


def test_a_key_and_headers_are_sent_and_kept_nowhere(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with served(Profile(none_calls=True)) as server:
        options = ("--api-key-env", "MY_KEY", "--header", "X-Team: blue", "--model", "m2")
        assert preflight("--base-url", server.base_url, *FAST, *options) == 0
        assert all(r.headers["Authorization"] == f"Bearer {KEY}" for r in server.chats)
        assert all(r.headers["X-Team"] == "blue" and r.json["model"] == "m2" for r in server.chats)
    out, err = capsys.readouterr()
    assert '-H "authorization: Bearer $MY_KEY" -H "X-Team: $X_TEAM"' in out
    kept = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert kept and not [text for text in (out.encode(), err.encode(), *kept) if KEY.encode() in text]


def test_the_library_call_can_be_cancelled() -> None:
    """Cancellation belongs to the caller of the library; only the command line makes a report of it."""
    from truecall import preflight as library
    from truecall.client import Client
    from truecall.config import resolve

    async def go(url: str) -> None:
        async with Client(resolve(url, environ={})) as client:
            await asyncio.wait_for(library.run(client), 0.5)

    with served("hang") as server, pytest.raises(TimeoutError):
        asyncio.run(go(server.base_url))
