"""tau-bench's own tool-calling agent on its retail tasks, with a user who says his instruction and then stops.

Run by ``truecall record -- python tau_retail.py`` with tau-bench on PYTHONPATH: reads OPENAI_API_BASE through
LiteLLM, prints one JSON line. ``right`` counts tasks in which a tool of the environment ran without an error: the
135M model solves none. The agent is offered three of the sixteen tools and no wiki, to fit its context.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look-up on the network

import litellm
from tau_bench.agents.tool_calling_agent import ToolCallingAgent
from tau_bench.envs.base import Env
from tau_bench.envs.retail.data import load_data
from tau_bench.envs.retail.tasks_test import TASKS_TEST
from tau_bench.envs.retail.tools import ALL_TOOLS
from tau_bench.envs.user import BaseUserSimulationEnv

TOOLS = ("find_user_id_by_name_zip", "find_user_id_by_email", "get_order_details")


class Scripted(BaseUserSimulationEnv):
    def reset(self, instruction: str | None = None) -> str:
        first = ". ".join((instruction or "").split(". ")[:1])
        return f"{first}. Look up my user id."

    def step(self, content: str) -> str:
        return "###STOP###"

    def get_total_cost(self) -> float:
        return 0.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=8)
    options = parser.parse_args()
    litellm.suppress_debug_info = True
    env = Env(load_data, ALL_TOOLS, TASKS_TEST, "", [], "human", "", task_index=0)
    env.user = Scripted()
    tools = sorted(
        (t for t in env.tools_info if t["function"]["name"] in TOOLS),
        key=lambda t: TOOLS.index(t["function"]["name"]),
    )
    agent = ToolCallingAgent(tools, "You help customers of a shop.", "hosted_vllm/m", "hosted_vllm")
    rows = []
    for index in range(options.items):
        try:
            solved = agent.solve(env, task_index=index, max_num_steps=3)
            results = [m["content"] for m in solved.messages if m["role"] == "tool"]
            good = any(text and not text.startswith(("Error: Env", "Unknown action")) for text in results)
        except Exception as error:  # as tau-bench's own runner records it: reward 0
            good, results = False, [f"{type(error).__name__}: {error}"]
        rows.append([str(index), good, results[:1]])
    print(
        json.dumps(
            {"harness": "tau-bench", "right": sum(bool(r[1]) for r in rows), "items": len(rows), "rows": rows}
        )
    )


if __name__ == "__main__":
    main()
