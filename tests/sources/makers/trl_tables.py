"""Writes OUT/{text,parsed,plain}/completions/….parquet with TRL's own ``GRPOTrainer.log``.

The method is taken out of a file that needs torch; only the trainer's base class and state are stand-ins.
"""

from __future__ import annotations

import ast
import importlib.util
import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
from answers import CALL


class Base:
    def log(self, logs: Any, start_time: Any) -> None:
        pass


def trainer_class() -> Any:
    """A class with TRL's own ``log``."""
    spec = importlib.util.find_spec("trl")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "trainer"
    utils = ast.parse((folder / "utils.py").read_text(encoding="utf-8")).body
    strip = next(
        n for n in utils if isinstance(n, ast.FunctionDef) and n.name == "strip_images_from_messages"
    )
    grpo = ast.parse((folder / "grpo_trainer.py").read_text(encoding="utf-8")).body
    trainer = next(n for n in grpo if isinstance(n, ast.ClassDef) and n.name == "GRPOTrainer")
    log = next(n for n in trainer.body if isinstance(n, ast.FunctionDef) and n.name == "log")
    made = ast.ClassDef("Trainer", [ast.Name("Base", ast.Load())], [], [log], [])
    space: dict[str, Any] = {
        "math": math,
        "os": os,
        "pd": pd,
        "is_rich_available": lambda: False,
        "Base": Base,
    }
    exec(compile(ast.fix_missing_locations(ast.Module([strip, made], [])), "trl", "exec"), space)
    return space["Trainer"]


def write(out: str, step: int, prompts: list[Any], completions: list[Any]) -> None:
    Path(out, "completions").mkdir(parents=True, exist_ok=True)
    trainer = trainer_class()()
    trainer.model, trainer._metrics = SimpleNamespace(training=True), {"train": {}}
    trainer.accelerator, trainer.log_completions = SimpleNamespace(is_main_process=True), True
    trainer.state, trainer.num_completions_to_print = SimpleNamespace(global_step=step), None
    trainer.args = SimpleNamespace(report_to=[], output_dir=out)
    zeros = [0.0] * len(prompts)
    columns = {"prompt": prompts, "completion": completions, "advantages": zeros, "images": []}
    trainer._logs = {**columns, "rewards": {"reward": zeros}, "extra": {}}
    trainer.log({})


if __name__ == "__main__":
    out = sys.argv[1]
    question = [{"role": "user", "content": "Weather in Oslo?"}]
    function = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    parsed = [
        {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]},
        {"role": "tool", "name": "get_weather", "content": "sunny"},
        {"role": "assistant", "content": "It is sunny."},
    ]
    left = [{"role": "assistant", "content": CALL}]
    write(f"{out}/text", 5, ["Weather in Oslo?"] * 2, [CALL, "It is sunny."])
    write(f"{out}/parsed", 10, [question] * 2, [parsed, left])
    write(f"{out}/plain", 15, [question] * 2, [left, [{"role": "assistant", "content": "No."}]])
