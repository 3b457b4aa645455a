"""The real engine with the real model: llama.cpp's server, SmolLM2-135M-Instruct, on loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from truecall import local
from truecall.errors import CannotTell, UsageError
from truecall.local import Engine, embedded, template_text
from truecall.model_file import SMOLLM2, digest, model_path

pytest.importorskip("xllamacpp")
pytestmark = pytest.mark.engine

SERVE = [sys.executable, "-m", "truecall", "local", "serve"]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city, as a person would put it.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def ask(engine: Engine, **fields: Any) -> dict[str, Any]:
    body = {
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
        "max_tokens": 4,
        "temperature": 0,
        **fields,
    }
    request = urllib.request.Request(
        f"{engine.base_url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def prompt_tokens(engine: Engine, **fields: Any) -> int:
    count: int = ask(engine, **fields)["usage"]["prompt_tokens"]
    return count


def gone(pid: int, within: float = 10) -> bool:
    """True once no process has this id; a zombie counts as gone."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.fixture(scope="module")
def own() -> Iterator[Engine]:
    with embedded() as engine:
        yield engine


@pytest.fixture(scope="module")
def hermes() -> Iterator[Engine]:
    with embedded(chat_template="hermes") as engine:
        yield engine


# --------------------------------------------------------------------------- what it answers


def test_the_model_is_the_pinned_one() -> None:
    path = model_path()
    assert path.stat().st_size == SMOLLM2.size
    assert digest(path) == SMOLLM2.sha256


def test_it_answers_like_an_openai_server(own: Engine) -> None:
    answer = ask(own)
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"]["role"] == "assistant"
    assert 1 <= answer["usage"]["completion_tokens"] <= 4


def test_it_listens_on_loopback_and_shows_no_path(own: Engine) -> None:
    assert own.base_url.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(f"{own.base_url}/models", timeout=10) as response:
        assert json.load(response)["data"][0]["id"] == "SmolLM2-135M-Instruct.Q4_1"


def test_the_models_own_template_drops_the_tools(own: Engine) -> None:
    assert prompt_tokens(own, tools=[TOOL]) == prompt_tokens(own)


def test_the_hermes_template_renders_them(hermes: Engine) -> None:
    bare, one, two = (prompt_tokens(hermes, tools=[TOOL] * n) for n in range(3))
    assert bare < one < two


def test_a_hermes_call_in_the_text_is_surfaced(hermes: Engine) -> None:
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    messages = [{"role": "user", "content": "weather in Oslo"}, {"role": "assistant", "content": text}]
    call = ask(hermes, messages=messages, tools=[TOOL])["choices"][0]["message"]["tool_calls"][0]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}


def test_a_template_file_is_used(tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    with embedded(chat_template=template) as engine:
        assert prompt_tokens(engine, messages=[{"role": "user", "content": "a"}]) <= 2


# --------------------------------------------------------------------------- how it starts and ends


def test_it_is_up_within_seconds_and_gone_afterwards() -> None:
    began = time.monotonic()
    with embedded() as engine:
        took = time.monotonic() - began
        assert engine.failure() is None
    assert took < 30  # about one second on a machine with nothing else to do
    assert gone(engine.pid)
    with pytest.raises(urllib.error.URLError):
        ask(engine)


def test_a_killed_engine_is_noticed_and_named() -> None:
    with embedded() as engine:
        os.kill(engine.pid, signal.SIGSEGV)
        assert engine.wait() == engine.failure() == "the embedded engine was killed by SIGSEGV"


def test_an_exception_in_the_block_stops_it() -> None:
    with pytest.raises(ZeroDivisionError), embedded() as engine:
        raise ZeroDivisionError
    assert gone(engine.pid)


def test_it_does_not_outlive_a_killed_parent() -> None:
    code = (
        "import time; from truecall.local import embedded\n"
        "with embedded() as engine: print(engine.pid, flush=True); time.sleep(99)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid, within=0.1)
        parent.kill()
    assert gone(pid)


def test_its_log_is_kept_on_request(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    with embedded(log=log):
        pass
    assert "llama" in log.read_text()


def test_keys_stay_with_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-123456")
    with embedded() as engine:
        assert b"sk-123456" not in Path(f"/proc/{engine.pid}/environ").read_bytes()


# --------------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(("content", "said"), [(None, "No such file"), (b"PK\x03\x04", "is no GGUF file")])
def test_a_model_that_is_none(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "m.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=said), embedded(path):
        pass


def test_a_damaged_model_is_told_with_the_engines_words(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + b"\xff" * 100)
    with pytest.raises(CannotTell, match=r"did not start: .*GGUF") as caught, embedded(path):
        pass
    assert "\n" not in str(caught.value)


def test_a_broken_template_is_told_with_the_engines_words(tmp_path: Path) -> None:
    path = tmp_path / "t.jinja"
    path.write_text("{% for %}")
    with pytest.raises(CannotTell, match=r"did not start: common_chat_templates_init"):  # noqa: SIM117
        with embedded(chat_template=path):
            pass


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotTell, match=rf"port {port} on 127\.0\.0\.1 is taken"), embedded(port=port):
            pass


def test_an_engine_that_is_not_ready_in_time() -> None:
    with pytest.raises(CannotTell, match=r"not ready after 0\.01 s"), embedded(ready_timeout=0.01):
        pass


def test_templates_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "empty.jinja").touch()
    (tmp_path / "binary.jinja").write_bytes(b"\xff\xfe")
    for name, said in (
        ("no.jinja", "own, hermes"),
        ("empty.jinja", "is empty"),
        ("binary.jinja", "not UTF-8"),
    ):
        with pytest.raises(UsageError, match=said):
            template_text(tmp_path / name)
    assert template_text("own") == template_text(None) == ""
    assert "<tool_call>" in template_text("hermes")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"truecall\[local\]"), embedded():
        pass


# --------------------------------------------------------------------------- truecall local serve


def serve(*args: str, **environ: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*SERVE, *args], stdout=pipe, stderr=pipe, text=True, env={**os.environ, **environ}
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_prints_the_url_and_ends_well(number: signal.Signals, tmp_path: Path) -> None:
    with serve("--chat-template", "hermes", TMPDIR=str(tmp_path)) as process:
        assert process.stdout is not None and process.stderr is not None
        base_url = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{base_url}/models", timeout=10) as response:
            assert response.status == 200
        assert list(tmp_path.glob("truecall-engine-*"))
        process.send_signal(number)
        assert process.wait(30) == 0
        assert not list(tmp_path.glob("truecall-engine-*"))
        assert process.stdout.read() == ""
        assert "Traceback" not in process.stderr.read()


def test_serve_reports_a_dead_engine() -> None:
    with serve() as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        assert process.wait(30) == 2
        assert process.stderr.read().endswith("truecall: the embedded engine was killed by SIGKILL\n")


def test_fetch_prints_the_path() -> None:
    done = subprocess.run([*SERVE[:-1], "fetch"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{model_path()}\n"
