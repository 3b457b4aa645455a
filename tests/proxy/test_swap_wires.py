"""The interface swapped on every wire that has a place for a call; said where it can't be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.proxy.conftest import Proxied, Start, recording
from tests.proxy.test_swap import UNTOUCHED
from tests.proxy.upstream import LEAK, Answer, chunked, completion, say, text_stream, whole
from tests.proxy.wires import WIRES, Wire
from truecall.records import Choice, Response
from truecall.wire import read

BY_API = pytest.mark.parametrize("wire", WIRES, ids=[wire.api for wire in WIRES])
BOTH_WAYS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
LEAD = "Let me look: a < b."


def answering(wire: Wire, stream: bool, text: str | None, call: bool = False, size: int = 5) -> Answer:
    if not stream:
        return lambda r, w: say(w, whole(wire.whole(text, call)))
    return lambda r, w: say(w, *chunked(wire.stream(text, size, call), wire.kind))


async def post(proxied: Proxied, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{proxied.url}{path}", json=body) as response,
    ):
        headers = {k.lower(): v for k, v in response.headers.items()}
        return response.status, headers, await response.read()


async def asked(proxied: Proxied, wire: Wire, stream: bool, **more: Any) -> tuple[Response, Choice, bytes]:
    _, headers, body = await post(proxied, wire.path, wire.request(stream, **more))
    response = read(body, wire.api, content_type=headers["content-type"])
    (choice,) = response.choices
    return response, choice, body


def arguments(choice: Choice) -> list[tuple[str | None, Any]]:
    """Names and decoded arguments."""
    return [(c.name, json.loads(c.arguments) if isinstance(c.arguments, str) else c.arguments)
            for c in choice.tool_calls]  # fmt: skip


OSLO = ("get_weather", {"city": "Oslo"})
BERGEN = ("get_weather", {"city": "Bergen"})
SAYS_CALL = {"openai.chat": "tool_calls", "openai.responses": "completed", "anthropic.messages": "tool_use"}
SAYS_END = {"openai.chat": "stop", "openai.responses": "completed", "anthropic.messages": "end_turn"}


@BY_API
@pytest.mark.parametrize("size", [0, 1, 3, 8, 1000])
async def test_a_leaked_call_is_delivered(proxy: Start, wire: Wire, size: int) -> None:
    proxied = await proxy(answering(wire, size > 0, f"{LEAD}\n{LEAK}", size=size), swap="surface")
    response, choice, _ = await asked(proxied, wire, size > 0)
    assert arguments(choice) == [OSLO] and (choice.content or "").strip() == LEAD
    assert choice.finish_reason == SAYS_CALL.get(wire.api, "stop")
    assert response.defects == () and response.complete
    assert proxied.passed[0].delivered == 1 and proxied.passed[0].sent is not None
    assert LEAK.splitlines()[0].encode() in proxied.passed[0].body or size in (1, 3, 8)


@BY_API
@pytest.mark.parametrize("size", [0, 4])
async def test_nothing_but_calls(proxy: Start, wire: Wire, size: int) -> None:
    two = LEAK + "\n" + LEAK.replace("Oslo", "Bergen")
    proxied = await proxy(answering(wire, size > 0, two, size=size), swap="surface")
    response, choice, body = await asked(proxied, wire, size > 0)
    assert arguments(choice) == [OSLO, BERGEN] and not choice.content and response.defects == ()
    ids = [call.id for call in choice.tool_calls]
    assert wire.api == "ollama.chat" or (all(ids) and len(set(ids)) == 2)
    assert b'"text":""' not in body.replace(b'"content_block":{"type":"text","text":""', b"")


@BY_API
@BOTH_WAYS
async def test_a_given_call_stays_and_a_leaked_one_is_added(proxy: Start, wire: Wire, stream: bool) -> None:
    text = LEAK.replace("Oslo", "Bergen")
    proxied = await proxy(answering(wire, stream, text, call=True), swap="surface")
    response, choice, _ = await asked(proxied, wire, stream)
    assert sorted(arguments(choice), key=str) == [BERGEN, OSLO] and response.defects == ()


@BY_API
@BOTH_WAYS
@pytest.mark.parametrize("name", UNTOUCHED)
async def test_nothing_else_is_touched(proxy: Start, wire: Wire, stream: bool, name: str) -> None:
    text = UNTOUCHED[name]
    proxied = await proxy(answering(wire, stream, text), swap="surface")
    _, _, body = await asked(proxied, wire, stream)
    assert body == (b"".join(wire.stream(text)) if stream else wire.whole(text))
    assert proxied.passed[0].sent is None and proxied.passed[0].unswapped == ""


@BY_API
@BOTH_WAYS
@pytest.mark.parametrize("text", [None, "I look it up."])
async def test_a_call_is_hidden(proxy: Start, wire: Wire, stream: bool, text: str | None) -> None:
    proxied = await proxy(answering(wire, stream, text, call=True), swap="hide")
    response, choice, _ = await asked(proxied, wire, stream)
    assert choice.tool_calls == () and response.defects == ()
    assert choice.content == (LEAK if text is None else f"{text}\n{LEAK}")
    assert choice.finish_reason == SAYS_END.get(wire.api, "stop") and proxied.passed[0].delivered == -1


@BY_API
@BOTH_WAYS
async def test_hide_leaves_an_answer_without_calls(proxy: Start, wire: Wire, stream: bool) -> None:
    proxied = await proxy(answering(wire, stream, LEAD), swap="hide")
    _, _, body = await asked(proxied, wire, stream)
    assert body == (b"".join(wire.stream(LEAD)) if stream else wire.whole(LEAD))


# --------------------------------------------------------------------------- errors that hold the call

QUOTES = {
    "llama.cpp": (500, {"error": {"code": 500, "message": f"Failed to parse input at pos 0: {LEAK}",
                                  "type": "server_error"}}),
    "Groq": (400, {"error": {"message": "Failed to call a function.", "type": "invalid_request_error",
                             "code": "tool_use_failed", "failed_generation": LEAK}}),
}  # fmt: skip


@BY_API
@pytest.mark.parametrize("server", QUOTES)
async def test_a_call_that_only_an_error_holds_is_delivered(proxy: Start, wire: Wire, server: str) -> None:
    status, error = QUOTES[server]
    answer: Answer = lambda r, w: say(w, whole(json.dumps(error).encode(), status=f"{status} Bad"))  # noqa: E731
    proxied = await proxy(answer, swap="surface")
    got, headers, body = await post(proxied, wire.path, wire.request(False))
    (choice,) = read(body, wire.api).choices
    assert (got, headers["x-truecall"]) == (200, "surface; calls=1") and arguments(choice) == [OSLO]
    (frame,) = proxied.passed
    assert (frame.status, frame.delivered) == (status, 1) and frame.body == json.dumps(error).encode()


@pytest.mark.parametrize("text", ["It is fine.", LEAK.replace("}}", "}")])
async def test_other_errors_stay_errors(proxy: Start, text: str) -> None:
    body = json.dumps({"error": {"code": 500, "message": f"Failed to parse input at pos 0: {text}"}}).encode()
    proxied = await proxy(lambda r, w: say(w, whole(body, status="500 Bad")), swap="surface")
    wire = WIRES[0]
    for stream in (False, True):
        assert (await post(proxied, wire.path, wire.request(stream)))[::2] == (500, body)


async def test_an_error_is_no_answer_to_who_wants_a_stream(proxy: Start) -> None:
    body = json.dumps(QUOTES["llama.cpp"][1]).encode()
    proxied = await proxy(lambda r, w: say(w, whole(body, status="500 Bad")), swap="surface")
    assert (await post(proxied, WIRES[0].path, WIRES[0].request(True)))[::2] == (500, body)


# --------------------------------------------------------------------------- where it can't be

SCHEMA_TEXT = json.dumps({"name": "get_weather", "parameters": {"type": "object"}})


async def test_what_can_not_be_swapped_is_counted(tmp_path: Path) -> None:
    async def answer(request: Any, writer: Any) -> None:
        if request.target.endswith("/v1/completions"):
            body = {"choices": [{"index": 0, "text": LEAK, "finish_reason": "stop"}]}
            await say(writer, whole(json.dumps(body).encode()))
        else:
            await say(writer, *chunked(text_stream(LEAK)))

    chat = WIRES[0]
    async with recording(tmp_path, answer, swap="surface") as proxied:
        prompt = f"You may call [{SCHEMA_TEXT}]. Weather?"
        await post(proxied, "/v1/completions", {"model": "m", "prompt": prompt})
        _, _, body = await post(proxied, chat.path, chat.request(True, n=2))
        assert body == b"".join(text_stream(LEAK))
        await post(proxied, chat.path, chat.request(True))
    tally = json.loads((tmp_path / "report.json").read_text())["tally"]
    assert tally["unswapped"] == {
        "openai.completions has no place for a call": 1,
        "several answers in one stream": 1,
    }
    assert tally["steps"]["delivered_by_truecall"] == 1


async def test_uptake_of_a_call_out_of_an_error(tmp_path: Path) -> None:
    status, error = QUOTES["llama.cpp"]
    answers = iter([whole(json.dumps(error).encode(), status=f"{status} Bad"),
                    whole(json.dumps(completion("Rain.")).encode())])  # fmt: skip
    chat = WIRES[0]
    async with recording(tmp_path, lambda r, w: say(w, next(answers)), swap="surface") as proxied:
        _, _, body = await post(proxied, chat.path, chat.request(False))
        message = json.loads(body)["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "rain"}
        more = {"messages": [*chat.ask["messages"], message, result]}
        await post(proxied, chat.path, chat.request(False, **more))
    tally = json.loads((tmp_path / "report.json").read_text())["tally"]
    assert tally["calls"] == {"valid/erased": 1} and tally["uptakes"] == {"observed": 1}
