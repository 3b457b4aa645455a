"""Tasks: instances made from a seed, tools that really run, outcomes that are checked.

``get("aggregate")``, ``get("bfcl:simple_python")``; ``NAMES`` lists them.
"""

from __future__ import annotations

from truecall.errors import UsageError
from truecall.sandbox import Sandbox
from truecall.tasks.abstain import Abstain
from truecall.tasks.aggregate import Aggregate
from truecall.tasks.base import SCHEMAS, Call, Instance, Result, SchemaVariant, State, Task, Tool
from truecall.tasks.bfcl import Bfcl
from truecall.tasks.chain import Chain
from truecall.tasks.code import Code
from truecall.tasks.humaneval import HumanEval

__all__ = [
    "NAMES",
    "SCHEMAS",
    "Call",
    "Instance",
    "Result",
    "SchemaVariant",
    "State",
    "Task",
    "Tool",
    "get",
    "needs_sandbox",
]

NAMES = ("aggregate", "chain", "abstain", "code", "humaneval", "bfcl:CATEGORY")
"""What :func:`get` takes."""


def get(name: str, *, sandbox: Sandbox | None = None) -> Task:
    """The task of this name. ``sandbox``: where code that a model wrote is run; a task may need none.

    Raises:
        UsageError: there is none, or the data that it needs are not installed.
    """
    match name:
        case "aggregate":
            return Aggregate()
        case "chain":
            return Chain()
        case "abstain":
            return Abstain()
        case "code":
            return Code(sandbox)
        case "humaneval":
            return HumanEval(sandbox)
    if name.startswith("bfcl:"):
        return Bfcl(name.removeprefix("bfcl:"))
    raise UsageError(f"no task {name!r}; there are {', '.join(NAMES)}")


def needs_sandbox(name: str) -> bool:
    """Whether the task of this name runs code that a model wrote."""
    return name in ("code", "humaneval")
