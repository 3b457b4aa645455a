"""Makes an environment for an engine: a Python that the engine supports, then the recipe's packages.

Nothing goes into truecall's own environment. uv is used where there is one; otherwise the chosen Python's ``venv``,
which brings a pip of its own, and where that is missing (Debian splits it off) any pip on the machine installs from
outside. Every step that is done is noted: the same command goes on where it was stopped, and begins anew where what
it finds can't be finished (a package that was half written, say).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from truecall.engines import registry
from truecall.engines.recipes import Recipe
from truecall.engines.registry import Engine
from truecall.engines.worker import Worker
from truecall.errors import CannotTell, InputError, UsageError

Tell = Callable[[str], None]

_ASK: Final = "import sys; print(*sys.version_info[:2])"
_STEPS: Final = ("environment", "bare", "full", "dropped", "checked")


def add(recipe: Recipe, version: str, tell: Tell) -> Engine:
    """The environment of an engine and version, made or finished; it is checked by starting its parsers.

    Raises:
        CannotTell: no Python fits, or a step failed, with the installer's last lines.
        UsageError: another process is at it.
    """
    folder = registry.folder_of(recipe.engine, version)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _alone(folder):
        new = Engine(name=recipe.engine, version=version, python=str(folder / "env" / "bin" / "python"))
        begun = registry.read(folder) or new
        if begun.ready:
            tell(f"{begun.label} is here already: {len(begun.parsers)} parsers")
            return begun
        if begun.done:
            tell(f"{begun.label} was begun before: going on after '{begun.done[-1]}'")
            try:
                return _steps(recipe, begun, folder, tell)
            except CannotTell as error:
                tell(f"what was begun can't be finished ({error}): making it anew")
        return _steps(recipe, new, folder, tell)


def _steps(recipe: Recipe, engine: Engine, folder: Path, tell: Tell) -> Engine:
    for step in _STEPS:
        if step not in engine.done:
            engine = _step(step, recipe, engine, folder, tell)
            engine = msgspec.structs.replace(engine, done=(*engine.done, step))
            registry.write(folder, engine)
    return engine


def add_existing(recipe: Recipe, python: str, tell: Tell) -> Engine:
    """Notes an interpreter of the user's that holds the engine, once its parsers start.

    Raises:
        CannotTell: they do not.
    """
    found = shutil.which(python) or python
    path = str(Path(found).absolute())  # not resolved: the link itself tells Python its environment
    engine = Engine(name=recipe.engine, version="given", python=path, own=False)
    tell(f"starting {recipe.engine}'s parsers with {path}")
    with Worker(engine.launch()) as worker:
        hello = worker.hello()
    folder = registry.folder_of(recipe.engine, hello.version)
    if (there := registry.read(folder)) is not None and there.own:
        raise UsageError(f"{there.label} is here already; `truecall engines remove {there.label}` first")
    engine = msgspec.structs.replace(engine, version=hello.version, ready=True, parsers=hello.parsers)
    registry.write(folder, engine)
    return engine


def _step(step: str, recipe: Recipe, engine: Engine, folder: Path, tell: Tell) -> Engine:
    requirements = {"bare": recipe.bare, "full": recipe.full, "dropped": recipe.dropped}
    log = folder / "install.log"
    if step == "environment":
        python = choose_python(recipe)
        tell(f"an environment with {python}")
        shutil.rmtree(folder / "env", ignore_errors=True)
        _run(_making(python, folder / "env"), log)
    elif step == "checked":
        tell("starting its parsers")
        with Worker(engine.launch()) as worker:
            hello = worker.hello()
        size = sum(f.lstat().st_size for f in folder.rglob("*") if f.is_file() and not f.is_symlink())
        return msgspec.structs.replace(
            engine, ready=True, parsers=hello.parsers, megabytes=round(size / 1e6, 1)
        )
    elif wanted := [word.format(version=engine.version) for word in requirements[step]]:
        if step == "dropped":
            _run([*_pip(engine.python), "uninstall", *_yes(), *wanted], log)
        else:
            tell(f"installing {', '.join(wanted)}")
            alone = ["--no-deps"] if step == "bare" else []
            _run([*_pip(engine.python), "install", *alone, *wanted], log)
    return engine


# --------------------------------------------------------------------------- Python and pip


def choose_python(recipe: Recipe) -> str:
    """A Python on this machine of a version that the engine is built for, the best first.

    Raises:
        CannotTell: there is none.
    """
    candidates = list(_pythons())
    versions: dict[str, tuple[int, int] | None] = {}
    for wanted in recipe.pythons:
        for path in candidates:
            if path not in versions:
                versions[path] = _version(path)
            if versions[path] == wanted:
                return path
    names = ", ".join(f"{major}.{minor}" for major, minor in recipe.pythons)
    if found := shutil.which("uv"):
        return f"uv:{found}:{recipe.pythons[0][0]}.{recipe.pythons[0][1]}"
    seen = sorted({f"{v[0]}.{v[1]}" for v in versions.values() if v})
    raise CannotTell(
        f"{recipe.engine} is built for Python {names}, and this machine has {', '.join(seen) or 'none'}: install one "
        "of them, or uv, which fetches one"
    )


def _pythons() -> Iterator[str]:
    """Interpreters to try: ours first, then those on the path, then pyenv's."""
    own = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    yield str(own if own.exists() else Path(sys.executable))
    for minor in (11, 12, 13, 10, 14):
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            path = Path(folder) / f"python3.{minor}"
            if path.exists():
                yield str(path)
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    yield from (str(path) for path in sorted(root.glob("3.*/bin/python"), reverse=True))


def _version(python: str) -> tuple[int, int] | None:
    """The version of an interpreter; None where it does not run."""
    try:
        done = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, timeout=20, check=False)
        major, minor = done.stdout.split()
        return int(major), int(minor)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _making(python: str, folder: Path) -> list[str]:
    if python.startswith("uv:"):
        _, path, version = python.split(":")
        return [path, "venv", "--python", version, str(folder)]
    if uv := shutil.which("uv"):
        return [uv, "venv", "--python", python, str(folder)]
    has_pip = _runs([python, "-I", "-c", "import ensurepip, venv"])
    return [python, "-m", "venv", *([] if has_pip else ["--without-pip"]), str(folder)]


def _pip(python: str) -> list[str]:
    """The words before ``install``: the environment's own pip, uv, or another Python's pip from outside."""
    if _runs([python, "-I", "-c", "import pip"]):
        return [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "--python", python]
    for other in dict.fromkeys((sys.executable, *_pythons())):
        if _runs([other, "-I", "-c", "import pip"]):
            return [other, "-m", "pip", "--disable-pip-version-check", "--no-input", "--python", python]
    raise CannotTell(
        "no Python on this machine has pip, and there is no uv: install uv (one file) and try again"
    )


def _yes() -> list[str]:
    return [] if shutil.which("uv") else ["--yes"]


def _runs(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _run(command: list[str], log: Path) -> None:
    """One step of the installation; its words are kept in ``log``.

    Raises:
        CannotTell: it failed, with the lines that say why.
    """
    with log.open("ab") as kept:
        start = kept.tell()
        try:
            # No session of its own: Ctrl-C is to stop it too. It shares the lock of the folder: where truecall
            # alone is killed, nobody else writes there until the installer has ended.
            code = subprocess.run(
                command, stdout=kept, stderr=kept, stdin=subprocess.DEVNULL, close_fds=False, check=False
            ).returncode
        except OSError as error:
            raise CannotTell(f"{command[0]} can't be run ({error.strerror})") from None
    if code:
        said = log.read_bytes()[start:].decode("utf-8", "replace").splitlines()
        raise CannotTell(f"the installer failed (code {code}): {_gist(said)}; all of it stands in {log}")


def _gist(said: list[str]) -> str:
    """Where an installer begins to speak of an error and what follows, else its last words; a few lines as one."""
    lines = [line.strip() for line in said if line.strip()]
    at = next((n for n, line in enumerate(lines) if line.lower().startswith("error")), len(lines) - 4)
    return " / ".join(line[:160] for line in lines[max(0, at) :][:4])


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    try:
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise InputError(f"{folder}: can't be written ({error.strerror})") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another truecall, or an installer that it left, is at work in {folder}: try again when it has ended"
            ) from None
        os.set_inheritable(lock.fileno(), True)
        yield
