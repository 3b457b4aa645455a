"""The record: whole, without secrets, whatever is killed; judged, with retries and uptake."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.proxy.conftest import Proxied, recording
from tests.proxy.kill_trials import trial
from tests.proxy.upstream import (
    CALL,
    LEAK,
    WEATHER,
    Request,
    Writer,
    chunked,
    completion,
    say,
    text_stream,
    whole,
)
from truecall.store import exchange_of, read_log

ASK = {"model": "m", "messages": [{"role": "user", "content": "Weather in Oslo?"}], "tools": [WEATHER]}


async def post(proxied: Proxied, body: dict[str, Any], **headers: str) -> tuple[int, bytes]:
    url = f"{proxied.url}/v1/chat/completions"
    async with aiohttp.ClientSession() as session, session.post(url, json=body, headers=headers) as response:
        return response.status, await response.read()


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [line for line in read_log(folder) if line["kind"] == kind]


def report(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "report.json").read_text())["tally"])


async def test_exchanges_come_back_as_they_were(tmp_path: Path) -> None:
    big = "x" * 20_000
    async with recording(tmp_path) as proxied:
        await post(proxied, {**ASK, "messages": [{"role": "user", "content": big}]})
        await post(proxied, {**ASK, "stream": True})
    first, second = (exchange_of(tmp_path, line) for line in lines(tmp_path, "exchange"))
    assert json.loads(first.request.body)["messages"][0]["content"] == big
    assert json.loads(first.body)["choices"][0]["message"]["tool_calls"] == [CALL]
    assert second.body.count(b"data: ") == 5 and len(second.chunks) >= 2 and second.failure is None
    assert [line["n"] for line in lines(tmp_path, "intent")] == [1, 2]
    tally = report(tmp_path)
    assert tally["steps"]["sent"] == tally["steps"]["surfaced"] == 2
    assert tally["calls"] == {"valid/surfaced": 2}


def all_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def private(folder: Path) -> bool:
    return all(file.stat().st_mode & 0o077 == 0 for file in folder.rglob("*"))


async def test_a_lost_call_is_counted(tmp_path: Path) -> None:
    async with recording(
        tmp_path, lambda r, w: say(w, whole(json.dumps(completion(LEAK)).encode()))
    ) as proxied:
        await post(proxied, ASK)
        await post(proxied, {"model": "m", "messages": []})
        await post(proxied, {**ASK, "tool_choice": "none"})
        await post(proxied, ASK, **{"X-Truecall-Role": "simulator"})
        await post(proxied, {**ASK, "model": "user-model"})
        assert all(request.header("x-truecall-role") is None for request in proxied.upstream.requests)
    tally = report(tmp_path)
    assert tally["calls"] == {"valid/leaked": 2}
    assert tally["roles"] == {"agent": 2, "no_tools": 1, "simulator": 1, "tools_forbidden": 1}


async def test_a_simulators_model_is_told_apart(tmp_path: Path) -> None:
    async with recording(tmp_path, simulator_models=("user-model",)) as proxied:
        await post(proxied, {**ASK, "model": "user-model"})
    assert report(tmp_path)["roles"] == {"simulator": 1}


async def test_retries_count_once(tmp_path: Path) -> None:
    answers = iter([503, 429, 200, 200])

    async def answer(_: Request, writer: Writer) -> None:
        status = next(answers)
        body = json.dumps(completion(None, [CALL]) if status == 200 else {"error": {"message": "busy"}})
        await say(writer, whole(body.encode(), status=f"{status} X"))

    async with recording(tmp_path, answer) as proxied:
        for count in range(3):
            await post(proxied, ASK, **{"x-stainless-retry-count": str(count)})
        await post(proxied, ASK)  # another sample of the same request, not a retry
    tally = report(tmp_path)
    assert (tally["exchanges"], tally["retries"]) == (4, 2)
    assert tally["steps"]["sent"] == tally["steps"]["accepted"] == 2
    assert [line.get("retry_of") for line in lines(tmp_path, "verdict")] == [None, 1, 2, None]


RESULT = {"role": "tool", "tool_call_id": "call_abc123", "content": "rain"}
KEPT = {"role": "assistant", "content": None, "tool_calls": [CALL]}
OTHER = {**CALL, "function": {"name": "get_weather", "arguments": '{"city": "Bergen"}'}}


@pytest.mark.parametrize(
    ("follows", "uptake"),
    [
        ([KEPT, RESULT], "observed"),
        ([{"role": "assistant", "content": ""}, {"role": "user", "content": "go on"}], "dropped"),
        ([{"role": "user", "content": "go on"}], "dropped"),
        ([KEPT, {"role": "user", "content": "go on"}], "dropped"),
        ([{**KEPT, "tool_calls": [OTHER]}, RESULT], "altered"),
    ],
)
async def test_uptake_is_read_from_the_next_request(tmp_path: Path, follows: list[Any], uptake: str) -> None:
    async with recording(tmp_path) as proxied:
        await post(proxied, ASK)
        await post(proxied, {**ASK, "messages": [*ASK["messages"], *follows]})  # type: ignore[misc]
    assert lines(tmp_path, "verdict")[1]["uptakes"] == [{"n": 1, "calls": [uptake]}]
    assert report(tmp_path)["uptakes"] == {uptake: 1}


async def test_tools_in_the_prompt(tmp_path: Path) -> None:
    schema = json.dumps(WEATHER["function"])
    answer = completion("[get_weather(city='Oslo')]")
    async with recording(tmp_path, lambda r, w: say(w, whole(json.dumps(answer).encode()))) as proxied:
        system = {
            "role": "system",
            "content": f"You can call functions. Here they are in JSON:\n[{schema}]\n",
        }
        await post(proxied, {"model": "m", "messages": [system, *ASK["messages"]]})  # type: ignore[misc]
    tally = report(tmp_path)
    assert tally["roles"] == {"prompt": 1} and tally["prompt"] == {"turns": 1, "emitted": 1}
    assert lines(tmp_path, "verdict")[0]["tools_from"] == "prompt"


# --------------------------------------------------------------------------- secrets

KEY = "sk-Very/Secret+Key=0123456789"


async def test_secrets_are_in_no_file(tmp_path: Path) -> None:
    async def echo(request: Request, writer: Writer) -> None:
        body = request.json
        if body.get("stream") and body.get("pieces"):
            await say(writer, *chunked(text_stream(f"your key is {KEY}!", size=3)))
        elif body.get("stream"):  # the secret is cut by the HTTP chunks, not by the events
            event = b"".join(text_stream(f"your key is {KEY}!", size=1000))
            await say(writer, *chunked([event[i : i + 7] for i in range(0, len(event), 7)]))
        else:
            await say(
                writer,
                whole(json.dumps(completion(f"{KEY} {dict(request.headers)}")).encode(), f"X-Echo: {KEY}"),
            )

    child = "child-env-password-77"
    async with recording(tmp_path, echo, secrets=(child,)) as proxied:
        auth = {"Authorization": f"Bearer {KEY}"}
        await post(proxied, {**ASK, "note": KEY}, **auth)
        await post(proxied, {**ASK, "stream": True}, **auth)
        await post(proxied, {**ASK, "stream": True, "pieces": True}, **auth)
        await post(proxied, {**ASK, "note": child}, **{"x-api-key": KEY})
        url = f"{proxied.url}/v1/chat/completions?api_key=query-Secret-42"
        async with aiohttp.ClientSession() as session, session.post(url, json=ASK) as response:
            await response.read()
        assert proxied.upstream.requests[0].header("authorization") == f"Bearer {KEY}"  # passed on
    kept = all_bytes(tmp_path)
    texts = [exchange_of(tmp_path, line).body for line in lines(tmp_path, "exchange")]
    for secret in (KEY, child, "query-Secret-42", KEY[5:25]):
        assert secret.encode() not in kept and not any(secret.encode() in text for text in texts)
    pieces = json.loads(texts[2])["choices"][0]["message"]["content"]
    assert pieces == "your key is [redacted]!"
    assert private(tmp_path)


async def test_keep_none_keeps_no_text(tmp_path: Path) -> None:
    async with recording(tmp_path, keep="none") as proxied:
        await post(proxied, {**ASK, "messages": [{"role": "user", "content": "a private question"}]})
    kept = all_bytes(tmp_path)
    assert b"private" not in kept and b"Oslo" not in kept
    assert report(tmp_path)["calls"] == {"valid/surfaced": 1}


# --------------------------------------------------------------------------- faults of ours


async def test_a_killed_recorder_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    killed: list[int] = []
    async with recording(tmp_path) as proxied:
        pen = proxied.pen  # type: ignore[attr-defined]
        for count in range(60):
            if count in (20, 40):
                assert await until(lambda: pen.pid not in killed)  # the next one has been started
                killed.append(pen.pid)
                os.kill(killed[-1], signal.SIGKILL)
            await post(proxied, {**ASK, "count": count})
        assert await until(lambda: any("died" in alert for alert in proxied.alerts))  # type: ignore[attr-defined]
    numbers = [line["n"] for line in lines(tmp_path, "exchange")]
    assert sorted(numbers) == list(range(1, 61))
    assert sorted(line["n"] for line in lines(tmp_path, "verdict")) == list(range(1, 61))
    assert report(tmp_path)["exchanges"] == 60


async def until(holds: Callable[[], bool]) -> bool:
    """Waits for the recorder, which yields to everything else on a busy machine."""
    for _ in range(6000):
        if holds():
            return True
        await asyncio.sleep(0.02)
    return holds()


async def test_a_full_disk_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    async with recording(tmp_path) as proxied:
        await post(proxied, ASK)
        assert await until(lambda: len(lines(tmp_path, "verdict")) == 1)  # nothing more is to be written now
        size = (tmp_path / "log.jsonl").stat().st_size
        pid = proxied.pen.pid  # type: ignore[attr-defined]
        resource.prlimit(
            pid, resource.RLIMIT_FSIZE, (size + 700, resource.RLIM_INFINITY)
        )  # cuts a line in two
        for _ in range(3):
            assert (await post(proxied, ASK))[0] == 200
        alerts = proxied.alerts  # type: ignore[attr-defined]
        assert await until(lambda: any(alert.startswith("NOT RECORDED") for alert in alerts))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await asyncio.sleep(1.1)  # the disk is tried once a second
        await post(proxied, {**ASK, "last": True})
        assert await until(lambda: any(alert.startswith("recording again") for alert in alerts))
    kept = [exchange_of(tmp_path, line) for line in lines(tmp_path, "exchange")]
    assert json.loads(kept[-1].request.body).get("last") is True
    assert report(tmp_path)["lost"] == 5 - len(kept) > 0
    assert all(json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines())


@pytest.mark.parametrize("what", ["proxy", "recorder", "both"])
def test_killed_anywhere(tmp_path: Path, what: str) -> None:
    outcomes = [trial(tmp_path / str(seed), what, seed) for seed in range(2)]
    assert [outcome.fault for outcome in outcomes] == ["", ""]
    assert sum(outcome.answered for outcome in outcomes) > 0
