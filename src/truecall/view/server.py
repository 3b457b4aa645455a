"""The local server of the viewer: its routes, and what every answer has in common."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sqlite3
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiohttp import web

from truecall.errors import TruecallError, UsageError
from truecall.pages import asset
from truecall.view import query
from truecall.view.door import HEADERS, Door, Shut
from truecall.view.pages import Missing, Pages, message_page
from truecall.view.runs import Shelf

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T")

_LONGEST = 64 << 10
"""Bytes of an address or a header field: a search can take more than 8 KiB, and cookies come for all local ports."""

_FILES = {
    "/style.css": ("truecall.pages", "style.css", "text/css"),
    "/view.css": ("truecall.view", "view.css", "text/css"),
    "/view.js": ("truecall.view", "view.js", "text/javascript"),
}


@asynccontextmanager
async def serving(shelf: Shelf, port: int = 0) -> AsyncIterator[Door]:
    """Serves the runs on 127.0.0.1; the door knows the address that lets its reader in.

    Raises:
        UsageError: the port can't be had.
    """
    door = Door()
    quiet = logging.getLogger(__name__)  # what strange clients send is no news to the terminal
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    with ThreadPoolExecutor(1, "truecall-view") as thread:
        runner = web.AppRunner(
            _app(Pages(shelf), door, thread),
            access_log=None,
            logger=quiet,
            shutdown_timeout=1.0,
            max_line_size=_LONGEST,
            max_field_size=_LONGEST,
        )
        await runner.setup()
        try:
            door.port = await _listening(runner, port)
            yield door
        finally:
            await runner.cleanup()


async def _listening(runner: web.AppRunner, port: int) -> int:
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error  # asyncio's own text tells the address again
        raise UsageError(f"port {port}: can't be listened on ({why}); give another --port") from None
    return int(runner.addresses[0][1])


def _app(pages: Pages, door: Door, thread: ThreadPoolExecutor) -> web.Application:
    async def made(work: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(thread, work, *args)

    def page(make: Callable[[query.Query, dict[str, str]], str]) -> Handler:
        async def handler(request: web.Request) -> web.Response:
            return _html(await made(make, query.read(request.query.items()), dict(request.query)))

        return handler

    async def file(request: web.Request) -> web.Response:
        data = await made(pages.file, dict(request.query))
        words = (request.query.get(name, "") for name in ("of", "key", "what"))
        name = re.sub(r"[^A-Za-z0-9]+", "-", " ".join(words)).strip("-")[-100:]
        headers = {"Content-Disposition": f'attachment; filename="{name}.txt"'}
        return web.Response(body=data, content_type="text/plain", charset="utf-8", headers=headers)

    async def asset_file(request: web.Request) -> web.Response:
        package, name, kind = _FILES[request.path]
        return web.Response(text=asset(package, name), content_type=kind)

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            door.check(request)
            if not door.knows(request):
                raise Shut(401, "Open the address that truecall view printed: it holds the token.")
            if "token" in request.query:
                return door.let_in(request)
            return await handler(request)
        except Shut as shut:
            again = request.path_qs if shut.status == 401 and "token" not in request.query else None
            return _html(message_page("Not open to this request", shut.text, again=again), shut.status)
        except Missing as missing:
            return _html(message_page("Not found", str(missing)), 404)
        except web.HTTPException as other:
            return _html(message_page(other.reason, "There is no such page here."), other.status)
        except (TruecallError, OSError, sqlite3.Error) as error:
            return _html(message_page("This can't be read", str(error)), 503)
        except Exception as error:  # a fault of ours: one page is lost, not the viewer
            if os.environ.get("TRUECALL_DEBUG"):
                traceback.print_exc()
            said = f"{type(error).__name__}: {error} (TRUECALL_DEBUG=1 shows where)"
            return _html(message_page("Internal error", said), 500)

    async def dressed(request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(HEADERS)

    app = web.Application(middlewares=[guarded])
    app.on_response_prepare.append(dressed)
    app.router.add_get("/", page(pages.list))
    app.router.add_get("/turn", page(pages.turn))
    app.router.add_get("/text", page(pages.text))
    app.router.add_get("/file", file)
    for path in _FILES:
        app.router.add_get(path, asset_file)
    return app


def _html(page: str, status: int = 200) -> web.Response:
    return web.Response(
        body=page.encode("utf-8", "replace"), status=status, content_type="text/html", charset="utf-8"
    )
