"""Writes OUT/0.jsonl and OUT/400.jsonl with verl's own writer, which is taken out of a file that needs torch."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

from answers import CALL, TOOLS

OFFERED = f"system\nYou may call functions.\n<tools>\n{json.dumps(TOOLS[0])}\n</tools>\n"
PROMPT = f"{OFFERED}user\nWeather in Oslo?\nassistant\n"
RESULT = "\nuser\n<tool_response>\nsunny\n</tool_response>\nassistant\n"
OUTPUTS = [
    CALL + RESULT + "It is sunny.",
    CALL,
    "I cannot know.",
    '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
    CALL + RESULT + CALL + RESULT + "Done",
    CALL.replace("Oslo", "<city>"),
]


def writer() -> Any:
    """``RayPPOTrainer._write_generations``, as a plain function."""
    spec = importlib.util.find_spec("verl")
    assert spec is not None and spec.origin is not None
    source = (Path(spec.origin).parent / "trainer" / "ppo" / "ray_trainer.py").read_text(encoding="utf-8")
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    function = next(node for node in functions if node.name == "_write_generations")
    function.decorator_list = []
    space: dict[str, Any] = {"os": os, "json": json}
    exec(compile(ast.Module([function], []), "verl", "exec"), space)
    return space[function.name]


if __name__ == "__main__":
    n = len(OUTPUTS)
    extra = {"acc": [0] * n, "request_id": [f"r{number}" for number in range(n)]}
    for step in (0, 400):
        writer()([PROMPT] * n, OUTPUTS, [None] * n, [0.0] * n, extra, sys.argv[1], step)
