"""The command line: variables, exit codes, what went past the proxy, the summary."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.upstream import Answer, completion, say, serving, standard, whole
from truecall.proxy.command import environment, secrets_of_environment, variables
from truecall.proxy.session import Outcome
from truecall.proxy.summary import live_line, summary_lines

CALLER = """
import json, os, sys, urllib.request
tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
        "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [tool]}).encode()
url = os.environ[sys.argv[1]] + sys.argv[2]
request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
print(urllib.request.urlopen(request).read().decode())
sys.exit(int(sys.argv[3]))
"""
LEAK = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


async def record(
    tmp_path: Path, *arguments: str, answer: Answer = standard, environ: dict[str, str] | None = None
) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of ``truecall record`` before a deterministic server."""
    env = {**os.environ, **(environ or {}), "TRUECALL_HOME": str(tmp_path / "home")}
    async with serving(answer) as upstream:
        command = [sys.executable, "-m", "truecall", "record", "--upstream", upstream.url + "/v1", *arguments]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=env
        )
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def call(variable: str = "OPENAI_BASE_URL", path: str = "/chat/completions", code: int = 0) -> list[str]:
    return ["--", sys.executable, "-c", CALLER, variable, path, str(code)]


@pytest.mark.parametrize("code", [0, 7])
async def test_the_commands_code_is_passed_on(tmp_path: Path, code: int) -> None:
    answer: Any = lambda r, w: say(w, whole(json.dumps(completion(LEAK)).encode()))  # noqa: E731
    got, out, err = await record(tmp_path, *call(code=code), answer=answer)
    assert got == code and json.loads(out)["choices"]
    assert "1 valid calls were lost by the server" in err and "1  valid/leaked" in err
    assert "lost      per conversation 100.0 % (no interval) (n = 1)" in err
    assert err.splitlines()[-1] == "next: truecall view record/0001 · truecall report record/0001"


async def test_surface_changes_what_the_command_gets(tmp_path: Path) -> None:
    answer: Any = lambda r, w: say(w, whole(json.dumps(completion(LEAK)).encode()))  # noqa: E731
    _, out, err = await record(tmp_path, "--surface", *call(), answer=answer)
    assert json.loads(out)["choices"][0]["finish_reason"] == "tool_calls"
    assert "turns text into action" in err and "truecall delivered 1" in err
    assert "works on OpenAI chat and responses, Anthropic messages and Ollama chat" in err


@pytest.mark.parametrize("code", [0, 3])
async def test_a_command_that_went_past_is_no_success(tmp_path: Path, code: int) -> None:
    got, _, err = await record(tmp_path, "--", sys.executable, "-c", f"raise SystemExit({code})")
    assert got == (code or 2)
    assert "NOTHING CAME THROUGH THE PROXY" in err and "next:" not in err


@pytest.mark.parametrize(
    ("variable", "path"),
    [
        ("OPENAI_API_BASE", "/chat/completions"),
        ("HOSTED_VLLM_API_BASE", "/chat/completions"),
        ("REMOTE_OPENAI_BASE_URL", "/chat/completions"),
        ("MY_MODEL_URL", "/chat/completions"),
        ("OLLAMA_HOST", "/api/chat"),
        ("ANTHROPIC_BASE_URL", "/v1/messages"),
    ],
)
async def test_the_variables_that_harnesses_read(tmp_path: Path, variable: str, path: str) -> None:
    options = ["--env", "MY_MODEL_URL", "--json", "--out", str(tmp_path / "run")]
    code, out, _ = await record(tmp_path, *options, *call(variable, path))
    assert code == 0
    outcome = json.loads(out[out.index("{\n") :])
    assert outcome["exchanges"] == 1 and outcome["tally"]["unjudged"] == 0
    assert outcome["schema_version"] == 1 and (tmp_path / "run" / "card.json").exists()


async def test_a_mistake_is_one_line_and_exit_2(tmp_path: Path) -> None:
    code, _, err = await record(tmp_path, "--surface", "--hide", *call())
    assert code == 2 and "opposites" in err and len(err.strip().splitlines()) == 1
    code, _, err = await record(tmp_path, "--", "no-such-command-here")
    assert code == 2 and "can't be run" in err


async def test_keys_of_the_child_are_in_no_file(tmp_path: Path) -> None:
    secret = "hidden-value-9f8e7d"
    url = "os.environ['OPENAI_BASE_URL']+'/models?note='+os.environ['MY_API_KEY']"
    code = f"import os, urllib.request as u; u.urlopen({url})"
    options = ["--out", str(tmp_path / "run"), "--", sys.executable, "-c", code]
    assert (await record(tmp_path, *options, environ={"MY_API_KEY": secret}))[0] == 0
    kept = [file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert len(kept) >= 3 and not any(secret.encode() in data for data in kept)


def test_variables_with_a_token_and_without_a_version() -> None:
    pointing = variables("127.0.0.1", 8000, "", token="t0k")
    assert pointing["OPENAI_BASE_URL"] == "http://127.0.0.1:8000/t0k" == pointing["OLLAMA_HOST"]
    assert (pointing["LOCAL_SERVER_ENDPOINT"], pointing["LOCAL_SERVER_PORT"]) == ("127.0.0.1", "8000")
    env = environment({"NO_PROXY": "x", "A": "b"}, pointing)
    assert env["NO_PROXY"] == "x,127.0.0.1,localhost" and env["A"] == "b"


def test_which_variables_hold_keys() -> None:
    environ = {
        "OPENAI_API_KEY": "k1",
        "HF_TOKEN": "k2",
        "DB_PASSWORD": "k3",
        "TOKENIZERS_PARALLELISM": "no",
        "PATH": "/",
    }
    assert secrets_of_environment(environ) == ["k1", "k2", "k3"]


def test_the_summary_says_when_the_record_is_incomplete() -> None:
    outcome = Outcome(folder="f", tally={"exchanges": 3}, exchanges=5, code=0, lost=2)
    assert summary_lines(outcome)[0].startswith("INCOMPLETE RECORD: 2 exchanges were not kept")
    line = live_line({"exchanges": 3, "steps": {"sent": 3, "emitted": 2, "unknown": 1}})
    assert line == "3 exchanges · sent 3 · emitted 2 · surfaced 0 · lost 0 · unknown 1"
