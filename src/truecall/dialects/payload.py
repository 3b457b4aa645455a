"""From a decoded JSON value to calls: the shapes in which models name a tool and its arguments."""

from __future__ import annotations

from typing import Any

from truecall.dialects.base import Draft
from truecall.dialects.jsontext import mend, strict
from truecall.schema import Toolset

NAME_KEYS = (
    "name", "tool_name", "function_name", "tool", "function", "action", "api_name", "recipient_name",
    "toolName", "functionName", "func", "tool_call_name", "api",
)  # fmt: skip
ARGUMENT_KEYS = (
    "arguments", "parameters", "args", "input", "params", "tool_input", "action_input", "kwargs",
    "tool_args", "tool_arguments", "tool_parameters", "function_args", "function_arguments", "inputs",
    "toolInput", "argument", "parameter", "actionInput", "function_parameters",
)  # fmt: skip
_LISTS = ("actions", "tool_calls", "function_calls", "tool_uses", "calls", "toolCalls", "functionCalls")
_INNER = ("function_call", "tool_call", "toolCall", "functionCall", "tool_use", "toolUse", "call", "function",
          "command")  # fmt: skip
_RESULTS = frozenset(
    (
        "result",
        "results",
        "output",
        "outputs",
        "response",
        "observation",
        "error",
        "return_value",
        "returned",
        "expected",
        "expected_output",
        "ground_truth",
        "label",
    )
)
_SIDE = frozenset(
    ("id", "type", "index", "call_id", "tool_call_id", "callId", "toolCallId", "thought", "thoughts",
     "thinking", "reasoning", "reason", "rationale", "explanation", "plan", "role", "content", "strict",
     "tool_use_id", "toolUseId", "step", "log", "description", "criticism", "reflection", "title", "namespace")
)  # fmt: skip
PSEUDO = frozenset(
    ("no_tool", "notool", "notify_error", "directly_answer", "directly-answer", "final answer", "final_answer",
     "none", "n/a",
     "no_call", "no_action", "finish", "no_function", "null")
)  # fmt: skip
"""Names that models use to say that they call nothing, unless a tool is really called so."""

Found = list[Draft]


def is_schema(value: Any) -> bool:
    """Whether a value is a JSON Schema of parameters rather than arguments."""
    if not isinstance(value, dict) or not isinstance(value.get("properties"), dict):
        return False
    inner = value["properties"]
    typed = all(isinstance(v, dict) and ("type" in v or "$ref" in v or "anyOf" in v) for v in inner.values())
    return typed and (value.get("type") in ("object", "dict") or "required" in value)


def is_definition(value: Any, *, alone: bool = True) -> bool:
    """Whether an object declares a tool instead of calling one.

    ``alone`` False: it stands in a list or wrapper, where tool lists stand.
    """
    if not isinstance(value, dict):
        return False
    inner = value.get("function")
    wrapped = value.get("type") == "function" and isinstance(inner, dict)
    body = inner if isinstance(inner, dict) else value
    if not isinstance(body.get("name"), str) or "arguments" in body:
        return False
    for key in ("parameters", "input_schema", "inputSchema", "args"):
        if is_schema(body.get(key)):
            return wrapped or not alone or "description" in body or key != "parameters"
    return "description" in body and not any(key in body for key in ARGUMENT_KEYS)


def _arguments(
    raw: Any, key: str, name: str | None, tools: Toolset
) -> tuple[dict[str, Any] | None, tuple[str, ...], tuple[str, ...]]:
    """The arguments behind an argument key: (object or None, defects, repairs)."""
    if isinstance(raw, dict):
        return raw, (), ()
    if isinstance(raw, str):
        return _from_text(raw, key, name, tools)
    tool = tools.get(name)
    if raw is None or raw == []:
        needed = tool.required if tool else ()
        return {}, ("null_arguments",), ("null_arguments",) if needed or raw == [] else ()
    if isinstance(raw, list):
        if len(raw) == 1 and isinstance(raw[0], dict):
            return raw[0], (), ("list_arguments",)
        if all(isinstance(r, dict) and isinstance(r.get("name"), str) and "value" in r for r in raw):
            return {r["name"]: r["value"] for r in raw}, (), ("list_arguments",)
    only = tool.only_parameter if tool else None
    if only is not None:
        return {only: raw}, (), ("plain_input",)
    return None, (), ("not_object",)


def _from_text(
    raw: str, key: str, name: str | None, tools: Toolset
) -> tuple[dict[str, Any] | None, tuple[str, ...], tuple[str, ...]]:
    text = raw.strip()
    if text.startswith("{"):
        got = strict(text, 0)
        if not got.failed and isinstance(got.value, dict) and got.end == len(text):
            return got.value, ("double_encoded",), ()
        fixed = mend(text, 0, len(text))
        if not fixed.failed and isinstance(fixed.value, dict):
            return fixed.value, ("double_encoded",), fixed.repairs or ("trailing_text",)
    if not text:
        return {}, (), ("empty_arguments",)
    tool = tools.get(name)
    only = tool.only_parameter if tool else None
    if only is not None:
        plain = key in ("action_input", "tool_input", "input", "actionInput")
        return {only: raw}, ("plain_input",) if plain else (), () if plain else ("plain_input",)
    return None, (), ("not_object",)


def clean_name(name: str, tools: Toolset) -> tuple[str, tuple[str, ...]]:
    """The tool's name without a ``functions.`` prefix that the offered name does not have."""
    stripped = name.strip()
    for prefix in ("functions.", "functions:", "tools.", "default_api.", "tool."):
        if stripped.startswith(prefix) and stripped not in tools.tools:
            return stripped[len(prefix) :], ("namespaced_name",)
    return stripped, ()


class Shapes:
    """Reads values into drafts for one tool list.

    ``envelope``: the value stands in markers of its own, so that any named object is an attempt.
    ``name_key``: the dialect fixes the key "name"; another one is a repair.
    """

    def __init__(self, tools: Toolset, *, envelope: bool, name_key: bool = False) -> None:
        self.tools = tools
        self.envelope = envelope
        self.name_key = name_key

    def read(self, value: Any, start: int, end: int, depth: int = 0) -> Found | None:
        """The calls that a value is; None when it is no call; [] when it says "no call"."""
        if depth > 4:
            return None
        if isinstance(value, list):
            return self._list(value, start, end, depth)
        if not isinstance(value, dict) or not value:
            return None
        if not self.envelope and (is_definition(value, alone=depth == 0) or self._is_echo(value)):
            return None
        for key in _LISTS:
            if isinstance(value.get(key), list) and (value[key] or self.envelope):
                return self._list(value[key], start, end, depth + 1, wrapped=True)
        return self._object(value, start, end, depth)

    def _list(
        self, items: list[Any], start: int, end: int, depth: int, wrapped: bool = False
    ) -> Found | None:
        if not items and self.envelope:
            return []
        if (
            not items
            or len(items) > 1000
            or any(isinstance(i, dict) and i.get("role") == "tool" for i in items)
        ):
            return None
        out: Found = []
        for item in items:
            if is_definition(item, alone=len(items) == 1 and not self.envelope and not wrapped):
                return None
            found = self.read(item, start, end, depth + 1)
            if found is None:
                if not self.envelope and not out:
                    return None
                if not isinstance(item, dict):
                    return out or None
                continue
            out += found
        return out

    def _is_echo(self, value: dict[str, Any]) -> bool:
        """A record of a finished call: it carries what came back."""
        return any(key in _RESULTS for key in value)

    def _object(self, value: dict[str, Any], start: int, end: int, depth: int) -> Found | None:
        named = self._named(value)
        if named is None:
            for key in _INNER:
                inner = value.get(key)
                if isinstance(inner, dict):
                    return self._wrapped(value, key, inner, start, end, depth)
            return self._keyed(value, start, end)
        key, name = named
        if name.lower() in PSEUDO and name not in self.tools.tools:
            return []
        name, defects = clean_name(name, self.tools)
        repairs: tuple[str, ...] = (
            ("name_key",) if key == "function" or (self.name_key and key != "name") else ()
        )
        for arg_key in ARGUMENT_KEYS:
            if arg_key in value and arg_key != key:
                args, more, fixes = _arguments(value[arg_key], arg_key, name, self.tools)
                if not self._plausible(value, key, name, args, arg_key):
                    return None
                return [self._draft(name, args, start, end, defects + more, repairs + fixes)]
        return self._without(value, key, name, start, end, defects, repairs)

    def _draft(
        self,
        name: str | None,
        args: dict[str, Any] | None,
        start: int,
        end: int,
        defects: tuple[str, ...] = (),
        repairs: tuple[str, ...] = (),
        weak: bool = False,
        dialect: str = "",
    ) -> Draft:
        return Draft(name, args, start, end, defects=defects, repairs=repairs, weak=weak, dialect=dialect)

    def _named(self, value: dict[str, Any]) -> tuple[str, str] | None:
        for key in NAME_KEYS:
            name = value.get(key)
            if isinstance(name, str) and name.strip():
                return key, name
        return None

    def _plausible(
        self, value: dict[str, Any], key: str, name: str, args: dict[str, Any] | None, arg_key: str
    ) -> bool:
        """Without an envelope, an unknown name needs the canonical pair of keys and nothing foreign."""
        if self.envelope or self.tools.offered(name):
            return True
        if args is None or (key in ("function", "action", "tool", "func", "api") and arg_key not in (
            "arguments", "args", "parameters", "tool_input", "action_input", "input",
        )):  # fmt: skip
            return False
        if any(char in name for char in "\n{}<>") or len(name) > 80 or name.count(" ") > 1:
            return False
        foreign = [k for k in value if k not in (key, arg_key) and k not in _SIDE and k not in NAME_KEYS]
        return not foreign and arg_key not in ("inputs", "params", "kwargs", "parameter", "argument")

    def _wrapped(
        self, value: dict[str, Any], key: str, inner: dict[str, Any], start: int, end: int, depth: int
    ) -> Found | None:
        if key == "function" and isinstance(inner.get("_name"), str):
            name = inner["_name"]
            if name.lower() in PSEUDO and name not in self.tools.tools:
                return []
            args = {k: v for k, v in inner.items() if k != "_name"}
            return [self._draft(name, args, start, end, dialect="tgi_internal")]
        if not any(k in inner for k in ARGUMENT_KEYS):
            for arg_key in ARGUMENT_KEYS:  # the arguments beside the wrapper instead of inside
                if arg_key in value:
                    inner = {**inner, arg_key: value[arg_key]}
                    break
        keep, self.name_key = self.name_key, False
        try:
            return self.read(inner, start, end, depth + 1)
        finally:
            self.name_key = keep

    def _keyed(self, value: dict[str, Any], start: int, end: int) -> Found | None:
        """``{"get_weather": {…}}``: the name is the key."""
        names = list(value)
        offered = all(self.tools.offered(n) for n in names)
        if all(isinstance(v, dict) for v in value.values()) and (
            offered or (self.envelope and len(names) == 1 and names[0] not in ARGUMENT_KEYS)
        ):
            if not self.envelope and not all(self._fits(n, v) for n, v in value.items()):
                return None
            return [
                self._draft(n, v, start, end, ("name_as_key",), weak=not offered) for n, v in value.items()
            ]
        arguments = next(
            (k for k in ("arguments", "parameters", "args") if isinstance(value.get(k), dict)), None
        )
        if self.envelope and arguments is not None:
            return [self._draft(None, value[arguments], start, end, repairs=("no_name",), weak=True)]
        return None

    def _fits(self, name: str, args: dict[str, Any]) -> bool:
        tool = self.tools.get(name)
        return tool is not None and (not tool.order or set(args) <= set(tool.order))

    def _without(
        self,
        value: dict[str, Any],
        key: str,
        name: str,
        start: int,
        end: int,
        defects: tuple[str, ...],
        repairs: tuple[str, ...],
    ) -> Found | None:
        """An object with a name and no arguments key."""
        tool = self.tools.get(name)
        rest = {k: v for k, v in value.items() if k != key and k not in ("type", "id", "index")}
        if tool and rest and set(rest) <= set(tool.order):
            return [self._draft(name, rest, start, end, defects, (*repairs, "flattened_arguments"))]
        if not self.envelope and (tool is None or rest):
            return None
        if rest and not all(k in _SIDE for k in rest):
            fixes = (*repairs, "flattened_arguments")
            return [self._draft(name, rest, start, end, defects, fixes, weak=tool is None)]
        fixes = (*repairs, "missing_arguments")
        return [self._draft(name, {}, start, end, defects, fixes, weak=tool is None)]
