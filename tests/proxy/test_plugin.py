"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

from tests.proxy.upstream import Upstream, completion, say, serving, whole

TEST = """
import json, os, urllib.request

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
        "properties": {"city": {"type": "string"}}}}}

def ask(base):
    body = json.dumps({"model": "m", "messages": [], "tools": [TOOL]}).encode()
    request = urllib.request.Request(base + "/chat/completions", body, {"Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request).read())

def test_session():
    assert ask(os.environ["OPENAI_BASE_URL"])["choices"]

def test_own(truecall_record):
    with truecall_record(os.environ["UPSTREAM"], "--surface") as recorded:
        assert ask(recorded.base_url)["choices"][0]["message"]["tool_calls"]
    assert recorded.lost == 1 and recorded.calls == {"valid/leaked": 1}
"""
LEAK = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def test_a_session_through_the_proxy(tmp_path: Path) -> None:
    started: list[Upstream] = []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with serving(lambda r, w: say(w, whole(json.dumps(completion(LEAK)).encode()))) as upstream:
            started.append(upstream)
            await stop.wait()

    thread = Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    while not started:
        thread.join(0.01)
    (tmp_path / "test_agent.py").write_text(TEST)
    environ = {**os.environ, "UPSTREAM": started[0].url, "TRUECALL_HOME": str(tmp_path / "home")}
    plugin = [] if has_entry_point() else ["-p", "truecall.integrations.pytest"]
    options = ["--truecall-upstream", started[0].url, "--truecall-fail-on", "lost"]
    command = [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", *options, "test_agent.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert "1 exchanges: sent 1 · emitted 1 · surfaced 0 · lost 1" in done.stdout
    assert done.returncode == 1  # a call was lost


def has_entry_point() -> bool:
    from importlib.metadata import entry_points

    return any(point.name == "truecall" for point in entry_points(group="pytest11"))
