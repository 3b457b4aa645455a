"""Any body of any API to a ``Response``: whole, streamed, cut or hostile."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from truecall.records import Api, Json, Response
from truecall.wire.anthropic import AnthropicAssembler
from truecall.wire.assembler import Assembler
from truecall.wire.error_bodies import read_text_error
from truecall.wire.gemini import GeminiAssembler
from truecall.wire.ollama import OllamaAssembler
from truecall.wire.openai_chat import ChatAssembler
from truecall.wire.openai_completions import CompletionsAssembler
from truecall.wire.openai_responses import ResponsesAssembler
from truecall.wire.sse import MAX_PAYLOAD, Payload, PayloadParser, looks_like_events
from truecall.wire.values import NOTHING, decode, join

ASSEMBLERS: Final[dict[str, type[Assembler]]] = {
    kind.api: kind
    for kind in (
        *(ChatAssembler, CompletionsAssembler, ResponsesAssembler),
        *(AnthropicAssembler, GeminiAssembler, OllamaAssembler),
    )
}
"""The assembler of each API, by its name in ``records.Api``."""

_NDJSON_TYPES = (
    "application/x-ndjson",
    "application/jsonl",
    "application/json-lines",
    "application/x-jsonlines",
)
_HEAD = 512
_DEEP = re.compile(r'(?:[\[{]\s*(?:"[^"]{0,64}"\s*:\s*)?){200}')


class StreamReader:
    """A stream to a ``Response`` as its bytes arrive; cuts between ``feed`` calls do not matter.

    ``api`` is one of ``ASSEMBLERS`` (an unknown name is read as OpenAI chat). ``status`` and ``limit``
    (bytes of one payload) as in ``read``.
    """

    def __init__(self, api: str, *, status: int | None = None, limit: int = MAX_PAYLOAD) -> None:
        self.assembler = _assembler(api, stream=True, status=status)
        self._parser = PayloadParser(limit)
        self._lines = api == Api.OLLAMA_CHAT

    def feed(self, data: bytes) -> list[Payload]:
        """Take bytes; the payloads that they completed."""
        return self._take(self._parser.feed(data))

    def finish(self) -> Response:
        """The record, an event that the stream's end cut short included."""
        self._take(self._parser.finish())
        if self._parser.invalid_utf8:
            self.assembler.defects.add("invalid_utf8")
        if self._parser.overflow:
            self.assembler.defects.add("overflow")
        return self.assembler.finish()

    def _take(self, payloads: list[Payload]) -> list[Payload]:
        for payload in payloads:
            if payload.bare and not self._lines:
                self.assembler.defects.add("bare_line")
            self.assembler.feed(payload.text, payload.event)
        return payloads


def read(
    body: bytes | bytearray | memoryview | str | dict[str, Json] | list[Any] | None,
    api: str,
    *,
    status: int | None = None,
    content_type: str | None = None,
) -> Response:
    """What a body says, by its wire format. Never raises, whatever comes in.

    ``body``: bytes or text as received (JSON, an event stream or NDJSON, told by the content type or by how
    it begins), a decoded object, or the payloads of a stream as text or decoded. ``status`` 400 and more
    lets a bare ``message`` count as an error. Errors, odd forms and cuts are in the record: ``error``,
    ``defects``, ``complete``.
    """
    if isinstance(body, dict):
        return _whole(body, api, status)
    if isinstance(body, (list, tuple)):
        return _payloads(body, api, status)
    if body is None:
        return _nothing(api, "empty_body")
    if not isinstance(body, (bytes, bytearray, memoryview, str)):
        return Response(api=str(api), defects=("not_object",))  # type: ignore[unreachable]
    return _received(body, api, status, (content_type or "").lower())


def _assembler(api: str, *, stream: bool, status: int | None) -> Assembler:
    kind = ASSEMBLERS.get(str(api), ChatAssembler)
    return kind(stream=stream, failed=status is not None and status >= 400)


def _whole(body: dict[str, Json], api: str, status: int | None) -> Response:
    assembler = _assembler(api, stream=False, status=status)
    assembler.feed(body)
    return assembler.finish()


def _payloads(payloads: Iterable[Any], api: str, status: int | None) -> Response:
    assembler = _assembler(api, stream=True, status=status)
    for payload in payloads:
        if isinstance(payload, (bytes, bytearray)):
            payload = bytes(payload).decode("utf-8", "replace")
        if isinstance(payload, str):
            assembler.feed(payload.removeprefix("data:").strip() if payload.startswith("data:") else payload)
        elif isinstance(payload, dict):
            assembler.feed(payload)
        else:
            assembler.defects.add("not_object")
    return assembler.finish()


def _received(
    body: bytes | bytearray | memoryview | str, api: str, status: int | None, kind: str
) -> Response:
    raw = join((body,)).encode() if isinstance(body, str) else bytes(body)
    if not raw.strip():
        return _nothing(api, "empty_body")
    if looks_like_events(raw[:_HEAD]) or (
        "text/event-stream" in kind and raw.lstrip()[:1] not in (b"{", b"<")
    ):
        return _stream(raw, api, status)
    if any(name in kind for name in _NDJSON_TYPES) and (status is None or status < 400):
        return _stream(raw, api, status)
    value = decode(raw)
    if isinstance(value, dict):
        return _checked(_whole(value, api, status), raw)
    if isinstance(value, list):
        return _checked(_array(value, api, status), raw)
    if value is not NOTHING:
        return _odd_value(raw, api, status)
    first, _, rest = raw.lstrip().partition(b"\n")
    if rest.strip() and isinstance(decode(first), dict):
        return _stream(raw, api, status)
    return _undecodable(raw, api)


def _stream(raw: bytes, api: str, status: int | None) -> Response:
    reader = StreamReader(api, status=status, limit=max(MAX_PAYLOAD, len(raw)))
    reader.feed(raw)
    return reader.finish()


def _array(value: list[Json], api: str, status: int | None) -> Response:
    """An array of one error is that error; else the chunks of a stream in one array (Gemini)."""
    assembler = _assembler(api, stream=api == Api.GEMINI or len(value) != 1, status=status)
    for item in value:
        if isinstance(item, dict):
            assembler.feed(item)
        else:
            assembler.defects.add("not_object")
    return assembler.finish()


def _odd_value(raw: bytes, api: str, status: int | None) -> Response:
    """A JSON string or number as the body: an error's words when the status says so."""
    text = raw.decode("utf-8", "replace").strip().strip('"')
    error = read_text_error(text) if text and (status is None or status >= 400) else None
    return Response(api=str(api), error=error, defects=("not_object",))


def _undecodable(raw: bytes, api: str) -> Response:
    text = raw.decode("utf-8", "replace").lstrip("\ufeff")
    defects = {"invalid_utf8"} if "\ufffd" in text and not _is_utf8(raw) else set()
    if text.lstrip()[:1] in ("{", "["):
        defects.add("too_deep" if _DEEP.match(text.lstrip()) else "truncated_json")
        return Response(api=str(api), complete=False, defects=tuple(sorted(defects)))
    defects.add("not_json")
    return Response(api=str(api), error=read_text_error(text), defects=tuple(sorted(defects)))


def _checked(response: Response, raw: bytes) -> Response:
    """The response with bytes that are no UTF-8 named."""
    if _is_utf8(raw):
        return response
    return msgspec.structs.replace(response, defects=tuple(sorted({*response.defects, "invalid_utf8"})))


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _nothing(api: str, defect: str) -> Response:
    return Response(api=str(api), complete=False, defects=(defect,))
