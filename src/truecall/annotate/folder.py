"""The folder of an annotation: the key, the packs, and the answers that came back.

::

    key.json            for the maker alone: what the texts are, their strata and verdicts
    pack-NAME.html      for annotator NAME
    answers/NAME.json   what NAME sent back, checked
    adjudication.json   what was disputed; pack-ADJUDICATOR.html goes with it
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from truecall.annotate.pack import Pack
from truecall.annotate.protocol import sealed
from truecall.annotate.records import (
    FORMAT,
    OTHER_TOOL,
    UNREADABLE,
    Adjudication,
    Answer,
    AnswerFile,
    GivenAnswer,
    Item,
    Key,
    PackRef,
)
from truecall.errors import InputError, UsageError
from truecall.store import private_dir, write_private

KEY: Final = "key.json"
ADJUDICATION: Final = "adjudication.json"
ANSWERS: Final = "answers"
LARGEST: Final = 64 << 20  # bytes of an answers file
_SAID: Final = 200  # characters of what a file says, in an error

Answers = dict[int, Answer]
"""Answers by the item's number in the key."""

R = TypeVar("R")


class Annotation:
    """An annotation as its folder holds it.

    ``answers``: by annotator, whole sets alone. ``decided``: the adjudicator's; None while there are none.
    """

    def __init__(
        self,
        path: Path,
        key: Key,
        answers: dict[str, Answers],
        adjudication: Adjudication | None,
        decided: Answers | None,
    ) -> None:
        self.path = path
        self.key = key
        self.answers = answers
        self.adjudication = adjudication
        self.decided = decided

    @property
    def annotators(self) -> list[str]:
        """Their names, in the order in which they were given."""
        return list(self.key.packs)

    @property
    def waiting(self) -> list[str]:
        """Annotators whose answers are not here yet."""
        return [name for name in self.key.packs if name not in self.answers]

    def pack_of(self, name: str) -> PackRef | None:
        """The pack of an annotator or of the adjudicator, if it was made."""
        if name == self.key.adjudicator:
            return self.adjudication.pack if self.adjudication is not None else None
        return self.key.packs.get(name)


# --------------------------------------------------------------------------- writing


def create(path: Path, key: Key, packs: dict[str, Pack]) -> list[Path]:
    """Writes a new annotation's folder; the packs' paths.

    Raises:
        UsageError: something is there already, or it can't be written.
    """
    checked_new(path)
    try:
        private_dir(path / ANSWERS)
        written = [_write_pack(path, name, pack) for name, pack in packs.items()]
        _write(path / KEY, key)
    except BaseException as error:
        shutil.rmtree(path, ignore_errors=True)  # it was new or empty
        if isinstance(error, OSError):
            raise UsageError(f"{path}: can't be written ({error.strerror})") from None
        raise
    return written


def checked_new(path: Path) -> None:
    """Raises UsageError unless ``path`` is free for a new annotation."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path}: is not empty: name a new folder with -o")


def save_adjudication(path: Path, made: Adjudication, pack: Pack, name: str) -> Path:
    """Writes the adjudicator's pack and what it is of; the pack's path.

    Raises:
        UsageError: the folder can't be written.
    """
    try:
        written = _write_pack(path, name, pack)
        _write(path / ADJUDICATION, made)
    except OSError as error:
        raise UsageError(f"{path}: can't be written ({error.strerror})") from None
    return written


def _write_pack(path: Path, name: str, pack: Pack) -> Path:
    target = path / f"pack-{name}.html"
    write_private(target, pack.html.encode())
    return target


def _write(path: Path, value: object) -> None:
    write_private(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


# --------------------------------------------------------------------------- reading


def load(path: Path) -> Annotation:
    """Reads an annotation's folder; the answers in it are checked again.

    Raises:
        InputError: it is none, or a file of it was changed.
    """
    if not (path / KEY).is_file():
        raise InputError(f"{path}: is no annotation (`truecall annotate make RUN -o DIR` makes one)")
    key = _read(path / KEY, Key)
    if key.format != FORMAT:
        raise InputError(f"{path / KEY}: of format {key.format}; this truecall reads {FORMAT}")
    if sealed(key) != key:
        raise InputError(f"{path / KEY}: was changed after the packs were made")
    made = _read(path / ADJUDICATION, Adjudication) if (path / ADJUDICATION).exists() else None
    if made is not None and sealed(made) != made:
        raise InputError(f"{path / ADJUDICATION}: was changed after the pack was made")
    found = Annotation(path, key, {}, made, None)
    for name in key.packs:
        if (source := path / ANSWERS / f"{name}.json").exists():
            file = read_answers(source)
            if made is not None and made.answers.get(name) != file.sha256:
                raise InputError(f"{source}: is not the file that the adjudication followed from")
            found.answers[name] = checked(found, file, source)[1]
    if made is not None and (source := path / ANSWERS / f"{key.adjudicator}.json").exists():
        found.decided = checked(found, read_answers(source), source)[1]
    return found


def _read(path: Path, kind: type[R]) -> R:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: is not what it should be ({str(error)[:_SAID]})") from None


def read_answers(path: Path) -> AnswerFile:
    """A file that a pack's page saved.

    Raises:
        InputError: it is none, or was changed after it was saved.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path}: too large for an answers file")
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from None
    found = _read(path, AnswerFile)
    if found.format != "truecall-answers" or found.version != FORMAT:
        raise InputError(f"{path}: is no answers file of this version; it is saved from the pack's page")
    if checksum(found.answers) != found.sha256:
        raise InputError(f"{path}: was altered after it was saved; save it again from the pack's page")
    return found


def checksum(answers: Sequence[GivenAnswer]) -> str:
    """The SHA-256 of the answers, one a line: id, digest, call, well_formed, tool; ``-`` for none."""
    lines = (
        " ".join(
            "-" if word is None else str(word) for word in (a.id, a.sha256, a.call, a.well_formed, a.tool)
        )
        for a in answers
    )
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()


def checked(annotation: Annotation, file: AnswerFile, source: Path) -> tuple[str, Answers]:
    """Whose answers these are, and the answers by item.

    Raises:
        InputError: they belong to no pack of this folder, to other texts, or some are missing.
    """
    everyone = [*annotation.annotators, annotation.key.adjudicator]
    packs = {name: pack for name in everyone if (pack := annotation.pack_of(name)) is not None}
    name = next((name for name, pack in packs.items() if pack.sha256 == file.pack), None)
    if name is None:
        raise InputError(
            f"{source}: belongs to no pack of {annotation.path} (its pack is {file.pack[:12]!r}…): a wrong file, or "
            "the pack was altered on its way"
        )
    if file.annotator != name:
        raise InputError(
            f"{source}: says it is {file.annotator[:_SAID]!r}'s, and was made with {name}'s pack"
        )
    pack, items = packs[name], annotation.key.items
    given = {answer.id: answer for answer in file.answers}
    if len(given) < len(file.answers):
        raise InputError(f"{source}: answers one text twice")
    for ident, answer in given.items():
        if ident not in pack.ids or items[pack.ids[ident]].sha256 != answer.sha256:
            raise InputError(f"{source}: answers a text that is not in {name}'s pack")
    found: Answers = {}
    missing = 0
    for ident, number in pack.ids.items():
        answered = given.get(ident)
        made = None if answered is None else _answer(answered, items[number], annotation, source)
        if made is None:
            missing += 1
        else:
            found[number] = made
    if name == annotation.key.adjudicator and any(
        "unclear" in (each.call, each.well_formed) for each in found.values()
    ):
        raise InputError(f"{source}: the adjudicator answers yes or no")
    if missing:
        raise InputError(
            f"{source}: {missing} of {len(pack.ids)} texts are not answered; load the file in the pack's page and go on"
        )
    return name, found


def _answer(given: GivenAnswer, item: Item, annotation: Annotation, source: Path) -> Answer | None:
    """One answer in the key's own words; None where a question is still open."""
    if given.call != "yes":
        return Answer(call=given.call)
    if given.well_formed is None or (given.tool is None and item.toolset is not None):
        return None
    tool: str | None = None
    if item.toolset is not None:
        names = annotation.key.toolsets[item.toolset]
        if isinstance(given.tool, int):
            if not 0 <= given.tool < len(names):
                raise InputError(f"{source}: names a tool that is not in the pack")
            tool = f"offered:{names[given.tool].name}"
        elif given.tool in (OTHER_TOOL, UNREADABLE):
            tool = given.tool
        else:
            raise InputError(f"{source}: names a tool that is not in the pack")
    return Answer(call="yes", well_formed=given.well_formed, tool=tool)


def add(path: Path, sources: Iterable[Path]) -> dict[str, int]:
    """Takes in returned files, all or none; the answers by annotator.

    Raises:
        InputError: a file is not what it should be (`checked`), or that annotator's answers are here already.
        UsageError: the folder can't be written.
    """
    annotation = load(path)
    taken: dict[str, tuple[AnswerFile, int]] = {}
    for source in sources:
        file = read_answers(source)
        name, answers = checked(annotation, file, source)
        here = (
            annotation.decided is not None
            if name == annotation.key.adjudicator
            else name in annotation.answers
        )
        if here or name in taken:
            where = annotation.path / ANSWERS / f"{name}.json"
            raise InputError(
                f"{source}: {name}'s answers are here already ({where if here else 'given twice'})"
            )
        taken[name] = (file, len(answers))
    targets = {path / ANSWERS / f"{name}.json": file for name, (file, _) in taken.items()}
    try:
        for target, file in targets.items():
            _write(target, file)
    except OSError as error:
        for target in targets:  # none of them was there before
            target.unlink(missing_ok=True)
        raise UsageError(f"{path}: can't be written ({error.strerror})") from None
    return {name: count for name, (_, count) in taken.items()}
