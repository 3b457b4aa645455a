"""An index over the turns of a run folder: filters, counts and words by SQLite, the turns themselves by offset.

``index.sqlite`` in the folder is made from the log, never the other way round: it can be deleted, and it is made
again when it does not fit the log. New lines are taken in as they come. In a folder that can't be written the
index stands in a temporary file of SQLite's. Folders of ``run``, ``record`` and ``preflight`` are read alike.

``turns``    a row for each answer of the last attempt at a turn: what filters need, and the offsets of its lines
``defects``  the defects and notes of its verdict
``words``    what the model wrote, for searches (full text where this SQLite has it)
``parts``    where the pieces of a study's request bodies stand (`truecall.store.history`)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from truecall.errors import InputError
from truecall.records import Record
from truecall.store import index_file
from truecall.store.index_file import Told, nobody
from truecall.store.indexing import Writer, sound
from truecall.store.turns import WholeTurn, read_turn

Where = Mapping[str, object]
"""Column -> value; a list or tuple: any of them; None: not known."""

EVERY: Final[Where] = {}

COLUMNS: Final = (
    *(
        "episode",
        "arm",
        "condition",
        "task",
        "item",
        "seed",
        "sample",
        "position",
        "model",
        "endpoint",
        "role",
    ),
    *("emission", "delivery", "uptake", "cause", "rule", "tier", "dialect", "calls", "status", "failure"),
    *("forced", "produced", "lost", "unknown", "valid_emitted", "valid_surfaced", "defect"),
)
"""What turns can be filtered and counted by. ``defect``: any of a turn's defects and notes."""


class TurnRow(Record, frozen=True):
    """One answer of the last attempt at a turn; rows stand in the order of the log.

    ``id`` rises and changes when the index is made again; ``key`` does not: ``ARM|ITEM|SEED|SAMPLE|TURN`` in a
    study, the exchange's number elsewhere (``N.CHOICE`` for a further answer). ``episode``: of a recorded
    conversation the number of the exchange that opened it; a turn in none has its own key. None in the columns of
    the verdict: the turn was not judged. ``seconds``: the exchange's whole time.
    """

    id: int
    key: str
    choice: int
    attempts: int
    episode: str | None = None
    position: int | None = None
    arm: str | None = None
    condition: str | None = None
    task: str | None = None
    item: str | None = None
    seed: int | None = None
    sample: int | None = None
    model: str | None = None
    endpoint: str | None = None
    role: str | None = None
    started_at: float | None = None
    seconds: float | None = None
    status: int | None = None
    failure: str | None = None
    emission: str | None = None
    delivery: str | None = None
    uptake: str | None = None
    cause: str | None = None
    rule: str | None = None
    tier: str | None = None
    dialect: str | None = None
    calls: int | None = None
    forced: bool | None = None
    produced: bool | None = None
    lost: bool | None = None
    unknown: bool | None = None
    valid_emitted: bool | None = None
    valid_surfaced: bool | None = None
    excerpt: str = ""
    defects: tuple[str, ...] = ()


_FLAGS: Final = ("forced", "produced", "lost", "unknown", "valid_emitted", "valid_surfaced")
_ROW: Final = tuple(name for name in TurnRow.__struct_fields__ if name != "defects")


def open_index(path: Path, told: Told = nobody) -> Index:
    """The index of a run folder, made or brought up to date. ``told`` hears of the bytes of the log as they are read.

    Raises:
        InputError: there is no log.
    """
    if not (path / "log.jsonl").is_file():
        raise InputError(f"{path}: is no run folder (it has no log.jsonl)")
    return Index(path, told)


class Index:
    """An open index. It may be used from several threads, one call at a time."""

    def __init__(self, path: Path, told: Told = nobody) -> None:
        self.path = path
        self._db = index_file.opened(path, told)
        self._full_text = index_file.has_full_text(self._db)

    @property
    def bad(self) -> int:
        """Lines of the log that could not be read."""
        return int(index_file.about(self._db, "bad") or 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def refresh(self) -> int:
        """Takes in what was written since; the number of new rows. A log that was changed is read again whole."""
        if index_file.same(self.path, self._db):
            return 0
        before = self.count()
        if not index_file.updated(self.path, self._db):
            fresh = index_file.opened(self.path)  # where that fails the old one stays
            self._db.close()
            self._db = fresh
        return self.count() - before

    # ------------------------------------------------------------- questions

    def count(self, where: Where = EVERY, *, text: str = "") -> int:
        """How many turns there are, of those that ``where`` and ``text`` name. ValueError: unknown column."""
        clause, values = self._clause(where, text)
        return int(self._db.execute(f"SELECT count(*) FROM turns{clause}", values).fetchone()[0])

    def page(
        self,
        where: Where = EVERY,
        *,
        text: str = "",
        after: int = 0,
        before: int | None = None,
        limit: int = 50,
    ) -> list[TurnRow]:
        """Rows in order: the first ones after the id ``after``, or the last ones before the id ``before``."""
        clause, values = self._clause(where, text, "id > ?" if before is None else "id < ?")
        order = "" if before is None else " DESC"
        rows = self._rows(
            f"{clause} ORDER BY id{order} LIMIT ?", [*values, after if before is None else before, limit]
        )
        return rows if before is None else rows[::-1]

    def values(
        self,
        column: str,
        where: Where = EVERY,
        *,
        text: str = "",
    ) -> list[tuple[str | int | None, int]]:
        """The values of a column with the number of turns that have them, most first."""
        clause, values = self._clause({column: (), **where}, text)
        source, by = (
            ("turns JOIN defects ON turn = id", "defect") if column == "defect" else ("turns", column)
        )
        found = self._db.execute(
            f"SELECT {by}, count(*) FROM {source}{clause} GROUP BY 1 ORDER BY 2 DESC, 1", values
        )
        return [(value, int(count)) for value, count in found]

    def combinations(
        self, columns: Sequence[str], where: Where = EVERY, *, text: str = ""
    ) -> list[tuple[tuple[str | int | None, ...], int]]:
        """What stands together in several columns (not ``defect``), with the number of such turns: one pass."""
        clause, values = self._clause({**dict.fromkeys(columns, ()), **where}, text)
        names = ", ".join(columns)
        found = self._db.execute(f"SELECT {names}, count(*) FROM turns{clause} GROUP BY {names}", values)
        return [(tuple(each[:-1]), int(each[-1])) for each in found]

    def row(self, number: int) -> TurnRow | None:
        """The row with this id."""
        return next(iter(self._rows(" WHERE id = ?", [number])), None)

    def find(self, key: str) -> TurnRow | None:
        """The row with this key, which stays the same when the index is made again."""
        return next(iter(self._rows(" WHERE key = ?", [key])), None)

    def beside(self, row: TurnRow) -> tuple[TurnRow | None, TurnRow | None]:
        """The turns before and after this one in its episode."""
        same = " WHERE episode = ? AND (position, id) %s (?, ?) ORDER BY position %s, id %s LIMIT 1"
        place = [row.episode, row.position, row.id]
        earlier, later = (
            self._rows(same % ("<", "DESC", "DESC"), place),
            self._rows(same % (">", "", ""), place),
        )
        return next(iter(earlier), None), next(iter(later), None)

    def turn(self, number: int) -> WholeTurn:
        """All that the folder holds of a turn. What can't be read is named in ``faults``.

        Raises:
            KeyError: no such id.
        """
        found = self._db.execute(
            "SELECT at, size, text_at, text_size, verdict_at, verdict_size, choice FROM turns WHERE id = ?",
            (number,),
        ).fetchone()
        if found is None:
            raise KeyError(number)
        exchange, text, verdict = found[:2], found[2:4], found[4:6]
        return read_turn(self.path, exchange, text, verdict, choice=found[6], part=self._part)

    def judge(self) -> int:
        """Judges the turns that the log has no verdict of; the number of those that could be judged.

        In a study's text conditions the harness's parser has its say in a verdict: such turns stay as they are.
        """
        writer = Writer(self.path, self._db, {})
        open_ = "emission IS NULL AND (condition IS NULL OR condition IN ('native', 'native_hint'))"
        judged = 0
        for (number,) in self._db.execute(f"SELECT id FROM turns WHERE {open_}").fetchall():
            verdict = self.turn(number).judged()
            if verdict is not None:
                writer.judged(number, verdict)
                judged += 1
        self._db.commit()
        return judged

    # ------------------------------------------------------------- parts

    def _clause(self, where: Where, text: str, *more: str) -> tuple[str, list[object]]:
        """The WHERE clause and its values; those of ``more`` come last."""
        tests: list[str] = []
        values: list[object] = []
        for column, wanted in where.items():
            if column not in COLUMNS:
                raise ValueError(f"no column {column!r}")
            any_of = list(wanted) if isinstance(wanted, list | tuple) else [wanted]
            if not any_of:
                continue
            marks = ", ".join("?" * len(any_of))
            if column == "defect":
                tests.append(f"id IN (SELECT turn FROM defects WHERE defect IN ({marks}))")
            elif None in any_of:
                tests.append(f"({column} IS NULL OR {column} IN ({marks}))")
            else:
                tests.append(f"{column} IN ({marks})")
            values += any_of
        for test, value in self._search(text):
            tests.append(test)
            values.append(value)
        tests += more
        return f" WHERE {' AND '.join(tests)}" if tests else "", values

    def _search(self, text: str) -> list[tuple[str, str]]:
        """The tests of a search: each piece between blanks as a phrase, the last as the beginning of one."""
        pieces = [piece for piece in sound(text).split() if any(sign.isalnum() for sign in piece)]
        if not pieces:
            return [("? = ''", text.strip())] if text.strip() else []  # signs alone find nothing
        if not self._full_text:
            like = [piece.translate({ord(sign): f"\\{sign}" for sign in "\\%_"}) for piece in pieces]
            test = "id IN (SELECT rowid / 2 FROM words WHERE text LIKE ? ESCAPE '\\')"
            return [(test, f"%{piece}%") for piece in like]
        quoted = ['"' + piece.replace('"', '""').replace("\0", " ") + '"' for piece in pieces]
        return [("id IN (SELECT rowid / 2 FROM words WHERE words MATCH ?)", " ".join(quoted) + "*")]

    def _rows(self, clause: str, values: Sequence[object]) -> list[TurnRow]:
        found = self._db.execute(f"SELECT {', '.join(_ROW)} FROM turns{clause}", values).fetchall()
        return [self._row_of(dict(zip(_ROW, each, strict=True))) for each in found]

    def _row_of(self, fields: dict[str, Any]) -> TurnRow:
        flags = {name: bool(fields[name]) for name in _FLAGS if fields[name] is not None}
        found = self._db.execute("SELECT defect FROM defects WHERE turn = ?", (fields["id"],)).fetchall()
        return TurnRow(**{**fields, **flags, "defects": tuple(each[0] for each in found)})

    def _part(self, name: str) -> tuple[int, int] | None:
        """Where a piece of a request body stands in the log."""
        found = self._db.execute("SELECT at, size FROM parts WHERE name = ?", (name,)).fetchone()
        return (found[0], found[1]) if found is not None else None
