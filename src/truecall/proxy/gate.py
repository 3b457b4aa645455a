"""What is refused before it reaches the upstream: foreign hosts and origins, and targets of other kinds.

Request smuggling shapes (doubled or odd lengths, length beside chunked, folded or bare-LF lines) are refused by
llhttp, which parses strictly; what it lets through and a server behind might read otherwise is refused here.
"""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import urlsplit

from truecall.config import is_loopback

HOP: Final = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    }
)
"""Header fields that belong to one connection (RFC 9110, 7.6.1)."""

ROLE_HEADER: Final = b"x-truecall-role"
"""What a harness may say of a request: ``simulator`` or ``judge`` never enter the agent's numbers."""

_NO_FIELDS: Final = {b"close", b"keep-alive"}  # what Connection says beside names of fields

RawHeaders = list[tuple[bytes, bytes]]


class Refused(Exception):
    """A request that is not passed on: HTTP status and one line."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Gate:
    """Checks request heads. ``hosts``: further names that Host may have; ``token``: see ``Settings``."""

    def __init__(self, port: int, hosts: tuple[str, ...], token: str | None) -> None:
        self._port = port
        self._hosts = frozenset(host.lower() for host in hosts)
        self._token = token.encode() if token else None
        self._good: set[bytes] = set()  # Host values that have passed

    def check(self, method: bytes, target: bytes, version: str, headers: RawHeaders) -> bytes:
        """The target to pass on. Raises Refused."""
        if method == b"CONNECT":
            raise Refused(405, "CONNECT is not served: this is no forward proxy")
        if target[:1] != b"/" and not (method == b"OPTIONS" and target == b"*"):
            raise Refused(400, "the target must be a path: this is no forward proxy")
        hosts = [value for name, value in headers if name.lower() == b"host"]
        if len(hosts) > 1 or (not hosts and version != "1.0"):
            raise Refused(400, "one Host header is needed")
        if hosts and hosts[0] not in self._good:
            self._host(hosts[0])
        for name, value in headers:
            low = name.lower()
            if low == b"origin":
                self._origin(value)
            elif low == b"transfer-encoding" and (version == "1.0" or value.strip().lower() != b"chunked"):
                raise Refused(501, "transfer-encoding is passed on only as chunked")
            elif low == b"upgrade":
                raise Refused(501, "Upgrade is not passed on")
        return self._tokened(target)

    def _host(self, value: bytes) -> None:
        name, _, port = _split(value.decode("latin-1"))
        known = name in self._hosts or (self._token is not None)
        if not known and not (is_loopback(name) and port in ("", str(self._port))):
            raise Refused(421, "this Host is not served here (see --allow-host)")
        if len(self._good) < 64:
            self._good.add(value)

    def _origin(self, value: bytes) -> None:
        try:
            host = urlsplit(value.decode("latin-1")).hostname or ""
        except ValueError:
            host = ""
        if not (host in self._hosts or is_loopback(host)):
            raise Refused(403, "requests of foreign web pages are refused")

    def _tokened(self, target: bytes) -> bytes:
        if self._token is None:
            return target
        first, _, rest = target[1:].partition(b"/")
        if not hmac.compare_digest(first, self._token):
            raise Refused(401, "the token is missing from the path")
        return b"/" + rest


def _split(host: str) -> tuple[str, str, str]:
    """Host name in lower case, separator, port."""
    host = host.strip().lower()
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        return name, ":", rest.removeprefix(":")
    return host.partition(":")


def end_to_end(headers: RawHeaders) -> RawHeaders:
    """The header fields without those of one connection, in their order."""
    named: set[bytes] = set()
    kept: RawHeaders = []
    for field in headers:
        low = field[0].lower()
        if low not in HOP:
            kept.append(field)
        elif low == b"connection":
            named |= {token.strip().lower() for token in field[1].split(b",")}
    named -= _NO_FIELDS
    return [field for field in kept if field[0].lower() not in named] if named else kept
