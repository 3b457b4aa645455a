"""``chain``: each result names the next call; the last gives the word to submit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from truecall.records import Json
from truecall.tasks.base import Call, Decoy, Parameter, Result, SchemaVariant, Tool, generator, unknown_tool

_TEXT: Final[dict[str, Json]] = {"type": "string"}


def _tool(name: str, does: str) -> Tool:
    return Tool(
        name=name,
        terse=f"{does} with this code.",
        parameters=(Parameter(name="code", schema=_TEXT, rich="The code that the last result named."),),
        rich='Example: {"code": "K-204"}.',
    )


STEPS: Final = (
    _tool("open_box", "Open the box"),
    _tool("check_shelf", "Look at the shelf"),
    _tool("ask_clerk", "Ask the clerk"),
    _tool("read_label", "Read the label"),
)
SUBMIT: Final = Tool(
    name="submit",
    terse="Submit the final word.",
    parameters=(Parameter(name="word", schema=_TEXT, rich="The word that the last result gave."),),
    rich='Ends the task. Example: {"word": "maple"}.',
)
TOOLS: Final = (*STEPS, SUBMIT)
NAMES: Final = tuple(tool.name for tool in TOOLS)
_WORDS: Final = (
    *("maple", "copper", "lantern", "pebble", "violet", "thunder", "walnut", "anchor", "meadow", "saddle"),
    *("timber", "candle", "falcon", "marble", "harvest", "willow"),
)
_LETTERS: Final = "ABCDEFGHKLMNPRSTUVWXYZ"


class Chain:
    """The task. Instances differ in the length of the chain, its tools, codes and word."""

    name = "chain"
    count: int | None = None
    needs_sandbox = False

    def make(self, seed: int) -> ChainInstance:
        return ChainInstance(seed)

    def example(self) -> ChainInstance:
        return ChainInstance(-1)


class ChainInstance:
    """A chain of four to six calls before the submission."""

    item = "chain"
    expected: bool | None = True
    turns: int | None = None
    decoy: Decoy | None = None

    def __init__(self, seed: int) -> None:
        chance = generator(self.item, seed)
        self.seed = seed
        self.word = chance.choice(_WORDS)
        links: list[tuple[str, str]] = []
        for _ in range(chance.randint(4, 6)):
            others = [tool.name for tool in STEPS if not links or tool.name != links[-1][0]]
            code = f"{chance.choice(_LETTERS)}-{chance.randint(100, 999)}"
            links.append((chance.choice(others), code))
        self.links = links
        first = links[0]
        self.prompt = (
            f"Follow the chain: begin with {first[0]} and the code {first[1]}. Each result says which tool to "
            "call next and with which code. The last result gives a word: submit it."
        )

    @property
    def solution(self) -> tuple[Call, ...]:
        steps = [Call(name=name, arguments={"code": code}) for name, code in self.links]
        return (*steps, Call(name="submit", arguments={"word": self.word}))

    def tools(self, variant: SchemaVariant) -> list[dict[str, Json]]:
        return [tool.offered(variant) for tool in TOOLS]

    def start(self) -> ChainState:
        return ChainState(self)


class ChainState:
    """How far along the chain the calls have come; links open in order."""

    def __init__(self, instance: ChainInstance) -> None:
        self._instance = instance
        self._reached = 0  # links that have been opened
        self.ended = False
        self.passed: bool | None = False

    async def call(self, call: Call) -> Result:
        if call.name == "submit":
            word = call.arguments.get("word")
            if not isinstance(word, str):
                return Result(text="Error: word must be a text.", error=True)
            self.ended = True
            self.passed = word.strip().lower() == self._instance.word
            return Result(text="Submitted.", new=True)
        if call.name not in NAMES:
            return unknown_tool(call.name, NAMES)
        links = self._instance.links
        asked = (call.name, str(call.arguments.get("code")).strip().upper())
        open_links = links[: self._reached + 1]
        if asked not in open_links:
            return Result(text=f"Error: {call.name} knows no code {asked[1][:40]!r}.", error=True)
        place = open_links.index(asked)
        new = place == self._reached
        self._reached = max(self._reached, place + 1)
        if place + 1 == len(links):
            return Result(text=f"The word is {self._instance.word}. Submit it.", new=new)
        name, code = links[place + 1]
        return Result(text=f"Next: call {name} with code {code}.", new=new)

    async def answered(self, text: str) -> None:
        """An answer in prose is no submission."""

    async def close(self, calls: Sequence[Call]) -> None:
        """Ends with submit alone."""
