"""BFCL's rules for a right entry of its single-turn categories: what the scorer read against the possible answers.

The rules are those of bfcl-eval 2026.3.23, written anew: names, required and unexpected parameters, the type that
the description gives (an answer's type stands for a variable), and values among those allowed, strings compared
without case, spaces and ``,./-_*^``. In Java and JavaScript categories values are literals in text and are read
first (`truecall.bfcl_rules.literals`). Irrelevance asks for no call, relevance for any.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from truecall.bfcl_rules import literals
from truecall.records import Json

_TYPES: Final[dict[str, type]] = {
    "string": str, "integer": int, "float": float, "boolean": bool, "array": list, "tuple": list, "dict": dict,
    "any": str,
}  # fmt: skip
_NESTED: Final = ("array", "tuple", "Array", "ArrayList")
_IGNORED: Final = re.compile(r"[ ,./\-_*^]")

NamedCall = tuple[str, dict[str, Json]]


class Language(NamedTuple):
    """A language whose literals stand in text: its types, and how one is read (text, type, type of elements)."""

    types: dict[str, type]
    read: Callable[[str, str, str | None], Json]


_LANGUAGES: Final = {  # "java" is in both names
    "javascript": Language(
        {"String": str, "integer": int, "float": float, "Bigint": int, "Boolean": bool, "dict": dict, "array": list,
         "any": str},
        literals.javascript,
    ),
    "java": Language(
        {"byte": int, "short": int, "integer": int, "float": float, "double": float, "long": int, "boolean": bool,
         "char": str, "Array": list, "ArrayList": list, "HashMap": dict, "String": str, "any": str},
        literals.java,
    ),
}  # fmt: skip


class Uncheckable(Exception):
    """The description or the answer has a form that the rules do not cover."""


def decoded(result: Json) -> list[NamedCall] | None:
    """What BFCL reads in the stored result of a model with function calling: ``[{name: arguments}]``, arguments as
    an object or as JSON text. None: it reads no calls there (any text, broken arguments, other forms)."""
    if not isinstance(result, list):
        return None
    found = []
    for item in result:
        if not isinstance(item, dict) or len(item) != 1:
            return None
        [(name, arguments)] = item.items()
        if isinstance(arguments, str):
            arguments = _json(arguments)
        if not isinstance(arguments, dict):
            return None
        found.append((name, arguments))
    return found


def fault(tools: Sequence[Json], calls: Sequence[NamedCall] | None, answer: Json, category: str) -> str:
    """ "" where BFCL credits the entry, else the first rule that it breaks.

    ``calls``: what the scorer read (`decoded`), None where it could read nothing. ``tools`` and ``answer`` as for
    `check`; relevance and irrelevance need neither. Raises `Uncheckable` as `check` does.
    """
    if category.endswith("irrelevance"):
        return "called" if calls else ""
    if category.endswith("relevance"):
        return "" if calls else "no_call"
    return check(tools, calls, answer, category) if calls is not None else "not_decoded"


def check(tools: Sequence[Json], calls: Sequence[NamedCall], answer: Json, category: str) -> str:
    """ "" where the calls are right, else the first rule that they break.

    ``tools``: the question's function list. ``answer``: the list ``[{name: {parameter: [allowed …]}}]``. A name's
    dots may stand as underscores, as APIs demand. Raises `Uncheckable` where the data are not covered.
    """
    if not isinstance(answer, list) or not all(isinstance(part, dict) and len(part) == 1 for part in answer):
        raise Uncheckable("no possible answer")
    if len(calls) != len(answer):
        return "wrong_count"
    language = _language(category)
    try:
        if "parallel" in category:
            return _any_order(tools, calls, answer, language)
        return _one(tools, calls[0], answer[0], language) if len(calls) == 1 else "wrong_count"
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise Uncheckable(f"{type(error).__name__}: {error}") from None


def _language(category: str) -> Language | None:
    return next((found for name, found in _LANGUAGES.items() if name in category), None)


def _any_order(
    tools: Sequence[Json], calls: Sequence[NamedCall], answer: list[dict[str, Any]], language: Language | None
) -> str:
    """Each answer takes the first call left that fits it."""
    left = list(calls)
    for expected in answer:
        faults = [_one(tools, call, expected, language) for call in left]
        if "" not in faults:
            return faults[0] if len(faults) == 1 else "no_match"
        left.pop(faults.index(""))
    return ""


def _one(tools: Sequence[Json], call: NamedCall, expected: dict[str, Any], language: Language | None) -> str:
    name, allowed = next(iter(expected.items()))
    tool = next((tool for tool in tools if tool["name"] == name), tools[0] if len(tools) == 1 else None)
    if tool is None:
        raise Uncheckable(f"no description of {name}")
    if call[0] not in (tool["name"], tool["name"].replace(".", "_")):
        return "wrong_name"
    given = call[1]
    properties = tool["parameters"]["properties"]
    if any(parameter not in given for parameter in tool["parameters"].get("required", ())):
        return "missing_required"
    for parameter, value in given.items():
        if parameter not in properties or parameter not in allowed:
            return "unexpected_parameter"
        broken = _parameter(value, properties[parameter], allowed[parameter], language)
        if broken:
            return broken
    if any(parameter not in given and "" not in values for parameter, values in allowed.items()):
        return "missing_optional"
    return ""


def _parameter(value: Json, schema: dict[str, Any], allowed: list[Json], language: Language | None) -> str:
    kind = schema["type"]
    types = language.types if language is not None else _TYPES
    wanted = types[kind]
    inner = types[schema["items"]["type"]] if kind in _NESTED else None
    if language is not None:
        if not isinstance(value, str):
            return "not_text"
        if wanted in (list, dict) and len(value) > literals.LONGEST:
            raise Uncheckable("a collection's literal too long to be read")
        value = language.read(value, kind, schema["items"]["type"] if inner is not None else None)
    elif kind == "float" and type(value) is int:
        value = float(value)
    answered = _answer_type(allowed)
    variable = answered is not None and answered is not wanted
    if type(value) is wanted:
        if inner is not None and isinstance(value, list) and not _items_fit(value, inner, allowed):
            return "nested_type"
    elif answered is None or type(value) is not answered:
        return "type"
    else:
        variable = True
    return "" if _value_fits(value, wanted, inner, allowed, variable) else "value"


def _answer_type(allowed: list[Json]) -> type | None:
    return next((type(item) for item in allowed if item != ""), None)


def _items_fit(value: list[Json], inner: type, allowed: list[Json]) -> bool:
    for option in allowed:
        if not isinstance(option, list):
            return True
        answered = _answer_type(option)
        if all(type(item) is inner or (answered is not None and type(item) is answered) for item in value):
            return True
    return False


def _value_fits(value: Json, wanted: type, inner: type | None, allowed: list[Json], variable: bool) -> bool:
    if not variable:
        if wanted is dict:
            return any(option != "" and _dict_fits(value, option) for option in allowed)
        if wanted is list and inner is dict:
            return any(_dicts_fit(value, option) for option in allowed)
        if wanted is str:
            return _plain(value) in [_plain(option) for option in allowed if isinstance(option, str)]
        if wanted is list:
            return [_plain(item) for item in value] in [
                [_plain(item) for item in option] for option in allowed
            ]
    return value in allowed


def _dict_fits(value: dict[str, Json], option: dict[str, list[Json]]) -> bool:
    """Each key is allowed with its value, and each key of the option is there or optional."""
    for key, item in value.items():
        if key not in option or _plain(item) not in [_plain(one) for one in option[key]]:
            return False
    return all(key in value or "" in values for key, values in option.items())


def _dicts_fit(value: list[Json], option: list[Json]) -> bool:
    return len(value) == len(option) and all(
        one != "" and _dict_fits(item, one) for item, one in zip(value, option, strict=True)
    )


def _plain(value: Json) -> Json:
    """A string as it is compared; other values as they are."""
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def undictify(tools: Sequence[Json], call: NamedCall, category: str) -> NamedCall:
    """The call with arguments that were sent as JSON strings decoded where an object or list was due.

    In Java and JavaScript categories text is due everywhere."""
    if _language(category) is not None:
        return call
    names = (call[0], call[0].replace("_", "."))
    tool = next((t for t in tools if isinstance(t, dict) and t.get("name") in names), None)
    if tool is None and len(tools) == 1 and isinstance(tools[0], dict):
        tool = tools[0]
    parameters = tool.get("parameters") if tool else None
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(properties, dict):
        return call
    out = dict(call[1])
    for key, value in call[1].items():
        schema = properties.get(key)
        if (
            isinstance(value, str)
            and isinstance(schema, dict)
            and schema.get("type") in ("dict", "array", "tuple")
        ):
            read = _json(value)
            if isinstance(read, dict | list):
                out[key] = read
    return call[0], out


def _json(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
