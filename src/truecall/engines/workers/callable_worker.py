"""The user's own parser: a Python callable, ``module:function`` or ``file.py:function``; see ``protocol``.

The callable takes ``(text, tools)`` and gives calls, or ``(calls, content)``. A call is ``{"name", "arguments"}``,
also inside ``"function"``, or a pair. A class is streamed: it is made with ``(tools)``, its ``feed(piece)`` and
``finish()`` give calls or ``(calls, content)``, and ``parse(text)``, where it has one, reads whole texts.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from protocol import Joined, Parsed, serve  # type: ignore[import-not-found]


def _named(target: str) -> Any:
    module, _, name = target.rpartition(":")
    if module.endswith(".py"):
        path = Path(module)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{module} is no Python file")
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = loaded
        sys.path.insert(0, str(path.parent))
        spec.loader.exec_module(loaded)
    else:
        sys.path.insert(0, str(Path.cwd()))
        loaded = importlib.import_module(module)
    for part in name.split("."):
        loaded = getattr(loaded, part)
    return loaded


def call_of(given: Any) -> list[Any]:
    """[name, arguments] of a call in one of the forms that are taken."""
    if isinstance(given, dict):
        inside = given.get("function")
        source = inside if isinstance(inside, dict) else given
        return [source.get("name"), _sent(source.get("arguments"))]
    if isinstance(given, (list, tuple)) and len(given) == 2:
        return [given[0], _sent(given[1])]
    name, arguments = getattr(given, "name", None), getattr(given, "arguments", None)
    if name is None and arguments is None:
        raise TypeError(f"a call is {{'name', 'arguments'}} or a pair, not {type(given).__name__}")
    return [name, _sent(arguments)]


def _sent(arguments: Any) -> Any:
    return arguments if isinstance(arguments, str) or arguments is None else json.dumps(arguments)


def _result(given: Any) -> Parsed:
    if isinstance(given, tuple) and len(given) == 2 and not isinstance(given[0], str):
        calls, content = given
    else:
        calls, content = given, None
    return [call_of(call) for call in calls or ()], content


def load() -> tuple[str, list[str], Any, Any]:
    """Imports what the command line names."""
    target = _named(sys.argv[1])

    def function(_: str, text: str, tools: list[Any]) -> Parsed:
        return _result(target(text, tools))

    def whole(_: str, text: str, tools: list[Any]) -> Parsed:
        made = target(tools)
        return _result(made.parse(text)) if hasattr(made, "parse") else streamed(_, [text], tools)

    def streamed(_: str, pieces: Sequence[str], tools: list[Any]) -> Parsed:
        made = target(tools)
        got = Joined()
        count = 0
        for given in (*map(made.feed, pieces), made.finish()):
            calls, content = _result(given)
            got.text.append(content or "")
            for name, arguments in calls:
                got.call(count, name, arguments)
                count += 1
        return got.parsed()

    streams = isinstance(target, type)
    name = sys.argv[1].rpartition(":")[2]
    return "own", [name], whole if streams else function, streamed if streams else None


if __name__ == "__main__":
    serve("python", load)
