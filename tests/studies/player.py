"""A model that plays the task ``chain`` by its rules, behind a server that can fail in several ways.

As a program (``python -m tests.studies.player MODE``) it prints its base URL and serves until its input closes.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

Mode = Literal["native", "text", "react", "loop", "prose", "refusing", "hanging", "500_with_call", "leaks"]
_BEGIN = re.compile(r"begin with (\w+) and the code ([\w-]+)")
_NEXT = re.compile(r"call (\w+) with code ([\w-]+)")
_WORD = re.compile(r"The word is (\w+)")
REFUSAL = {
    "error": {"message": "registry.example/phi3 does not support tools", "type": "invalid_request_error"}
}


def next_call(body: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The call that the last result, or the task, asks for."""
    for message in reversed(body["messages"]):
        text = str(message.get("content") or "")
        if message["role"] in ("user", "tool"):
            if found := _WORD.search(text):
                return "submit", {"word": found[1]}
            if found := _NEXT.search(text) or _BEGIN.search(text):
                return found[1], {"code": found[2]}
    return "submit", {"word": "nothing"}


def answer(mode: Mode, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer to a chat request."""
    if mode == "refusing" and body.get("tools"):
        return 400, REFUSAL
    name, arguments = next_call(body)
    if mode == "loop":
        name, arguments = "open_box", {"code": "A-100"}
    payload = json.dumps({"name": name, "arguments": arguments})
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if mode == "500_with_call":
        text = f"Failed to parse input at pos 0: <tool_call>{payload}</tool_call>"
        return 500, {"error": {"code": 500, "message": text, "type": "server_error"}}
    if mode in ("native", "loop") and body.get("tools"):
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": "call00000", "type": "function", "function": function}]
    elif mode == "prose":
        message["content"] = "It is a nice day."
    elif mode == "react":
        message["content"] = f"Thought: next\nAction: {name}\nAction Input: {json.dumps(arguments)}"
    elif mode == "leaks":
        message["content"] = f"<tool_call>\n{payload}\n</tool_call>"
    else:
        message["content"] = payload
    finish = "tool_calls" if "tool_calls" in message else "stop"
    spent = (
        sum(len(str(m.get("content"))) for m in body["messages"]) // 4
        + len(str(body.get("tools") or "")) // 4
    )
    return 200, {
        "id": "x", "object": "chat.completion", "created": 0, "model": body.get("model", "m"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": spent, "completion_tokens": 20, "total_tokens": spent + 20},
    }  # fmt: skip


@dataclass
class Player:
    """A running server. ``chats``: the chat requests that came, as JSON. ``delay``: seconds before an answer."""

    mode: Mode = "native"
    delay: float = 0.0
    base_url: str = ""
    chats: list[dict[str, Any]] = field(default_factory=list)
    fail_first: int = 0  # chat requests with tools that get a 503 before any is answered
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> Player:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "player", "object": "model"}]})

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.chats.append(body)
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.mode == "hanging" and body["messages"][0]["role"] == "system":
            await asyncio.sleep(3600)
        if self.fail_first and body["messages"][0]["role"] == "system":
            self.fail_first -= 1
            return web.json_response({"error": "overloaded"}, status=503)
        status, value = answer(self.mode, body)
        return web.json_response(value, status=status)

    @property
    def played(self) -> list[dict[str, Any]]:
        """The requests of episodes; those of probes have one message, or no system message."""
        return [body for body in self.chats if body["messages"][0]["role"] == "system"]


async def _serve(mode: Mode, delay: float) -> None:
    async with Player(mode, delay) as player:
        print(player.base_url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], float(sys.argv[2])))  # type: ignore[arg-type]
