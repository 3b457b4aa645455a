"""``abstain``: no offered tool fits what is asked, so that a call is wrong. One turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from truecall.records import Json
from truecall.tasks.base import Call, Decoy, Parameter, Result, SchemaVariant, Tool, generator

_TEXT: Final[dict[str, Json]] = {"type": "string"}


def _tool(name: str, terse: str, **parameters: str) -> Tool:
    made = tuple(Parameter(name=key, schema=_TEXT, rich=f"The {said}.") for key, said in parameters.items())
    return Tool(name=name, terse=terse, parameters=made, rich="Use it for nothing else.")


TOOLS: Final = (
    _tool("get_tide_table", "Tide times of a harbour.", harbour="harbour's name"),
    _tool("book_squash_court", "Book a squash court.", day="day", hour="hour"),
    _tool("translate_to_latin", "Translate a sentence to Latin.", sentence="sentence"),
    _tool("measure_ph", "Read the pH sensor of a tank.", tank="tank's label"),
    _tool("find_train", "Find a train connection.", start="first station", end="last station"),
    _tool("mute_speaker", "Mute a loudspeaker.", room="room"),
)
QUESTIONS: Final = (
    *("What is 17 plus 25?", "Which colour do you get from mixing blue and yellow?"),
    *("How many legs does a spider have?", "Write a two-line poem about snow."),
    *("What is the opposite of 'early'?", "Name three fruits that grow on trees."),
    *("Who wrote the play Hamlet?", "How many minutes are there in two hours?"),
    *("Put these words in alphabetical order: pear, apple, fig.", "What does the word 'frugal' mean?"),
)


SingleJudge = Callable[[Sequence[Call]], Awaitable[bool | None]]
"""The check of a single turn: from the calls that surfaced to passed, failed or can't tell."""


class Abstain:
    """The task. Instances differ in the question and in the three tools that do not fit it."""

    name = "abstain"
    count: int | None = None
    needs_sandbox = False

    def make(self, seed: int) -> AbstainInstance:
        return AbstainInstance(seed)

    def example(self) -> None:
        return None


class AbstainInstance:
    """One question of general knowledge beside three tools for something else."""

    item = "abstain"
    expected: bool | None = False
    turns: int | None = 1
    decoy: Decoy | None = None
    solution: tuple[Call, ...] = ()

    def __init__(self, seed: int) -> None:
        chance = generator(self.item, seed)
        self.seed = seed
        self.prompt = chance.choice(QUESTIONS)
        self._tools = chance.sample(TOOLS, 3)

    def tools(self, variant: SchemaVariant) -> list[dict[str, Json]]:
        return [tool.offered(variant) for tool in self._tools]

    def start(self) -> SingleTurn:
        return SingleTurn(_no_call)


class SingleTurn:
    """The state of a task with one turn; ``judge`` checks the calls that surfaced in it (None: can't tell)."""

    def __init__(self, judge: SingleJudge) -> None:
        self._judge = judge
        self.ended = False
        self.passed: bool | None = False

    async def call(self, call: Call) -> Result:
        return Result(text="Done.", new=True)

    async def answered(self, text: str) -> None:
        """What counts is whether a call surfaced: ``close`` is told."""

    async def close(self, calls: Sequence[Call]) -> None:
        self.ended = True
        self.passed = await self._judge(calls)


async def _no_call(calls: Sequence[Call]) -> bool:
    return not calls
