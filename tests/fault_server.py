"""A server for faults: scenarios by name, or a whole fake engine from a profile.

In tests: ``running = await fault_server("nginx-502")`` or ``await fault_server(Profile(parser="qwen3_coder"))``,
then ``running.base_url``. By hand: ``python -m tests.fault_server --port 8900 --scenario drip`` (``--list``).
Loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest_asyncio
from aiohttp import web

from tests.faults import contracts, engine, gateways, hostile, streams
from tests.faults.engine import Profile
from tests.faults.fingerprints import ENGINES
from tests.faults.kinds import STATE, Answer, Scenario, Stream

HOST = "127.0.0.1"
CHAT_PATHS = ("/v1/chat/completions", "/api/chat", "/chat/completions")

SCENARIOS: dict[str, Scenario] = {
    s.name: s for s in (*contracts.SCENARIOS, *streams.SCENARIOS, *gateways.SCENARIOS, *hostile.SCENARIOS)
}
PROFILES: dict[str, Profile] = {
    "engine-good": Profile(),
    "engine-no-gate": Profile(gate=False),
    "engine-not-rendered": Profile(template_renders_tools=False, required="ignored", engine="llamacpp"),
    "engine-erases": Profile(parser="qwen3_coder"),
    "engine-leaks": Profile(parser="none", engine="sglang"),
    "engine-stream-leaks": Profile(stream_parser="none"),
    "engine-required-loops": Profile(required="loops", model_calls=False, engine="llamacpp"),
    "engine-context-cut": Profile(context=40),
    "engine-results-lost": Profile(renders_tool_results=False),
    "engine-no-evidence": Profile(evidence=False, engine="tgi"),
    "engine-fails-under-load": Profile(fails_above=4),
}


@dataclass
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    """A server that runs: ``base_url`` ends in ``/v1``; ``received`` lists the requests so far."""

    base_url: str
    received: list[Received] = field(default_factory=list)

    def url(self, path: str) -> str:
        """The URL of a path from the server's root."""
        return self.base_url.removesuffix("/v1") + path

    @property
    def chats(self) -> list[Received]:
        return [r for r in self.received if r.path in CHAT_PATHS and r.method == "POST"]


class FaultServer:
    """One scenario or profile on one loopback port. Use as an async context manager."""

    def __init__(self, what: str | Scenario | Profile, port: int = 0) -> None:
        found: Scenario | Profile = what if not isinstance(what, str) else _named(what)
        self.scenario = found if isinstance(found, Scenario) else None
        self.profile = found if isinstance(found, Profile) else None
        self.port = port
        self.running: Running | None = None
        self._used = 0
        self._open = 0
        self._stop: Callable[[], Awaitable[None]] | None = None

    async def __aenter__(self) -> Running:
        start = self._start_raw if self.scenario and self.scenario.raw else self._start_http
        port = await start()
        self.running = Running(f"http://{HOST}:{port}/v1")
        return self.running

    async def __aexit__(self, *exc: object) -> None:
        if self._stop:
            await self._stop()

    # -------------------------------------------------------------- HTTP

    async def _start_http(self) -> int:
        app = web.Application(client_max_size=1 << 30)
        app[STATE] = {}
        app.router.add_route("*", "/{path:.*}", self._handle)
        # A handler that hangs or never ends is cancelled when its client goes away.
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, HOST, self.port)
        await site.start()
        self._stop = runner.cleanup
        return int(runner.addresses[0][1])

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if self.running:
            self.running.received.append(Received(request.method, request.path, dict(request.headers), body))
        if self.profile:
            return await self._as_engine(self.profile, request, body)
        assert self.scenario is not None
        if request.method == "GET" and not self.scenario.handler:
            return await _send(request, self.scenario.seen.get(request.path) or _models(request.path))
        if self.scenario.handler:
            return await self.scenario.handler(request, body)
        wants_stream = _decoded(body).get("stream") is True
        if wants_stream and self.scenario.stream:
            return await _send_stream(request, self.scenario.stream)
        index = min(self._used, len(self.scenario.answers) - 1)
        self._used += 1
        return await _send(request, self.scenario.answers[index])

    async def _as_engine(self, profile: Profile, request: web.Request, body: bytes) -> web.StreamResponse:
        if request.path == "/detokenize" and profile.engine in ("vllm", "sglang"):
            return await _send(request, Answer(200, engine.detokenize(_decoded(body))))
        if request.path not in CHAT_PATHS:
            return await _send(
                request, engine.get(profile, request.path) or Answer(404, {"detail": "Not Found"})
            )
        self._open += 1
        try:
            if profile.fails_above is not None:
                await asyncio.sleep(0.02)  # so that requests sent at once meet
                if self._open > profile.fails_above:
                    return await _send(request, Answer(503, {"error": "The request queue is full."}))
            found = engine.answer(profile, _decoded(body))
            if isinstance(found, Stream):
                return await _send_stream(request, found)
            return await _send(request, found)
        finally:
            self._open -= 1

    # -------------------------------------------------------------- bytes

    async def _start_raw(self) -> int:
        server = await asyncio.start_server(self._handle_raw, HOST, self.port)

        async def stop() -> None:
            server.close()
            await server.wait_closed()

        self._stop = stop
        return int(server.sockets[0].getsockname()[1])

    async def _handle_raw(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self.scenario is not None
        assert self.scenario.raw is not None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(h.split(b":")[1])
                    for h in head.lower().split(b"\r\n")
                    if h.startswith(b"content-length:")
                ),
                0,
            )
            body = await reader.readexactly(length)
            method, path = head.split(b" ", 2)[:2]
            if self.running:
                self.running.received.append(Received(method.decode(), path.decode(), {}, body))
            await self.scenario.raw(writer)
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            pass  # the client went away, or sent no HTTP
        finally:
            writer.close()


def _named(name: str) -> Scenario | Profile:
    if name in SCENARIOS:
        return SCENARIOS[name]
    if name in PROFILES:
        return PROFILES[name]
    if name in ENGINES:  # an engine's marks only, with its documented chat answer
        answers = {p: Answer(s, b, h) for p, (s, h, b) in ENGINES[name].items()}
        return Scenario(name, f"the marks of {name}", (answers.pop("chat"),), seen=answers)
    raise KeyError(f"no scenario {name!r}; --list names them")


def _models(path: str) -> Answer:
    """A model list, so that a client finds a model's name whatever the scenario; else 404."""
    if path == "/v1/models":
        return Answer(200, {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "tests"}]})
    return Answer(404, {"detail": "Not Found"})


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


async def _send(request: web.Request, answer: Answer) -> web.StreamResponse:
    headers = {**answer.headers, "content-type": answer.content_type()}
    return web.Response(status=answer.status, body=answer.raw(), headers=headers)


async def _send_stream(request: web.Request, stream: Stream) -> web.StreamResponse:
    kind = "application/x-ndjson" if stream.ndjson else "text/event-stream"
    response = web.StreamResponse(headers={"content-type": kind, **stream.headers})
    await response.prepare(request)
    for piece in stream.pieces():
        await response.write(piece)
    await response.write_eof()
    return response


Start = Callable[[str | Scenario | Profile], Awaitable[Running]]


@pytest_asyncio.fixture
async def fault_server() -> AsyncIterator[Start]:
    """A function that starts a scenario (by name), or a Profile; all are stopped after the test."""
    started: list[FaultServer] = []

    async def start(what: str | Scenario | Profile) -> Running:
        server = FaultServer(what)
        running = await server.__aenter__()
        started.append(server)
        return running

    yield start
    for server in started:
        await server.__aexit__()


async def _serve(name: str, port: int) -> None:
    async with FaultServer(name, port) as running:
        print(running.base_url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="engine-good")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        for name, scenario in SCENARIOS.items():
            print(f"{name:32} {scenario.about}")
        for name in (*PROFILES, *ENGINES):
            print(name)
        return
    try:
        asyncio.run(_serve(options.scenario, options.port))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
