"""Turns what the HTTP library raises into one typed failure, told apart by what had happened before."""

from __future__ import annotations

import errno
import re
import ssl

import aiohttp

from truecall.records import Failure, FailureKind

_REFUSED = {errno.ECONNREFUSED}
_ERRNO = re.compile(r"\[Errno (\d+)\]")
_DETAIL = 300


def one_line(text: object) -> str:
    """``text`` on one line, cut for reading."""
    line = " ".join(str(text).split())
    return line if len(line) <= _DETAIL else line[: _DETAIL - 1] + "…"


def before_head(error: Exception, *, connected: bool) -> Failure:
    """The failure of an exchange whose response head never came whole."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return _failure(FailureKind.UNREACHABLE, f"the proxy answered {error.status} {error.message}")
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return _failure(FailureKind.UNREACHABLE, f"the proxy can't be reached: {_os_text(error)}")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return _failure(FailureKind.DNS, f"the name {error.host} does not resolve: {_os_text(error)}")
    if isinstance(error, ssl.SSLError | ssl.CertificateError | aiohttp.ClientSSLError):
        return _failure(FailureKind.TLS, _tls_text(error))
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return _failure(FailureKind.TIMEOUT_CONNECT, "no connection in time")
    if isinstance(error, aiohttp.ClientConnectorError):
        return _connect(error)
    if isinstance(error, aiohttp.ClientResponseError):
        return _bad_head(error.message)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return _failure(
            FailureKind.CLOSED_BEFORE_RESPONSE, "the server closed the connection without an answer"
        )
    if isinstance(error, OSError):
        kind = FailureKind.CLOSED_BEFORE_RESPONSE if connected else FailureKind.UNREACHABLE
        return _failure(kind, error.strerror or error)
    return _failure(FailureKind.CLOSED_BEFORE_RESPONSE if connected else FailureKind.UNREACHABLE, error)


def in_body(error: Exception) -> Failure:
    """The failure of an exchange whose body ended early."""
    text = str(error)
    if (
        isinstance(error, aiohttp.ClientPayloadError)
        and "Not enough data" not in text
        and "reset" not in text.lower()
    ):
        return _failure(FailureKind.NOT_HTTP, f"the body's framing is broken: {text}")
    return _failure(FailureKind.CLOSED_MID_STREAM, "the connection was closed before the body's end")


def unreadable(error: Exception) -> Failure:
    """Something in the response that the HTTP library could not make a value of."""
    return _failure(FailureKind.NOT_HTTP, f"the response can't be read: {error}")


def _connect(error: aiohttp.ClientConnectorError) -> Failure:
    # Several addresses tried (IPv4 and IPv6) are reported as one OSError whose number may be missing.
    numbers = {int(number) for number in _ERRNO.findall(str(error.os_error))} | {error.os_error.errno}
    numbers.discard(None)
    where = f"{error.host}:{error.port}"
    if numbers & _REFUSED:
        return _failure(FailureKind.REFUSED, f"nothing listens on {where}")
    return _failure(FailureKind.UNREACHABLE, f"{where}: {_os_text(error)}")


def _bad_head(message: str) -> Failure:
    """Bytes came, but no response head that can be read."""
    if re.search(
        r"too long|more than \d+ bytes|too many headers|header fields?.*(limit|large)", message, re.IGNORECASE
    ):
        return _failure(FailureKind.TOO_LARGE, f"the response head passes the limit: {message}")
    return _failure(FailureKind.NOT_HTTP, message)


def _os_text(error: aiohttp.ClientConnectorError) -> str:
    return error.os_error.strerror or str(error.os_error)


def _tls_text(error: Exception) -> str:
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    text = getattr(inner, "verify_message", None) or getattr(inner, "strerror", None) or str(inner)
    return str(text)


def _failure(kind: FailureKind, detail: object) -> Failure:
    return Failure(kind=kind, detail=one_line(detail))
