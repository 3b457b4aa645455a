"""Evidence asked for and stripped; calls surfaced and hidden; everything else left as it came."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from tests.fault_server import FaultServer
from tests.faults.engine import Profile
from tests.proxy.conftest import Proxied, Start
from tests.proxy.upstream import (
    CALL,
    LEAK,
    WEATHER,
    Answer,
    Request,
    Writer,
    chunk,
    chunked,
    completion,
    say,
    text_stream,
    whole,
)
from truecall.config import resolve
from truecall.proxy import Hub, Settings
from truecall.proxy.editing import insert
from truecall.proxy.frames import Passed
from truecall.proxy.strip import says_nothing, strip
from truecall.wire import read

ASK: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Weather?"}],
    "tools": [WEATHER],
}


def answering(content: str | None, calls: list[Any] | None = None) -> Answer:
    return lambda r, w: say(w, whole(json.dumps(completion(content, calls)).encode()))


def streaming(pieces: list[bytes]) -> Answer:
    return lambda r, w: say(w, *chunked(pieces))


async def post(url: str, body: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/chat/completions", json=body) as response,
    ):
        return {k.lower(): v for k, v in response.headers.items()}, await response.read()


async def asked(proxied: Proxied, **more: Any) -> tuple[dict[str, str], Any]:
    headers, body = await post(proxied.url, {**ASK, **more})
    return headers, read(body, "openai.chat", content_type=headers["content-type"])


# --------------------------------------------------------------------------- surface, whole


async def test_a_leaked_call_is_delivered(proxy: Start) -> None:
    proxied = await proxy(answering(f"Let me look.\n{LEAK}"), swap="surface")
    headers, response = await asked(proxied)
    (choice,) = response.choices
    assert choice.content == "Let me look." and choice.finish_reason == "tool_calls"
    assert [(c.name, c.arguments) for c in choice.tool_calls] == [("get_weather", '{"city":"Oslo"}')]
    assert choice.tool_calls[0].id and headers["x-truecall"] == "surface; calls=1"
    (frame,) = proxied.passed
    assert LEAK.splitlines()[0].encode() in frame.body and frame.sent is not None and frame.delivered == 1


UNTOUCHED = {
    "prose": "The weather in Oslo is fine.",
    "a tool that was not offered": LEAK.replace("get_weather", "get_time"),
    "arguments against the schema": LEAK.replace('"Oslo"', "7"),
    "a payload that needs a repair": LEAK.replace("}}", "}"),
    "a placeholder": LEAK.replace("Oslo", "<city>"),
    "in reasoning": f"<think>I could write {LEAK}</think>It is fine.",
    "in a quotation": f"You would write `{LEAK}` for that, for example.",
}


@pytest.mark.parametrize("name", UNTOUCHED)
@pytest.mark.parametrize("stream", [False, True])
async def test_nothing_else_is_touched(proxy: Start, name: str, stream: bool) -> None:
    text = UNTOUCHED[name]
    pieces = text_stream(text)
    proxied = await proxy(streaming(pieces) if stream else answering(text), swap="surface")
    _, body = await post(proxied.url, {**ASK, "stream": stream})
    assert body == (b"".join(pieces) if stream else json.dumps(completion(text)).encode())
    assert proxied.passed[0].delivered == 0 and proxied.passed[0].sent is None


@pytest.mark.parametrize(
    "more",
    [{"tool_choice": "none"}, {"tools": []}, {"tools": None}],
)
async def test_only_where_calls_were_asked_for(proxy: Start, more: dict[str, Any]) -> None:
    proxied = await proxy(answering(LEAK), swap="surface")
    _, response = await asked(proxied, **more)
    assert response.choices[0].content == LEAK


async def test_two_calls_and_the_limit_to_one(proxy: Start) -> None:
    two = LEAK + "\n" + LEAK.replace("Oslo", "Bergen")
    proxied = await proxy(answering(two), swap="surface")
    _, both = await asked(proxied)
    _, one = await asked(proxied, parallel_tool_calls=False)
    assert [len(r.choices[0].tool_calls) for r in (both, one)] == [2, 1]
    assert both.choices[0].content is None and "Bergen" in (one.choices[0].content or "")
    assert len({c.id for c in both.choices[0].tool_calls}) == 2


async def test_surfaced_calls_stay_and_a_second_one_is_added(proxy: Start) -> None:
    proxied = await proxy(answering(LEAK.replace("Oslo", "Bergen"), [CALL]), swap="surface")
    _, response = await asked(proxied)
    assert [c.arguments for c in response.choices[0].tool_calls] == ['{"city": "Oslo"}', '{"city":"Bergen"}']


# --------------------------------------------------------------------------- surface, streams


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_a_leaked_call_in_a_stream(proxy: Start, size: int) -> None:
    pieces = text_stream(f"Look: a < b.\n{LEAK}\n", size=size)
    proxied = await proxy(streaming(pieces), swap="surface")
    headers, response = await asked(proxied, stream=True)
    (choice,) = response.choices
    assert (choice.content or "").strip() == "Look: a < b." and choice.finish_reason == "tool_calls"
    assert [(c.name, c.arguments) for c in choice.tool_calls] == [("get_weather", '{"city":"Oslo"}')]
    assert response.defects == () and headers["x-truecall"] == "surface; stream"
    assert proxied.passed[0].body == b"".join(pieces) and proxied.passed[0].sent is not None


async def test_text_before_an_opener_is_not_held(proxy: Start) -> None:
    import asyncio

    reached = asyncio.Event()
    pieces = text_stream("Plain words, (a) b [1] {x} then ", size=4)[:-2]

    async def answer(_: Request, writer: Writer) -> None:
        head, *rest = chunked(pieces)
        await say(writer, head, *rest[:-1])
        await asyncio.wait_for(reached.wait(), 5)
        await say(writer, *chunked([chunk({"content": "end"}), chunk({}, "stop"), b"data: [DONE]\n\n"])[1:])

    proxied = await proxy(answer, swap="surface")
    got = b""
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{proxied.url}/v1/chat/completions", json={**ASK, "stream": True}) as response,
    ):
        while len(got) < len(b"".join(pieces)):
            got += await asyncio.wait_for(response.content.readany(), 5)
        reached.set()
        got += await response.read()
    assert got.startswith(b"".join(pieces)) and got.endswith(b"data: [DONE]\n\n")


async def test_a_stream_that_breaks_off_gives_what_was_held(proxy: Start) -> None:
    async def answer(_: Request, writer: Writer) -> None:
        await say(writer, *chunked(text_stream(LEAK)[:6])[:-1])
        writer.close()

    proxied = await proxy(answer, swap="surface")
    with pytest.raises(aiohttp.ClientPayloadError):
        await post(proxied.url, {**ASK, "stream": True})
    assert proxied.passed[0].failure == "closed_mid_stream"


# --------------------------------------------------------------------------- hide


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_is_turned_back_into_text(proxy: Start, stream: bool) -> None:
    call = chunk({"tool_calls": [{"index": 0, **CALL}]})
    pieces = [
        chunk({"role": "assistant", "content": None}),
        call,
        chunk({}, "tool_calls"),
        b"data: [DONE]\n\n",
    ]
    proxied = await proxy(streaming(pieces) if stream else answering(None, [CALL]), swap="hide")
    _, response = await asked(proxied, stream=stream)
    (choice,) = response.choices
    assert choice.tool_calls == () and choice.finish_reason == "stop"
    assert choice.content == LEAK
    assert proxied.passed[0].delivered == -1


# --------------------------------------------------------------------------- evidence, on a whole fake engine


async def on_engine(profile: Profile, swap: str, **more: Any) -> tuple[Any, Any, list[Any], list[Any]]:
    """(through the proxy, direct, frames, the engine's requests)."""
    frames: list[Any] = []
    async with FaultServer(profile) as engine:
        connection = resolve(engine.base_url, environ={})
        settings = Settings(upstream=connection, swap=swap, evidence=True, engine=profile.engine)  # type: ignore[arg-type]
        hub = Hub(settings, frames.append)
        body = {**ASK, "messages": [{"role": "user", "content": "Please use get_weather."}], **more}
        async with hub.serving("127.0.0.1", 0) as port:
            headers, through = await post(f"http://127.0.0.1:{port}", body)
        requests = list(engine.chats)
        _, direct = await post(engine.base_url.removesuffix("/v1"), body)
        kind = headers["content-type"]
        return (
            read(through, "openai.chat", content_type=kind),
            read(direct, "openai.chat", content_type=kind),
            frames,
            requests,
        )


@pytest.mark.parametrize("stream", [False, True])
async def test_evidence_is_asked_for_and_not_shown(stream: bool) -> None:
    through, direct, frames, requests = await on_engine(Profile(parser="qwen3_coder"), "none", stream=stream)
    assert requests[0].json["return_token_ids"] is True
    assert through.choices[0].token_ids is None and through.prompt_token_ids is None
    assert (through.choices, through.usage) == (direct.choices, direct.usage)
    passed = next(frame for frame in frames if isinstance(frame, Passed))
    assert passed.added == {"return_token_ids": True} and passed.awaits
    texts = [frame.texts for frame in frames if type(frame).__name__ == "Text"]
    assert texts and "<tool_call>" in texts[0][0]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_erased_call_is_delivered(stream: bool) -> None:
    through, direct, *_ = await on_engine(Profile(parser="qwen3_coder"), "surface", stream=stream)
    assert direct.choices[0].tool_calls == () and not direct.choices[0].content
    assert [call.name for call in through.choices[0].tool_calls] == ["get_weather"]
    assert through.choices[0].finish_reason == "tool_calls"


async def test_evidence_is_given_up_where_it_is_refused() -> None:
    through, direct, frames, requests = await on_engine(Profile(evidence=False), "none")
    assert len(requests) == 2 and "return_token_ids" not in requests[1].json
    assert through.choices == direct.choices and through.error is None
    first, second = (frame for frame in frames if isinstance(frame, Passed))
    assert first.superseded and first.status == 400 and second.status == 200


def test_what_was_asked_for_leaves_no_trace() -> None:
    choice = {"index": 0, "delta": {"content": "Hi"}, "logprobs": None, "finish_reason": None}
    plain = {
        "id": "c",
        "choices": [{**choice, "token_ids": None}],
        "prompt_token_ids": None,
    }  # vLLM 0.32, live
    asked = {"id": "c", "choices": [{**choice, "token_ids": [1, 2]}], "prompt_token_ids": [3]}
    assert strip(asked, ("return_token_ids",), "vllm") and asked == plain
    sglang = {"choices": [{**choice, "meta_info": {"id": "x"}}], "sglext": {}}
    assert strip(sglang, ("return_meta_info",), "sglang") and sglang == {"choices": [choice]}
    ollama = {"message": {"role": "assistant", "content": ""}, "logprobs": [{"token": "<"}], "done": False}
    assert strip(ollama, ("logprobs",), "ollama") and says_nothing(ollama) and "logprobs" not in ollama


def test_fields_are_put_in_and_the_rest_stays() -> None:
    assert insert(b' {"a":  1}', {"x": True}) == b' {"x":true,"a":  1}'
    assert insert(b"{ }", {"x": 1}) == b'{"x":1 }'
    assert insert(b'{"a":1}', {}) == b'{"a":1}'
