"""The fault server shows what it says: each scenario is looked at from the client's side."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fault_server import PROFILES, SCENARIOS, Profile, Running, Start, fault_server
from tests.faults import contracts, engine, hostile, streams
from truecall import stacks
from truecall.stacks import Observations, Seen

__all__ = ["fault_server"]

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
ASK = {"role": "user", "content": "Use get_weather for Oslo."}


async def post(
    running: Running, body: dict[str, Any] | None = None, path: str = "/v1/chat/completions"
) -> Any:
    """Status, headers and text of one answer; at most 2 seconds and 4 MB."""
    url = running.url(path)
    timeout = aiohttp.ClientTimeout(total=2)
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session:
        request = session.post(
            url, json=body or {}, allow_redirects=False, headers={"authorization": "Bearer k-12345678"}
        )
        async with request as response:
            data = await response.content.read(4_000_000)
            while data and not response.content.at_eof() and len(data) < 4_000_000:
                data += await response.content.read(4_000_000 - len(data))
            return response.status, response.headers, data


async def chat(running: Running, **more: Any) -> dict[str, Any]:
    """The answer of a fake engine, decoded."""
    body = {"model": "m", "messages": [ASK], "tools": TOOLS, **more}
    _, _, data = await post(running, body)
    decoded = json.loads(data)
    assert isinstance(decoded, dict)
    return decoded


def payloads(data: bytes) -> list[str]:
    return [e.removeprefix("data: ") for e in data.decode().split("\n\n") if e]


def message(answer: dict[str, Any]) -> dict[str, Any]:
    found = answer["choices"][0]["message"]
    assert isinstance(found, dict)
    return found


# ------------------------------------------------------------------ contracts


@pytest.mark.parametrize("name", contracts.TABLE)
async def test_contract_row(fault_server: Start, name: str) -> None:
    _, status, body, rule = contracts.TABLE[name]
    got, headers, data = await post(await fault_server(name), {"tools": TOOLS})
    assert (got, json.loads(data)) == (status, body)
    assert headers["content-type"] == "application/json"
    refusal = stacks.refusal(got, None, data.decode())
    assert (refusal.rule if refusal else None) == rule


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("nginx-502", "gateway.bad_gateway"),
        ("nginx-504", "gateway.timeout"),
        ("nginx-413", "gateway.body_too_large"),
        ("cloudflare-524", "gateway.timeout"),
        ("envoy-503", "gateway.upstream_unreachable"),
        ("kong-401", "auth.key"),
        ("litellm-gate", "gate.vllm.auto_flags"),
        ("litellm-history", "history.bad_arguments"),
        ("openrouter-no-endpoint", "gate.router.no_tool_endpoint"),
        ("openrouter-provider-error", "gate.model_no_tools"),
        ("rate-limited", "rate.limited"),
        ("wrong-key", "auth.key"),
        ("model-unknown", "model.not_found"),
        ("error-with-call", "server.error"),
        ("html-200", "gateway.html"),
        ("redirect", "gateway.redirect"),
    ],
)
async def test_gateways_and_services(fault_server: Start, name: str, rule: str) -> None:
    status, headers, data = await post(await fault_server(name))
    found = stacks.refusal(status, None, data.decode())
    assert found is not None
    assert found.rule == rule
    seen = stacks.recognise(
        Observations(chat=Seen(status=status, headers=tuple(headers.items()), body=data.decode()))
    )
    kind = {
        "nginx": "nginx",
        "cloudflare": "Cloudflare",
        "envoy": "Envoy",
        "kong": "Kong",
        "litellm": "LiteLLM",
    }
    wanted = kind.get(name.split("-")[0])
    assert wanted is None or wanted in [g.name for g in seen.gateways]


async def test_answers_come_in_order(fault_server: Start) -> None:
    running = await fault_server("rate-limited-then-ok")
    first, headers, _ = await post(running)
    assert (first, headers["retry-after"]) == (429, "1")
    assert [(await post(running))[0] for _ in range(2)] == [200, 200]
    assert len(running.chats) == 3


@pytest.mark.parametrize("name", ["vllm", "sglang", "llamacpp", "ollama", "lmstudio", "tgi"])
async def test_marks_of_engines_over_http(fault_server: Start, name: str) -> None:
    running = await fault_server(name)
    seen: dict[str, Seen] = {}
    async with aiohttp.ClientSession() as session:
        for probe in stacks.PROBES:
            url = running.url(probe.path)
            async with session.request(probe.method, url) as response:
                text = await response.text()
                body = json.loads(text) if text[:1] in "{[" else text
                seen[probe.path] = Seen(
                    status=response.status, headers=tuple(response.headers.items()), body=body
                )
    assert stacks.recognise(Observations(seen=seen)).engine == name


# ------------------------------------------------------------------ streams


@pytest.mark.parametrize("scenario", [s for s in streams.SCENARIOS if s.stream], ids=lambda s: s.name)
async def test_stream_as_written(fault_server: Start, scenario: Any) -> None:
    running = await fault_server(scenario.name)
    status, headers, data = await post(running, {"stream": True})
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    assert payloads(data) == list(scenario.stream.payloads)
    assert all(p == "[DONE]" or json.loads(p) for p in payloads(data))
    plain = await post(running, {"stream": False})
    assert json.loads(plain[2]) == scenario.answers[0].body


async def test_ollama_error_line(fault_server: Start) -> None:
    _, headers, data = await post(await fault_server("ollama-error-line"), {"stream": True}, "/api/chat")
    assert headers["content-type"] == "application/x-ndjson"
    last = json.loads(data.decode().splitlines()[-1])
    assert last["error"].startswith("error parsing tool call")


# ------------------------------------------------------------------ hostile


@pytest.mark.parametrize("name", ["hang", "hang-after-headers", "drip"])
async def test_slow_ones_outlast_a_client(fault_server: Start, name: str) -> None:
    running = await fault_server(name)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(post(running), 0.3)


@pytest.mark.parametrize("name", ["huge-body", "endless-line", "endless-words", "endless-index"])
async def test_endless_ones_go_on(fault_server: Start, name: str) -> None:
    running = await fault_server(name)
    url = running.url("/v1/chat/completions")
    least = 300_000 if name in ("endless-index", "endless-words") else 3_000_000
    size = 0
    async with aiohttp.ClientSession() as session, session.post(url, json={}) as response:
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > least:
                break
    assert size > least


def test_the_bomb_is_a_gigabyte_in_a_megabyte() -> None:
    packed = hostile.gzip_bomb()
    assert len(packed) < 2_000_000
    one = gzip.decompress(packed[: len(packed) // 100])
    assert len(one) * 100 == hostile.BOMB_SIZE


@pytest.mark.parametrize(
    "name",
    [
        "not-http",
        "close-at-once",
        "close-mid-body",
        "close-mid-stream",
        "reset-mid-body",
        "bad-chunks",
        "huge-headers",
    ],
)
async def test_broken_http_is_a_client_error(fault_server: Start, name: str) -> None:
    running = await fault_server(name)
    with pytest.raises((aiohttp.ClientError, ValueError)):
        await post(running)
    assert len(running.received) == 1


async def test_the_key_comes_back(fault_server: Start) -> None:
    status, headers, data = await post(await fault_server("echo-key"))
    assert status == 401
    assert "k-12345678" in headers["x-echo"]
    assert data.count(b"k-12345678") == 2


async def test_slow_at_first_only(fault_server: Start) -> None:
    for _ in range(2):  # each server starts cold
        running = await fault_server("slow-start")
        begin = time.perf_counter()
        await post(running)
        cold = time.perf_counter() - begin
        begin = time.perf_counter()
        assert (await post(running))[0] == 200
        assert cold > 0.5 > time.perf_counter() - begin


async def test_odd_bodies(fault_server: Start) -> None:
    with pytest.raises(UnicodeDecodeError):
        (await post(await fault_server("invalid-utf8")))[2].decode()
    with pytest.raises(json.JSONDecodeError):
        json.loads((await post(await fault_server("not-json")))[2])
    assert (await post(await fault_server("empty-body")))[2] == b""
    _, headers, data = await post(await fault_server("wrong-content-type"))
    assert headers["content-type"] == "image/png"
    assert json.loads(data) == hostile.OK
    usage = json.loads((await post(await fault_server("lying-usage")))[2])["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == ("many", 10**12)


async def test_the_redirect_goes_nowhere(fault_server: Start) -> None:
    status, headers, _ = await post(await fault_server("redirect"))
    assert status == 307
    assert headers["location"].split("/")[2].endswith(".invalid")


# ------------------------------------------------------------------ whole engines


async def test_a_good_engine(fault_server: Start) -> None:
    running = await fault_server(Profile())
    answer = await chat(running, return_token_ids=True)
    call = message(answer)["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("get_weather", {"city": "Oslo", "days": 2})
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    ids = answer["choices"][0]["token_ids"]
    request = stacks.engine("vllm").detokenize(ids)
    assert request is not None
    _, _, data = await post(running, request.body, request.path)
    assert stacks.engine("vllm").read_detokenized(json.loads(data)) == engine.hermes(
        "get_weather", {"city": "Oslo", "days": 2}
    )


@pytest.mark.parametrize("renders", [True, False])
async def test_rendered_shows_in_prompt_tokens(fault_server: Start, renders: bool) -> None:
    running = await fault_server(Profile(template_renders_tools=renders, required="ignored"))
    without = (await chat(running, tools=None))["usage"]["prompt_tokens"]
    answer = await chat(running)
    assert (answer["usage"]["prompt_tokens"] > without + 10) is renders
    assert bool(message(answer)["tool_calls"]) is renders


@pytest.mark.parametrize(
    ("parser", "text", "content", "calls"),
    [
        ("hermes", engine.hermes("get_weather", {"city": "Oslo"}), None, 1),
        ("hermes", '{"name": "get_weather", "arguments": {}}', '{"name": "get_weather", "arguments": {}}', 0),
        ("qwen3_coder", engine.hermes("get_weather", {"city": "Oslo"}), None, 0),
        (
            "qwen3_coder",
            "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
            None,
            1,
        ),
        ("none", engine.hermes("f", {}), engine.hermes("f", {}), 0),
    ],
)
@pytest.mark.parametrize("name", ["vllm", "llamacpp"])
async def test_loopback_reaches_the_parser(
    fault_server: Start, parser: Any, text: str, content: str | None, calls: int, name: Any
) -> None:
    request = stacks.engine(name).loopback(text, TOOLS, "m")
    assert request is not None
    running = await fault_server(Profile(engine=name, parser=parser))
    answer = json.loads((await post(running, request.body, request.path))[2])
    assert message(answer)["content"] == content
    assert len(message(answer)["tool_calls"]) == calls
    wrote = answer.get("__verbose", {}).get("content") or bytes(answer["choices"][0]["token_ids"]).decode()
    assert wrote == text


async def test_echo_repeats(fault_server: Start) -> None:
    text = engine.hermes("get_weather", {"city": "Bergen"})
    request = stacks.engine("ollama").loopback(text, TOOLS, "m")
    assert request is not None
    assert request.way == "echo"
    running = await fault_server(Profile(engine="ollama"))
    answer = json.loads((await post(running, request.body, request.path))[2])
    assert "Bergen" in message(answer)["tool_calls"][0]["function"]["arguments"]


async def test_gates(fault_server: Start) -> None:
    for name, rule in (("vllm", "gate.vllm.auto_flags"), ("llamacpp", "gate.llamacpp.no_jinja")):
        running = await fault_server(Profile(engine=name, gate=False))  # type: ignore[arg-type]
        status, _, data = await post(running, {"messages": [ASK], "tools": TOOLS})
        found = stacks.refusal(status, None, data.decode(), name)
        assert found is not None
        assert found.rule == rule
        assert (await post(running, {"messages": [ASK]}))[0] == 200


async def test_streaming_tells_the_same_or_does_not(fault_server: Start) -> None:
    body = {"messages": [ASK], "tools": TOOLS, "stream": True}
    _, _, same = await post(await fault_server(Profile()), body)
    assert b'"tool_calls"' in same
    assert payloads(same)[-1] == "[DONE]"
    _, _, leaks = await post(await fault_server(Profile(stream_parser="none")), body)
    deltas = [json.loads(p)["choices"] for p in payloads(leaks)[:-1]]
    text = "".join(c[0]["delta"].get("content") or "" for c in deltas if c)
    assert text == engine.hermes("get_weather", {"city": "Oslo", "days": 2})


async def test_required_budget_results_and_context(fault_server: Start) -> None:
    loops = await chat(
        await fault_server(PROFILES["engine-required-loops"]), tool_choice="required", max_tokens=50
    )
    assert loops["choices"][0]["finish_reason"] == "length"
    assert not message(loops)["tool_calls"]
    cut = await chat(await fault_server(PROFILES["engine-context-cut"]))
    assert cut["usage"]["prompt_tokens"] <= 41
    history = [ASK, {"role": "tool", "content": "4 degrees", "tool_call_id": "x"}]
    used = [
        (await chat(await fault_server(Profile(renders_tool_results=r)), messages=history))["usage"]
        for r in (True, False)
    ]
    assert used[0]["prompt_tokens"] > used[1]["prompt_tokens"]


async def test_evidence_is_refused_by_name(fault_server: Start) -> None:
    running = await fault_server(PROFILES["engine-no-evidence"])
    status, _, data = await post(running, {"messages": [ASK], "logprobs": True})
    assert stacks.blamed_fields(None, data.decode(), ("logprobs", "verbose")) == ("logprobs",)
    assert status == 400


async def test_load(fault_server: Start) -> None:
    running = await fault_server(PROFILES["engine-fails-under-load"])
    body = {"messages": [ASK], "tools": TOOLS}
    assert (await post(running, body))[0] == 200
    statuses = [got[0] for got in await asyncio.gather(*(post(running, body) for _ in range(12)))]
    assert {200, 503} == set(statuses)


# ------------------------------------------------------------------ by hand


def test_names_and_command_line() -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "tests.fault_server", "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, cwd=root, check=True).stdout
    assert all(name in listed for name in (*SCENARIOS, *PROFILES))
    assert len(SCENARIOS) > 90
