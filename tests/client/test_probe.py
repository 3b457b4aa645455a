"""Asking a server about itself: ports of this machine, models and their choice, the engine."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import pytest
from rawserver import Handler, says, serving, whole

from truecall import probe
from truecall.client import Client
from truecall.config import resolve
from truecall.records import FailureKind
from truecall.stacks import PROBE_PATHS, Stack
from truecall.stacks.base import EngineRequest


def routes(table: dict[str, object], status: str = "404 Not Found") -> Handler:
    """Answers paths from ``table`` as JSON, others with an error."""

    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
        path = request.split(b" ")[1].decode()
        if path in table:
            writer.write(whole(json.dumps(table[path]).encode(), "Content-Type: application/json"))
        else:
            writer.write(whole(b'{"detail":"Not Found"}', "Content-Type: application/json", status=status))

    return handle


def listing(*names: str, **more: object) -> dict[str, object]:
    return {"object": "list", "data": [{"id": name, "object": "model", **more} for name in names]}


async def choice(handler: Handler, wanted: str | None = None) -> probe.ModelChoice:
    async with serving(handler) as heard, Client(resolve(heard.url, environ={})) as client:
        return await probe.choose_model(client, wanted)


async def test_the_only_model_is_taken_and_a_wanted_one_kept() -> None:
    one = routes({"/v1/models": listing("m1")})
    assert await choice(one) == probe.ModelChoice(
        model="m1", why="the only one on the server", models=("m1",)
    )
    assert (await choice(one, "m1")).why == "named by you"
    other = await choice(one, "m2")
    assert other.model == "m2" and "does not list" in other.why


@pytest.mark.parametrize(("extra", "expected"), [
    ({}, "b-chat"),
    ({"/api/ps": {"models": [{"name": "c:latest"}]}}, "c:latest"),
    ({"/api/v0/models": {"data": [{"id": "a-embed", "type": "embeddings", "state": "loaded"},
                                  {"id": "c:latest", "type": "llm", "state": "loaded"}]}}, "c:latest"),
    ({"/api/ps": {"models": "nonsense"}, "/api/v0/models": [1]}, "b-chat"),
])  # fmt: skip
async def test_of_several_the_loaded_or_first_chatting_one(extra: dict[str, object], expected: str) -> None:
    chosen = await choice(routes({"/v1/models": listing("a-embed", "b-chat", "c:latest"), **extra}))
    assert chosen.model == expected and "of 3" in chosen.why and len(chosen.models) == 3


async def test_llamacpp_router_states() -> None:
    entries = [{"id": "a", "status": {"value": "unloaded"}}, {"id": "b", "status": {"value": "loaded"}}]
    assert (await choice(routes({"/v1/models": {"data": entries}}))).model == "b"


async def test_ollama_tags_stand_in() -> None:
    chosen = await choice(routes({"/api/tags": {"models": [{"name": "q:1"}]}}))
    assert chosen.model == "q:1"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"data":[{"id":5}]}', b'{"data":{}}', b"[" * 100_000]
)
async def test_no_models_is_an_answer(body: bytes) -> None:
    chosen = await choice(says(whole(body)))
    assert chosen.model is None and "lists no models" in chosen.why


async def test_no_server_is_an_answer() -> None:
    async with Client(resolve("http://127.0.0.1:9", environ={})) as client:
        chosen = await probe.choose_model(client)
        assert await probe.models(client) == []
    assert chosen.model is None and chosen.failure is not None and chosen.failure.kind is FailureKind.REFUSED


async def test_local_ports_are_found_quickly_and_get_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-must-not-be-sent")
    wants_key = says(whole(b'{"error":"key"}', status="401 Unauthorized"))
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        async with (
            serving(routes({"/v1/models": listing("m1", "m2")})) as first,
            serving(says(whole(b"<html>a web site</html>"))) as site,
            serving(says(then_hang=True)) as hanging,
            serving(wants_key) as locked,
        ):
            ports = [9, mute.getsockname()[1], hanging.port, site.port, first.port, locked.port]
            began = time.monotonic()
            found = await probe.find_local(ports)
            assert time.monotonic() - began < 1.5  # 0.9 s by its own limits
            assert b"Authorization" not in first.requests[0]
    assert found == [
        probe.Found(base_url=f"http://127.0.0.1:{first.port}/v1", models=("m1", "m2")),
        probe.Found(base_url=f"http://127.0.0.1:{locked.port}/v1", needs_key=True),
    ]


async def test_an_engine_is_recognised_from_its_own_paths() -> None:
    table = {
        "/v1/models": listing("m", owned_by="vllm", max_model_len=4096),
        "/version": {"version": "0.32.0"},
    }
    async with serving(routes(table)) as heard, Client(resolve(heard.url, environ={})) as client:
        info, seen = await probe.identify(client, "m")
        asked = {request.split(b" ")[1].decode() for request in heard.requests}
    assert info.engine == "vllm" and info.version.value == "0.32.0"
    assert asked == set(PROBE_PATHS) == set(seen.seen)
    assert seen.seen["/props"].status == 404 and seen.model == "m"


async def test_probes_of_a_hostile_server_end_and_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_SHORT", probe._QUICK)
    flood = [b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", *[b"x" * 65536] * 200]
    for handler in (says(*flood), says(then_hang=True), says(b"\x00\xff"), says(whole(b"[" * 50_000))):
        async with serving(handler) as heard, Client(resolve(heard.url, environ={})) as client:
            info, seen = await probe.identify(client)
        assert info.engine == "openai_compatible"
        assert all(len(item.body) <= probe._TEXT for item in seen.seen.values() if isinstance(item.body, str))


async def test_settle_adds_v1_only_where_that_answers() -> None:
    async with serving(routes({"/gw/v1/models": listing("m"), "/plain/models": listing("m")})) as heard:
        for given, settled in [
            ("/gw", "/gw/v1"),
            ("/plain", "/plain"),
            ("/none", "/none"),
            ("/x/v1", "/x/v1"),
            ("", ""),
        ]:
            connection = await probe.settle(resolve(heard.url + given, environ={}))
            assert connection.base_url == heard.url + settled


class Detokenizing(Stack):
    name = "detokenizing"

    def detokenize(self, ids, model=None):
        return EngineRequest(path="/detokenize", body={"tokens": list(ids), "model": model})

    def read_detokenized(self, body):
        return body.get("prompt") if isinstance(body, dict) else None


async def test_detokenize() -> None:
    async with serving(routes({"/detokenize": {"prompt": "<tool_call>"}})) as heard:
        async with Client(resolve(heard.url, environ={})) as client:
            assert await probe.detokenize(client, Detokenizing(), [1, 2], "m") == "<tool_call>"
            assert await probe.detokenize(client, Stack(), [1, 2]) is None
        assert heard.requests[0].endswith(b'{"tokens":[1,2],"model":"m"}')
    async with serving(routes({})) as heard, Client(resolve(heard.url, environ={})) as client:
        assert await probe.detokenize(client, Detokenizing(), [1]) is None
