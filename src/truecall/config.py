"""Connection options: where the endpoint is and how to reach it, the same for every verb (DESIGN §6).

:func:`resolve` makes one frozen :class:`Connection` from flags and the environment. Files named ``.env`` are
not read: a key must come from a variable that the user set for this process.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

import msgspec

from truecall.errors import UsageError
from truecall.records import Headers, Record
from truecall.redact import PLACEHOLDERS, clean_url, is_auth_header, secrets_of_header, secrets_of_url

BASE_URL_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"

# What users paste beside the base URL itself; longest first.
_ENDPOINTS = (
    "/chat/completions",
    "/completions",
    "/responses",
    "/models",
    "/api/chat",
    "/api/generate",
    "/api/tags",
)
_VERSION_SEGMENT = re.compile(r"/v\d+\w*(?=/|$)")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


class Secret:
    """A text that no repr shows and no encoder takes; ``reveal()`` gives it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the wire only."""
        return self._text

    def __repr__(self) -> str:
        return "Secret([redacted])"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


class Timeouts(Record, frozen=True):
    """Seconds that an exchange may take: to connect, to its first byte, between bytes, in all."""

    connect: float = 10.0
    first_byte: float = 120.0
    between: float = 60.0
    total: float = 300.0

    @classmethod
    def of(cls, seconds: float) -> Timeouts:
        """Limits for an exchange of at most ``seconds``, whatever fills them."""
        return cls(connect=min(10.0, seconds), first_byte=seconds, between=min(60.0, seconds), total=seconds)


class Connection(Record, frozen=True):
    """How to reach one endpoint.

    ``base_url`` None: none was named (the usual local ports may be tried). ``key_env`` names the variable
    that the key came from, for command lines that repeat a request. ``key_asked``: the user named that
    variable; a key that merely stood in the environment is not for servers that were merely found.
    """

    base_url: str | None = None
    model: str | None = None
    key: Secret | None = None
    key_env: str | None = None
    key_asked: bool = False
    headers: tuple[tuple[str, Secret], ...] = ()
    ca_bundle: str | None = None
    insecure: bool = False
    key_over_http: bool = False
    timeouts: Timeouts = Timeouts()
    proxies: dict[str, str] = msgspec.field(default_factory=dict)

    def secrets(self) -> list[str]:
        """Every credential that the options hold, for the redactor."""
        found = [self.key.reveal()] if self.key else []
        for name, value in self.headers:
            found += secrets_of_header(name, value.reveal())
        for url in (self.base_url, *self.proxies.values()):
            found += secrets_of_url(url or "")
        return found

    def auth_headers(self) -> Headers:
        """The header fields to send: the user's own, and ``Authorization`` unless one of them is that."""
        own = tuple((name, value.reveal()) for name, value in self.headers)
        if self.key is None or any(name.lower() == "authorization" for name, _ in own):
            return own
        return (("Authorization", f"Bearer {self.key.reveal()}"), *own)

    def at(self, base_url: str, *, keep_key: bool = False) -> Connection:
        """The same options for another endpoint.

        A key that nobody named stays behind unless ``keep_key``: it is not for servers that were merely found.
        """
        moved = msgspec.structs.replace(self, base_url=normal_url(base_url)[0])
        if self.key_asked or keep_key:
            return moved
        return msgspec.structs.replace(moved, key=None, key_env=None)

    def api_base(self) -> str:
        """What OpenAI paths are appended to: the base URL, with ``/v1`` where it has no path of its own."""
        parts = self._parts()
        return urlunsplit(parts._replace(path=parts.path or "/v1"))

    def root(self) -> str:
        """What an engine's own paths (``/props``, ``/api/version``) are appended to: all before ``/v1``."""
        parts = self._parts()
        version = _VERSION_SEGMENT.search(parts.path)
        return urlunsplit(parts._replace(path=parts.path[: version.start()] if version else parts.path))

    def url(self, target: str) -> str:
        """The whole URL of ``target``.

        Absolute as it is; ``/path`` below the server's root; ``/v1/path`` and ``path`` below the API base.
        """
        if "://" in target:
            return target
        target = target.removeprefix("/v1/")
        parts = urlsplit(self.root() if target.startswith("/") else self.api_base())
        path, _, query = target.partition("?")
        joined = "&".join(part for part in (parts.query, query) if part)
        return urlunsplit(parts._replace(path=f"{parts.path}/{path.lstrip('/')}", query=joined))

    def proxy(self, url: str) -> str | None:
        """The proxy for ``url`` by the environment; loopback never goes through one.

        Raises:
            UsageError: a proxy of a kind that can't be used (SOCKS).
        """
        parts = urlsplit(url)
        host = parts.hostname or ""
        proxy = self.proxies.get(parts.scheme) or self.proxies.get("all")
        if not proxy or is_loopback(host):
            return None
        if proxy_bypass_environment(f"{host}:{parts.port}" if parts.port else host, self.proxies):
            return None
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        if not proxy.startswith(("http://", "https://")):
            raise UsageError(
                f"proxy {clean_url(proxy)}: only http and https proxies can be used; unset it or set NO_PROXY"
            )
        return proxy

    def _parts(self) -> SplitResult:
        if self.base_url is None:
            raise UsageError(f"no endpoint: give --base-url or set {BASE_URL_VARIABLE}")
        return urlsplit(self.base_url)


def is_loopback(host: str) -> bool:
    """True for ``localhost``, names below it, and loopback addresses."""
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def normal_url(text: str) -> tuple[str, Headers]:
    """A base URL as it is used, and the header fields that its user info stands for.

    A missing scheme is http, a pasted endpoint (``…/v1/chat/completions``) is cut back to its base.

    Raises:
        UsageError: no URL of an HTTP server.
    """
    text = text.strip()
    shown = clean_url(text)
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"base URL {shown!r} is no URL: {error}") from None
    if parts.scheme not in {"http", "https"} or not host or re.search(r"[\s\x00-\x1f]", text):
        raise UsageError(f"base URL {shown!r} is no http or https URL")
    path = parts.path.rstrip("/")
    for endpoint in _ENDPOINTS:
        if path.endswith(endpoint):
            path = path[: -len(endpoint)]
            break
    userinfo, at, netloc = parts.netloc.rpartition("@")
    headers: Headers = ()
    if at:
        basic = base64.b64encode(unquote(userinfo).encode()).decode()
        headers = (("Authorization", f"Basic {basic}"),)
    return urlunsplit((parts.scheme, netloc, path, parts.query, "")), headers


def resolve(
    base_url: str | None = None,
    *,
    model: str | None = None,
    api_key_env: str | None = None,
    headers: Iterable[str] = (),
    ca_bundle: str | None = None,
    insecure: bool = False,
    key_over_http: bool = False,
    timeout: float | None = None,
    environ: Mapping[str, str] | None = None,
) -> Connection:
    """The connection that flags and environment describe; a flag wins over its variable.

    ``headers`` are lines ``Name: value``; ``timeout`` is in seconds. Without ``api_key_env`` the key is that
    of ``OPENAI_API_KEY``, if any, as in the OpenAI clients. Proxies come from the process's ``HTTP_PROXY``,
    ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``.

    Raises:
        UsageError: an option that can't be used, in one line.
    """
    env = os.environ if environ is None else environ
    base_url = base_url or env.get(BASE_URL_VARIABLE) or None
    address, own = normal_url(base_url) if base_url else (None, ())
    if timeout is not None and not timeout > 0:
        raise UsageError(f"--timeout {timeout:g}: give a number of seconds above 0")
    if ca_bundle is not None and not Path(ca_bundle).is_file():
        raise UsageError(f"--ca-bundle {ca_bundle}: no such file")
    given = tuple(_header(line) for line in headers)
    names = {name.lower() for name, _ in given}
    key, key_env = _key(api_key_env, env)
    if key is None:  # a key that was named wins over the URL's user info
        given = (*((name, Secret(value)) for name, value in own if name.lower() not in names), *given)
    return Connection(
        base_url=address,
        model=model,
        key=key,
        key_env=key_env,
        key_asked=api_key_env is not None,
        headers=given,
        ca_bundle=ca_bundle,
        insecure=insecure,
        key_over_http=key_over_http,
        timeouts=Timeouts() if timeout is None else Timeouts.of(timeout),
        proxies=getproxies_environment(),
    )


def carries_key(url: str, headers: Iterable[tuple[str, str]]) -> bool:
    """True when a request would show a credential to whoever reads the line; dummy keys are none."""
    found = secrets_of_url(url)
    for name, value in headers:
        if is_auth_header(name):
            found.append(secrets_of_header(name, value)[-1] if value.strip() else "")
    return any(text and text.lower() not in PLACEHOLDERS for text in found)


def _key(name: str | None, env: Mapping[str, str]) -> tuple[Secret | None, str | None]:
    """The API key and the variable that it stands in."""
    value = (env.get(name or KEY_VARIABLE) or "").strip()
    if name and not value:
        raise UsageError(
            f"--api-key-env {name}: the variable is not set or empty (it takes a variable's name, not a key)"
        )
    if not value:
        return None, None
    if re.search(r"[\s\x00-\x1f\x7f]", value) or not value.isascii():
        raise UsageError(
            f"the key in {name or KEY_VARIABLE} holds spaces or characters that a header can't carry"
        )
    return Secret(value), name or KEY_VARIABLE


def _header(line: str) -> tuple[str, Secret]:
    """A ``Name: value`` line of the user's."""
    name, colon, value = line.partition(":")
    name, value = name.strip(), value.strip()
    if not colon or not _HEADER_NAME.match(name):
        raise UsageError("--header: give it as 'Name: value'")
    if re.search(r"[\r\n\x00]", value):
        raise UsageError(f"--header {name}: a value is one line")
    return name, Secret(value)
