"""The side of the upstream: responses in, each to the client as it comes."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, cast

import httptools

from truecall.proxy.settings import MAX_EDITED, MAX_HEAD

if TYPE_CHECKING:
    from truecall.proxy.flow import Flow
    from truecall.proxy.inbound import Inbound

_clock = time.perf_counter


class Outbound(asyncio.Protocol):
    """One connection to the upstream, for one client connection."""

    def __init__(self, inbound: Inbound) -> None:
        self.inbound: Inbound | None = inbound
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.touched = self._now = _clock()
        self.paused = False
        self._out: list[bytes] = []  # for the client, of the bytes now being read
        self._fields: list[tuple[bytes, bytes]] = []
        self._reason = b""
        self._head_bytes = 0
        self._interim = False
        self._body = False
        self._keep = False
        self._mode = "pass"  # how the body of the answer is treated: pass, whole, stream
        self._done = False
        self._task: asyncio.Task[None] | None = None
        self._parser: Any = httptools.HttpResponseParser(self)

    # ------------------------------------------------------------- transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        inbound = self.inbound
        if inbound is None:
            return
        flow = inbound.flow
        self.touched = self._now = _clock()
        if flow is None or flow.ended or self._done:
            inbound.close()  # bytes that no request asked for
            return
        if flow.first_byte is None:
            flow.first_byte = self._now - flow.started
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._answered():
                self._unreadable(inbound, flow, str(error))
                return
            self._keep = False  # what came behind the answer is nobody's
        if not self._body:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD:
                self._unreadable(inbound, flow, "the head is too large")
                return
        if self._answered():
            self._end(inbound, flow)
        elif self._out:
            inbound.transport.write(b"".join(self._out))
            self._out.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        inbound = self.inbound
        self.inbound = None
        if inbound is None or self._task is not None:
            return
        inbound.up = None
        flow = inbound.flow
        if flow is None or flow.ended:
            inbound.close()
        elif flow.framing == "close" and self._body and exc is None:
            self._keep = False
            self._end(inbound, flow)
        else:
            flow.failure = "closed_mid_stream" if flow.status is not None else "closed_before_response"
            flow.detail = "the upstream reset the connection" if exc else "the upstream closed the connection"
            flow.passed_on = True
            if self._mode == "stream" and flow.edit is not None:
                inbound.transport.write(b"".join(flow.edit.rest()))
            inbound.hub.record(flow)
            if exc is not None:
                inbound.abort()
            else:
                inbound.close()

    def pause_writing(self) -> None:
        if self.inbound is not None:
            self.inbound.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.inbound is not None:
            self.inbound.transport.resume_reading()

    def pause(self) -> None:
        """The client does not keep up: read no further."""
        self.paused = True
        self.transport.pause_reading()

    def resume(self) -> None:
        self.paused = False
        self.touched = _clock()
        self.transport.resume_reading()

    def abandon(self) -> None:
        """The client's side has ended."""
        self.inbound = None
        if self._task is not None:
            self._task.cancel()
        if self.transport is not None:
            self.transport.abort()

    # ------------------------------------------------------------- parser

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._body:
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        fields, self._fields = self._fields, []
        reason, self._reason = self._reason, b""
        status = self._parser.get_status_code()
        self._interim = 100 <= status < 200
        flow = self.inbound.flow if self.inbound is not None else None
        if self._interim or flow is None:
            return
        self._body = True
        flow.status, flow.reason, flow.fields = status, reason, fields
        flow.framing = _framing(flow)
        self._keep = self._parser.should_keep_alive()
        self._mode = "pass" if flow.edit is None else flow.edit.mode(status, fields)
        if self._mode != "whole":
            extra = flow.edit.marks() if flow.edit is not None and self._mode == "stream" else []
            if self._mode == "stream":  # its length changes
                flow.fields = [(n, v) for n, v in fields if n.lower() != b"content-length"]
                flow.framing = "chunked"
            self._out.append(flow.head_down(keep=self._keeps(flow), extra=extra))
            flow.fields = fields
        if flow.framing == "none":
            self._finish_bodiless()

    def on_body(self, piece: bytes) -> None:
        flow = self.inbound.flow if self.inbound is not None else None
        if flow is None or self._interim or self._done:
            return
        flow.add_response(piece, self._now)
        if self._mode == "pass":
            self._put(flow, piece)
        elif self._mode == "stream" and flow.edit is not None:
            for part in flow.edit.feed(piece):
                self._put(flow, part)
        elif flow.received > MAX_EDITED:  # too large to be held back
            self._mode = "pass"
            if flow.edit is not None:
                flow.edit.too_large()
            self._out.append(flow.head_down(keep=self._keeps(flow)))
            for part in flow.pieces:
                self._put(flow, part)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        else:
            self._done = True

    # ------------------------------------------------------------- ends

    def _answered(self) -> bool:
        return self._done

    def _keeps(self, flow: Flow) -> bool:
        return self._keep and flow.client_keeps and not flow.http10

    def _put(self, flow: Flow, piece: bytes) -> None:
        if not piece:
            return
        chunked = flow.framing == "chunked" and not flow.http10
        self._out.append(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)

    def _finish_bodiless(self) -> None:
        """An answer without a body, whatever length it names (to HEAD): the parser would wait for one."""
        self._done = True
        self._parser = httptools.HttpResponseParser(self)

    def _end(self, inbound: Inbound, flow: Flow) -> None:
        """The answer has come whole."""
        if self._mode == "pass":
            self._close_off(inbound, flow)
        elif flow.edit is not None and flow.edit.repeats(flow.status, flow.pieces):
            self._repeat(inbound, flow)
        else:
            if self._out:
                inbound.transport.write(b"".join(self._out))
                self._out.clear()
            self._task = asyncio.get_running_loop().create_task(self._edited(inbound, flow))

    async def _edited(self, inbound: Inbound, flow: Flow) -> None:
        """The end of an answer that may be changed: it can need the upstream once more."""
        edit = flow.edit
        assert edit is not None
        if self._mode == "whole":
            body = b"".join(flow.pieces)
            changed = await edit.whole(body, flow)
            given = body if changed is None else changed
            head = flow.head_down(
                keep=self._keeps(flow), extra=edit.marks(), length=len(given), status=edit.status
            )
            self._out += [head, given]
        else:
            for part in await edit.finish(flow):
                self._put(flow, part)
        self._task = None
        if self.inbound is not None and inbound.flow is flow:
            self._close_off(inbound, flow)

    def _close_off(self, inbound: Inbound, flow: Flow) -> None:
        if flow.framing == "chunked" and not flow.http10 and self._mode != "whole":
            self._out.append(b"0\r\n\r\n")
        inbound.hub.record(flow)  # before the last byte: what a client has got whole is in the record
        if self._out:
            inbound.transport.write(b"".join(self._out))
        keep = self._keeps(flow)
        self._reset()
        if self.inbound is None:
            keep = False
        inbound.finished(flow, keep)

    def _repeat(self, inbound: Inbound, flow: Flow) -> None:
        """The upstream refused what was added for evidence: the request goes again without it."""
        if not self._keep:
            inbound.fail(
                flow, "closed_before_response", "the upstream refused a field of truecall's", status=502
            )
            return
        inbound.hub.repeat(flow)
        self._reset()
        self._out.clear()
        self.transport.write(b"".join(flow.unsent))
        flow.unsent.clear()

    def _reset(self) -> None:
        self._out = []
        self._fields = []
        self._head_bytes = 0
        self._body = self._done = False
        self._mode = "pass"

    def _unreadable(self, inbound: Inbound, flow: Flow, why: str) -> None:
        text = f"the upstream's answer can't be read as HTTP ({why})"
        if flow.status is None:
            inbound.fail(flow, "not_http", text, status=502)
        else:
            if self._out:
                inbound.transport.write(b"".join(self._out))
            inbound.fail(flow, "closed_mid_stream", text, status=502)


def _framing(flow: Flow) -> str:
    """How the end of the answer's body is told."""
    if flow.method == b"HEAD" or flow.status in (204, 304):
        return "none"
    names = {name.lower() for name, _ in flow.fields}
    if b"transfer-encoding" in names:
        return "chunked"
    return "length" if b"content-length" in names else "close"
