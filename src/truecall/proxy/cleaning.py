"""Frames as the proxy passed them to what may be written: without secrets, their content coding undone."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from truecall import wire
from truecall.client.body import Body
from truecall.proxy import frames
from truecall.proxy.settings import MAX_RECORDED
from truecall.records import Chunk, Exchange, Failure, FailureKind, Request, Timing
from truecall.redact import Redactor, secrets_of_header, secrets_of_url

_DECODED: Final = 4 * MAX_RECORDED  # bytes of a body after its content-encoding was undone
_KNOWN: Final = 10_000  # header fields that are remembered as looked at


class Cleaner:
    """Learns the credentials of requests as they come, and replaces them. ``base_url``: the upstream's root."""

    def __init__(self, redactor: Redactor, base_url: str) -> None:
        self._redactor = redactor
        self._base_url = base_url
        self._known: set[tuple[str, str]] = set()

    def intent(self, frame: frames.Intent) -> dict[str, Any]:
        """The line of an intent."""
        self._learn_url(frame.target)
        target = self._redactor.url(frame.target.decode("latin-1"))
        return {"n": frame.number, "method": frame.method.decode("latin-1"), "target": target}

    def exchange(self, frame: frames.Passed) -> tuple[Exchange, dict[str, Any]]:
        """The exchange without secrets, and what is to be known beside it."""
        self._learn_url(frame.target)
        for name, value in frame.headers:
            self._learn(name.decode("latin-1"), value.decode("latin-1"))
        headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in frame.headers)
        fields = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in frame.fields)
        encoding = next((v for n, v in fields if n.lower() == "content-encoding"), None)
        body = Body(encoding, limit=_DECODED, redactor=self._redactor)
        if frame.body:
            body.add(frame.body, 0.0)
        failure = Failure(kind=FailureKind(frame.failure), detail=frame.detail) if frame.failure else None
        data = body.finish(whole=failure is None)
        failure = failure or body.failure
        url = self._base_url + frame.target.decode("latin-1")
        data, rewritten = self._in_pieces(data, url, frame.status, fields)
        request_body = self._redactor.data(frame.request)
        exchange = Exchange(
            request=Request(
                method=frame.method.decode("latin-1"),
                url=self._redactor.url(url),
                headers=self._redactor.headers(headers),
                body=request_body,
            ),
            status=frame.status,
            headers=self._redactor.headers(fields),
            body=data,
            received=frame.received,
            chunks=tuple(Chunk(at=round(at, 6), size=size) for at, size in frame.chunks),
            timing=Timing(started_at=frame.started_at, first_byte=frame.first_byte, total=frame.total),
            failure=failure,
        )
        about: dict[str, Any] = {"n": frame.number}
        if frame.role:
            about["role"] = frame.role.decode("latin-1")
        if frame.client_gone:
            about["client_gone"] = True
        if frame.added:
            about["added"] = frame.added
        if frame.superseded:
            about["superseded"] = True
        if frame.delivered:
            about["delivered"] = frame.delivered
        if frame.texts:
            about["texts"] = frame.texts
        if frame.awaits:
            about["awaits"] = True
        if frame.unswapped:
            about["unswapped"] = frame.unswapped
        if rewritten:
            about["rewritten"] = rewritten
        return exchange, about

    def _in_pieces(
        self, data: bytes, url: str, status: int | None, fields: tuple[tuple[str, str], ...]
    ) -> tuple[bytes, str]:
        """A stream that repeats a secret in pieces of one event each is kept as the text it adds up to."""
        if not self._redactor or (b"data:" not in data and b"\n{" not in data):
            return data, ""
        api = wire.by_path(url)
        kind = next((v for n, v in fields if n.lower() == "content-type"), None)
        response = wire.read(data, api.value if api else "openai.chat", status=status, content_type=kind)
        text = msgspec.json.encode(response)
        if self._redactor.data(text) == text:
            return data, ""
        clean = msgspec.convert(self._redactor.value(msgspec.to_builtins(response)), type(response))
        return msgspec.json.encode(
            wire.to_chat(clean)
        ), "the server repeated a secret in pieces: kept as a whole answer"

    def _learn(self, name: str, value: str) -> None:
        """New credentials that a request carries."""
        if (name, value) in self._known:
            return
        if len(self._known) < _KNOWN:
            self._known.add((name, value))
        self._redactor.add(*secrets_of_header(name, value))

    def _learn_url(self, target: bytes) -> None:
        if b"?" in target:
            self._redactor.add(*secrets_of_url("http://h" + target.decode("latin-1")))
