"""A published BFCL snapshot by its address: plain GETs to one named host, into a folder.

An address may be a folder that lists itself, an archive, a single file, or a folder without a listing (raw files of
a repository): there the tables are asked for by their known names, and the results of the models that were named.
No key is sent and no redirect followed.
"""

from __future__ import annotations

import asyncio
import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import getproxies_environment

from truecall.audits.bfcl.load import SIZES
from truecall.config import Connection, is_loopback
from truecall.errors import CannotTell, InputError, UsageError
from truecall.records import Exchange

if TYPE_CHECKING:
    from truecall.client import Client

MAX_TOTAL = 4 << 30
MAX_ONE = 512 << 20
MAX_FILES = 20_000
MAX_DEPTH = 8
_AT_ONCE = 4
_WANTED = re.compile(r"(?:\w+_(?:result|score)\.jsonl?|data_\w+\.csv)(?:\.gz|\.zst)?\Z", re.IGNORECASE)
_TABLES = (
    "data_overall.csv",
    "data_non_live.csv",
    "data_live.csv",
    "data_multi_turn.csv",
    "data_agentic.csv",
)
_GITHUB = re.compile(r"https://github\.com/([^/]+)/([^/]+)/(?:tree|blob)/(.+)\Z")


def is_url(text: str) -> bool:
    """Whether an input is an address and not a path."""
    return text.startswith(("https://", "http://"))


def fetch(url: str, into: Path, models: tuple[str, ...], say: Callable[[str], None]) -> int:
    """Fetches a snapshot into ``into`` and returns the number of files. ``models``: folders to ask for by name.

    Raises:
        UsageError: an address that is not https (loopback may be http).
        CannotTell: nothing of BFCL's came from there; the message holds the server's answer.
    """
    url = address(url)
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise UsageError(f"{url}: published results are fetched over https only")
    say(f"fetching from {parts.hostname}, and from no other host")
    connection = Connection(base_url=f"{parts.scheme}://{parts.netloc}", proxies=getproxies_environment())
    return asyncio.run(_fetch(connection, url, into, models))


def address(url: str) -> str:
    """The address of raw files: a page of a repository's tree stands for the host that serves its files."""
    match = _GITHUB.match(url.split("?")[0].split("#")[0])
    if match:
        return f"https://raw.githubusercontent.com/{match[1]}/{match[2]}/{match[3]}"
    return url


class _Fetcher:
    """The state of one fetch: what came, and how much."""

    def __init__(self, client: Client, root: str, into: Path) -> None:
        self.client = client
        self.root = root
        self.into = into
        self.files = 0
        self.bytes = 0
        self.seen: set[str] = set()
        self.gate = asyncio.Semaphore(_AT_ONCE)

    async def get(self, url: str) -> Exchange:
        if len(self.seen) >= MAX_FILES or self.bytes > MAX_TOTAL:
            raise CannotTell(f"{self.root}: more than {MAX_FILES:,} files or 4 GB; name a part of it")
        self.seen.add(url)
        async with self.gate:
            exchange = await self.client.send("GET", url, headers={"Accept": "*/*"}, max_bytes=MAX_ONE)
        self.bytes += len(exchange.body)
        return exchange

    def save(self, name: str, body: bytes) -> None:
        target = self.into / safe(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
        self.files += 1

    async def crawl(self, url: str, page: bytes, depth: int = 0) -> None:
        """Follows the links of a listing that stay below the root."""
        folders, files = [], []
        for link in _links(page, url):
            if not link.startswith(self.root) or link in self.seen or link == url:
                continue
            if link.endswith("/") and depth < MAX_DEPTH:
                folders.append(link)
            elif _WANTED.search(unquote(link)):
                files.append(link)
        await asyncio.gather(*(self.take(link) for link in dict.fromkeys(files)))
        for link in dict.fromkeys(folders):
            got = await self.get(link)
            if got.status == 200 and _is_page(got):
                await self.crawl(link, got.body, depth + 1)

    async def take(self, link: str) -> bool:
        got = await self.get(link)
        if got.status != 200 or got.failure is not None or _is_page(got):
            return False
        self.save(unquote(link[len(self.root) :]), got.body)
        return True

    async def guess(self, models: tuple[str, ...]) -> None:
        """Asks for what has a known name."""
        names = [*_TABLES, *(f"score/{name}" for name in _TABLES)]
        for model in models:
            for category in SIZES:
                names += [f"{half}/{_path(model, category, half)}" for half in ("result", "score")]
        await asyncio.gather(*(self.take(self.root + quote(name)) for name in names))


def _path(model: str, category: str, half: str) -> str:
    """Where BFCL keeps a category's file below ``result`` or ``score``."""
    group = "non_live"
    for prefix, folder in (("live_", "live"), ("multi_turn", "multi_turn"), ("web_search", "agentic")):
        group = folder if category.startswith(prefix) else group
    if category.startswith("memory_"):
        group = "agentic/memory/" + category.removeprefix("memory_")
    return f"{model}/{group}/BFCL_v4_{category}_{half}.json"


async def _fetch(connection: Connection, url: str, into: Path, models: tuple[str, ...]) -> int:
    from truecall.client import Client  # aiohttp is slow to import, and most audits are of local files

    async with Client(connection) as client:
        fetcher = _Fetcher(client, _folder(url), into)
        first = await fetcher.get(url)
        if first.failure is None and _adds_slash(first, url):
            url += "/"
            first = await fetcher.get(url)
        if first.failure is not None:
            raise CannotTell(f"{url}: {first.failure.kind}: {first.failure.detail}")
        if first.status is not None and 300 <= first.status < 400:
            to = first.header("location")
            raise CannotTell(f"{url}: redirects to {to}: give that address if you trust it")
        name = PurePosixPath(unquote(urlsplit(url).path)).name
        if first.status == 200 and not _is_page(first):
            if is_archive(first.body):
                fetcher.files = unpack(first.body, into)
            else:
                fetcher.save(name or "data_overall.csv", first.body)
        elif first.status == 200:
            await fetcher.crawl(fetcher.root, first.body)
        if not fetcher.files:
            await fetcher.guess(models)
        if not fetcher.files:
            raise CannotTell(f"{url}: HTTP {first.status}, and no BFCL files found there")
        return fetcher.files


def _folder(url: str) -> str:
    """The folder of an address: its own, or that of the page or file that it names."""
    bare = url.split("?")[0].split("#")[0]
    if re.search(r"/[^/]+\.html?\Z", bare):
        return bare.rpartition("/")[0] + "/"
    return bare if bare.endswith("/") else bare + "/"


def _adds_slash(exchange: Exchange, url: str) -> bool:
    """Whether a redirect only says that the address is a folder: the same place, and no other host."""
    redirects = exchange.status is not None and 300 <= exchange.status < 400
    return redirects and urljoin(url, exchange.header("location") or "") == url + "/"


def _is_page(exchange: Exchange) -> bool:
    kind = (exchange.header("content-type") or "").lower()
    return "html" in kind or exchange.body[:64].lstrip().lower().startswith((b"<!doctype", b"<html"))


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links += [value for key, value in attrs if key == "href" and value]


def _links(page: bytes, base: str) -> Iterator[str]:
    parser = _Anchors()
    parser.feed(page.decode("utf-8", errors="replace"))
    for link in parser.links:
        if not link.startswith(("?", "#")):
            yield urljoin(base, link).split("#")[0].split("?")[0]


# --------------------------------------------------------------------------- archives


def is_archive(head: bytes) -> bool:
    """Whether the bytes are a zip or tar archive (plain or gzip)."""
    if head[:4] == b"PK\x03\x04" or head[257:262] == b"ustar":
        return True
    if head[:2] != b"\x1f\x8b":
        return False
    try:
        with tarfile.open(fileobj=io.BytesIO(head), mode="r:gz") as archive:
            return archive.next() is not None
    except (tarfile.TarError, OSError, EOFError):
        return False


def unpack(raw: bytes, into: Path) -> int:
    """Writes the BFCL files of an archive below ``into``; returns their number. Links and other files are left.

    Raises InputError where the archive is broken, or unpacks to too much.
    """
    count = total = 0
    try:
        for name, size, load in _members(raw):
            if not _WANTED.search(name):
                continue
            count, total = count + 1, total + size
            if count > MAX_FILES or size > MAX_ONE or total > MAX_TOTAL:
                raise InputError("the archive unpacks to more than 20,000 files or 4 GB")
            target = into / safe(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(load())
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        EOFError,
        OSError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise InputError(f"the archive can't be read: {error}") from None
    return count


def _members(raw: bytes) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    """(name, size, how to read it) of the regular files; a size that lies is cut off at `MAX_ONE`."""
    if raw[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    yield info.filename, info.file_size, lambda info=info: archive.open(info).read(MAX_ONE)  # type: ignore[misc]
        return
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isreg() else None
            if stream is not None:
                yield member.name, member.size, lambda stream=stream: stream.read(MAX_ONE)  # type: ignore[misc]


def safe(name: str) -> Path:
    """A foreign path without what could lead out of a folder."""
    parts = [re.sub(r"[\x00-\x1f:\\]", "_", part) for part in name.replace("\\", "/").split("/")]
    return Path(*([part for part in parts if part not in ("", ".", "..")] or ["file"]))
