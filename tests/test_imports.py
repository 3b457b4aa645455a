"""The order of the rooms (DESIGN §6): data flows one way, and an import never points up."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "truecall"

PURE = [
    *("errors", "records", "wire", "schema", "dialects", "detector", "canonical", "stacks", "evidence"),
    *("classify", "stats", "funnel", "compare", "card", "bfcl_rules"),
]
IO = [
    *("redact", "config", "store", "client", "probe", "preflight", "sandbox", "tasks", "conditions", "run"),
    *(
        "sources",
        "scan",
        "audits",
        "proxy",
        "engines",
        "templates",
        "replay",
        "model_file",
        "local",
        "pages",
        "report",
        "view",
    ),
    *("annotate", "integrations", "cli"),
]
ROOMS = PURE + IO
"""A room may import from rooms before it, and from itself."""

LEAVES = {"errors", "records"}  # these import nothing of ours
FORBIDDEN_IN_PURE = {
    "aiohttp", "asyncio", "http", "multiprocessing", "requests", "rich", "click", "selectors", "socket",
    "sqlite3", "ssl", "subprocess", "tempfile", "urllib.request", "xllamacpp",
}  # fmt: skip
PUBLIC_FACE = {"__init__", "__main__"}  # src/truecall/__init__.py and __main__.py: above all rooms


def imports_of(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import, those in functions and under TYPE_CHECKING too.

    ``from a.b import c`` gives ``a.b.c``, since ``c`` may be a module. ``package`` resolves relative ones.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *filter(None, [base])])
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def package_of(path: Path) -> str:
    return ".".join(("truecall", *path.relative_to(SOURCE).parts[:-1]))


def faults_in(source: str, room: str, package: str = "truecall") -> list[str]:
    """What is wrong with the imports of one module."""
    faults = []
    for line, name in imports_of(ast.parse(source), package):
        root, _, rest = name.partition(".")
        if root == "truecall":
            target = rest.partition(".")[0]
            if target == "__version__":
                continue
            if target not in ROOMS:
                faults.append(f"{line}: {name} goes through the public face")
            elif target != room and (room in LEAVES or ROOMS.index(target) > ROOMS.index(room)):
                faults.append(f"{line}: {room} imports {target}, which stands below it")
        elif room in PURE and any(name == bad or name.startswith(f"{bad}.") for bad in FORBIDDEN_IN_PURE):
            faults.append(f"{line}: {room} is pure and imports {name}")
    return faults


MODULES = sorted(path for path in SOURCE.rglob("*.py") if room_of(path) not in PUBLIC_FACE)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_keeps_the_order(path: Path) -> None:
    room = room_of(path)
    assert room in ROOMS, f"{room} has no place in the order: give it one here and in the docs"
    assert faults_in(path.read_text(encoding="utf-8"), room, package_of(path)) == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("records", "from truecall.errors import TruecallError"),
        ("wire", "from truecall.classify import judge"),
        ("detector", "def f():\n    from truecall import stacks"),
        ("classify", "import truecall.client"),
        (
            "classify",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from truecall.store import Run",
        ),
        ("dialects", "from .. import cli"),
        ("stacks", "import asyncio.subprocess"),
        ("wire", "from urllib import request"),
        ("client", "from truecall import detector as d, cli"),
        ("preflight", "from truecall import judge"),
    ],
)
def test_the_check_sees_what_is_forbidden(room: str, source: str) -> None:
    assert faults_in(source, room, f"truecall.{room}") != []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("classify", "from truecall.wire.values import plain\nfrom truecall import stacks, __version__"),
        ("stacks", "from . import base\nfrom urllib.parse import urlsplit"),
        ("cli", "import truecall.local, asyncio"),
    ],
)
def test_the_check_lets_the_rest_through(room: str, source: str) -> None:
    assert faults_in(source, room, f"truecall.{room}") == []


def test_public_names_resolve() -> None:
    truecall = importlib.import_module("truecall")
    for name in truecall.__all__:
        assert getattr(truecall, name) is not None


def test_importing_truecall_loads_nothing_else() -> None:
    code = "import sys, truecall; print(*sorted(m for m in sys.modules if m.startswith('truecall')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["truecall"]
