"""Where BFCL keeps what: a folder tree to its runs (one per model), leaderboard tables and question files.

What a file is comes from its name, whose it is from the folders around it; so a snapshot, its ``result`` or
``score`` folder, one model's folder and one file are all found, in V3's flat layout too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from truecall.errors import InputError

_FILE = re.compile(
    r"(?P<prefix>(?:bfcl_v\d+|gorilla_openfunctions_v\d+_test)_)?(?P<category>\w+?)_(?P<kind>result|score)"
    r"\.jsonl?(?:\.gz|\.zst)?\Z",
    re.IGNORECASE,
)
_QUESTIONS = re.compile(r"bfcl_v\d+_(?P<category>\w+)\.jsonl?(?:\.gz|\.zst)?\Z", re.IGNORECASE)
_TABLE = re.compile(r"data_\w+\.csv(?:\.gz)?\Z", re.IGNORECASE)
_GROUPS = frozenset(
    {"non_live", "live", "multi_turn", "agentic", "memory", "kv", "vector", "rec_sum", "web_search"}
    | {"format_sensitivity"}
)
_HALF = re.compile(r"(?:\w*[_-])?(?:results?|scores?)(?:[_-]\w*)?\Z", re.IGNORECASE)
_KNOWN = re.compile(
    r"(?:live_|executable_)?(?:simple(?:_python|_java|_javascript)?|java|javascript|irrelevance|relevance"
    r"|(?:multiple|parallel|parallel_multiple)(?:_function)?)\Z"
    r"|(?:multi_turn|memory|web_search|exec)_\w+\Z|format_sensitivity\Z|rest\Z|sql\Z|chatable\Z"
)
MAX_FILES = 200_000


class Run(msgspec.Struct):
    """The files of one model in one snapshot, by category. ``root`` is the snapshot's folder."""

    model: str
    root: Path
    results: dict[str, Path] = msgspec.field(default_factory=dict)
    scores: dict[str, Path] = msgspec.field(default_factory=dict)

    def categories(self) -> list[str]:
        return sorted(self.results.keys() | self.scores.keys())


class Folder(msgspec.Struct):
    """What stands under the paths given: runs, tables by folder, question and answer files, and the rest.

    ``doubled`` names files whose (model, category) another file had taken.
    """

    runs: list[Run] = msgspec.field(default_factory=list)
    tables: dict[Path, dict[str, Path]] = msgspec.field(default_factory=dict)
    questions: dict[str, Path] = msgspec.field(default_factory=dict)
    answers: dict[str, Path] = msgspec.field(default_factory=dict)
    other: list[Path] = msgspec.field(default_factory=list)
    doubled: list[Path] = msgspec.field(default_factory=list)

    def files(self) -> list[Path]:
        """Every file that an audit reads, sorted."""
        found = [path for run in self.runs for half in (run.results, run.scores) for path in half.values()]
        found += [path for table in self.tables.values() for path in table.values()]
        return sorted({*found, *self.questions.values(), *self.answers.values()})


def find(paths: Iterable[Path]) -> Folder:
    """Everything of BFCL's under ``paths`` (folders or single files); links to folders are followed once.

    Where a run's ``result`` or ``score`` half alone was named, its other half is taken from beside it.

    Raises InputError where a path is not there, can't be listed, or holds too many files.
    """
    folder = Folder()
    runs: dict[tuple[Path, str], Run] = {}
    seen: set[Path] = set()
    for path in paths:
        for file in _walk(path):
            whole = absolute(file)
            if whole in seen:
                continue
            seen.add(whole)
            if len(seen) > MAX_FILES:
                raise InputError(f"{path}: more than {MAX_FILES:,} files; name the snapshot's own folder")
            _place(whole, folder, runs)
    for run in list(runs.values()):
        _add_sibling(run, folder, runs)
    folder.runs = sorted(runs.values(), key=lambda run: (str(run.root), run.model))
    return folder


def absolute(path: Path) -> Path:
    """A path from the root without ``..``; links are not resolved, for names of files are their links' names."""
    return Path(os.path.normpath(path.absolute()))


def _add_sibling(run: Run, folder: Folder, runs: dict[tuple[Path, str], Run]) -> None:
    for half, name in ((run.results, "result"), (run.scores, "score")):
        beside = run.root / name / run.model
        if not half and beside.is_dir():
            for file in _walk(beside):
                _place(file, folder, runs)


def _walk(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename}: {error.strerror}")

    been: set[tuple[int, int]] = set()
    for base, folders, names in os.walk(path, onerror=refuse, followlinks=True):
        status = Path(base).stat()
        if (status.st_dev, status.st_ino) in been:  # a link to what was walked already, or into itself
            folders.clear()
            continue
        been.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            yield Path(base, name)


def _place(file: Path, folder: Folder, runs: dict[tuple[Path, str], Run]) -> None:
    match = _FILE.match(file.name)
    if match and (match["prefix"] or _KNOWN.match(match["category"])):
        category, kind = match["category"], match["kind"].lower()
        root, model = _owner(file)
        run = runs.setdefault((root, model), Run(model=model, root=root))
        half = run.results if kind == "result" else run.scores
        if category in half:
            folder.doubled.append(file)
        else:
            half[category] = file
    elif _TABLE.match(file.name):
        folder.tables.setdefault(file.parent, {})[file.name.lower().split(".")[0]] = file
    elif match := _QUESTIONS.match(file.name):
        half = folder.answers if file.parent.name == "possible_answer" else folder.questions
        half.setdefault(match["category"], file)
    else:
        folder.other.append(file)


def _owner(file: Path) -> tuple[Path, str]:
    """The snapshot's folder and the model's name, from the folders above a file."""
    at = file.parent
    while at.name.lower() in _GROUPS:
        at = at.parent
    if _HALF.match(at.name):  # model/result/… , the other way round
        return at.parent.parent, at.parent.name
    above = at.parent
    return (above.parent if _HALF.match(above.name) else above), at.name


def installed_questions() -> Path | None:
    """The data folder of an installed ``bfcl_eval``, which is not imported; None where it is not installed."""
    from importlib.util import find_spec

    try:
        spec = find_spec("bfcl_eval")
    except (ImportError, ValueError):
        return None
    for base in (spec.submodule_search_locations or []) if spec else []:
        data = Path(base) / "data"
        if data.is_dir():
            return data
    return None
