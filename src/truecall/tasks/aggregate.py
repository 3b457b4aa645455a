"""``aggregate``: values scattered over files; list them, read them, compute, submit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from truecall.records import Json
from truecall.tasks.base import (
    Call,
    Decoy,
    Parameter,
    Result,
    SchemaVariant,
    Tool,
    generator,
    number_of,
    plain,
    unknown_tool,
)

_TEXT: Final[dict[str, Json]] = {"type": "string"}
_OPERATIONS: Final = ("sum", "mean", "max", "min")

TOOLS: Final = (
    Tool(name="list_files", terse="List the names of all files.", rich="Takes no arguments."),
    Tool(
        name="read_file",
        terse="Read one file.",
        parameters=(Parameter(name="name", schema=_TEXT, rich="A name that list_files gave."),),
        rich='Example: {"name": "north.txt"}.',
    ),
    Tool(
        name="compute",
        terse="Compute over a list of numbers.",
        parameters=(
            Parameter(
                name="operation",
                schema={"type": "string", "enum": list(_OPERATIONS)},
                rich="What to compute.",
            ),
            Parameter(
                name="values",
                schema={"type": "array", "items": {"type": "number"}},
                rich="The numbers, one from each file.",
            ),
        ),
        rich='Example: {"operation": "sum", "values": [1, 2.5]}.',
    ),
    Tool(
        name="submit",
        terse="Submit the final answer.",
        parameters=(Parameter(name="answer", schema={"type": "number"}, rich="The number asked for."),),
        rich='Ends the task. Example: {"answer": 12.5}.',
    ),
)
NAMES: Final = tuple(tool.name for tool in TOOLS)

_PLACES: Final = (
    *("north", "south", "east", "west", "harbour", "market", "station", "bridge", "garden", "tower"),
)
_FACTS: Final = ("rainfall", "visitors", "parcels", "bicycles", "boats")
_ASKED: Final = {
    "sum": "the sum of {fact} over all files",
    "mean": "the mean of {fact} over all files",
    "max": "the largest {fact} of all files",
    "min": "the smallest {fact} of all files",
}


class Aggregate:
    """The task. Instances differ in files, values and the operation."""

    name = "aggregate"
    count: int | None = None
    needs_sandbox = False

    def make(self, seed: int) -> AggregateInstance:
        return AggregateInstance(seed)

    def example(self) -> AggregateInstance:
        return AggregateInstance(-1)


class AggregateInstance:
    """Three to five files, each with one value of the fact asked for and one of another fact."""

    item = "aggregate"
    expected: bool | None = True
    turns: int | None = None
    decoy: Decoy | None = None

    def __init__(self, seed: int) -> None:
        chance = generator(self.item, seed)
        self.seed = seed
        places = chance.sample(_PLACES, chance.randint(3, 5))
        fact, other = chance.sample(_FACTS, 2)
        self.values = [chance.randint(2, 98) for _ in places]
        lines = [[f"{fact}: {value}", f"{other}: {chance.randint(2, 98)}"] for value in self.values]
        for pair in lines:
            chance.shuffle(pair)
        self.files = {f"{place}.txt": "\n".join(pair) for place, pair in zip(places, lines, strict=True)}
        self.operation = chance.choice(_OPERATIONS)
        self.answer = computed(self.operation, [float(v) for v in self.values])
        asked = _ASKED[self.operation].format(fact=fact)
        self.prompt = (
            f"There are {len(self.files)} files. Each holds one value of {fact}. "
            f"Find {asked}, and submit that number."
        )

    @property
    def solution(self) -> tuple[Call, ...]:
        reads = [Call(name="read_file", arguments={"name": name}) for name in self.files]
        return (
            Call(name="list_files", arguments={}),
            *reads,
            Call(name="compute", arguments={"operation": self.operation, "values": list(self.values)}),
            Call(name="submit", arguments={"answer": self.answer}),
        )

    def tools(self, variant: SchemaVariant) -> list[dict[str, Json]]:
        return [tool.offered(variant) for tool in TOOLS]

    def start(self) -> AggregateState:
        return AggregateState(self)


class AggregateState:
    """What has been listed, read and computed so far."""

    def __init__(self, instance: AggregateInstance) -> None:
        self._instance = instance
        self._seen: set[str] = set()
        self.ended = False
        self.passed: bool | None = False

    async def call(self, call: Call) -> Result:
        arguments = call.arguments
        match call.name:
            case "list_files":
                return self._fresh("list", ", ".join(self._instance.files))
            case "read_file":
                text = self._instance.files.get(str(arguments.get("name")))
                if text is None:
                    return Result(text=f"Error: no file {str(arguments.get('name'))[:80]!r}.", error=True)
                return self._fresh(f"read {arguments['name']}", text)
            case "compute":
                return self._compute(arguments)
            case "submit":
                return self._submit(arguments.get("answer"))
        return unknown_tool(call.name, NAMES)

    def _fresh(self, what: str, text: str) -> Result:
        new = what not in self._seen
        self._seen.add(what)
        return Result(text=text, new=new)

    def _compute(self, arguments: dict[str, Json]) -> Result:
        operation, given = arguments.get("operation"), arguments.get("values")
        values = [number_of(value) for value in given] if isinstance(given, list) else []
        known = [value for value in values if value is not None]
        if operation not in _OPERATIONS or not known or len(known) != len(values):
            fault = "Error: give operation (sum, mean, max or min) and values, a list of numbers."
            return Result(text=fault, error=True)
        value = computed(str(operation), known)
        return self._fresh(f"compute {operation} {known}", plain(value))

    def _submit(self, answer: Json) -> Result:
        value = number_of(answer)
        if value is None:
            return Result(text="Error: answer must be a number.", error=True)
        self.ended = True
        self.passed = abs(value - self._instance.answer) < 0.005
        return Result(text="Submitted.", new=True)

    async def answered(self, text: str) -> None:
        """An answer in prose is no submission."""

    async def close(self, calls: Sequence[Call]) -> None:
        """Ends with submit alone."""


def computed(operation: str, values: list[float]) -> float:
    """One of the four operations over at least one number."""
    if operation == "sum":
        return sum(values)
    if operation == "mean":
        return sum(values) / len(values)
    return max(values) if operation == "max" else min(values)
