"""SGLang's tool-call parsers; see ``protocol``.

The environment holds ``sglang`` without its dependencies, and msgspec, openai, orjson, partial-json-parser, regex,
pydantic and jsonschema: the parsers need neither torch, transformers nor xgrammar, so empty modules stand in.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import logging
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from protocol import Joined, Parsed, serve, version_of  # type: ignore[import-not-found]

HEAVY = {"torch", "transformers", "xgrammar"}


class _Hollow(types.ModuleType):
    """A module in which every name is an empty class that pydantic takes for any value."""

    __path__: list[str] = []  # noqa: RUF012 - the module attribute's own name and type

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {"__get_pydantic_core_schema__": classmethod(_any_schema)})
        setattr(self, name, made)
        return made


def _any_schema(_kind: type, _source: Any, _handler: Any) -> Any:
    from pydantic_core import core_schema

    return core_schema.any_schema()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.util.spec_from_loader(name, self) if name.partition(".")[0] in HEAVY else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Hollow(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


def _enter() -> None:
    """Make ``sglang`` importable without its own ``__init__``, which loads the whole runtime."""
    found = importlib.util.find_spec("sglang")
    if found is None or found.origin is None:
        raise ImportError("sglang is not installed in this environment")
    sys.meta_path.insert(0, _Finder())
    package = types.ModuleType("sglang")
    package.__path__ = [str(Path(found.origin).parent)]
    package.__spec__ = found
    sys.modules["sglang"] = package
    utils = types.ModuleType("sglang.utils")
    utils.convert_json_schema_to_str = lambda schema: schema  # type: ignore[attr-defined]
    sys.modules["sglang.utils"] = utils


class _Parsers:
    def __init__(self, parser: Any, tool: Any) -> None:
        self._parser, self._tool = parser, tool
        self._held: tuple[list[Any], list[Any]] | None = None

    def _made(self, tools: list[Any]) -> list[Any]:
        if self._held is None or self._held[0] is not tools:
            self._held = (tools, [self._tool(**tool) for tool in tools])
        return self._held[1]

    def whole(self, parser: str, text: str, tools: list[Any]) -> Parsed:
        """A new parser for every text, as SGLang's server makes one for every request."""
        content, calls = self._parser(self._made(tools), parser).parse_non_stream(text)
        return [[call.name, call.parameters] for call in calls], content

    def streamed(self, parser: str, pieces: Sequence[str], tools: list[Any]) -> Parsed:
        """Piece by piece, then the end of the stream."""
        reader = self._parser(self._made(tools), parser)
        got = Joined()
        for piece in pieces:
            self._take(got, reader.parse_stream_chunk(piece))
        if hasattr(reader, "parse_stream_end"):
            self._take(got, reader.parse_stream_end())
        return got.parsed()

    @staticmethod
    def _take(got: Joined, given: tuple[str | None, list[Any]]) -> None:
        got.text.append(given[0] or "")
        for call in given[1] or ():
            got.call(call.tool_index, call.name, call.parameters)


def load() -> tuple[str, list[str], Any, Any]:
    """Imports SGLang's parsers alone."""
    _enter()
    from sglang.srt.entrypoints.openai.protocol import Tool  # type: ignore[import-not-found]
    from sglang.srt.function_call.function_call_parser import FunctionCallParser  # type: ignore[import-not-found]

    logging.disable(logging.CRITICAL)
    parsers = _Parsers(FunctionCallParser, Tool)
    names = sorted(FunctionCallParser.ToolCallParserEnum)
    return version_of(("sglang",)), names, parsers.whole, parsers.streamed


if __name__ == "__main__":
    serve("sglang", load)
