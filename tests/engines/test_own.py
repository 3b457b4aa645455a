"""The user's own parser: a callable, a class that streams, a command."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from truecall.engines import Job, Parse, Worker, resolve
from truecall.engines.specs import own
from truecall.errors import CannotTell

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
