"""The side of the client: requests in, one after the other, each to the upstream as it comes.

Every client connection has one upstream connection of its own. So an upstream that closes an idle connection, or
answers with ``Connection: close``, is seen by the client as it would be without a proxy in between.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any, cast

import httptools

from truecall.proxy.flow import Flow, own_answer
from truecall.proxy.gate import ROLE_HEADER, Refused
from truecall.proxy.outbound import Outbound
from truecall.proxy.settings import MAX_BODY, MAX_EDITED, MAX_HEAD

if TYPE_CHECKING:
    from truecall.proxy.hub import Hub

_clock = time.perf_counter
_PIPELINED = 8  # requests that may wait on one connection
_UNSENT = 1 << 20  # bytes that wait for a connection to the upstream


class Inbound(asyncio.Protocol):
    """One client connection."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.up: Outbound | None = None
        self.flow: Flow | None = None  # in service
        self.touched = _clock()
        self._reading: Flow | None = None  # being received
        self._waiting: deque[Flow] = deque()
        self._head_bytes = 0
        self._in_head = False
        self._trailers = False
        self._connecting: asyncio.Task[None] | None = None
        self._closed = False
        self._parser: Any = httptools.HttpRequestParser(self)

    # ------------------------------------------------------------- transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.hub.open.add(self)

    def data_received(self, data: bytes) -> None:
        self.touched = _clock()
        if self._closed:
            return
        if self._in_head or self._reading is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # refused at the gate already
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except httptools.HttpParserError as error:
            if not self._closed:
                self.refuse(Refused(400, f"not a request that is passed on ({error})"))
            return
        if self._in_head and self._head_bytes > MAX_HEAD and not self._closed:
            self.refuse(Refused(431, f"the head passes {MAX_HEAD:,} bytes"))
            return
        if self.flow is not None:
            self.pump()
        if len(self._waiting) > _PIPELINED:
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        return False  # a client that says no more has gone: that is passed on

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self.hub.open.discard(self)
        if self._connecting is not None:
            self._connecting.cancel()
        flow, self.flow = self.flow, None
        if flow is not None and not flow.ended and flow.passed_on:
            flow.client_gone = True
            flow.failure = flow.failure or ("closed_mid_stream" if flow.status else "closed_before_response")
            flow.detail = flow.detail or "the client went away"
            self.hub.record(flow)
        if self.up is not None:
            self.up.abandon()
            self.up = None

    def pause_writing(self) -> None:
        if self.up is not None:
            self.up.pause()

    def resume_writing(self) -> None:
        if self.up is not None:
            self.up.resume()

    # ------------------------------------------------------------- parser

    def on_message_begin(self) -> None:
        self._reading = Flow(self.hub.number())
        self._in_head = True
        self._trailers = False

    def on_url(self, url: bytes) -> None:
        if self._reading is not None:
            self._reading.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        flow = self._reading
        if flow is None or self._trailers:
            return
        flow.headers.append((name, value))
        low = name.lower()
        if low == b"transfer-encoding":
            flow.chunked = True
        elif low == ROLE_HEADER:
            flow.role = value
        elif low == b"expect" and value.lower() == b"100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_headers_complete(self) -> None:
        flow = self._reading
        if flow is None or self._closed:
            return
        self._in_head, self._head_bytes, self._trailers = False, 0, True
        flow.method = self._parser.get_method()
        version = self._parser.get_http_version()
        flow.http10 = version == "1.0"
        try:
            if version not in ("1.0", "1.1"):
                raise Refused(400, "HTTP/1.1 is spoken here")
            flow.target = self.hub.gate.check(flow.method, flow.target, version, flow.headers)
            flow.edit = self.hub.edit(flow)
        except Refused as refused:
            flow.refused = refused
        if self.flow is None:
            self._begin(flow)
        else:
            self._waiting.append(flow)

    def on_body(self, piece: bytes) -> None:
        flow = self._reading
        if flow is None or flow.refused is not None:
            return
        flow.add_request(piece)
        if flow.size > MAX_BODY:
            flow.refused = Refused(413, f"the body passes {MAX_BODY:,} bytes")
            if flow is self.flow:
                self.refuse(flow.refused)
        elif flow.edit is None:
            flow.unsent.append(b"%x\r\n%b\r\n" % (len(piece), piece) if flow.chunked else piece)
        elif flow.size > MAX_EDITED:
            self._give_up_editing(flow)

    def on_message_complete(self) -> None:
        flow, self._reading = self._reading, None
        self._trailers = False
        if flow is None:
            return
        flow.client_keeps = self._parser.should_keep_alive()
        flow.complete = True
        if flow.chunked and flow.edit is None:
            flow.unsent.append(b"0\r\n\r\n")

    # ------------------------------------------------------------- service

    def _begin(self, flow: Flow) -> None:
        self.flow = flow
        if flow.refused is not None:
            self.refuse(flow.refused)
            return
        if self.hub.stopped:
            self.refuse(Refused(503, self.hub.stopped))
            return
        flow.unsent.insert(0, flow.head_up(self.hub.address, self.hub.injected))
        if self.up is None and self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect(flow))

    def _give_up_editing(self, flow: Flow) -> None:
        """The body is too large to be held back: the exchange passes as it is."""
        if flow.edit is not None:
            flow.edit.too_large()
            flow.edit = None
        head = [flow.head_up(self.hub.address, self.hub.injected)] if flow is self.flow else []
        framed = [b"%x\r\n%b\r\n" % (len(p), p) if flow.chunked else p for p in flow.body]
        flow.unsent = head + framed

    async def _connect(self, flow: Flow) -> None:
        try:
            up = await self.hub.connect(self)
        except asyncio.CancelledError:
            return
        except OSError as error:
            self._connecting = None
            failure, text = self.hub.connect_failure(error)
            self.fail(flow, failure, text, status=504 if failure.startswith("timeout") else 502)
            return
        self._connecting = None
        if self._closed:
            up.abandon()
            return
        self.up = up
        self.pump()
        self.transport.resume_reading()

    def pump(self) -> None:
        """Writes what the upstream is still to get of the request in service."""
        flow, up = self.flow, self.up
        if flow is None or flow.refused is not None:
            return
        if up is None:
            if flow.size > _UNSENT:
                self.transport.pause_reading()
            return
        if flow.edit is not None:
            if not flow.complete or flow.passed_on:
                return
            flow.unsent += flow.edit.request(b"".join(flow.body))
        if not flow.unsent:
            return
        data = flow.unsent[0] if len(flow.unsent) == 1 else b"".join(flow.unsent)
        flow.unsent.clear()
        if not flow.passed_on:
            flow.passed_on = True
            self.hub.intent(flow)
        up.transport.write(data)

    def finished(self, flow: Flow, keep: bool) -> None:
        """The response of the request in service has been written."""
        self.flow = None
        self.touched = _clock()
        if not keep or not flow.complete:
            self.close()
        elif self._waiting:
            self.transport.resume_reading()
            self._begin(self._waiting.popleft())
            self.pump()

    # ------------------------------------------------------------- ends

    def fail(self, flow: Flow, failure: str, detail: str, *, status: int) -> None:
        """The upstream did not answer: told to the client where nothing was sent yet, and recorded."""
        flow.failure, flow.detail = failure, detail
        began = flow.status is not None
        flow.passed_on = True
        self.hub.record(flow)
        self.hub.trouble(detail)
        if not began:
            self.transport.write(own_answer(status, detail, "upstream"))
            self.close()
        else:
            self.abort()

    def refuse(self, refused: Refused) -> None:
        """An answer of our own to what is not passed on; the connection ends with it."""
        self.hub.refusal(refused)
        if self.flow is None or self.flow.status is None:
            self.transport.write(own_answer(refused.status, refused.text, "refused"))
        self.close()

    def close(self) -> None:
        """Ends the connection after what is still to be written."""
        self._closed = True
        self.transport.close()
        if self.up is not None:
            self.up.abandon()
            self.up = None

    def abort(self) -> None:
        """Ends the connection at once, as a broken answer ends."""
        self._closed = True
        self.transport.abort()
        if self.up is not None:
            self.up.abandon()
            self.up = None

    def sweep(self, now: float) -> None:
        """Ends what takes too long."""
        limits = self.hub.settings.limits
        flow = self.flow
        if flow is None:
            slow = now - self.touched > (limits.head if self._in_head else limits.idle)
            if slow:
                self.close()
        elif not flow.complete:
            if now - self.touched > limits.between:
                self.refuse(Refused(408, "the request stopped coming"))
        elif self.up is not None and not self.up.paused:
            waited = now - max(self.up.touched, self.touched)
            if flow.status is None and waited > limits.first_byte:
                text = f"no answer from the upstream in {limits.first_byte:g} s"
                self.fail(flow, "timeout_first_byte", text, status=504)
            elif flow.status is not None and waited > limits.between:
                self.fail(flow, "timeout_between_bytes", "the answer stopped coming", status=504)
