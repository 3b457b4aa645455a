"""verl's tool-call parsers; see ``protocol``. verl parses whole generations only: it has no streaming.

The environment holds ``verl`` without its dependencies, and regex and pydantic: empty packages stand in for the parts
that load ray and torch.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import logging
import sys
import types
from pathlib import Path
from typing import Any

from protocol import Parsed, serve, version_of  # type: ignore[import-not-found]


def _package(name: str, folder: Path | None = None) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__path__ = [str(folder)] if folder else []
    sys.modules[name] = made
    return made


def _enter() -> None:
    """Make verl's agent loop importable without the packages around it."""
    found = importlib.util.find_spec("verl")
    if found is None or found.origin is None:
        raise ImportError("verl is not installed in this environment")
    root = Path(found.origin).parent
    for name in ("verl", "verl.utils", "verl.tools", "verl.experimental", "verl.experimental.agent_loop"):
        _package(name, root.joinpath(*name.split(".")[1:]))
    _package("verl.utils.ray_utils").get_event_loop = asyncio.get_event_loop  # type: ignore[attr-defined]
    _package("verl.utils.rollout_trace").rollout_trace_op = lambda wrapped: wrapped  # type: ignore[attr-defined]


class _Tokenizer:
    """One token for every character."""

    pad_token = "<pad>"
    unk_token_id = 0

    def decode(self, ids: list[int], **_: Any) -> str:
        return "".join(map(chr, ids))

    def encode(self, text: str, **_: Any) -> list[int]:
        return [ord(character) for character in text]

    def convert_tokens_to_ids(self, token: str) -> int:
        return 1


class _Parsers:
    def __init__(self, parser: Any, schema: Any) -> None:
        self._parser, self._schema = parser, schema
        self._takes = (
            len(inspect.signature(parser.extract_tool_calls).parameters) - 1
        )  # old ones take no tools
        self._tokenizer = _Tokenizer()
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._held: tuple[list[Any], list[Any]] | None = None

    def _tool(self, tool: Any) -> Any:
        """verl wants a description on every tool and property, and knows plain types only."""
        function = tool["function"]
        given = function.get("parameters") or {}
        properties = {
            key: {"type": str(value.get("type", "string")), "description": ""}
            for key, value in (given.get("properties") or {}).items()
            if isinstance(value, dict)
        }
        parameters = {"type": "object", "properties": properties, "required": given.get("required") or []}
        about = {"name": function["name"], "description": "", "parameters": parameters}
        return self._schema(type="function", function=about)

    def whole(self, parser: str, text: str, tools: list[Any]) -> Parsed:
        """A new parser for every text."""
        if self._held is None or self._held[0] is not tools:
            self._held = (tools, [self._tool(tool) for tool in tools])
        reader = self._parser.get_tool_parser(parser, self._tokenizer)
        given = (self._tokenizer.encode(text), self._held[1])[: self._takes]
        content, calls = self._loop.run_until_complete(reader.extract_tool_calls(*given))
        return [[call.name, call.arguments] for call in calls], content


def load() -> tuple[str, list[str], Any, Any]:
    """Imports verl's parsers alone."""
    _enter()
    from verl.experimental.agent_loop.tool_parser import ToolParser
    from verl.tools.schemas import OpenAIFunctionToolSchema

    logging.disable(logging.CRITICAL)
    parsers = _Parsers(ToolParser, OpenAIFunctionToolSchema)
    return version_of(("verl",)), sorted(ToolParser._registry), parsers.whole, None


if __name__ == "__main__":
    serve("verl", load)
