"""Results that the tests make reports of: a study over faulty stacks, a hostile study, a recorded run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.report.hostile import TEXTS, HostileServer
from tests.studies.player import Mode, Player
from truecall.config import resolve
from truecall.proxy.judging import Judging, concluded
from truecall.records import Exchange, Request, Timing
from truecall.run import runner
from truecall.run.study import checked
from truecall.store import Keep, RunFolder

STACKS: tuple[Mode, ...] = ("native", "leaks", "500_with_call", "refusing")
UPSTREAM = "http://upstream.example"
SECRET = "G-819"
"""A value that stands in the first turn of seed 0."""


def five_stacks(path: Path) -> Path:
    """A study of one model behind stacks that surface, leak, erase and refuse its calls."""

    async def run() -> None:
        async with AsyncExitStack() as stack:
            players = [await stack.enter_async_context(Player(mode)) for mode in STACKS]
            study = {
                "name": "stacks",
                "tasks": ["chain"],
                "seeds": 4,
                "conditions": ["native", "text_tools"],
                "limits": {"turns": 12},
                "endpoints": [
                    {"name": mode, "base_url": player.base_url, "model": "player", "labels": {"parser": mode}}
                    for mode, player in zip(STACKS, players, strict=True)
                ],
                "predictions": [{"text": "nothing is lost", "number": "censored_share", "at_most": 0.02}],
            }
            await runner.run(checked(study, "test"), path, resolve(players[0].base_url, environ={}))

    asyncio.run(run())
    return path


def hostile_study(path: Path) -> Path:
    """A study whose every turn is hostile, an arm for each text."""

    async def run() -> None:
        async with HostileServer() as server:
            endpoints = [{"name": name, "base_url": f"{server.url}/{name}/v1"} for name in TEXTS]
            study = {"tasks": ["chain"], "seeds": 1, "limits": {"turns": 1}, "endpoints": endpoints}
            await runner.run(checked(study, "test"), path, resolve(f"{server.url}/v1", environ={}))

    asyncio.run(run())
    return path


def crossed(path: Path) -> Path:
    """A 2 × 2 of template and parser: calls come out where both are repaired."""
    cells = {("original", "none"): "leaks", ("repaired", "none"): "leaks", ("original", "hermes"): "leaks"}

    async def run() -> None:
        async with AsyncExitStack() as stack:
            endpoints = []
            for template in ("original", "repaired"):
                for parser in ("none", "hermes"):
                    mode = cells.get((template, parser), "native")
                    player = await stack.enter_async_context(Player(mode))  # type: ignore[arg-type]
                    labels = {"template": template, "parser": parser}
                    endpoints.append(
                        {"name": f"{template}-{parser}", "base_url": player.base_url, "labels": labels}
                    )
            axes = {"a": "template", "a_off": "original", "a_on": "repaired"}
            axes |= {"b": "parser", "b_off": "none", "b_on": "hermes"}
            study = {"tasks": ["chain"], "seeds": 3, "endpoints": endpoints, "factorial": axes}
            await runner.run(checked(study, "test"), path, resolve(player.base_url, environ={}))

    asyncio.run(run())
    return path


def played(path: Path, mode: Mode, keep: Keep = "full", requests: int | None = None) -> Path:
    """A small study of one stack."""

    async def run() -> None:
        async with Player(mode) as player:
            limits = {"turns": 4, "requests": requests}
            study = {"tasks": ["chain"], "seeds": 2, "limits": limits}
            await runner.run(checked(study, "test"), path, resolve(player.base_url, environ={}), keep=keep)

    asyncio.run(run())
    return path


CALLED: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
LEAKED: dict[str, Any] = {
    "role": "assistant",
    "content": '<tool_call>{"name": "f", "arguments": {}}</tool_call>',
}
DONE: dict[str, Any] = {"role": "tool", "tool_call_id": "c1", "content": "done"}


class Passed(NamedTuple):
    """An exchange of a recorded run. ``answers``: the choices; none: the server was busy."""

    messages: Sequence[dict[str, Any]]
    answers: Sequence[dict[str, Any]]
    gone: bool = False


def recorded(path: Path) -> Path:
    """A recorded conversation of three exchanges: a call whose result comes back, a leaked one, one more call."""
    last = {**CALLED, "tool_calls": [{**CALLED["tool_calls"][0], "id": "c2"}]}
    first = [user("go"), CALLED, DONE]
    passed = [Passed(first[:1], [CALLED]), Passed(first, [LEAKED])]
    record(path, [*passed, Passed([*first, LEAKED, user("go on")], [last])])
    return path


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def record(path: Path, passed: Sequence[Passed]) -> Judging:
    """Writes and judges exchanges, as the recorder does."""
    parameters = {"type": "object", "properties": {}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    judging = Judging()
    with RunFolder(path) as folder:
        folder.write(
            "card.json", {"schema_version": 1, "upstream": f"{UPSTREAM}/v1", "swap": "none", "stack": None}
        )
        for number, each in enumerate(passed, 1):
            choices = [
                {"index": place, "message": answer, "finish_reason": "stop"}
                for place, answer in enumerate(each.answers)
            ]
            body = {"model": "m", "choices": choices} if choices else {"error": {"message": "busy"}}
            exchange = Exchange(
                request=Request(
                    method="POST",
                    url=f"{UPSTREAM}/v1/chat/completions",
                    body=msgspec.json.encode({"model": "m", "messages": each.messages, "tools": tools}),
                ),
                timing=Timing(started_at=float(number), total=0.1),
                status=200 if choices else 503,
                headers=(("content-type", "application/json"),),
                body=msgspec.json.encode(body),
            )
            about: dict[str, Any] = {"n": number, "client_gone": each.gone}
            folder.exchange(exchange, **about)
            folder.append("verdict", concluded(judging.take(exchange, about)))
    return judging
