"""A snapshot by its address, from a server on loopback."""

from __future__ import annotations

import functools
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.audits.snapshots import table
from tests.audits.test_bfcl_folders import MODEL, STATES, snapshot
from truecall.audits import remote
from truecall.audits.bfcl import audit, gather
from truecall.cli import main
from truecall.errors import CannotTell, InputError, UsageError

Serve = Callable[..., str]


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder; without listings where ``listing`` is False."""

    listing = True

    def do_GET(self) -> None:
        if self.path.startswith("/away"):
            self.send_response(302)
            self.send_header("Location", "https://elsewhere.example/")
            self.end_headers()
            return
        super().do_GET()

    def list_directory(self, path: Any) -> io.BytesIO | None:
        if not self.listing:
            self.send_error(404)
            return None
        return super().list_directory(path)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(folder: Path, *, listing: bool = True) -> str:
        kind = type("Handler", (Quiet,), {"listing": listing})
        server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(kind, directory=str(folder)))
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def states(folder: Path) -> dict[str, int]:
    report = audit(gather([folder], installed=False))
    return report.runs[0].gated[0].every.states


def quiet(_: str) -> None:
    pass


def test_a_folder_that_lists_itself(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-this-host")
    table(snapshot(tmp_path / "pub" / "snap"), [("Tiny-1B (FC)", 8.0, (0.0,) * 5 + (80.0,), 0.0)])
    (tmp_path / "pub" / "snap" / "secret.txt").write_text("x")
    (tmp_path / "pub" / "other").mkdir()
    said: list[str] = []
    assert remote.fetch(serve(tmp_path / "pub") + "/snap/", tmp_path / "in", (), said.append) == 3
    assert states(tmp_path / "in") == STATES
    assert said == ["fetching from 127.0.0.1, and from no other host"]
    assert not list((tmp_path / "in").rglob("secret*"))


def test_no_key_is_sent_and_nothing_above_the_address_is_asked(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-this-host")
    snapshot(tmp_path / "pub" / "snap")
    monkeypatch.setattr(Quiet, "do_GET", _recording(Quiet.do_GET))
    remote.fetch(serve(tmp_path / "pub") + "/snap", tmp_path / "in", (), quiet)
    assert ASKED and all(key is None for _, key in ASKED)
    assert all(path.startswith("/snap") for path, _ in ASKED)


ASKED: list[tuple[str, str | None]] = []


def _recording(inner: Callable[[Any], None]) -> Callable[[Any], None]:
    def do_get(self: Any) -> None:
        ASKED.append((self.path, self.headers.get("Authorization")))
        inner(self)

    return do_get


def test_raw_files_are_asked_for_by_name(tmp_path: Path, serve: Serve) -> None:
    table(snapshot(tmp_path / "snap"), [("Tiny-1B (FC)", 8.0, (0.0,) * 5 + (80.0,), 0.0)])
    url = serve(tmp_path / "snap", listing=False)
    assert remote.fetch(url + "/", tmp_path / "tables", (), quiet) == 1
    assert remote.fetch(url + "/", tmp_path / "in", (MODEL,), quiet) == 3
    assert states(tmp_path / "in") == STATES


def test_beside_a_page_without_links_the_tables_are_found(tmp_path: Path, serve: Serve) -> None:
    table(tmp_path, [("Tiny-1B (FC)", 8.0, (0.0,) * 5 + (80.0,), 0.0)])
    (tmp_path / "leaderboard.html").write_text("<html><script>load('data_overall.csv')</script></html>")
    assert remote.fetch(serve(tmp_path) + "/leaderboard.html", tmp_path / "in", (), quiet) == 1


def test_single_files_and_archives(tmp_path: Path, serve: Serve) -> None:
    root = snapshot(tmp_path / "snap")
    path = table(root, [("Tiny-1B (FC)", 8.0, (0.0,) * 5 + (80.0,), 0.0)])
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        archive.add(root, "BFCL-Result-main/2025")
    url = serve(tmp_path)
    assert remote.fetch(f"{url}/snap/{path.name}", tmp_path / "one", (), quiet) == 1
    assert audit(gather([tmp_path / "one"], installed=False)).leaderboards[0].table.rows[0].overall == 8.0
    assert remote.fetch(f"{url}/all.tar.gz", tmp_path / "tar", (), quiet) == 3
    assert states(tmp_path / "tar") == STATES


def test_what_cannot_be_fetched_is_told(tmp_path: Path, serve: Serve) -> None:
    url = serve(tmp_path, listing=False)
    with pytest.raises(CannotTell, match="HTTP 404"):
        remote.fetch(url + "/gone/", tmp_path / "in", (), quiet)
    with pytest.raises(CannotTell, match="redirects to https://elsewhere"):
        remote.fetch(url + "/away", tmp_path / "in", (), quiet)
    with pytest.raises(UsageError, match="https only"):
        remote.fetch("http://results.example/x", tmp_path / "in", (), quiet)


def test_a_repository_page_stands_for_its_raw_files() -> None:
    page = "https://github.com/someone/Results/tree/main/2025-12-16"
    assert remote.address(page) == "https://raw.githubusercontent.com/someone/Results/main/2025-12-16"
    assert remote.address("https://example.org/x") == "https://example.org/x"


@pytest.mark.parametrize("name", ["../../etc/x", "/abs/x", "a\\..\\x", "C:\\x", "..", "a/./b/x", "\x00x"])
def test_foreign_paths_stay_below(tmp_path: Path, name: str) -> None:
    made = remote.safe(name)
    assert not made.is_absolute() and ".." not in made.parts
    assert (tmp_path / made).resolve().is_relative_to(tmp_path.resolve())


def test_broken_archives(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        remote.unpack(b"PK\x03\x04torn", tmp_path)


def test_the_verb_takes_an_address_and_verifies_it(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = table(snapshot(tmp_path / "snap"), [("Tiny-1B (FC)", 8.0, (0.0,) * 5 + (80.0,), 0.0)])
    url = serve(tmp_path / "snap")
    with pytest.raises(SystemExit, match="1"):
        main(["audit", "bfcl", url + "/"])
    captured = capsys.readouterr()
    assert "credited 5/6" in captured.out and "fetching from 127.0.0.1" in captured.err
    with pytest.raises(SystemExit, match="0"):
        main(["audit", "verify"])
    path.write_text(path.read_text().replace("8.00%", "9.00%"))
    with pytest.raises(SystemExit, match="1"):
        main(["audit", "verify"])
    assert "data_overall.csv" in capsys.readouterr().out
