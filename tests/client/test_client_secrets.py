"""Keys go where the user sent them, never in the clear, and come back in nothing that an exchange holds."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json

import msgspec
import pytest
from rawserver import OK, serving, whole

from truecall.client import Client
from truecall.config import Connection, resolve
from truecall.errors import UsageError
from truecall.records import Exchange
from truecall.store import RunFolder

KEY = "sk-proj-Zx81/Qw+7hTn=2"
LINES = [
    f"Bearer {KEY}",
    json.dumps(f"key {KEY}"),
    base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    KEY.replace("/", "%2F").replace("+", "%2B").replace("=", "%3D"),
]
ECHO = "\n".join(LINES).encode()


def everything(exchange: Exchange) -> str:
    return repr(msgspec.to_builtins(exchange, builtin_types=(bytes,)))


def echo_in(text: str) -> list[str]:
    return [line for line in [KEY, *LINES] if line in text]


async def echoed(answer_of, tmp_path, *, step: int | None = None) -> Exchange:
    """An exchange with a server that echoes the key, also written to a run folder."""

    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
        assert KEY.encode() in request
        answer = answer_of(ECHO)
        for at in range(0, len(answer), step or len(answer)):
            writer.write(answer[at : at + (step or len(answer))])
            await writer.drain()
            await asyncio.sleep(0)

    pieces: list[bytes] = []
    async with serving(handle) as heard:
        connection = resolve(heard.url, environ={"OPENAI_API_KEY": KEY})
        async with Client(connection) as client:
            exchange = await client.send(
                "POST", "chat/completions", json={"messages": [KEY]}, stream=True, on_chunk=pieces.append
            )
            with RunFolder(tmp_path / "run", redactor=client.redactor) as folder:
                folder.exchange(exchange, probe="auto")
                folder.append("note", {"said": f"the key is {KEY}", "raw": ECHO * 200})
                folder.put(b"put " + ECHO)
                folder.write("card.json", {"headers": [KEY], KEY: base64.b64encode(ECHO).decode()})
    assert echo_in(b"".join(pieces).decode()) == []
    return exchange


ANSWERS = {
    "body": lambda echo: whole(echo),
    "error": lambda echo: whole(echo, status="401 Unauthorized"),
    "gzip": lambda echo: whole(gzip.compress(echo), "Content-Encoding: gzip"),
    "headers": lambda echo: whole(
        b"{}",
        f"X-Echo: {KEY}",
        f"Location: https://x/?k={KEY}&key=other",
        f"X-Api-Key: {KEY}",
        f"{KEY[:7]}: x",
    ),
    "reason": lambda echo: whole(b"", status=f"400 no {KEY}"),
    "no http": lambda echo: echo + b"\r\n\r\n",
    "cut off": lambda echo: OK + b"Content-Length: 9999\r\n\r\n" + f"it is {KEY[:-1]}".encode(),
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("step", [None, 5])
async def test_no_echo_is_left_anywhere(answer: str, step: int | None, tmp_path) -> None:
    exchange = await echoed(ANSWERS[answer], tmp_path, step=step)
    assert echo_in(everything(exchange)) == [] and KEY[:-1] not in everything(exchange)
    if answer in {"body", "error", "gzip"}:
        assert exchange.body.count(b"[redacted]") == len(LINES)
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) >= 4
    for path in files:
        raw = path.read_bytes()
        if "blobs" in path.parts:
            import zstandard

            raw = zstandard.ZstdDecompressor().decompress(raw)
        assert echo_in(raw.decode("latin-1")) == [], path


async def send_to(base_url: str, target: str = "/x", **options: object) -> Exchange:
    env = options.pop("environ", {"OPENAI_API_KEY": KEY})
    async with Client(resolve(base_url, environ=env, **options)) as client:
        return await client.send("GET", target, timeout=0.5)


async def test_a_key_is_not_sent_in_the_clear() -> None:
    for url, environ in [
        ("http://llm.invalid/v1", {"OPENAI_API_KEY": KEY}),
        ("http://10.1.2.3:8000", {"OPENAI_API_KEY": "a"}),
        ("http://ann:pass-word@llm.invalid", {}),
        ("http://llm.invalid/v1?key=AIza", {}),
    ]:
        with pytest.raises(UsageError) as raised:
            await send_to(url, environ=environ)
        assert "plain http" in str(raised.value) and "\n" not in str(raised.value)
        assert not echo_in(str(raised.value)) and "pass-word" not in str(raised.value)
    with pytest.raises(UsageError):
        await send_to("http://llm.invalid", environ={}, headers=["X-Api-Key: abc"])


async def test_but_where_it_may_be() -> None:
    allowed = await send_to("http://llm.invalid/v1", key_over_http=True)
    dummy = await send_to("http://llm.invalid/v1", environ={"OPENAI_API_KEY": "EMPTY"})
    assert allowed.failure is not None and dummy.failure is not None  # they were tried: no such host


async def test_a_key_stays_with_its_own_server() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter, __: bytes) -> None:
        writer.write(whole(b"{}"))

    async with serving(answer) as own, serving(answer) as other:
        connection = resolve(own.url, headers=["X-Token: t0p-secret"], environ={"OPENAI_API_KEY": KEY})
        async with Client(connection) as client:
            await client.send("GET", f"{other.url}/x")
            await client.send("GET", f"{own.url}/x")
        assert b"Authorization" not in other.requests[0] and b"X-Token" not in other.requests[0]
        assert KEY.encode() in own.requests[0] and b"t0p-secret" in own.requests[0]


def test_a_connection_shows_no_key() -> None:
    connection = resolve(
        "http://ann:pass-word@h/v1", headers=["X-Key: v-secret-1"], environ={"OPENAI_API_KEY": KEY}
    )
    assert (
        not echo_in(repr(connection))
        and "v-secret" not in repr(connection)
        and "pass-word" not in repr(connection)
    )
    with pytest.raises(TypeError):
        msgspec.json.encode(connection)


def test_a_found_server_gets_no_key_that_nobody_named() -> None:
    environ = {"OPENAI_API_KEY": KEY, "LLM_KEY": KEY}
    silent: Connection = resolve(environ=environ).at("http://127.0.0.1:8000/v1")
    asked: Connection = resolve(api_key_env="LLM_KEY", environ=environ).at("http://127.0.0.1:8000/v1")
    assert silent.key is None and silent.auth_headers() == ()
    assert resolve(environ=environ).at("http://h/v1", keep_key=True).auth_headers() != ()
    assert asked.auth_headers() == (("Authorization", f"Bearer {KEY}"),)
