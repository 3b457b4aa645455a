"""What a hostile model writes, as a log of chats and as a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aiohttp import web

CALL = '<tool_call>\n{"name": "open_box", "arguments": {"code": "%s"}}\n</tool_call>'
TEXTS = {
    "script": "<script>document.title = 'ran'</script>" + CALL % "<script>document.title='ran'</script>",
    "onerror": CALL % "x"
    + "<img src=x onerror=\"document.title = 'ran'\"><svg onload=\"document.title='ran'\">",
    "link": '<a href="javascript:document.title=1">click</a> [click](javascript:alert(1)) ' + CALL % "link",
    "remote": '<img src="http://127.0.0.1:9/a.png"><link rel=stylesheet href="//127.0.0.1:9/a.css">'
    + CALL % "r",
    "template": "{{ 7*7 }} {% raw %} ${alert(1)} </pre></style></script>--> ]]> " + CALL % "t",
    "bidi": "\u202e\u2066right to left\u200f " + CALL % "\u202ebidi",
    "null": "a\x00b\x1b[31mred\x07\ufffe\u2028 " + CALL % "null",
    "large": "<b>" + "long text \u202e <script>alert(1)</script> " * 120_000 + CALL % "large",  # over 5 MB
}
"""Turns by name; each holds a call that no interface surfaces."""

NAME = "evil<script>document.title='ran'</script>\u202e\x00'\"&model"
"""The name of a model."""

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "open_box",
            "description": "Opens a box.",
            "parameters": {
                "type": "object",
                "properties": {"code": {"type": "string"}},
                "required": ["code"],
            },
        },
    }
]


def chat_log(path: Path) -> Path:
    """A log of chats: a hostile turn a line, a hostile model's name in each, and a line of broken UTF-8."""
    lines = []
    for name, text in TEXTS.items():
        said = [{"role": "user", "content": "Open it."}, {"role": "assistant", "content": text}]
        lines.append(json.dumps({"model": f"{NAME}{name}", "tools": TOOLS, "messages": said}).encode())
    broken = json.dumps({"model": "broken", "tools": TOOLS, "messages": [
        {"role": "user", "content": "Open it."}, {"role": "assistant", "content": "BYTES" + CALL % "b"}]})  # fmt: skip
    lines.append(broken.encode().replace(b"BYTES", b"\xff\xfe\xc3("))
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


class HostileServer:
    """Below ``/NAME/v1`` every turn of an episode is the text of that name, as content."""

    def __init__(self) -> None:
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> HostileServer:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_get("/{name}/v1/models", self._models)
        app.router.add_post("/{name}/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": NAME, "object": "model"}]})

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        episode = body["messages"][0]["role"] == "system"  # probes have none
        text = TEXTS[request.match_info["name"]] if episode else "Hello."
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(str(body)) // 4, "completion_tokens": 20, "total_tokens": 20}
        return web.json_response(
            {"id": "x", "created": 0, "model": NAME, "choices": [choice], "usage": usage}
        )
