"""What the proxy is told: where to pass requests on, what to refuse, what to change."""

from __future__ import annotations

import ssl
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from truecall.config import Connection
from truecall.errors import UsageError
from truecall.records import Json, Record

Swap = Literal["none", "surface", "hide"]

MAX_HEAD: Final = 64 << 10
"""Bytes of a request's or response's head."""

MAX_BODY: Final = 512 << 20
"""Bytes of a request body that is passed on."""

MAX_RECORDED: Final = 24 << 20
"""Bytes of one body that are recorded; the rest is passed on and the exchange marked ``too_large``."""

MAX_EDITED: Final = 16 << 20
"""Bytes of a body that is held back to be changed; a larger one is passed on as it is."""


class Limits(Record, frozen=True):
    """Seconds. ``first_byte`` and ``between`` are long: harnesses set limits of their own."""

    connect: float = 10.0
    first_byte: float = 3600.0
    between: float = 3600.0
    head: float = 60.0  # a request head that does not get on
    idle: float = 3600.0  # a client's connection without a request


class Settings(Record, frozen=True):
    """All that the passing of bytes needs.

    ``hosts``: names beside the loopback ones that a Host header may have. ``token``: the first path segment
    that requests must have when the proxy listens beyond loopback. ``engine``: the stack's name in
    ``stacks.ENGINES``, where evidence is asked for. ``tools``: the tool list of a harness whose tools stand in
    the prompt.
    """

    upstream: Connection
    limits: Limits = Limits()
    hosts: tuple[str, ...] = ()
    token: str | None = None
    swap: Swap = "none"
    evidence: bool = False
    engine: str = "openai_compatible"
    tools: tuple[Json, ...] | None = None
    strict: bool = False  # a broken recorder stops the run


class Address:
    """The upstream, taken apart once: where to connect, and what to put before each target."""

    def __init__(self, connection: Connection) -> None:
        root = urlsplit(connection.root())
        base = urlsplit(connection.api_base())
        self.tls = root.scheme == "https"
        self.host = root.hostname or ""
        self.port = root.port or (443 if self.tls else 80)
        self.netloc = root.netloc.encode("idna" if not root.netloc.isascii() else "ascii")
        self.prefix = root.path.rstrip("/").encode()
        self.query = root.query.encode()
        self.api_path = base.path[len(root.path) :].rstrip("/")
        """What stands between the proxy's root and OpenAI's paths: ``/v1`` or nothing."""
        if connection.proxy(connection.root()):
            raise UsageError(
                "the upstream would go through the proxy of HTTP_PROXY/HTTPS_PROXY, which record can't use: "
                "add its host to NO_PROXY, or unset the variable"
            )

    def target(self, target: bytes) -> bytes:
        """The request target upstream for one that a client asked for."""
        if self.query:
            joint = b"&" if b"?" in target else b"?"
            return self.prefix + target + joint + self.query
        return self.prefix + target if self.prefix else target


def tls_context(connection: Connection) -> ssl.SSLContext:
    """The TLS context by the connection's options.

    Raises:
        UsageError: the bundle holds no certificates.
    """
    try:
        context = ssl.create_default_context(cafile=connection.ca_bundle)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"--ca-bundle {connection.ca_bundle}: no certificates ({error})") from None
    if connection.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


class Injected(msgspec.Struct, frozen=True):
    """Header fields of the user's that replace the client's own of the same name."""

    fields: tuple[tuple[bytes, bytes], ...]
    names: frozenset[bytes]

    @classmethod
    def of(cls, connection: Connection) -> Injected:
        """Those that the user named; a key that merely stood in the environment is left to the harness."""
        named = connection.auth_headers() if connection.key_asked or connection.headers else ()
        if not connection.key_asked:
            own = {name for name, _ in connection.headers}
            named = tuple(pair for pair in named if pair[0] in own)
        fields = tuple((name.encode("latin-1"), value.encode("utf-8")) for name, value in named)
        return cls(fields=fields, names=frozenset(name.lower() for name, _ in fields))
