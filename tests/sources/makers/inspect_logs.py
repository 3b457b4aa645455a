"""Writes OUT/eval and OUT/json with inspect_ai's own code."""

from __future__ import annotations

import sys
from typing import Any

from answers import CALL
from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool

MODEL = "mockllm/model"


@tool
def get_weather() -> Any:
    async def execute(city: str) -> str:
        """Get the weather.

        Args:
            city: The city.
        """
        return f"Sunny in {city}"

    return execute


def outputs() -> list[ModelOutput]:
    made = [
        ModelOutput.for_tool_call(MODEL, "get_weather", {"city": "Oslo"}),
        ModelOutput.from_content(MODEL, "It is sunny."),
        ModelOutput.from_content(MODEL, CALL),
        ModelOutput.for_tool_call(MODEL, "get_weather", {"town": "Oslo"}),
        ModelOutput.from_content(MODEL, "Sorry."),
    ]
    for one in made:
        one.usage = ModelUsage(input_tokens=10, output_tokens=12, total_tokens=22)
    return made


@task
def weather() -> Task:
    questions = ("Weather in Oslo?", "Weather again?", "And?")
    samples = [Sample(input=question, target="sunny") for question in questions]
    return Task(dataset=samples, solver=[use_tools(get_weather()), generate()], scorer=includes())


if __name__ == "__main__":
    for form in ("eval", "json"):
        model = get_model(MODEL, custom_outputs=outputs())
        folder = f"{sys.argv[1]}/{form}"
        eval(
            weather(),
            model=model,
            log_dir=folder,
            log_format=form,
            max_samples=1,
            log_model_api=True,
            display="none",
        )
