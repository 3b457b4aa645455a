"""verl's worker with parsers of its two generations: since 0.6 they take the tools too."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import truecall.engines

TOOLS: list[Any] = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {}}}}}]


class _Parser:
    tools: Any = None

    @classmethod
    def get_tool_parser(cls, name: str, tokenizer: Any) -> Any:
        return cls()

    def read(self, ids: list[int]) -> tuple[str, list[Any]]:
        return "left", [SimpleNamespace(name="f", arguments="".join(map(chr, ids)))]


class Older(_Parser):
    async def extract_tool_calls(self, ids: list[int]) -> Any:
        return self.read(ids)


class Newer(_Parser):
    async def extract_tool_calls(self, ids: list[int], tools: list[Any]) -> Any:
        _Parser.tools = tools
        return self.read(ids)


@pytest.mark.parametrize("parser", [Older, Newer])
def test_both_generations_are_asked_as_they_are(parser: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(truecall.engines.__file__).parent / "workers"))
    import verl_worker  # type: ignore[import-not-found]

    parsers = verl_worker._Parsers(parser, dict)
    assert parsers.whole("hermes", '{"x": 1}', TOOLS) == ([["f", '{"x": 1}']], "left")
    if parser is Newer:
        assert _Parser.tools[0]["function"]["parameters"]["properties"] == {
            "x": {"type": "string", "description": ""}
        }
    parsers._loop.close()
    sys.modules.pop("verl_worker")
