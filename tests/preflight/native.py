"""A fake Ollama that speaks its own API: the fake engine's answers in the form of ``/api/chat``."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from tests.faults import engine
from tests.faults.engine import Profile
from tests.faults.kinds import Answer, Scenario


def ollama(profile: Profile) -> Scenario:
    """The profile, answering on both APIs."""

    async def handle(request: web.Request, raw: bytes) -> web.StreamResponse:
        if request.path not in ("/api/chat", "/v1/chat/completions"):
            found = engine.get(profile, request.path) or Answer(404, {"error": "not found"})
            return web.json_response(found.body, status=found.status, headers=found.headers)
        body = json.loads(raw)
        wants_stream = body.pop("stream", request.path == "/api/chat")
        options = body.get("options") or {}
        whole = engine.answer(
            profile, {**body, "max_tokens": body.get("max_tokens") or options.get("num_predict")}
        )
        assert isinstance(whole, Answer)
        if whole.status != 200 or request.path != "/api/chat":
            return web.json_response(whole.body, status=whole.status)
        if body.get("_debug_render_only"):
            info = {"rendered_template": engine.rendered(profile, body), "image_count": 0}
            return web.json_response({"model": "m", "_debug_info": info})
        lines = _lines(whole.body, bool(wants_stream))
        text = "".join(json.dumps(line) + "\n" for line in lines)
        return web.Response(
            text=text, content_type="application/x-ndjson" if wants_stream else "application/json"
        )

    return Scenario("ollama-native", "Ollama's own API", handler=handle)


def _lines(whole: dict[str, Any], stream: bool) -> list[dict[str, Any]]:
    message, usage = whole["choices"][0]["message"], whole["usage"]
    calls = [
        {"function": {"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])}}
        for c in message["tool_calls"]
    ]
    said: dict[str, Any] = {"role": "assistant", "content": message["content"] or ""}
    if calls:
        said["tool_calls"] = calls
    end = {
        "done": True,
        "done_reason": "length" if whole["choices"][0]["finish_reason"] == "length" else "stop",
        "prompt_eval_count": usage["prompt_tokens"],
        "eval_count": usage["completion_tokens"],
    }
    head = {"model": "m", "created_at": "2026-11-30T10:00:00.123456789Z"}
    if not stream:
        return [{**head, "message": said, **end}]
    return [
        {**head, "message": said, "done": False},
        {**head, "message": {"role": "assistant", "content": ""}, **end},
    ]


def hanging(profile: Profile, after: int) -> Scenario:
    """The profile for ``after`` chat requests; the next one is never answered."""
    seen = [0]

    async def handle(request: web.Request, raw: bytes) -> web.StreamResponse:
        if request.path != "/v1/chat/completions":
            found = engine.get(profile, request.path) or Answer(404, {"error": "not found"})
            return web.json_response(found.body, status=found.status, headers=found.headers)
        seen[0] += 1
        if seen[0] > after:
            await asyncio.sleep(3600)
        answer = engine.answer(profile, {**json.loads(raw), "stream": False})
        assert isinstance(answer, Answer)
        return web.json_response(answer.body, status=answer.status)

    return Scenario("hanging", "answers for a while", handler=handle)
