"""inspect_ai's own tool loop: a small task whose answer needs a tool, solved by ``use_tools`` and ``generate``.

Run by ``truecall record -- python inspect_loop.py``: reads OPENAI_BASE_URL, prints one JSON line with the score.
"""

from __future__ import annotations

import json
import os
import tempfile

from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageTool, GenerateConfig, get_model
from inspect_ai.scorer import Score, Target, accuracy, scorer
from inspect_ai.solver import TaskState, generate, use_tools
from inspect_ai.tool import Tool, tool

STOCK = {"A17": "41", "B20": "7", "C03": "112", "D44": "0", "E91": "15", "F08": "63", "G12": "9", "H30": "77"}


@tool
def stock_level() -> Tool:
    async def execute(item: str) -> str:
        """The number of pieces of an item in stock.

        Args:
            item: The item's number.
        """
        return STOCK.get(item, "unknown item")

    return execute


@scorer(metrics=[accuracy()])
def looked_up():  # type: ignore[no-untyped-def]
    async def score(state: TaskState, target: Target) -> Score:
        results = [m.text for m in state.messages if isinstance(m, ChatMessageTool)]
        return Score(value="C" if target.text in results else "I", answer=" ".join(results))

    return score


@task
def stock() -> Task:
    samples = [
        Sample(input=f"How many pieces of item {item} are in stock?", target=n) for item, n in STOCK.items()
    ]
    return Task(dataset=samples, solver=[use_tools(stock_level()), generate()], scorer=looked_up())


def main() -> None:
    config = GenerateConfig(temperature=0, max_tokens=60, max_connections=1)
    model = get_model("openai/m", base_url=os.environ["OPENAI_BASE_URL"], api_key="none", config=config,
                      responses_api=False)  # fmt: skip
    with tempfile.TemporaryDirectory() as logs:
        (log,) = eval(stock(), model=model, log_dir=logs, display="none", message_limit=8)
        samples = log.samples or []
        rows = [[str(s.id), s.scores["looked_up"].value == "C"] for s in samples if s.scores]
    print(
        json.dumps(
            {"harness": "inspect_ai", "right": sum(r[1] for r in rows), "items": len(STOCK), "rows": rows}
        )
    )


if __name__ == "__main__":
    main()
