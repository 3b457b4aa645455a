"""bfcl-eval's own OpenAI handlers and AST checker on the first items of one of its own categories.

Run by ``truecall record -- python bfcl_items.py --items 20``: reads OPENAI_BASE_URL, prints one JSON line with the
score. Vendors' SDKs that bfcl-eval imports and this run does not use may be missing.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

_VENDORS = {
    *("anthropic", "boto3", "cohere", "faiss", "google", "mistralai", "qwen_agent", "rank_bm25", "serpapi"),
    *("sentence_transformers", "writerai", "transformers", "torch", "html2text", "bs4", "huggingface_hub"),
    *("datamodel_code_generator", "pandas", "ollama", "together", "databricks", "fireworks", "botocore"),
}


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for SDKs that are not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] in _VENDORS:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> ModuleType:
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module  # type: ignore[return-value]

    def exec_module(self, module: ModuleType) -> None:
        return None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=20)
    parser.add_argument("--category", default="simple_python")
    parser.add_argument("--model", default="gpt-4o-2024-11-20-FC")
    parser.add_argument("--api", choices=("chat", "responses"), default="chat")
    options = parser.parse_args()
    sys.meta_path.append(_Absent())
    os.environ.setdefault("OPENAI_API_KEY", "none")  # the SDK wants one
    import bfcl_eval
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker
    from bfcl_eval.model_handler.api_inference.openai_completion import OpenAICompletionsHandler
    from bfcl_eval.model_handler.api_inference.openai_response import OpenAIResponsesHandler

    data = Path(bfcl_eval.__file__).parent / "data"
    name = f"BFCL_v4_{options.category}.json"
    entries = [json.loads(line) for line in (data / name).read_text().splitlines()][: options.items]
    truth = {e["id"]: e for e in map(json.loads, (data / "possible_answer" / name).read_text().splitlines())}
    handlers = {"chat": OpenAICompletionsHandler, "responses": OpenAIResponsesHandler}
    handler = handlers[options.api]("m", 0.0, options.model, True)
    right, rows = 0, []
    for entry in entries:
        functions = json.loads(json.dumps(entry["function"]))
        result, _ = handler.inference(entry, False, True)
        try:
            decoded = handler.decode_ast(result, "Python", False)
            checked = ast_checker(
                functions,
                decoded,
                truth[entry["id"]]["ground_truth"],
                Language.PYTHON,
                options.category,
                options.model,
            )
            good = bool(checked["valid"])
        except Exception:  # as the evaluation counts it: what does not decode is wrong
            good = False
        right += good
        rows.append([entry["id"], good])
    print(json.dumps({"harness": "bfcl-eval", "right": right, "items": len(entries), "rows": rows}))


if __name__ == "__main__":
    main()
