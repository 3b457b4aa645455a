"""Exchanges that are changed on their way: evidence asked for and stripped, calls delivered or hidden.

Only requests that offer tools are touched, on the wires of ``forms``; everything else passes as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import msgspec

from truecall import probe, stacks, wire
from truecall.client import Client
from truecall.errors import TruecallError
from truecall.proxy.forms import FORMS
from truecall.proxy.frames import RawHeaders
from truecall.proxy.settings import MAX_EDITED, Settings
from truecall.proxy.strip import strip
from truecall.proxy.swap import swap_whole
from truecall.proxy.swap_stream import StreamSwap
from truecall.records import Api, Json, Response
from truecall.redact import is_auth_header
from truecall.wire import RequestView

if TYPE_CHECKING:
    from truecall.proxy.flow import Flow

_SECONDS: Final = 10.0  # for the text of token ids


class Editing:
    """What is changed in a proxy's exchanges, and what the upstream has refused of it so far."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.active = settings.evidence or settings.swap != "none"
        self.stack = stacks.engine(settings.engine)
        self.refused: set[str] = set()
        self.delivered = 0
        upstream = msgspec.structs.replace(settings.upstream, key_over_http=True)  # as the harness chose
        self._client = Client(upstream)

    async def __aenter__(self) -> Self:
        if self.active:
            await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.active:
            await self._client.__aexit__()

    def edit(self, flow: Flow) -> Edit | None:
        """The change for an exchange whose head has come; None: it passes as it is."""
        api = wire.by_path(flow.target.decode("latin-1"))
        if flow.method != b"POST" or api is None or api not in FORMS:
            return None
        return Edit(self, api, flow)

    def without_evidence(self, flow: Flow) -> Edit | None:
        """The change for a request that is repeated because a field for evidence was refused."""
        if flow.edit is None or self.settings.swap == "none":
            return None
        return Edit(self, flow.edit.api, flow)

    async def text(self, ids: tuple[int, ...] | None, model: str | None, headers: RawHeaders) -> str | None:
        """The text of token ids, special tokens kept; None where it can't be had."""
        request = self.stack.detokenize(ids, model) if ids else None
        if request is None:
            return None
        auth = {n.decode("latin-1"): v.decode("latin-1") for n, v in headers}
        auth = {name: value for name, value in auth.items() if is_auth_header(name)}
        try:
            exchange = await self._client.send(
                "POST", request.path, json=request.body, headers=auth, timeout=_SECONDS
            )
        except TruecallError:
            return None
        body = probe.seen_of(exchange).object
        return self.stack.read_detokenized(body) if body else None


class Edit:
    """How one exchange is changed. ``added``: the fields put into the request."""

    def __init__(self, editing: Editing, api: Api, flow: Flow) -> None:
        self.api = api
        self.added: dict[str, Json] = {}
        self.awaits = False
        self.status = b""  # that the client gets instead of the server's
        self._form = FORMS[api]()
        self._editing = editing
        self._flow = flow
        self._number = flow.number
        self._headers = flow.headers
        self._view: RequestView | None = None
        self._stream: StreamSwap | None = None
        self._swapped = 0
        self._blind = True  # nothing is changed

    # ------------------------------------------------------------- request

    def request(self, body: bytes) -> list[bytes]:
        """The rest of the head and the body that go to the upstream."""
        value = _object(body)
        if value is not None:
            self._view = wire.read_request(value, self.api.value)
            self._blind = not self._view.tools
        if not self._blind and value is not None and self._editing.settings.evidence:
            fields = self._form.asks(self._editing.stack, value)
            self.added = {k: v for k, v in fields.items() if k not in self._editing.refused}
            body = insert(body, self.added)
        return [b"Content-Length: %d\r\n\r\n" % len(body), body]

    # ------------------------------------------------------------- response

    def mode(self, status: int, fields: RawHeaders) -> str:
        """How the answer is treated: ``pass`` as it comes, ``whole`` when it is there, ``stream``."""
        named = {name.lower(): value.lower() for name, value in fields}
        kind = named.get(b"content-type", b"")
        if self._blind or self._view is None:
            return "pass"
        if named.get(b"content-encoding", b"identity") not in (b"", b"identity"):
            return self._unswapped("a compressed answer")
        if status >= 400:
            quoted = self._swap == "surface" and not self._view.stream
            return "whole" if self.added or quoted else "pass"
        if b"text/event-stream" in kind or (self._form.lines and b"ndjson" in kind):
            several = (self._view.n or 1) > 1
            if several:
                self._unswapped("several answers in one stream")
            swap = "none" if several else self._swap
            names, engine = tuple(self.added), self._editing.stack.name
            self._stream = StreamSwap(self._form, swap, self._view, names, engine)
            return "stream"
        return "whole" if b"json" in kind else self._unswapped("an answer that is no JSON")

    def too_large(self) -> None:
        """The body, request's or answer's, is passed on before its end: nothing is changed in it."""
        self._unswapped(f"a body over {MAX_EDITED:,} bytes")

    def _unswapped(self, why: str) -> str:
        if self._swap != "none":
            self._flow.unswapped = why
        return "pass"

    @property
    def _swap(self) -> str:
        return self._editing.settings.swap

    def marks(self) -> RawHeaders:
        """Header fields that say what was done. A stream's head goes out before that is known."""
        if self._swap == "none":
            return []
        if self._stream is not None:
            return [(b"X-Truecall", b"%b; stream" % self._swap.encode())]
        if not self._swapped:
            return []
        return [(b"X-Truecall", b"%b; calls=%d" % (self._swap.encode(), self._swapped))]

    def repeats(self, status: int | None, pieces: list[bytes]) -> bool:
        """Whether the answer refuses what was added; the request then goes again without it."""
        if not self.added or status is None or not 400 <= status < 500:
            return False
        text = b"".join(pieces)
        response = wire.read(text, self.api.value, status=status)
        shown = text[:16384].decode("utf-8", "replace")
        blamed = stacks.blamed_fields(response.error, shown, tuple(self.added))
        self._editing.refused |= set(self.added) if blamed else set()
        return bool(blamed)

    async def whole(self, body: bytes, flow: Flow) -> bytes | None:
        """What the client gets instead of this body; None: the body as it is."""
        value = _object(body)
        if value is None or self._view is None:
            return None
        stripped = False
        response = wire.read(value, self.api.value, status=flow.status)
        if (flow.status or 500) >= 400:
            text = response.error.generation if response.error is not None else None
            if text is None or self._swap != "surface":
                return None
            # The error quotes what the model wrote: read as an answer that says it.
            value = self._form.blank(text, self._view.model)
            response = wire.read(value, self.api.value)
            self.status = b"200 OK"
        else:
            stripped = strip(value, tuple(self.added), self._editing.stack.name)
        calls = 0
        if self._swap != "none":
            texts = await self._texts(response)
            flow.texts = texts if any(texts) else None
            calls = swap_whole(self._form, self._swap, value, response, self._view, texts, self._number)
        else:
            self.awaits = self._by_ids
        if calls:
            self._note(flow, calls)
        elif not stripped:
            self.status = b""
            return None
        flow.sent = msgspec.json.encode(value)
        return flow.sent

    def feed(self, piece: bytes) -> list[bytes]:
        """What may go on to the client now that ``piece`` of a stream has come."""
        assert self._stream is not None
        return self._stream.feed(piece)

    async def finish(self, flow: Flow) -> list[bytes]:
        """What the client gets last of a stream."""
        assert self._stream is not None and self._view is not None
        stream = self._stream
        response = stream.response()
        texts: list[str | None] = []
        if self._swap != "none":
            texts = await self._texts(response)
            flow.texts = texts if any(texts) else None
        else:
            self.awaits = self._by_ids
        last = stream.last(response, texts, self._number)
        if stream.calls:
            self._note(flow, stream.calls)
        if stream.changed:
            flow.sent = stream.sent()
        return last

    def rest(self) -> list[bytes]:
        """What was held back of a stream that broke off, framed as chunks."""
        held = b"".join(self._stream.held()) if self._stream is not None else b""
        return [b"%x\r\n%b\r\n" % (len(held), held)] if held else []

    async def detokenized(self, body: bytes) -> list[str | None]:
        """The texts of the token ids in an answer, choice by choice."""
        return await self._texts(wire.read(body, self.api.value))

    @property
    def _by_ids(self) -> bool:
        return bool(self.added) and self._editing.stack.evidence_kind == "token_ids"

    async def _texts(self, response: Response) -> list[str | None]:
        model = self._view.model if self._view is not None else None
        return [
            await self._editing.text(choice.token_ids, model, self._headers) for choice in response.choices
        ]

    def _note(self, flow: Flow, calls: int) -> None:
        self._swapped = calls
        flow.delivered = calls if self._swap == "surface" else -calls
        self._editing.delivered += calls


def insert(body: bytes, fields: dict[str, Json]) -> bytes:
    """A JSON object's text with fields put in front; every other byte stays."""
    if not fields:
        return body
    start = body.index(b"{") + 1
    new = msgspec.json.encode(fields)[1:-1]
    empty = body[start:].lstrip()[:1] == b"}"
    return body[:start] + new + (b"" if empty else b",") + body[start:]


def _object(body: bytes) -> dict[str, Json] | None:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return value if isinstance(value, dict) else None
