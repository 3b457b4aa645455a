"""``code``: implement a function; the tool ``run_tests`` runs its tests. A bank of 100 graded problems of our own.

The bank is ``data/problems.jsonl``: name, grade (1 easy to 5 hard), signature, text, and tests as pairs of
arguments and value, the first of which is shown. Item k is the problem in line k, so that all arms have the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec

from truecall.errors import UsageError
from truecall.records import Json, Record
from truecall.sandbox import Sandbox
from truecall.tasks.base import Call, Decoy, Parameter, Result, SchemaVariant, Tool, unknown_tool

_SHOWN = 300  # characters of a value that the model is shown


class Problem(Record, frozen=True):
    """One problem. ``tests``: (arguments, value) each."""

    name: str
    grade: int
    signature: str
    text: str
    tests: tuple[tuple[list[Json], Json], ...]


EXAMPLE = Problem(
    name="add_numbers",
    grade=1,
    signature="add_numbers(a, b)",
    text="Return the sum of two numbers.",
    tests=(([1, 2], 3), ([0, 0], 0), ([-4, 1], -3)),
)
_EXAMPLE_CODE = "def add_numbers(a, b):\n    return a + b"


@cache
def problems() -> tuple[Problem, ...]:
    """The bank, in order of grade."""
    text = (files("truecall") / "data" / "problems.jsonl").read_bytes()
    return tuple(msgspec.json.decode(line, type=Problem) for line in text.splitlines() if line.strip())


class Code:
    """The task. ``seed`` is the place of the problem in the bank."""

    name = "code"
    needs_sandbox = True

    def __init__(self, sandbox: Sandbox | None) -> None:
        self._sandbox = sandbox
        self.count: int | None = len(problems())

    def make(self, seed: int) -> CodeInstance:
        if not 0 <= seed < len(problems()):
            raise UsageError(f"task code has the problems 0 to {len(problems()) - 1}, and no {seed}")
        return CodeInstance(problems()[seed], seed, self._sandbox)

    def example(self) -> CodeInstance:
        return CodeInstance(EXAMPLE, -1, self._sandbox)


class CodeInstance:
    """One problem of the bank."""

    expected: bool | None = True
    turns: int | None = None

    def __init__(self, problem: Problem, seed: int, sandbox: Sandbox | None) -> None:
        self.problem = problem
        self.item = f"code:{problem.name}"
        inside = problem.signature.partition("(")[2].rstrip(")")
        names = frozenset(name.strip() for name in inside.split(",") if name.strip())
        self.decoy: Decoy | None = Decoy(name=problem.name, parameters=names)
        self.seed = seed
        self._sandbox = sandbox
        arguments, value = problem.tests[0]
        shown = ", ".join(repr(each) for each in arguments)
        self.prompt = (
            f"Implement the Python function {problem.signature}.\n{problem.text}\n"
            f"Example: {problem.name}({shown}) returns {value!r}.\n"
            "Test your code with run_tests; the task is done when all tests pass."
        )

    @property
    def solution(self) -> tuple[Call, ...]:
        """Known for the example alone: solutions of the bank are not shipped."""
        if self.problem is not EXAMPLE:
            return ()
        return (Call(name="run_tests", arguments={"code": _EXAMPLE_CODE}),)

    def tools(self, variant: SchemaVariant) -> list[dict[str, Json]]:
        tool = Tool(
            name="run_tests",
            terse="Run the tests on your code.",
            parameters=(
                Parameter(
                    name="code", schema={"type": "string"}, rich="The whole Python source of your function."
                ),
            ),
            rich=f"This tool is not {self.problem.name}: give it your source code, not arguments of the function. "
            'Example: {"code": "def f(x):\\n    return x + 1"}.',
        )
        return [tool.offered(variant)]

    def start(self) -> CodeState:
        return CodeState(self.problem, self._sandbox)


class CodeState:
    """``passed`` once all tests have passed; that ends the task."""

    def __init__(self, problem: Problem, sandbox: Sandbox | None) -> None:
        self._problem = problem
        self._sandbox = sandbox
        self._best = 0
        self.ended = False
        self.passed: bool | None = False

    async def call(self, call: Call) -> Result:
        if call.name != "run_tests":
            return unknown_tool(call.name, ["run_tests"])
        code = call.arguments.get("code")
        if not isinstance(code, str):
            return Result(text="Error: code must be a text.", error=True)
        if self._sandbox is None:
            raise UsageError("task code needs a sandbox")
        problem = self._problem
        ran = await self._sandbox.run(
            code, [(problem.name, list(arguments)) for arguments, _ in problem.tests]
        )
        if ran.state != "ok":
            return Result(text=f"No test ran: {ran.detail[:_SHOWN]}")
        right = [_same(got.get("value"), value) and "error" not in got
                 for got, (_, value) in zip(ran.values, problem.tests, strict=True)]  # fmt: skip
        new, self._best = sum(right) > self._best, max(self._best, sum(right))
        if all(right):
            self.ended = self.passed = True
            return Result(text=f"All {len(right)} tests pass.", new=True)
        place = right.index(False)
        return Result(text=self._failure(sum(right), place, ran.values[place]), new=new)

    def _failure(self, right: int, place: int, got: dict[str, Json]) -> str:
        problem = self._problem
        arguments, value = problem.tests[place]
        shown = ", ".join(repr(each) for each in arguments)
        came = f"raised {got['error']}" if "error" in got else f"returned {got.get('value')!r}"
        return (
            f"{right} of {len(problem.tests)} tests pass. {problem.name}({shown[:_SHOWN]}) {came[:_SHOWN]}, "
            f"expected {value!r}."
        )

    async def answered(self, text: str) -> None:
        """Code in prose is not run: the task is to test it."""

    async def close(self, calls: Sequence[Call]) -> None:
        """Ends with passing tests alone."""


def _same(got: Json, value: Json) -> bool:
    """Equal as JSON; True and 1 differ, 2 and 2.0 don't."""
    if isinstance(got, bool) or isinstance(value, bool):
        return got is value
    if isinstance(got, list) and isinstance(value, list):
        return len(got) == len(value) and all(map(_same, got, value))
    if isinstance(got, dict) and isinstance(value, dict):
        return got.keys() == value.keys() and all(_same(got[key], value[key]) for key in value)
    return bool(got == value)
