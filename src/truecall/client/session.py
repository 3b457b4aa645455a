"""The client: one request, one :class:`~truecall.records.Exchange`, whatever the server does.

Bodies are kept as received but for content-encoding; redirects are not followed; cookies are not kept. An
exchange leaves here without secrets: those of the connection options are replaced in the request as
recorded, in headers and in the body (:mod:`truecall.redact`). Exceptions are our own mistakes, the user's
(UsageError), and cancellation.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp
import msgspec
import yarl

from truecall import __version__
from truecall.client import failures
from truecall.client.body import Body, OnChunk
from truecall.client.clock import Clock
from truecall.config import Connection, Timeouts, carries_key, is_loopback
from truecall.errors import UsageError
from truecall.records import Exchange, Failure, Headers, Request, Timing
from truecall.redact import Redactor, secrets_of_header, secrets_of_url

MAX_BODY = 64 << 20
"""Bytes of a decoded body that are kept unless the caller says otherwise."""

MAX_HEAD = 64 << 10  # bytes of one header field; real gateways stay far below

_DEFAULTS = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",  # as the SDKs of harnesses ask
    "User-Agent": f"truecall/{__version__}",
}
_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_FIELD_BREAK = re.compile(r"[\r\n\x00]")
_CHAT_PATHS = {
    "openai.chat": "chat/completions",
    "openai.completions": "completions",
    "openai.responses": "responses",
    "anthropic.messages": "messages",
    "ollama.chat": "/api/chat",
}


class _Answer:
    """What has come back of one exchange so far."""

    def __init__(self) -> None:
        self.response: aiohttp.ClientResponse | None = None
        self.body: Body | None = None
        self.first_byte: float | None = None
        self.failure: Failure | None = None


class Client:
    """An async context manager that sends exchanges to one endpoint.

    Args:
        connection: where to and with what. Its credentials go to the endpoint's own origin only.
        redactor: a redactor to share; the connection's secrets are added to it.
        keep_alive: None keeps connections only where they cost a TLS handshake. Over plain http each exchange
            has its own: an answer lost to a connection that the server just closed would look like a fault.
    """

    def __init__(
        self, connection: Connection, *, redactor: Redactor | None = None, keep_alive: bool | None = None
    ) -> None:
        self.connection = connection
        self.redactor = redactor if redactor is not None else Redactor()
        self.redactor.add(*connection.secrets())
        https = (connection.base_url or "").startswith("https:")
        self._keep_alive = https if keep_alive is None else keep_alive
        self._origin = _origin(connection.base_url or "")
        self._proxies: dict[tuple[str, str], str | None] = {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # Below the 5 s after which common servers drop an idle connection.
        keep: dict[str, Any] = {"keepalive_timeout": 4.0} if self._keep_alive else {"force_close": True}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls(), **keep),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
            trace_configs=[_tracing()],
            trust_env=False,  # it would take passwords from .netrc, too
            max_line_size=MAX_HEAD,
            max_field_size=MAX_HEAD,
            skip_auto_headers=("Content-Type",),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self,
        method: str,
        target: str,
        *,
        json: Any = None,
        body: bytes | None = None,
        headers: Headers | Mapping[str, str] = (),
        timeout: float | Timeouts | None = None,  # noqa: ASYNC109 - phases, not one limit
        stream: bool = False,
        max_bytes: int = MAX_BODY,
        on_chunk: OnChunk | None = None,
    ) -> Exchange:
        """Sends one request and waits for its end.

        Args:
            target: a whole URL, ``/path`` below the server's root, or ``path`` below the API base (``…/v1``).
            json: a value to send as JSON; ``body`` sends bytes as they are.
            headers: further fields; they win over the connection's own of the same name.
            timeout: seconds in all, or limits by phase; the connection's by default.
            stream: keep the arrival time and size of each piece in ``Exchange.chunks``.
            max_bytes: of the decoded body, and of the body on the wire; more ends as ``too_large``.
            on_chunk: gets the decoded body piece by piece, without secrets.

        Raises:
            UsageError: the URL or a header can't be sent, or a key would travel in the clear.
        """
        session = self._session
        if session is None:
            raise RuntimeError("the client is not open: use `async with Client(...)`")
        url = self.connection.url(target)
        raw = msgspec.json.encode(json) if json is not None else body
        fields = self._fields(url, headers, has_json=json is not None)
        self._check(url, fields)
        limits = timeout if isinstance(timeout, Timeouts) else self._limits(timeout)
        clock, answer = Clock(limits), _Answer()

        def open_body(encoding: str | None) -> Body:
            return Body(encoding, limit=max_bytes, redactor=self.redactor, on_chunk=on_chunk, timed=stream)

        try:
            async with clock.timer:
                clock.begin()
                await self._exchange(session, method, url, fields, raw, clock, answer, open_body)
        except TimeoutError:
            if not clock.timer.expired():
                raise
            answer.failure = clock.failure()
        finally:
            if answer.response is not None:
                answer.response.close()  # a connection whose body was read whole has gone back already
        request = self._recorded(method, url, fields, raw)
        return self._record(request, clock, answer)

    async def chat(self, body: dict[str, Any], *, api: str = "openai.chat", **options: Any) -> Exchange:
        """POSTs ``body`` to the path of ``api``; ``options`` as in :meth:`send`. Reading is wire's work."""
        path = _CHAT_PATHS.get(api)
        if path is None:
            raise UsageError(f"no request path is known for {api}")
        options.setdefault("stream", bool(body.get("stream")))
        return await self.send("POST", path, json=body, **options)

    async def _exchange(
        self,
        session: aiohttp.ClientSession,
        method: str,
        url: str,
        fields: dict[str, str],
        raw: bytes | None,
        clock: Clock,
        answer: _Answer,
        open_body: Callable[[str | None], Body],
    ) -> None:
        """Fills ``answer``; whatever the server does ends there as data."""
        try:
            answer.response = response = await session.request(
                method,
                yarl.URL(url, encoded=True),
                data=raw,
                headers=fields,
                allow_redirects=False,
                proxy=self._proxy(url),
                trace_request_ctx=clock,
            )
        except aiohttp.InvalidURL as error:
            raise self._no_url(url) from error
        except (aiohttp.ClientError, OSError) as error:  # a bad certificate is a ValueError, too
            if isinstance(error, TimeoutError) and clock.timer.expired():
                raise
            answer.failure = failures.before_head(error, connected=clock.connected)
            return
        except ValueError as error:
            if not clock.connected:
                raise self._no_url(url) from error
            answer.failure = failures.unreadable(error)
            return
        answer.first_byte = clock.now()
        answer.body = body = open_body(response.headers.get("Content-Encoding"))
        try:
            answer.failure = await _read(response, body, clock)
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, TimeoutError) and clock.timer.expired():
                raise
            answer.failure = body.failure or failures.in_body(error)
        except ValueError as error:
            answer.failure = failures.unreadable(error)

    def _no_url(self, url: str) -> UsageError:
        return UsageError(f"{self.redactor.url(url)} is no URL that can be requested")

    def _record(self, request: Request, clock: Clock, answer: _Answer) -> Exchange:
        response, body, failure = answer.response, answer.body, answer.failure
        data = b""
        if body is not None:
            data = body.finish(whole=failure is None)
            failure = failure or body.failure
        if failure is not None:
            failure = Failure(kind=failure.kind, detail=self.redactor.text(failure.detail))
        fields: Headers = ()
        if response is not None:
            fields = tuple((_latin(name), _latin(value)) for name, value in response.raw_headers)
        return Exchange(
            request=request,
            status=response.status if response is not None else None,
            headers=self.redactor.headers(fields),
            body=data,
            received=body.received if body is not None else 0,
            chunks=body.chunks() if body is not None else (),
            timing=Timing(started_at=clock.started_at, first_byte=answer.first_byte, total=clock.now()),
            failure=failure,
        )

    def _recorded(self, method: str, url: str, fields: dict[str, str], raw: bytes | None) -> Request:
        clean = self.redactor.headers(tuple(fields.items()))
        return Request(
            method=method, url=self.redactor.url(url), headers=clean, body=self.redactor.data(raw or b"")
        )

    def _fields(self, url: str, own: Headers | Mapping[str, str], *, has_json: bool) -> dict[str, str]:
        """The header fields to send, later ones winning whatever the case of their names."""
        layers: list[Iterable[tuple[str, str]]] = [_DEFAULTS.items()]
        if has_json:
            layers.append([("Content-Type", "application/json")])
        if _origin(url) == self._origin:
            layers.append(self.connection.auth_headers())
        layers.append(own.items() if isinstance(own, Mapping) else own)
        merged = {name.lower(): (name, value) for layer in layers for name, value in layer}
        return dict(merged.values())

    def _check(self, url: str, fields: dict[str, str]) -> None:
        """No key in the clear over the network, and none unknown to the redactor."""
        parts = urlsplit(url)
        for name, value in fields.items():
            if not _FIELD_NAME.match(name) or _FIELD_BREAK.search(value):
                raise UsageError(f"header {name[:60]!r} can't be sent: a name is one word, a value one line")
            self.redactor.add(*secrets_of_header(name, value))
        self.redactor.add(*secrets_of_url(url))
        in_clear = parts.scheme == "http" and not is_loopback(parts.hostname or "")
        if in_clear and not self.connection.key_over_http and carries_key(url, fields.items()):
            raise UsageError(
                f"a key would go to {parts.hostname} over plain http, readable on the way: "
                "use https, leave the key out, or allow it with --key-over-http"
            )

    def _limits(self, timeout: float | None) -> Timeouts:
        return self.connection.timeouts if timeout is None else Timeouts.of(timeout)

    def _proxy(self, url: str) -> str | None:
        if not self.connection.proxies:
            return None
        key = _origin(url)
        if key not in self._proxies:
            self._proxies[key] = self.connection.proxy(url)
        return self._proxies[key]

    def _tls(self) -> ssl.SSLContext | bool:
        """The library's own context unless the user said otherwise."""
        if self.connection.insecure:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return context
        if self.connection.ca_bundle is None:
            return True
        try:
            return ssl.create_default_context(cafile=self.connection.ca_bundle)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"--ca-bundle {self.connection.ca_bundle}: no certificates in PEM form ({error})"
            ) from None


async def _read(response: aiohttp.ClientResponse, body: Body, clock: Clock) -> Failure | None:
    """Reads to the end of the body, to its limit, or to the error that the library raises."""
    content = response.content
    unwatch = _watch(response)
    clock.on_bytes()
    try:
        while data := await content.readany():
            clock.on_bytes()
            if not body.add(data, clock.now()):
                return body.failure
    except (aiohttp.ClientError, OSError):
        # aiohttp raises before it hands out what it had already buffered.
        if rest := content._read_nowait(-1):
            body.add(rest, clock.now())
        raise
    finally:
        unwatch()
    return None


def _watch(response: aiohttp.ClientResponse) -> Callable[[], None]:
    """Ends the body when its connection closes: aiohttp leaves one with broken framing waiting for ever."""
    content = response.content
    protocol = response.connection.protocol if response.connection is not None else None
    closed = protocol.closed if protocol is not None else None

    def end(_: object) -> None:
        if not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientPayloadError("the framing can't be read on"))

    if closed is None:
        return lambda: None
    closed.add_done_callback(end)

    def unwatch() -> None:
        closed.remove_done_callback(end)

    return unwatch


def _tracing() -> aiohttp.TraceConfig:
    """Tells an exchange's clock when its connection stands."""

    async def connected(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: Any) -> None:
        context.trace_request_ctx.on_connected()

    config = aiohttp.TraceConfig()
    config.on_connection_create_end.append(connected)
    config.on_connection_reuseconn.append(connected)
    return config


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2].lower()


def _latin(raw: bytes) -> str:
    """A header byte string as text: UTF-8 where it is that, else byte by byte."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
