"""Who may look: foreign hosts, origins, methods and targets are refused, and nobody comes in without the token."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.view.conftest import Serve, Viewer
from tests.view.folders import study_folder
from truecall.errors import InputError, UsageError
from truecall.pages import SERVED_POLICY
from truecall.view import Shelf


@pytest.fixture
def viewer(serve: Serve, tmp_path: Path) -> Viewer:
    return serve(study_folder(tmp_path / "run", 20))


def raw(viewer: Viewer, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", viewer.door.port), timeout=10) as client:
        client.sendall(data)
        return client.recv(65536)


def test_the_token_lets_in_and_leaves_the_address(viewer: Viewer) -> None:
    first = viewer.ask(f"/?delivery=leaked&token={viewer.door.token}", {})
    assert first.status == 303
    assert first.headers["location"] == "/?delivery=leaked"
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie
    given = {"Cookie": cookie.partition(";")[0]}
    assert viewer.ask(first.headers["location"], given).status == 200


def test_a_ticket_lets_in_once(viewer: Viewer) -> None:
    ticket = viewer.door.ticket().removeprefix(viewer.origin)
    assert viewer.door.token not in ticket
    first = viewer.ask(ticket, {})
    assert first.status == 303 and viewer.door.token in first.headers["set-cookie"]
    assert viewer.ask(ticket, {}).status == 401


@pytest.mark.parametrize("path", ["/", "/turn?of=run&key=x", "/file?of=run&key=x&what=raw", "/view.js"])
def test_nothing_is_shown_without_the_token(viewer: Viewer, path: str) -> None:
    for headers in ({}, {"Cookie": f"{viewer.door.cookie}=wrong"}, {"Cookie": f"other={viewer.door.token}"}):
        answer = viewer.ask(path, headers)
        assert answer.status == 401
        assert "chain" not in answer.text
    glue = "&" if "?" in path else "?"
    assert viewer.ask(f"{path}{glue}token=wrong", {}).status == 401
    assert (
        viewer.ask(f"{path}{glue}token=wrong").status == 401
    )  # a wrong token is not made good by the cookie


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example/", "///evil.example"])
def test_the_way_in_leads_nowhere_else(viewer: Viewer, path: str) -> None:
    answer = viewer.ask(f"{path}?token={viewer.door.token}", {})
    where = answer.headers.get("location", "/")
    assert where[:1] == "/" and where[1:2] not in ("/", "\\")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", ""],
)
def test_a_foreign_host_is_refused(viewer: Viewer, host: str) -> None:
    named = host.format(port=viewer.door.port)
    assert viewer.ask("/", {"Host": named, **viewer.cookie}).status == 421


def test_names_of_the_loopback_are_served(viewer: Viewer) -> None:
    for name in ("localhost", "127.0.0.1", "[::1]"):
        assert viewer.ask("/", {"Host": f"{name}:{viewer.door.port}", **viewer.cookie}).status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"]
)
def test_a_foreign_origin_is_refused(viewer: Viewer, origin: str) -> None:
    named = origin.format(port=viewer.door.port)
    assert viewer.ask("/", {"Origin": named, **viewer.cookie}).status == 403
    assert viewer.ask("/", {"Origin": viewer.origin, **viewer.cookie}).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_only_reading_is_served(viewer: Viewer, method: str) -> None:
    assert viewer.ask("/", method=method).status == 405


def test_no_forward_proxy(viewer: Viewer) -> None:
    tail = f"Host: {viewer.host}\r\nConnection: close\r\n\r\n".encode()
    assert b" 400 " in raw(viewer, b"GET http://evil.example/ HTTP/1.1\r\n" + tail).splitlines()[0]
    assert b" 405 " in raw(viewer, b"CONNECT evil.example:443 HTTP/1.1\r\n" + tail).splitlines()[0]
    assert b" 400 " in raw(viewer, b"GET / HTTP/1.1\r\nHost: a\r\n" + tail).splitlines()[0]
    assert b" 421 " in raw(viewer, b"GET / HTTP/1.0\r\n\r\n").splitlines()[0]


@pytest.mark.parametrize("path", ["/", "/nothing", "/turn", "/view.css", "/?seed=--5&after=%ff&of=%00"])
def test_every_answer_has_the_headers(viewer: Viewer, path: str) -> None:
    for answer in (viewer.ask(path), viewer.ask(path, {}), viewer.ask(path, {"Host": "evil.example"})):
        assert answer.status < 500
        assert answer.headers["content-security-policy"] == SERVED_POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_strange_cookies_are_no_fault_of_ours(viewer: Viewer) -> None:
    request = f"GET / HTTP/1.1\r\nHost: {viewer.host}\r\nCookie: {viewer.door.cookie}=\xff\xfe; =;;\r\n\r\n"
    assert b" 401 " in raw(viewer, request.encode("latin-1")).splitlines()[0]


def test_what_is_no_run_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run folder"):
        Shelf([str(tmp_path)])
    with pytest.raises(InputError, match="no-such-folder"):
        Shelf(["no-such-folder"])


async def test_a_taken_port_is_told_in_one_line(tmp_path: Path) -> None:
    from truecall.view import serving

    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        Shelf([str(study_folder(tmp_path / "run", 5))]) as shelf,
    ):
        port = taken.getsockname()[1]
        with pytest.raises(
            UsageError, match=rf"^port {port}: can't be listened on \(Address already in use\); give"
        ):
            async with serving(shelf, port):
                pass
