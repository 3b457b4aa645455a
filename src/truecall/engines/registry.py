"""The engines at hand: environments that truecall made, and interpreters that the user pointed to.

Each stands in a folder of its own, ``NAME-VERSION``, with ``engine.json``. ``TRUECALL_ENGINES_VLLM=PYTHON`` (and the
like) names an interpreter for one run, without registering it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from truecall.engines.base import Launch
from truecall.engines.recipes import RECIPES, recipe_for
from truecall.errors import InputError, UsageError
from truecall.records import Record
from truecall.store import state_dir

WORKERS: Final = Path(__file__).parent / "workers"
_FILE: Final = "engine.json"


class Engine(Record, frozen=True):
    """An engine whose parsers can be run. ``own``: truecall made the environment, and removes it.

    ``done`` are the steps of an installation that are finished; ``ready`` when all are.
    """

    name: str
    version: str
    python: str
    own: bool = True
    ready: bool = False
    done: tuple[str, ...] = ()
    parsers: tuple[str, ...] = ()
    folder: str = ""
    megabytes: float | None = None

    @property
    def label(self) -> str:
        """``vllm==0.32.0``."""
        return f"{self.name}=={self.version}"

    def launch(self) -> Launch:
        """How its worker is started."""
        script = WORKERS / f"{self.name}_worker.py"
        return Launch(engine=self.label, python=self.python, script=str(script))


class Listed(Record, frozen=True):
    """An engine in the list. From ``working`` on: what starting every parser showed, absent where it was not done.

    ``idle`` has a parser that does not work, and why; ``fault`` says why the engine does not start at all.
    """

    engine: str
    ready: bool
    own: bool
    parsers: int | None
    megabytes: float | None
    python: str
    working: int | None = None
    network: str | None = None
    version: str | None = None
    idle: dict[str, str] | None = None
    fault: str | None = None


class EnginesOutput(Record, frozen=True, omit_defaults=False):
    """``truecall engines list --json``. ``folder``: where environments stand."""

    folder: str
    engines: tuple[Listed, ...]
    schema_version: int = 1


def home() -> Path:
    """Where engines stand: ``engines`` in truecall's state folder."""
    return state_dir() / "engines"


def folder_of(name: str, version: str) -> Path:
    """The folder of one engine and version."""
    if not version or set(version) - set("0123456789abcdefghijklmnopqrstuvwxyz.+-_"):
        raise UsageError(f"{version}: is no version")
    return home() / f"{name}-{version}"


def read(folder: Path) -> Engine | None:
    """The engine of a folder; None where there is none, or its file can't be read."""
    try:
        data = (folder / _FILE).read_bytes()
        return msgspec.structs.replace(msgspec.json.decode(data, type=Engine), folder=str(folder))
    except (OSError, msgspec.MsgspecError):
        return None


def write(folder: Path, engine: Engine) -> None:
    """Keeps what is known of an engine, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    half = folder / f"{_FILE}.part"
    half.write_bytes(msgspec.json.format(msgspec.json.encode(engine), indent=2))
    half.replace(folder / _FILE)


def engines() -> list[Engine]:
    """All engines at hand, those of the environment variables first, then by name, the newest version first."""
    found = []
    for name in RECIPES:
        python = os.environ.get(f"TRUECALL_ENGINES_{name.upper()}")
        if python:
            found.append(Engine(name=name, version="given", python=python, own=False, ready=True))
    with suppress(OSError):
        kept = [engine for folder in home().iterdir() if (engine := read(folder)) is not None]
        kept.sort(key=lambda engine: _order(engine.version), reverse=True)
        found += sorted(kept, key=lambda engine: engine.name)
    return found


def find(name: str, version: str | None = None, among: Iterable[Engine] | None = None) -> Engine:
    """The engine of this name (of this version, or the newest).

    Raises:
        UsageError: there is none, with the command that adds it.
    """
    known = [engine for engine in (engines() if among is None else among) if engine.name == name]
    fits = [e for e in known if e.ready and (version is None or e.version == version)]
    if fits:
        return fits[0]
    recipe_for(name)
    wanted = f"{name}=={version}" if version else name
    began = any(not e.ready and (version is None or e.version == version) for e in known)
    others = ", ".join(e.label for e in known if e.ready)
    raise UsageError(
        f"{wanted} is not {'whole' if began else 'here'}"
        f"{f' (there is {others})' if others else ''}: `truecall engines add {wanted}`"
        f"{' goes on where it stopped' if began else ''}"
    )


def remove(engine: Engine) -> None:
    """Takes an engine away: its environment, or, of the user's own, what was noted of it.

    Raises:
        InputError: the folder can't be removed.
    """
    if not engine.folder:
        raise UsageError(f"{engine.label} comes from the environment variable: unset it")
    try:
        shutil.rmtree(engine.folder)
    except OSError as error:
        raise InputError(f"{engine.folder}: can't be removed ({error.strerror})") from None


def _order(version: str) -> tuple[tuple[int, str], ...]:
    """A key by which 0.10 comes after 0.9."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in version.split("."))
