"""Runs verl's own parsers under the adapter, without torch; and holds the adapter to verl's signatures."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

sys.path.append(sys.argv[1])
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def package(name: str, path: Path | None = None) -> Any:
    """An empty package in place of verl's own, whose imports need torch."""
    module = types.ModuleType(name)
    module.__path__ = [str(path)] if path else []
    sys.modules[name] = module
    return module


class Tokenizer:
    pad_token = "<pad>"
    unk_token_id = 0

    def decode(self, ids: list[int], **_: Any) -> str:
        return "".join(map(chr, ids))

    def convert_tokens_to_ids(self, _: str) -> int:
        return 1


def main() -> None:
    spec = importlib.util.find_spec("verl")
    assert spec is not None and spec.origin is not None
    root = Path(spec.origin).parent
    package("verl", root)
    for name in ("utils", "tools", "experimental", "experimental/agent_loop"):
        package(f"verl.{name.replace('/', '.')}", root / name)
    package("verl.utils.ray_utils").get_event_loop = asyncio.get_event_loop
    package("verl.utils.rollout_trace").rollout_trace_op = lambda function: function

    from verl.experimental.agent_loop.tool_parser import ToolParser
    from verl.tools.schemas import OpenAIFunctionToolSchema

    from truecall.integrations.verl import watch

    parameters = {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "d"}},
        "required": ["city"],
    }
    function = {"name": "get_weather", "description": "d", "parameters": parameters}
    schema = OpenAIFunctionToolSchema(type="function", function=function)
    said = []
    other = next(name for name in sorted(ToolParser._registry) if name != "hermes" and "oss" in name)
    for label, name in (("hermes", "hermes"), ("other", other)):
        monitor = watch()
        parser = ToolParser.get_tool_parser(name, Tokenizer())
        asyncio.run(parser.extract_tool_calls([ord(c) for c in CALL], [schema]))
        counts = monitor.counts
        assert counts["emitted_valid"] == 1 and counts["faults"] == 0, counts
        said += [label, "accepted", counts["accepted"], "lost", counts["lost"]]
    check_signatures(root)
    print(*said, "signatures ok")


def check_signatures(root: Path) -> None:
    """What the adapter calls and wraps, as the agent loop defines it (its file needs torch to be imported)."""
    tree = ast.parse(
        (root / "experimental" / "agent_loop" / "tool_agent_loop.py").read_text(encoding="utf-8")
    )
    loop = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ToolAgentLoop")
    methods = {n.name: [a.arg for a in n.args.args] for n in loop.body if isinstance(n, ast.AsyncFunctionDef)}
    assert methods["run"][:2] == ["self", "sampling_params"], methods["run"]
    assert methods["_call_tool"][:2] == ["self", "tool_call"], methods["_call_tool"]
    source = ast.unparse(loop)
    assert "ToolParser.get_tool_parser(" in source and "await self.tool_parser.extract_tool_calls(" in source
    assert "extra_fields=agent_data.extra_fields" in source
    for beginning in ("Unknown function ", "Invalid JSON in arguments "):
        assert beginning in source, beginning


if __name__ == "__main__":
    main()
