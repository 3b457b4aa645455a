"""Real client libraries see through the proxy what they see without it, and the server sees the same from them.

OpenAI's, Anthropic's and Ollama's come with the ``dev`` extra. inspect_ai (some 400 MB) is wanted in the interpreter
that TRUECALL_SDK_PYTHON names (default: this one); a library that is not there is skipped.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import pytest

from tests.proxy.conftest import Start
from tests.proxy.upstream import LEAK, Request, Upstream, Writer, chunked, say, whole
from tests.proxy.wires import WIRES

PYTHON = os.environ.get("TRUECALL_SDK_PYTHON", sys.executable)
SCRIPT = str(__file__).replace("test_sdks.py", "sdk_clients.py")
HOP = {"host", "connection", "keep-alive", "transfer-encoding", "content-length"}
CHANGING = {"x-stainless-read-timeout", "traceparent", "idempotency-key", "x-irid", "x-request-id"}
LIBRARY = {"openai_sync": "openai", "openai_async": "openai"}


async def run(client: str, root: str) -> Any:
    environ = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    process = await asyncio.create_subprocess_exec(
        PYTHON,
        SCRIPT,
        client,
        root,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()[-2000:]
    return json.loads(out.decode().splitlines()[-1])


def seen(request: Request) -> tuple[Any, ...]:
    """A request but for what belongs to a connection or is new in every run."""
    headers = [(n, v) for n, v in request.headers if n.lower() not in HOP | CHANGING]
    return request.method, request.target, headers, request.body


async def has(library: str) -> bool:
    process = await asyncio.create_subprocess_exec(
        PYTHON, "-c", f"import {library}", stderr=asyncio.subprocess.DEVNULL
    )
    return await process.wait() == 0


@pytest.mark.parametrize("client", ["openai_sync", "openai_async", "anthropic", "ollama", "inspect_ai"])
async def test_a_client_sees_no_difference(proxy: Start, client: str) -> None:
    if not await has(LIBRARY.get(client, client)):
        pytest.skip(f"{LIBRARY.get(client, client)} is not installed in {PYTHON}")
    proxied = await proxy()
    upstream: Upstream = proxied.upstream
    direct = await run(client, upstream.url)
    asked = [seen(request) for request in upstream.requests]
    upstream.requests.clear()
    through = await run(client, proxied.url)
    assert without_hop(through) == without_hop(direct)
    assert [seen(request) for request in upstream.requests] == asked
    assert len(asked) > 0 and len(proxied.passed) == len(asked)


async def test_surfaced_calls_are_the_libraries_own(proxy: Start) -> None:
    for library in ("openai", "anthropic", "ollama"):
        if not await has(library):
            pytest.skip(f"{library} is not installed in {PYTHON}")

    async def leaking(request: Request, writer: Writer) -> None:
        wire = next(wire for wire in WIRES if request.target.startswith(wire.path))
        if request.json.get("stream"):
            await say(writer, *chunked(wire.stream(LEAK), wire.kind))
        else:
            await say(writer, whole(wire.whole(LEAK)))

    proxied = await proxy(leaking, swap="surface")
    call = ["get_weather", {"city": "Oslo"}]
    said = [
        "tool_calls",
        "tool_calls",
        "function_call",
        "function_call",
        "tool_use",
        "tool_use",
        "ollama",
        "ollama",
    ]
    assert await run("swapped", proxied.url) == [[word, *call] for word in said]


def without_hop(value: Any) -> Any:
    """Header lists without the fields of one connection."""
    if isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and value[0].lower() in {"connection", "keep-alive"}:
            return None
        return [without_hop(item) for item in value]
    return value
