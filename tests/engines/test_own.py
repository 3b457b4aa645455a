"""The user's own parser: a callable, a class that streams, a command."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.fault_server import Start
from tests.faults import engine
from tests.faults.engine import Profile
from truecall.engines import Job, Parse, Spec, Worker, resolve
from truecall.engines.specs import own
from truecall.errors import CannotTell

WEATHER: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
CODE = """
import json

def pairs(text, tools):
    return [("f", {"x": 1})]

def objects(text, tools):
    return [{"name": "f", "arguments": '{"x": 1}'}], "left"

def openai(text, tools):
    return [{"type": "function", "function": {"name": tools[0]["function"]["name"], "arguments": {}}}]

def nothing(text, tools):
    return None

def nonsense(text, tools):
    return [3]

class Streams:
    def __init__(self, tools):
        self.text = ""
    def feed(self, piece):
        self.text += piece
        return [], piece.upper()
    def finish(self):
        return [("f", {"text": self.text})]
"""
COMMAND = """
import json, sys
print("ready")
for line in sys.stdin:
    order = json.loads(line)
    if order["text"] == "END":
        sys.exit(4)
    print("thinking", flush=True)
    print(json.dumps({"calls": [{"name": order["text"], "arguments": {}}], "content": "c"}), flush=True)
"""
TOOLS: list[Any] = [{"type": "function", "function": {"name": "f", "parameters": {}}}]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    return path


def parse(kind: str, target: str, text: str = "t", cuts: tuple[int, ...] | None = None) -> Parse:
    with Worker(own(kind, target).launch) as worker:
        name = worker.hello().parsers[0]
        (result,) = worker.run([Job(name, text, TOOLS, cuts)])
        return result


@pytest.mark.parametrize(
    ("name", "calls", "content"),
    [
        ("pairs", [("f", '{"x": 1}')], None),
        ("objects", [("f", '{"x": 1}')], "left"),
        ("openai", [("f", "{}")], None),
        ("nothing", [], None),
    ],
)
def test_a_callable(file: Path, name: str, calls: list[Any], content: str | None) -> None:
    got = parse("python", f"{file}:{name}")
    assert got.state == "parsed", got.detail
    assert [(call.name, call.arguments) for call in got.calls] == calls
    assert got.content == content


def test_what_is_no_call_is_the_parsers_mistake(file: Path) -> None:
    got = parse("python", f"{file}:nonsense")
    assert got.state == "raised" and "a call is" in got.detail


def test_a_function_does_not_stream_and_a_class_does(file: Path) -> None:
    assert parse("python", f"{file}:pairs", cuts=(1,)).state == "no_stream"
    got = parse("python", f"{file}:Streams", "abc", (1,))
    assert [(call.name, call.arguments) for call in got.calls] == [("f", '{"text": "abc"}')]
    assert got.content == "ABC"


def test_one_that_is_not_there(file: Path) -> None:
    with pytest.raises(CannotTell, match="AttributeError"):
        parse("python", f"{file}:absent")


def test_a_command_answers_line_by_line_and_is_started_again(tmp_path: Path) -> None:
    script = tmp_path / "command.py"
    script.write_text(COMMAND)
    with Worker(own("command", f"{sys.executable} {script}").launch) as worker:
        results = list(worker.run([Job("command", text, TOOLS) for text in ("a", "END", "b")]))
    assert [result.state for result in results] == ["parsed", "raised", "parsed"]
    assert results[0].calls[0].name == "a" and results[2].calls[0].name == "b"
    assert "code 4" in results[1].detail


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(CannotTell, match="FileNotFoundError"):
        parse("command", "/nowhere/parser")


class _Prefilled(BaseHTTPRequestHandler):
    """A server that reads hermes blocks out of a prefilled message, and refuses what says REFUSE."""

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": "m"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = asked["messages"][-1]["content"]
        if "REFUSE" in text:
            self._answer(500, {"error": {"message": "can't parse"}})
            return
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if text.startswith("<tool_call>"):
            function = {"name": asked["tools"][0]["function"]["name"], "arguments": "{}"}
            message = {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}
        self._answer(200, {"choices": [{"index": 0, "message": message, "finish_reason": "length"}]})

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def test_the_parser_inside_a_running_server() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Prefilled)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        (spec,) = resolve([f"llamacpp:http://127.0.0.1:{server.server_port}/v1"])
        with Worker(spec.launch) as worker:
            assert worker.hello().network == "open"
            texts = ("<tool_call>x</tool_call>", "plain", "REFUSE")
            one, two, three = worker.run([Job("served", text, TOOLS) for text in texts])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [(call.name, call.arguments) for call in one.calls] == [("f", "{}")]
    assert (two.state, two.calls, two.content) == ("parsed", (), "plain")
    assert three.state == "raised" and "HTTP 500" in three.detail


def _asked(spec: Spec, *texts: str) -> list[Parse]:
    with Worker(spec.launch) as worker:
        return list(worker.run([Job("served", text, WEATHER) for text in texts]))


async def test_ollamas_parser_reads_what_its_model_repeats(
    fault_server: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Ollama runs here: its bodies are those of its code. What the model wrote is told by logprobs."""
    running = await fault_server(Profile(engine="ollama"))
    (spec,) = resolve([f"ollama:{running.base_url}"])
    call = engine.hermes("get_weather", {"city": "Oslo"})
    one, two = await asyncio.to_thread(_asked, spec, call, "It is fine.")
    assert [(found.name, found.arguments) for found in one.calls] == [("get_weather", '{"city": "Oslo"}')]
    assert (two.state, two.calls, two.content) == ("parsed", (), "It is fine.")
    sent = json.loads(running.received[-1].body)
    assert sent["logprobs"] is True and sent["messages"][-1]["content"].endswith("It is fine.")

    monkeypatch.setattr(engine, "writes", lambda *_: "Sure!")
    (other,) = await asyncio.to_thread(_asked, spec, call)
    assert (other.state, other.detail) == ("unasked", "the model did not write this text (by echo)")

    refusing = await fault_server(Profile(engine="ollama", evidence=False))
    (blind,) = await asyncio.to_thread(_asked, *resolve([f"ollama:{refusing.base_url}"]), call)
    assert blind.state == "unasked" and "HTTP 400" in blind.detail


async def test_a_guided_server_tells_its_tokens(fault_server: Start) -> None:
    running = await fault_server(Profile(engine="vllm", parser="qwen3_coder"))
    (spec,) = resolve([f"vllm:{running.base_url}"])
    (parse,) = await asyncio.to_thread(_asked, spec, engine.hermes("get_weather", {"city": "Oslo"}))
    assert (parse.state, parse.calls, parse.content) == ("parsed", (), "")
    assert running.received[-1].path == "/detokenize"
