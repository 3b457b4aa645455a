"""A loop's history is stored once, and every request comes back as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.conftest import recording
from tests.proxy.upstream import WEATHER
from tests.proxy.wires import WIRES
from truecall.store import RunFolder, body_of, exchange_of, read_log
from truecall.store.chains import Chains

TOOLS = [
    {**WEATHER, "function": {**WEATHER["function"], "description": f"Tool {i}. " * 40}} for i in range(12)
]


def loop(turns: int, *, tools_first: bool) -> list[bytes]:
    """The request bodies of one conversation that calls a tool at every turn."""
    messages: list[Any] = [
        {"role": "system", "content": "Rules. " * 300},
        {"role": "user", "content": "Go on."},
    ]
    bodies = []
    for turn in range(turns):
        parts: dict[str, Any] = {"model": "m", "messages": messages, "temperature": 0}
        whole = {"tools": TOOLS, **parts} if tools_first else {**parts, "tools": TOOLS, "stream": False}
        bodies.append(json.dumps(whole, ensure_ascii=bool(turn % 2)).encode())
        call = {
            "id": f"call_{turn}",
            "type": "function",
            "function": {"name": "get_weather", "arguments": "{}"},
        }
        messages = [
            *messages,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": f"Result {turn}: " + "é" * 80},
        ]
    return bodies


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in (folder / "blobs").rglob("*") if file.is_file())


@pytest.mark.parametrize("tools_first", [False, True])
def test_a_long_loop_grows_with_its_turns(tmp_path: Path, tools_first: bool) -> None:
    bodies = loop(400, tools_first=tools_first)
    bodies = [body for turn, body in enumerate(bodies) if turn % 2]  # all written the same way
    chains = Chains()
    with RunFolder(tmp_path) as folder:
        stored = [chains.stored(folder, body) for body in bodies]
    assert [body_of(tmp_path, value) for value in stored] == bodies
    assert body_of(tmp_path, stored[-1]) == bodies[-1]  # from the beginning, too
    lines = sum(len(json.dumps(value)) for value in stored)
    assert size_of(tmp_path) + lines < sum(map(len, bodies)) / 20
    files = sum(1 for file in (tmp_path / "blobs").rglob("*") if file.is_file())
    assert files <= len(bodies) + 3  # a link for each turn, the tools


def test_forks_and_repeats_share_what_they_share(tmp_path: Path) -> None:
    (*_, body) = loop(12, tools_first=False)
    forked = body.replace(b"Result 10", b"Result x")
    chains = Chains()
    with RunFolder(tmp_path) as folder:
        first, again, fork = (chains.stored(folder, each) for each in (body, body, forked))
        late = Chains().stored(folder, body)  # a recorder that was started again
    assert first == again and [body_of(tmp_path, v) for v in (first, fork, late)] == [body, forked, body]


@pytest.mark.parametrize(
    "body",
    [
        b'{"role":' * 2000,
        b'"role":"' + b"\xff\xfe" * 4000,
        b'{"messages": [], "tools": ' + b"[" * 5000,
        b"x" * 5000 + b'"role":',
        b'"tools":' + b" " * 5000 + b'"role":"tools":',
    ],
)
def test_any_bytes_come_back(tmp_path: Path, body: bytes) -> None:
    with RunFolder(tmp_path) as folder:
        stored = Chains().stored(folder, body)
    assert body_of(tmp_path, json.loads(json.dumps(stored))) == body


async def test_the_recorder_keeps_them_so(tmp_path: Path) -> None:
    bodies = loop(30, tools_first=False)
    async with recording(tmp_path) as proxied:
        for body in bodies:
            head = f"POST {WIRES[0].path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            await proxied.raw(head.encode() + b"Connection: close\r\n\r\n" + body)
    exchanges = [line for line in read_log(tmp_path) if line["kind"] == "exchange"]
    assert [exchange_of(tmp_path, line).request.body for line in exchanges] == bodies
    assert all("chain" in line["request"]["body"] for line in exchanges)
    tally = json.loads((tmp_path / "report.json").read_text())
    assert tally["tally"]["steps"]["sent"] == 30 and tally["tally"]["failed_to_judge"] == 0
