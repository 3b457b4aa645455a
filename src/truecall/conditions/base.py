"""What a condition is, its factors, and what a harness needs of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from truecall.records import Choice, Json, Record
from truecall.tasks.base import Call, Instance, Result, SchemaVariant

CONDITIONS = ("native", "native_hint", "text_tools", "constrained", "react")
Message = dict[str, Any]


class Factors(Record, frozen=True):
    """How an arm offers its tools. ``tool_choice`` applies to the native channel.

    ``prompt``: ``optional`` lets the model answer without a call, ``mandatory`` asks for one in every reply.
    ``thought``: a line of thought before each call is demanded. ``few_shot``: a solved example goes before.
    """

    condition: str = "native"
    schema: SchemaVariant = "terse"
    prompt: Literal["optional", "mandatory"] = "optional"
    thought: bool = False
    few_shot: bool = False
    tool_choice: str = "auto"


class Executable(Record, frozen=True):
    """A call as it surfaced. ``call`` None: it can't be executed, and ``fault`` is what the model is told."""

    name: str | None
    call: Call | None
    fault: str = ""
    id: str | None = None


class Condition(Protocol):
    """One way of offering tools.

    ``native``: the interface's own channel is read; otherwise the harness's strict parser stands in its place,
    and ``parser`` is the digest of its source. ``tools`` are those that it offers.
    """

    native: bool
    parser: str | None
    tools: list[dict[str, Json]]

    def opening(self, instance: Instance, example: Sequence[Message]) -> list[Message]:
        """The first messages. ``example``: messages of a solved instance, or none."""
        ...

    def fields(self) -> dict[str, Json]:
        """Fields of the request beside messages, model and sampling."""
        ...

    def surfaced(self, choice: Choice) -> Choice:
        """The answer with ``tool_calls`` as this harness gets them; ``content`` is what they leave."""
        ...

    def executable(self, choice: Choice) -> list[Executable]:
        """The surfaced calls, ready to be run, in order."""
        ...

    def reply(self, choice: Choice, done: Sequence[tuple[Executable, Result]]) -> list[Message]:
        """The messages that go on from an answer: the answer as it was received, and the results of its calls."""
        ...

    def wrote(self, call: Call, number: int) -> Choice:
        """The answer that a model would give to make this call: for examples."""
        ...

    def final(self, text: str) -> bool:
        """Whether a reply without a call says that it is the last."""
        ...
