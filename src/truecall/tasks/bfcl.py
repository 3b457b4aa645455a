"""``bfcl:<category>``: BFCL's single-turn questions, scored by its published rules (`truecall.bfcl_rules`).

The data are the user's: ``$TRUECALL_BFCL`` (a folder with ``BFCL_v4_<category>.json``), or an installed
``bfcl-eval``. A category may be written as BFCL writes it (``simple_python``, ``live_multiple``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from truecall.bfcl_rules import Uncheckable, fault, undictify
from truecall.errors import InputError, UsageError
from truecall.records import Json
from truecall.tasks.abstain import SingleTurn
from truecall.tasks.base import Call, Decoy, SchemaVariant
from truecall.tasks.datafiles import find, read_lines

CATEGORIES = (
    *("simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple"),
    *("irrelevance", "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
    *("live_irrelevance", "live_relevance"),
)
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string", "String": "string"}
_SYNTAX = {"javascript": "JavaScript", "java": "Java 8 SDK"}  # "java" is in both names
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


class Bfcl:
    """The task. ``seed`` is the place of the question in its file."""

    needs_sandbox = False

    def __init__(self, category: str) -> None:
        if category not in CATEGORIES:
            raise UsageError(
                f"no BFCL category {category!r} of single turns; there are {', '.join(CATEGORIES)}"
            )
        self.name = f"bfcl:{category}"
        self._category = category
        file = f"BFCL_v4_{category}.json"
        path = find("TRUECALL_BFCL", "bfcl_eval", file, f"data/{file}")
        self._questions = read_lines(path)
        self._answers: dict[str, Json] = {}
        if "relevance" not in category:
            answers = path.parent / "possible_answer" / file
            self._answers = {str(line.get("id")): line.get("ground_truth") for line in read_lines(answers)}
        for line in self._questions:
            if not isinstance(line.get("id"), str) or not isinstance(line.get("function"), list):
                raise InputError(f"{path}: an entry lacks id or function")
        self.count: int | None = len(self._questions)

    def make(self, seed: int) -> BfclInstance:
        if not 0 <= seed < len(self._questions):
            raise UsageError(
                f"task {self.name} has the entries 0 to {len(self._questions) - 1}, and no {seed}"
            )
        line = self._questions[seed]
        return BfclInstance(self._category, line, self._answers.get(line["id"]), seed)

    def example(self) -> None:
        return None


class BfclInstance:
    """One question, one turn."""

    turns: int | None = 1
    decoy: Decoy | None = None
    solution: tuple[Call, ...] = ()

    def __init__(self, category: str, line: dict[str, Any], answer: Json, seed: int) -> None:
        self.item = str(line["id"])
        self.seed = seed
        self.expected: bool | None = not category.endswith("irrelevance")
        self.prompt = "\n\n".join(_texts(line.get("question")))
        self._category = category
        self._functions: list[dict[str, Json]] = line["function"]
        self._answer = answer

    def tools(self, variant: SchemaVariant) -> list[dict[str, Json]]:
        """BFCL's descriptions as JSON Schema, names as APIs allow them. ``rich`` is as ``terse`` here."""
        return [
            _offered(function, self._category, strict=variant == "strict") for function in self._functions
        ]

    def start(self) -> SingleTurn:
        return SingleTurn(partial(_checked, self))

    def verdict(self, calls: Sequence[Call]) -> str | None:
        """ "" where the calls are right by BFCL's rules, else the first rule broken; None: they don't cover it."""
        sent = [(call.name, call.arguments) for call in calls]
        named = [undictify(self._functions, call, self._category) for call in sent]
        try:
            return fault(self._functions, named, self._answer, self._category)
        except Uncheckable:
            return None


async def _checked(instance: BfclInstance, calls: Sequence[Call]) -> bool | None:
    verdict = instance.verdict(calls)
    return None if verdict is None else verdict == ""


def _texts(question: Json) -> list[str]:
    """The messages of the only turn, as text; a system message stands first."""
    turns = question if isinstance(question, list) else []
    messages = turns[0] if turns and isinstance(turns[0], list) else turns
    return [str(m.get("content", "")) for m in messages if isinstance(m, dict)]


def _offered(function: dict[str, Json], category: str, *, strict: bool) -> dict[str, Json]:
    """A function as BFCL sends it: the language named in its description; Java and JavaScript types as text."""
    parameters = function.get("parameters") or {"type": "dict", "properties": {}}
    syntax = next((name for key, name in _SYNTAX.items() if key in category), "Python 3")
    if syntax != "Python 3":
        word = syntax.partition(" ")[0]
        told = {name: _in_text(value, word) for name, value in parameters.get("properties", {}).items()}
        parameters = {**parameters, "properties": told}
    schema = as_json_schema(parameters)
    made: dict[str, Json] = {
        "name": _UNFIT.sub("_", str(function.get("name", ""))),
        "description": f"{function.get('description', '')} Note that the provided function is in {syntax} syntax.",
        "parameters": schema,
    }
    if strict:
        made["strict"] = True
        schema["additionalProperties"] = False
    return {"type": "function", "function": made}


def _in_text(value: dict[str, Json], language: str) -> dict[str, Json]:
    """A parameter whose literal stands in text, described as BFCL describes it."""
    kind = value.get("type")
    what = (
        f"parameter can be of any type of {language} object" if kind == "any"
        else f"is {language} {kind} type parameter"
    )  # fmt: skip
    said = f"{value.get('description', '')} This {what} in string representation."
    if inner := value.get("items"):
        said += f" The list elements are of type {inner['type']}; they are not in string representation."
    if members := value.get("properties"):
        said += " The dictionary entries have the following schema; they are not in string representation. "
        said += json.dumps(members)
    return {"type": "string", "description": said}


def as_json_schema(schema: Json) -> Any:
    """A BFCL description with JSON Schema's type names in place of Python's."""
    if isinstance(schema, list):
        return [as_json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Json] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            out[key] = _TYPES.get(value, value)
        elif key == "optional" and isinstance(value, bool):
            continue  # not JSON Schema's; "required" says it
        else:
            out[key] = as_json_schema(value)
    return out
