"""One exchange on its way through: what has been seen of it, and the heads that are sent on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from truecall.client.body import MAX_CHUNKS
from truecall.proxy.frames import Intent, Passed, Pieces, RawHeaders
from truecall.proxy.gate import ROLE_HEADER, Refused, end_to_end
from truecall.proxy.settings import MAX_RECORDED, Address, Injected

if TYPE_CHECKING:
    from truecall.proxy.editing import Edit

_clock = time.perf_counter
_DROPPED_UP: Final = frozenset({b"host", b"expect", ROLE_HEADER})


class Flow:
    """An exchange. ``unsent``: bytes for the upstream that are not written yet."""

    __slots__ = (
        *("body", "chunked", "chunks", "client_gone", "client_keeps", "complete", "delivered", "detail"),
        *("edit", "ended", "failure", "fields", "first_byte", "framing", "headers", "http10", "method"),
        *("number", "passed_on", "pieces", "reason", "received", "refused", "role", "sent", "size"),
        *("started", "started_at", "status", "target", "texts", "unsent", "unswapped", "whole_kept"),
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.started = _clock()
        self.started_at = time.time()
        self.method = b""
        self.target = b""
        self.headers: RawHeaders = []
        self.http10 = False
        self.chunked = False
        self.role = b""
        self.refused: Refused | None = None
        self.edit: Edit | None = None
        self.unsent: list[bytes] = []
        self.body: list[bytes] = []
        self.size = 0
        self.complete = False  # the request
        self.client_keeps = True
        self.passed_on = False  # something of it went to the upstream
        self.status: int | None = None
        self.reason = b""
        self.fields: RawHeaders = []
        self.framing = ""
        self.pieces: list[bytes] = []
        self.received = 0
        self.whole_kept = True
        self.chunks: Pieces = []
        self.first_byte: float | None = None
        self.failure = ""
        self.detail = ""
        self.client_gone = False
        self.ended = False
        self.sent: bytes | None = None
        self.delivered = 0
        self.texts: list[str | None] | None = None
        self.unswapped = ""

    # ----------------------------------------------------------- request

    def add_request(self, piece: bytes) -> None:
        """A piece of the request's body, for the record."""
        self.size += len(piece)
        if self.size <= MAX_RECORDED:
            self.body.append(piece)
        else:
            self.whole_kept = False

    def head_up(self, address: Address, injected: Injected) -> bytes:
        """The request head for the upstream; the body's length is as the client gave it."""
        lines = [
            b"%b %b HTTP/1.1\r\nHost: %b" % (self.method, address.target(self.target), address.netloc),
        ]
        drop = _DROPPED_UP | injected.names if injected.names else _DROPPED_UP
        if self.edit is not None:
            drop = drop | {b"content-length", b"accept-encoding"}
        for name, value in end_to_end(self.headers):
            if name.lower() not in drop:
                lines.append(b"%b: %b" % (name, value))
        lines += [b"%b: %b" % field for field in injected.fields]
        if self.edit is not None:
            lines.append(b"Accept-Encoding: identity")
        elif self.chunked:
            lines.append(b"Transfer-Encoding: chunked")
        return b"\r\n".join(lines) + (b"\r\n" if self.edit is not None else b"\r\n\r\n")

    def intent(self) -> Intent:
        return Intent(number=self.number, at=self.started_at, method=self.method, target=self.target)

    # ----------------------------------------------------------- response

    def add_response(self, piece: bytes, now: float) -> None:
        """A piece of the response's body, for the record."""
        size = len(piece)
        self.received += size
        if self.received <= MAX_RECORDED:
            self.pieces.append(piece)
        else:
            self.whole_kept = False
        at = now - self.started
        chunks = self.chunks
        if chunks and (chunks[-1][0] == at or len(chunks) >= MAX_CHUNKS):
            last_at, last_size = chunks[-1]
            chunks[-1] = (last_at, last_size + size)
        else:
            chunks.append((at, size))

    def head_down(
        self,
        *,
        keep: bool,
        extra: RawHeaders = [],  # noqa: B006
        length: int | None = None,
        status: bytes = b"",
    ) -> bytes:
        """The response head for the client. ``length``: of a body that was changed. ``status``: instead of its own."""
        lines = [b"HTTP/1.1 %b" % (status or b"%d %b" % (self.status or 502, self.reason))]
        for name, value in end_to_end(self.fields):
            if length is None or name.lower() not in (b"content-length", b"content-encoding"):
                lines.append(b"%b: %b" % (name, value))
        if length is not None:
            lines.append(b"Content-Length: %d" % length)
        elif self.framing == "chunked" and not self.http10:
            lines.append(b"Transfer-Encoding: chunked")
        lines += [b"%b: %b" % field for field in extra]
        if not keep:
            lines.append(b"Connection: close")
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def passed(self) -> Passed:
        """The frame for the recorder."""
        failure, detail = self.failure, self.detail
        if not self.whole_kept and not failure:
            failure = "too_large"
            detail = f"passed on whole; a body over {MAX_RECORDED:,} bytes is recorded up to there"
        edit = self.edit
        return Passed(
            number=self.number,
            started_at=self.started_at,
            method=self.method,
            target=self.target,
            headers=self.headers,
            request=b"".join(self.body),
            status=self.status,
            fields=self.fields,
            body=b"".join(self.pieces),
            received=self.received,
            chunks=self.chunks,
            first_byte=self.first_byte,
            total=_clock() - self.started,
            failure=failure,
            detail=detail,
            client_gone=self.client_gone,
            role=self.role,
            sent=self.sent,
            added=edit.added if edit is not None and edit.added else None,
            delivered=self.delivered,
            texts=self.texts,
            awaits=edit is not None and edit.awaits,
            unswapped=self.unswapped,
        )


def own_answer(status: int, text: str, kind: str, *, close: bool = True) -> bytes:
    """An answer of the proxy's own, in the shape that OpenAI clients read."""
    reasons = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 405: "Method Not Allowed"}
    reasons |= {408: "Request Timeout", 413: "Content Too Large", 421: "Misdirected Request"}
    reasons |= {431: "Request Header Fields Too Large", 501: "Not Implemented"}
    reasons |= {502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}
    body = msgspec.json.encode(
        {"error": {"message": f"truecall record: {text}", "type": kind, "code": status}}
    )
    head = (
        f"HTTP/1.1 {status} {reasons.get(status, 'Error')}\r\nContent-Type: application/json\r\n"
        f"X-Truecall: {kind}\r\nContent-Length: {len(body)}\r\n"
    )
    return (head + ("Connection: close\r\n\r\n" if close else "\r\n")).encode() + body
