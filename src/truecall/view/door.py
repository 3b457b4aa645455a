"""Who may look: this machine, by the name of the loopback, with the token, from the viewer's own pages.

The token comes in the first address (``/?token=…``) and stays in a cookie that no script reads and no other site's
page sends. Other ports of this machine are the same *site* to a browser, so Origin is checked to the port.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from aiohttp import web

from truecall.config import is_loopback
from truecall.pages import SERVED_POLICY

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": SERVED_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer: nothing of another origin is loaded, nothing inline runs, nothing is kept or framed."""


class Shut(Exception):
    """A request that is refused: HTTP status and one line."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Door:
    """Checks each request before anything else looks at it."""

    def __init__(self) -> None:
        self.token: Final = secrets.token_urlsafe(24)
        self._tickets: set[str] = set()
        self.port = 0  # known once the server listens

    @property
    def cookie(self) -> str:
        """Cookies are shared by all ports of a host: each viewer has its own."""
        return f"truecall-{self.port}"

    def address(self) -> str:
        """The address that lets its reader in."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def ticket(self) -> str:
        """An address that lets in once, for a browser's command line, which other users of the machine can read."""
        ticket = secrets.token_urlsafe(24)
        self._tickets.add(ticket)
        return self.address().replace(self.token, ticket)

    def check(self, request: web.Request) -> None:
        """Raises Shut for a request that is not for this server, or comes from another's page."""
        if request.method not in ("GET", "HEAD"):
            raise Shut(405, "Only GET is served: nothing can be changed here.")
        if not request.raw_path.startswith("/"):
            raise Shut(400, "The target must be a path: this is no forward proxy.")
        host = request.headers.get("Host", "")
        name, _, port = host.rpartition(":")
        if not (is_loopback(name) and port == str(self.port)):
            raise Shut(421, "This Host is not served here.")
        if request.headers.get("Origin", f"http://{host}") != f"http://{host}":
            raise Shut(403, "Requests of other pages are refused.")

    def knows(self, request: web.Request) -> bool:
        """Whether the request shows the token or a ticket in its address, or else the token in its cookie."""
        shown = request.query.get("token", request.cookies.get(self.cookie, ""))
        if shown in self._tickets:
            self._tickets.remove(shown)
            return True
        return hmac.compare_digest(shown.encode(errors="replace"), self.token.encode())

    def let_in(self, request: web.Request) -> web.Response:
        """To the same page without the token in its address; the cookie holds it from now on."""
        page = str(request.rel_url.without_query_params("token")).lstrip("/\\")  # "//" would be another host
        answer = web.Response(status=303, headers={"Location": f"/{page}"})
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", path="/")
        return answer
