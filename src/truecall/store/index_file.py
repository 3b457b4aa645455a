"""The file of an index: its tables, and how it is made, brought up to date and given up (`truecall.store.index`)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from truecall.store.indexing import Writer, facts_of_arms, whole_lines
from truecall.wire.values import decode

FORMAT: Final = 2
NAME: Final = "index.sqlite"
_CACHE: Final = 64 << 10  # KiB of the file that are held in memory at most
_TELL_EVERY: Final = 1 << 20
_LEFT: Final = 86_400  # seconds after which a half-made index is nobody's work any more

Told = Callable[[int], None]
"""Is told how many more bytes of the log have been read."""

_SHOWN: Final = """
    key TEXT UNIQUE NOT NULL, episode TEXT, position INTEGER, arm TEXT, condition TEXT, task TEXT, item TEXT,
    seed INTEGER, sample INTEGER, model TEXT, endpoint TEXT, role TEXT, choice INTEGER NOT NULL,
    attempts INTEGER NOT NULL, started_at REAL, seconds REAL, status INTEGER, failure TEXT,
    emission TEXT, delivery TEXT, uptake TEXT, cause TEXT, rule TEXT, tier TEXT, dialect TEXT, calls INTEGER,
    forced INTEGER, produced INTEGER, lost INTEGER, unknown INTEGER, valid_emitted INTEGER,
    valid_surfaced INTEGER, excerpt TEXT NOT NULL DEFAULT ''
"""
_OFFSETS: Final = """
    at INTEGER NOT NULL, size INTEGER NOT NULL, verdict_at INTEGER, verdict_size INTEGER, text_at INTEGER,
    text_size INTEGER
"""
_TABLES: Final = f"""
CREATE TABLE about (name TEXT PRIMARY KEY, value);
CREATE TABLE turns (id INTEGER PRIMARY KEY, {_SHOWN}, {_OFFSETS});
CREATE INDEX by_episode ON turns (episode, position);
CREATE TABLE defects (turn INTEGER, defect TEXT);
CREATE TABLE parts (name TEXT PRIMARY KEY, at INTEGER, size INTEGER) WITHOUT ROWID;
"""
FULL_TEXT = "CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize=\"unicode61 tokenchars '_'\")"
_INDEXED: Final = (
    *("arm", "model", "role", "emission", "delivery", "uptake", "cause", "rule", "tier", "dialect", "seed"),
    *("status", "failure", "condition", "task", "item"),
)


def nobody(read: int) -> None:
    pass


def _connect(place: str) -> sqlite3.Connection:
    db = sqlite3.connect(place, timeout=30, check_same_thread=False)
    db.execute("PRAGMA synchronous = OFF")  # it can always be made again
    db.execute(f"PRAGMA cache_size = -{_CACHE}")
    return db


def opened(path: Path, told: Told = nobody) -> sqlite3.Connection:
    """The index of a run folder: the one that is there, brought up to date, or a new one."""
    return _there(path, told) or _made(path, told)


def _there(path: Path, told: Told) -> sqlite3.Connection | None:
    """The index in the folder, brought up to date; None where there is none that fits the log."""
    target = path / NAME
    if not target.is_file():
        return None
    db = None
    try:
        db = _connect(str(target))
        sound = db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)  # it may be of before a power cut
        if sound and updated(path, db, told):
            return db
    except sqlite3.Error:
        pass
    if db is not None:
        db.close()
    return None


def _made(path: Path, told: Told) -> sqlite3.Connection:
    """A new index: beside its place first, then renamed; in a temporary file where the folder can't be written."""
    beside = path / f".{NAME}.{secrets.token_hex(4)}"
    try:
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return _filled(path, _connect(""), told)
    _sweep(path)
    try:
        _filled(path, _connect(str(beside)), told).close()
        beside.replace(path / NAME)
    except (OSError, sqlite3.OperationalError):  # a full disk: the folder is left as it is
        beside.unlink(missing_ok=True)
        return _filled(path, _connect(""), told)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return _connect(str(path / NAME))


def _sweep(path: Path) -> None:
    """Removes what killed makers of an index have left."""
    for left in path.glob(f".{NAME}.*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT:
                left.unlink()


def _filled(path: Path, db: sqlite3.Connection, told: Told) -> sqlite3.Connection:
    db.executescript(_TABLES)
    try:
        db.execute(FULL_TEXT)
    except sqlite3.OperationalError:
        db.execute("CREATE TABLE words (text TEXT)")
    db.execute("INSERT INTO about VALUES ('format', ?)", (FORMAT,))
    _take(path, db, 0, told)
    for column in _INDEXED:
        db.execute(f"CREATE INDEX by_{column} ON turns ({column})")
    db.execute("CREATE INDEX by_defect ON defects (defect, turn)")
    db.execute("CREATE INDEX by_turn ON defects (turn, defect)")
    db.execute("ANALYZE")
    db.commit()
    return db


def updated(path: Path, db: sqlite3.Connection, told: Told = nobody) -> bool:
    """Takes in the lines that are new. False: the log is another one, or this database can't be written or read."""
    if about(db, "format") != FORMAT:
        return False
    if same(path, db):
        return True
    try:
        db.execute("BEGIN IMMEDIATE")  # what another reader takes in at this moment is not taken in twice
        start = int(about(db, "end") or 0)
        fits = (path / "log.jsonl").stat().st_size >= start and _mark(path, start) == about(db, "mark")
        if fits:
            _take(path, db, start, told)
        db.commit()
    except BaseException as error:
        db.rollback()
        if isinstance(error, sqlite3.DatabaseError):
            return False
        raise
    return fits


def same(path: Path, db: sqlite3.Connection) -> bool:
    """Whether the log is as it was when it was last taken in."""
    status = (path / "log.jsonl").stat()
    return status.st_size == about(db, "size") and status.st_mtime_ns == about(db, "mtime")


def _take(path: Path, db: sqlite3.Connection, start: int, told: Told) -> None:
    status = (path / "log.jsonl").stat()
    writer = Writer(path, db, facts_of_arms(_card(path)))
    end = writer.take(_telling(whole_lines(path, start), told), start)
    facts: dict[str, int | str] = {"size": status.st_size, "mtime": status.st_mtime_ns, "end": end}
    facts |= {"mark": _mark(path, end), "bad": int(about(db, "bad") or 0) + writer.bad}
    db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", facts.items())


def _telling(lines: Iterable[tuple[int, bytes]], told: Told) -> Iterator[tuple[int, bytes]]:
    """The lines, while ``told`` hears of them."""
    unsaid = 0
    for at, line in lines:
        yield at, line
        unsaid += len(line)
        if unsaid >= _TELL_EVERY:
            told(unsaid)
            unsaid = 0


def _mark(path: Path, end: int) -> str:
    """A mark of what stands in the log up to ``end``: the digest of its first and last bytes."""
    with (path / "log.jsonl").open("rb") as file:
        head = file.read(min(end, 4096))
        file.seek(max(0, end - 4096))
        return hashlib.sha256(head + file.read(min(end, 4096))).hexdigest()


def _card(path: Path) -> object:
    with contextlib.suppress(OSError):
        return decode((path / "card.json").read_bytes())
    return None


def about(db: sqlite3.Connection, name: str) -> int | str | None:
    found = db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
    return found[0] if found is not None else None


def has_full_text(db: sqlite3.Connection) -> bool:
    """Whether the words are in a full-text table; in a plain one otherwise."""
    made = db.execute("SELECT sql FROM sqlite_master WHERE name = 'words'").fetchone()
    return "fts5" in str(made[0]).lower()
