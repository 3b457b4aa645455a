"""Which parsers the user means: ``vllm:hermes``, ``sglang==0.5.23:all``, ``all``, ``llamacpp:URL``, ``python:…`` …"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from truecall.engines.base import Launch
from truecall.engines.recipes import SERVED, none_here
from truecall.engines.registry import WORKERS, engines, find
from truecall.errors import UsageError
from truecall.records import Record

OWN: Final = ("python", "command")
EVERY: Final = "all"


class Spec(Record, frozen=True):
    """Parsers of one engine: how it is started, and their names (None: all that it has)."""

    engine: str
    launch: Launch
    parsers: tuple[str, ...] | None = None


def resolve(words: Sequence[str]) -> list[Spec]:
    """The parsers that words stand for; those of one engine and version come together.

    Raises:
        UsageError: a word names no parser, or an engine that is not here.
    """
    found: dict[tuple[str, tuple[str, ...]], Spec] = {}
    for word in words:
        for spec in _specs(word):
            key = (spec.launch.engine, spec.launch.command)
            there = found.get(key)
            if there is None:
                found[key] = spec
            elif there.parsers is None or spec.parsers is None:
                found[key] = Spec(engine=spec.engine, launch=spec.launch)
            else:
                both = tuple(dict.fromkeys((*there.parsers, *spec.parsers)))
                found[key] = Spec(engine=spec.engine, launch=spec.launch, parsers=both)
    return list(found.values())


def _specs(word: str) -> list[Spec]:
    if word == EVERY:
        here = [engine for engine in engines() if engine.ready]
        if not here:
            raise UsageError(none_here())
        names = dict.fromkeys(engine.name for engine in here)
        return [Spec(engine=name, launch=find(name, among=here).launch()) for name in names]
    engine, colon, rest = word.partition(":")
    if rest.startswith(("http://", "https://")):
        return [served(engine, rest)]
    if engine in OWN:
        if not rest:
            raise UsageError(f"{word}: say which, as in {_EXAMPLES[engine]}")
        return [own(engine, rest)]
    if not colon or not rest:
        raise UsageError(f"{word}: is no ENGINE:PARSER, such as vllm:hermes or vllm:all")
    name, _, version = engine.partition("==")
    if name in SERVED:
        raise UsageError(f"{word}: {SERVED[name]}: start one and name it, as in {name}:http://127.0.0.1:8080")
    launch = find(name, version or None).launch()
    return [Spec(engine=name, launch=launch, parsers=None if rest == EVERY else (rest,))]


_EXAMPLES: Final = {"python": "python:my_parser.py:parse", "command": "command:./my_parser"}


def served(engine: str, url: str) -> Spec:
    """The parser inside a running server of an engine (``llamacpp:http://127.0.0.1:8080``)."""
    from truecall import stacks

    if engine not in stacks.ENGINES:
        raise UsageError(f"{engine}: no engine that is known; there are {', '.join(stacks.ENGINES)}")
    script = str(WORKERS / "served_worker.py")
    launch = Launch(engine=f"{engine}:{url}", python=sys.executable, script=script, words=(engine, url))
    return Spec(engine=engine, launch=launch)


def own(kind: str, target: str) -> Spec:
    """The user's own parser: a callable (``kind`` python) or a command."""
    script = "callable_worker.py" if kind == "python" else "command_worker.py"
    if kind == "python":
        module, _, name = target.rpartition(":")
        if not module or not name:
            raise UsageError(f"python:{target}: is no file.py:function or module:function")
        if module.endswith(".py"):
            if not Path(module).is_file():
                raise UsageError(f"{module}: no such file")
            target = f"{Path(module).absolute()}:{name}"
    launch = Launch(
        engine=f"{kind}:{Path(target.rpartition(':')[0]).stem if kind == 'python' else target.split()[0]}",
        python=sys.executable,
        script=str(WORKERS / script),
        words=(target,),
        folder=str(Path.cwd()),
    )
    return Spec(engine=kind, launch=launch)
