"""What a task is: an instance made from its seed alone, tools that really run, and a check of the outcome."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal, Protocol

from truecall.records import Json, Record

SchemaVariant = Literal["terse", "rich", "strict"]
SCHEMAS: tuple[SchemaVariant, ...] = ("terse", "rich", "strict")


class Parameter(Record, frozen=True):
    """One parameter of a tool: its JSON Schema without a description, and what the rich variant says of it."""

    name: str
    schema: dict[str, Json]
    rich: str = ""


class Tool(Record, frozen=True):
    """A tool in its three variants.

    ``terse`` is the one-line description, ``rich`` what is added to it (what the tool is not for, an example).
    ``strict`` is terse with ``"strict": true`` and no additional properties. All parameters are required.
    """

    name: str
    terse: str
    parameters: tuple[Parameter, ...] = ()
    rich: str = ""

    def offered(self, variant: SchemaVariant) -> dict[str, Json]:
        """The tool in OpenAI chat's form."""
        properties: dict[str, Json] = {}
        for each in self.parameters:
            described = {"description": each.rich} if variant == "rich" and each.rich else {}
            properties[each.name] = {**each.schema, **described}
        schema: dict[str, Json] = {
            "type": "object",
            "properties": properties,
            "required": [each.name for each in self.parameters],
        }
        text = f"{self.terse} {self.rich}".strip() if variant == "rich" else self.terse
        function: dict[str, Json] = {"name": self.name, "description": text, "parameters": schema}
        if variant == "strict":
            schema["additionalProperties"] = False
            function["strict"] = True
        return {"type": "function", "function": function}


class Call(Record, frozen=True):
    """A call as the harness executes it."""

    name: str
    arguments: dict[str, Json]


class Decoy(Record, frozen=True):
    """What a model may take the tool for: the function that it is to write, and the names of its parameters."""

    name: str
    parameters: frozenset[str] = frozenset()

    def taken(self, name: str | None, arguments: dict[str, Json] | None) -> bool:
        """Whether a call is to the function itself, or gives a tool the function's parameters."""
        keys = set(arguments or ())
        return name == self.name or bool(keys and keys <= self.parameters)


class Result(Record, frozen=True):
    """What a tool gave back. ``error``: it did not do its work. ``new``: the episode got further by it."""

    text: str
    error: bool = False
    new: bool = False


class State(Protocol):
    """An instance under way.

    ``ended``: the task is over (an answer was submitted). ``passed``: the task's check now; None: can't tell.
    """

    ended: bool
    passed: bool | None

    async def call(self, call: Call) -> Result:
        """Runs a call. A wrong name or arguments that make no sense are results too, never exceptions."""
        ...

    async def answered(self, text: str) -> None:
        """The model ended its turn without a call that could be executed."""
        ...

    async def close(self, calls: Sequence[Call]) -> None:
        """A single-turn task is over: ``calls`` are all that surfaced in its only turn."""
        ...


class Instance(Protocol):
    """One task instance.

    ``item`` and ``seed`` name it. ``expected``: every turn should call a tool (False: none should).
    ``turns``: the task's own cap, or None. ``tools``: the list to offer, by schema variant. ``solution``: calls
    that solve it, for examples and tests (empty where none is known).
    """

    @property
    def item(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def prompt(self) -> str: ...
    @property
    def expected(self) -> bool | None: ...
    @property
    def turns(self) -> int | None: ...
    @property
    def solution(self) -> tuple[Call, ...]: ...
    @property
    def decoy(self) -> Decoy | None: ...

    def tools(self, variant: SchemaVariant) -> list[dict[str, Json]]: ...

    def start(self) -> State: ...


class Task(Protocol):
    """A family of instances. ``count``: how many there are, where they come from a bank; None: without end.

    ``needs_sandbox``: it runs code that a model wrote.
    """

    name: str
    count: int | None
    needs_sandbox: bool

    def make(self, seed: int) -> Instance:
        """The instance of this seed, the same on every machine.

        Raises:
            UsageError: a bank has no such item.
        """
        ...

    def example(self) -> Instance | None:
        """An instance with a solution that is none of those that are measured; None where there is none."""
        ...


def generator(task: str, seed: int) -> random.Random:
    """The random numbers of an instance: from the task's name and the seed alone, the same in every Python."""
    return random.Random(f"truecall/{task}/{seed}")


def unknown_tool(name: str, offered: Sequence[str]) -> Result:
    """The answer to a call of a tool that is not there."""
    return Result(text=f"Error: there is no tool {name!r}. Tools: {', '.join(offered)}.", error=True)


def number_of(value: Json) -> float | None:
    """A number, else None; booleans are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def plain(value: float) -> str:
    """A number as people write it: no trailing ``.0``."""
    return str(int(value)) if value == int(value) else f"{value:.6f}".rstrip("0")
