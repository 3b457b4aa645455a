"""From a run folder's log to the rows of its index, line by line: see `truecall.store.index` for the tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from truecall import wire
from truecall.errors import InputError
from truecall.records import (
    CallVerdict,
    Choice,
    Flags,
    Headers,
    Json,
    Response,
    Uptake,
    Verdict,
)
from truecall.store.reading import body_of, whole
from truecall.wire.values import decode, encode, obj, word

EXCERPT: Final = 160  # characters

_UPTAKES: Final = (Uptake.MISJUDGED, Uptake.ALTERED, Uptake.DROPPED, Uptake.OBSERVED, Uptake.EXECUTED)
"""What stands for a turn with several calls, first that applies."""


class _Request(msgspec.Struct):
    url: str = ""
    body: Json = None


class _Timing(msgspec.Struct):
    started_at: float | None = None
    total: float | None = None


class _Failure(msgspec.Struct):
    kind: str | None = None


class _PlayedTurn(msgspec.Struct):
    surfaced: bool = False
    executed: bool | None = None
    observed: bool | None = None


class _Played(msgspec.Struct):
    turns: list[_PlayedTurn] = []


class Line(msgspec.Struct):
    """The fields of a log line that an index needs, whatever its kind."""

    kind: str
    arm: str | None = None
    item: str | None = None
    seed: int | None = None
    sample: int | None = None
    turn: int | None = None
    attempt: int = 1
    n: int | None = None
    role: str | None = None
    probe: str | None = None
    superseded: bool = False
    request: _Request | None = None
    status: int | None = None
    headers: Headers = ()
    body: Json = None
    timing: _Timing = msgspec.field(default_factory=_Timing)
    failure: _Failure | None = None
    text: Json = None
    texts: list[Json] | None = None
    head: str = ""
    digest: str = ""
    verdicts: list[msgspec.Raw] | None = None
    conversation: int | None = None
    position: int | None = None
    retry_of: int | None = None
    uptakes: list[dict[str, Json]] = []
    episode: _Played | None = None

    @property
    def key(self) -> str | None:
        """That of the turn: its place in a study, or its number."""
        if self.turn is not None and self.arm is not None:
            return f"{self.episode_key}|{self.turn}"
        return str(self.n) if self.n is not None else None

    @property
    def episode_key(self) -> str | None:
        if self.arm is None:
            return None
        sample = "" if self.sample is None else self.sample
        return f"{self.arm}|{self.item}|{self.seed}|{sample}"


_decode_line: Final = msgspec.json.Decoder(Line).decode
_decode_verdict: Final = msgspec.json.Decoder(Verdict).decode
_UNREADABLE: Final = (
    *(msgspec.MsgspecError, ValueError, RecursionError, OverflowError, InputError),
    sqlite3.DataError,
)


class Writer:
    """Enters lines into the tables of ``db``. ``known``: what the card says of each arm."""

    def __init__(self, path: Path, db: sqlite3.Connection, known: Mapping[str, Mapping[str, str]]) -> None:
        self._path = path
        self._db = db
        self._known = known
        last = db.execute("SELECT max(id) FROM turns").fetchone()[0]
        self._last = last or 0
        self.bad = 0

    def take(self, lines: Iterable[tuple[int, bytes]], start: int = 0) -> int:
        """Enters lines with their offsets; what can't be read is counted. Returns where the last of them ends."""
        end = start
        for at, data in lines:
            end = at + len(data)
            try:
                self._line(_decode_line(data), at, len(data))
            except _UNREADABLE:
                self.bad += 1
        return end

    def _line(self, line: Line, at: int, size: int) -> None:
        kind = line.kind
        if kind == "exchange":
            self._exchange(line, at, size)
        elif kind == "verdict":
            self._verdict(line, at, size)
        elif kind in ("detokenized", "texts"):
            self._texts(line, at, size)
        elif kind == "intent" and line.head:
            self._part(line.head, at, size)
        elif kind == "fields":
            self._part(line.digest, at, size)
        elif kind == "episode" and line.episode is not None:
            self._ended(line, line.episode)

    def _part(self, name: str, at: int, size: int) -> None:
        self._db.execute("INSERT OR IGNORE INTO parts VALUES (?, ?, ?)", (name, at, size))

    # ------------------------------------------------------------- exchanges

    def _exchange(self, line: Line, at: int, size: int) -> None:
        url = line.request.url if line.request is not None else ""
        api = wire.by_path(url)
        if api is None or line.key is None or line.superseded:
            return  # no model's answer, or one that was only refused because of a field of ours
        kind = next((value for name, value in line.headers if name.lower() == "content-type"), None)
        try:
            body = body_of(self._path, line.body)
        except InputError:
            body = b""  # a damaged blob: the turn is there, and its page says so
        response = wire.read(body, api.value, status=line.status, content_type=kind)
        known = self._known.get(line.arm or "", {})
        row = {
            "at": at,
            "size": size,
            "position": line.turn or 1,
            "arm": line.arm,
            "item": line.item or line.probe,
            "seed": line.seed,
            "sample": line.sample,
            **known,
            "model": known.get("model") or response.model or self._model_asked(line),
            "endpoint": _origin(url),
            "role": line.role or ("probe" if line.probe else None),
            "attempts": line.attempt,
            "started_at": line.timing.started_at,
            "seconds": line.timing.total,
            "status": line.status,
            "failure": line.failure.kind if line.failure is not None else None,
        }
        choices: Sequence[Choice | None] = response.choices or (None,)
        for number, choice in enumerate(choices):
            text = words_of(response, choice)
            key = line.key if number == 0 else f"{line.key}.{number}"
            own = {"key": key, "choice": number, "episode": line.episode_key or key}
            self._insert({**row, **own, "excerpt": text[:EXCERPT]})
            self._words(2 * self._last, text)
        if line.texts:
            self._texts(line, at, size)

    def _insert(self, row: Mapping[str, Any]) -> None:
        """A row at the end; an earlier attempt at the same turn goes."""
        self._last += 1
        names = ", ".join(row)
        marks = ", ".join("?" * (len(row) + 1))
        self._db.execute(
            f"INSERT OR REPLACE INTO turns (id, {names}) VALUES ({marks})", (self._last, *row.values())
        )

    def _words(self, number: int, text: str) -> None:
        if text:
            self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, text))

    def _model_asked(self, line: Line) -> str | None:
        """The model that the request names; a study's card has it already."""
        if line.arm is not None or line.request is None:
            return None
        try:
            return word(obj(decode(body_of(self._path, line.request.body))).get("model"))
        except InputError:
            return None

    def _texts(self, line: Line, at: int, size: int) -> None:
        """Texts of token ids: what the model wrote, better known."""
        for number, text in enumerate(line.texts if line.texts is not None else [line.text]):
            row = self._row(line.key, number)
            text = whole(self._path, text)
            if row is None or not isinstance(text, str):
                continue
            self._words(2 * row + 1, sound(text))
            self._db.execute(
                "UPDATE turns SET text_at = ?, text_size = ?, excerpt = ? WHERE id = ?",
                (at, size, sound(text[:EXCERPT]), row),
            )

    def _row(self, key: str | None, choice: int = 0) -> int | None:
        if key is None:
            return None
        found = self._db.execute(
            "SELECT id FROM turns WHERE key = ?", (f"{key}.{choice}" if choice else key,)
        )
        return next((int(row[0]) for row in found), None)

    # ------------------------------------------------------------- verdicts

    def _verdict(self, line: Line, at: int, size: int) -> None:
        for choice, value in enumerate(line.verdicts or ()):
            row = self._row(line.key, choice)
            if row is None and choice:
                row = self._copy(line, choice)
            if row is not None:
                self.judged(row, self._read(value), at, size)
        if line.role is not None:
            self._db.execute("UPDATE turns SET role = ? WHERE key = ?", (line.role, line.key))
        if (
            line.conversation is not None
        ):  # that of the first answer; further ones are conversations of their own
            place = (str(line.conversation), line.position, line.key)
            self._db.execute("UPDATE turns SET episode = ?, position = ? WHERE key = ?", place)
        for told in line.uptakes:
            self._told(told)
        if line.retry_of is not None:
            self._retried(line, line.retry_of)

    def _read(self, stored: msgspec.Raw) -> Verdict:
        data = bytes(stored)
        if b'"blob"' in data:
            return msgspec.convert(whole(self._path, msgspec.json.decode(data)), Verdict)
        return _decode_verdict(data)

    def judged(self, row: int, verdict: Verdict, at: int | None = None, size: int | None = None) -> None:
        """Enters a verdict. ``at`` and ``size``: of its line, where it has one."""
        flags: Flags = verdict.flags
        shown = next((call for call in verdict.calls if call.rule == verdict.rule), None)
        values = {
            "emission": verdict.emission,
            "delivery": verdict.delivery,
            "uptake": verdict.uptake,
            "cause": verdict.cause,
            "rule": verdict.rule,
            "tier": verdict.tier,
            "calls": len(verdict.calls),
            "dialect": shown.dialect if shown is not None else None,
            "valid_emitted": flags.valid_emitted,
            "valid_surfaced": flags.valid_surfaced,
            "lost": flags.well_formed_lost,
            "unknown": flags.unknown,
            "produced": flags.produced,
            "forced": flags.forced,
            "verdict_at": at,
            "verdict_size": size,
        }
        names = ", ".join(f"{name} = ?" for name in values)
        self._db.execute(f"UPDATE turns SET {names} WHERE id = ?", (*values.values(), row))
        self._db.execute("DELETE FROM defects WHERE turn = ?", (row,))
        found = dict.fromkeys([*verdict.notes, *_defects(verdict.calls)])
        self._db.executemany("INSERT INTO defects VALUES (?, ?)", [(row, name) for name in found])

    def _copy(self, line: Line, choice: int) -> int:
        """A further answer of an exchange whose body was not kept: only its verdict tells of it."""
        found = self._db.execute("SELECT * FROM turns WHERE key = ?", (line.key,))
        first = found.fetchone()
        names = [column[0] for column in found.description]
        row = dict(zip(names, first, strict=True)) if first is not None else {}
        key = f"{line.key}.{choice}"
        row |= {"key": key, "choice": choice, "episode": key, "position": 1}
        row.pop("id", None)
        self._insert(row)
        return self._last

    # ------------------------------------------------------------- what later lines tell

    def _told(self, told: dict[str, Json]) -> None:
        """A request told what became of an earlier answer's calls."""
        calls = told.get("calls")
        names = set(calls) if isinstance(calls, list) else set()
        uptake = next((str(each) for each in _UPTAKES if each in names), None)
        if uptake is not None:
            self._db.execute("UPDATE turns SET uptake = ? WHERE key = ?", (uptake, str(told.get("n"))))

    def _retried(self, line: Line, earlier: int) -> None:
        """The last attempt stands for the turn."""
        first = self._db.execute("SELECT attempts FROM turns WHERE key = ?", (str(earlier),)).fetchone()
        if first is not None:
            self._db.execute("UPDATE turns SET attempts = ? WHERE key = ?", (first[0] + 1, line.key))
            self._db.execute(
                "DELETE FROM turns WHERE at = (SELECT at FROM turns WHERE key = ?)", (str(earlier),)
            )

    def _ended(self, line: Line, played: _Played) -> None:
        """The end of an episode: what became of its calls. Turns of an earlier, longer try are no part of it."""
        for number, turn in enumerate(played.turns, 1):
            uptake = _uptake(turn)
            if uptake is not None:
                key = f"{line.episode_key}|{number}"
                self._db.execute("UPDATE turns SET uptake = ? WHERE key = ?", (uptake, key))
        self._db.execute(
            "DELETE FROM turns WHERE episode = ? AND position > ?", (line.episode_key, len(played.turns))
        )


def whole_lines(path: Path, start: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a log from ``start`` on with their offsets, as far as they are whole."""
    with (path / "log.jsonl").open("rb") as file:
        file.seek(start)
        at = start
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield at, line
            at += len(line)


def words_of(response: Response, choice: Choice | None) -> str:
    """All that a search should find in an answer: what the model wrote in any form, or what an error says."""
    parts: list[str | None] = []
    if choice is not None:
        parts += [choice.raw_text, choice.logprob_text if choice.raw_text is None else None]
        parts += [choice.reasoning, choice.content, choice.refusal]
        for call in choice.tool_calls:
            given = call.arguments if isinstance(call.arguments, str) else encode(call.arguments)
            parts.append(f"{call.name or ''} {given}")
    if response.error is not None:
        parts += [response.error.message, response.error.generation]
    return sound("\n".join(dict.fromkeys(part for part in parts if part)))


def sound(text: str) -> str:
    """``text`` without lone surrogates, which databases can't hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def facts_of_arms(card: Json) -> dict[str, dict[str, str]]:
    """What a run's card says of each arm: its model, condition and task."""
    found: dict[str, dict[str, str]] = {}
    for name, arm in obj(obj(card).get("arms")).items():
        entries = obj(obj(arm).get("entries"))
        values = {entry: obj(entries.get(entry)).get("value") for entry in ("model", "condition", "task")}
        values["condition"] = obj(values["condition"]).get("condition")
        found[name] = {entry: value for entry, value in values.items() if isinstance(value, str)}
    return found


def _origin(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else None


def _defects(calls: Iterable[CallVerdict]) -> Iterator[str]:
    for call in calls:
        yield from call.defects
        if call.emitted is not None:
            yield from call.emitted.defects


def _uptake(turn: _PlayedTurn) -> Uptake | None:
    if turn.observed:
        return Uptake.OBSERVED
    if turn.executed:
        return Uptake.EXECUTED
    return Uptake.DROPPED if turn.executed is False and turn.surfaced else None
