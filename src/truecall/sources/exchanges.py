"""Turns from recorded exchanges, whose calls are followed into the requests that come after them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from truecall import wire
from truecall.records import Failure, Json
from truecall.sources.base import Place, Turn
from truecall.wire.values import word


def result_ids(requests: Iterable[dict[str, Json]]) -> frozenset[str]:
    """The ids of all calls whose results came back to the model in some request."""
    found: set[str] = set()
    for request in requests:
        api = wire.sniff(request) or "openai.chat"
        view = wire.read_request(request, _request_api(request, api))
        found.update(result.id for result in view.tool_results if result.id)
    return frozenset(found)


def _request_api(request: dict[str, Json], sniffed: str) -> str:
    if "input" in request and "messages" not in request:
        return "openai.responses"
    if "contents" in request:
        return "gemini.generateContent"
    messages = request.get("messages")
    if isinstance(messages, list) and any(_has_block(message, "tool_result") for message in messages):
        return "anthropic.messages"
    return sniffed


def _has_block(message: Any, kind: str) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(isinstance(b, dict) and b.get("type") == kind for b in content)


def turn_of(
    *,
    place: Place,
    api: str,
    request: dict[str, Json],
    body: bytes | None,
    status: int | None,
    error: str | None,
    results: frozenset[str],
    tools: Json,
    failure: Failure | None = None,
    **more: Any,
) -> Turn:
    """The turn of one exchange. ``results``: see `result_ids`."""
    response = wire.read(body or b"", api, status=status)
    calls = response.choices[0].tool_calls if response.choices else ()
    ids = {call.id for call in calls if call.id}
    observed = True if ids & results else None
    view = wire.read_request(request, api)
    offered: Json = list(view.tools) if view.tools is not None else None
    more.setdefault("model", response.model or word(request.get("model")))
    return Turn(
        place=place,
        tools=tools if offered is None else offered,
        body=body if body else None,
        api=api,
        request=request or None,
        status=status,
        error=error,
        failure=failure,
        text=(response.choices[0].raw_text or response.choices[0].content) if response.choices else None,
        surfaced=calls if response.choices else None,
        executed=observed,
        observed=observed,
        **more,
    )
