"""Which API a saved body belongs to."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from truecall.records import Api, Json
from truecall.wire.sse import PayloadParser
from truecall.wire.values import decode, items, obj, word

# By the end of the path; the first that fits.
_PATHS: Final = (
    ("/chat/completions", Api.OPENAI_CHAT),
    ("/completions", Api.OPENAI_COMPLETIONS),
    ("/completion", Api.OPENAI_COMPLETIONS),
    ("/responses", Api.OPENAI_RESPONSES),
    ("/messages", Api.ANTHROPIC),
    (":generateContent", Api.GEMINI),
    (":streamGenerateContent", Api.GEMINI),
    ("/api/chat", Api.OLLAMA_CHAT),
    ("/api/generate", Api.OLLAMA_CHAT),
)
_OBJECTS: Final = {
    "chat.completion": Api.OPENAI_CHAT,
    "chat.completion.chunk": Api.OPENAI_CHAT,
    "text_completion": Api.OPENAI_COMPLETIONS,
    "response": Api.OPENAI_RESPONSES,
}
_HEAD = 64 * 1024
_PAYLOADS = 8  # a stream tells its API in its first payloads


def sniff(
    body: bytes | str | dict[str, Json] | list[Any] | None,
    content_type: str | None = None,
    path: str | None = None,
) -> str | None:
    """The API (a name of ``records.Api``), by the request's path or URL, else by the body's shape.

    None: it can't be told, as for most errors, which have one shape on several APIs. ``body`` as for ``read``.
    """
    found = by_path(path)
    if found is None and "x-ndjson" in (content_type or ""):
        found = Api.OLLAMA_CHAT
    if found is not None:
        return found.value
    for value in _objects(body):
        shape = _by_shape(value)
        if shape is not None:
            return shape.value
    return None


def by_path(path: str | None) -> Api | None:
    """The API of a request path or URL."""
    if not path:
        return None
    try:
        place = urlsplit(path).path.rstrip("/")
    except ValueError:
        return None
    return next((api for end, api in _PATHS if place.endswith(end)), None)


def _objects(body: bytes | str | dict[str, Json] | list[Any] | None) -> list[dict[str, Json]]:
    """The body's object, or those of its first payloads."""
    if isinstance(body, dict):
        return [body]
    if isinstance(body, (bytes, bytearray, str)):
        raw = bytes(body) if isinstance(body, (bytes, bytearray)) else body.encode("utf-8", "replace")
        value = decode(raw)
        if isinstance(value, dict):
            return [value]
        if not isinstance(value, list):
            parser = PayloadParser()
            value = [payload.text for payload in [*parser.feed(raw[:_HEAD]), *parser.finish()]]
        return _objects(value)
    decoded = [decode(item) if isinstance(item, (str, bytes)) else item for item in items(body)[:_PAYLOADS]]
    return [item for item in decoded if isinstance(item, dict)]


def _by_shape(body: dict[str, Json]) -> Api | None:
    kind, stated = word(body.get("type")) or "", word(body.get("object")) or ""
    if stated in _OBJECTS:
        return _OBJECTS[stated]
    if kind.startswith("response."):
        return Api.OPENAI_RESPONSES
    if _anthropic(body, kind):
        return Api.ANTHROPIC
    if "candidates" in body or "usageMetadata" in body or "promptFeedback" in body:
        return Api.GEMINI
    if isinstance(body.get("message"), dict) and ("done" in body or "created_at" in body):
        return Api.OLLAMA_CHAT
    if "response" in body and "done" in body:
        return Api.OLLAMA_CHAT
    if isinstance(body.get("choices"), list):
        first = obj(items(body["choices"])[0]) if body["choices"] else {}
        text_form = "text" in first and "message" not in first and "delta" not in first
        return Api.OPENAI_COMPLETIONS if text_form else Api.OPENAI_CHAT
    if isinstance(body.get("content"), str) and isinstance(body.get("stop"), bool):  # llama.cpp /completion
        return Api.OPENAI_COMPLETIONS
    if isinstance(body.get("output"), list):
        return Api.OPENAI_RESPONSES
    return None


def _anthropic(body: dict[str, Json], kind: str) -> bool:
    if kind in ("message_start", "content_block_start", "content_block_delta", "message_delta"):
        return True
    if kind == "message":
        return isinstance(body.get("content"), list)
    return kind == "error" and isinstance(body.get("error"), dict)
