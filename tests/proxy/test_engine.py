"""The swap on a real engine: what the model wrote comes out as a call on every API that llama.cpp serves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.proxy.upstream import WEATHER
from tests.proxy.wires import WIRES, Wire
from truecall.config import resolve
from truecall.local import embedded
from truecall.proxy import Hub, Settings
from truecall.proxy.frames import Passed
from truecall.wire import read

LEAKING = Path(__file__).parent / "harnesses" / "leaking.jinja"
SERVED = [wire for wire in WIRES if wire.api != "ollama.chat"]
QUESTION = "What is the weather in Oslo?"


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    with embedded(chat_template=LEAKING, ctx=1024) as running:
        yield running.base_url


def asking(wire: Wire, stream: bool) -> dict[str, Any]:
    body = wire.request(stream, temperature=0)
    limit = "max_output_tokens" if wire.api == "openai.responses" else "max_tokens"
    said = {"input": QUESTION} if "input" in body else {"messages": [{"role": "user", "content": QUESTION}]}
    return {**body, **said, limit: 40}


@pytest.mark.engine
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", SERVED, ids=[wire.api for wire in SERVED])
async def test_a_call_that_llama_cpp_leaves_in_the_text(engine: str, wire: Wire, stream: bool) -> None:
    frames: list[Any] = []
    settings = Settings(
        upstream=resolve(engine, environ={}), swap="surface", evidence=True, engine="llamacpp"
    )
    hub = Hub(settings, frames.append)
    async with (
        hub.serving("127.0.0.1", 0) as port,
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{port}{wire.path}", json=asking(wire, stream)) as response,
    ):
        assert response.status == 200
        given = read(await response.read(), wire.api, content_type=response.headers["content-type"])
    (frame,) = (frame for frame in frames if isinstance(frame, Passed))
    plain = read(frame.body, wire.api, content_type="text/event-stream" if stream else "application/json")
    assert plain.choices[0].tool_calls == () and "get_weather" in (plain.choices[0].content or "")
    (call,) = given.choices[0].tool_calls
    assert call.name == WEATHER["function"]["name"] and not given.choices[0].content and given.defects == ()
