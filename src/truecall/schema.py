"""Tool lists and arguments against their JSON Schema.

`compile_tools` reads any tool list (OpenAI, bare ``{name, parameters}``, Anthropic's ``input_schema``,
garbage) into a `Toolset`. `check` names how arguments break a schema; no reference is ever fetched.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import jsonschema_rs
import msgspec

from truecall.records import Json, Violation

_KINDS = {
    "required": "missing", "dependentRequired": "missing", "minProperties": "missing",
    "additionalProperties": "unknown", "unevaluatedProperties": "unknown", "propertyNames": "unknown",
    "maxProperties": "unknown", "type": "type", "enum": "enum", "const": "const", "pattern": "pattern",
    "minimum": "range", "maximum": "range", "exclusiveMinimum": "range", "exclusiveMaximum": "range",
    "multipleOf": "range", "minLength": "length", "maxLength": "length", "minItems": "length",
    "maxItems": "length", "uniqueItems": "length", "contains": "length", "format": "format",
    "anyOf": "combination", "oneOf": "combination", "allOf": "combination", "not": "combination",
    "falseSchema": "combination", "dependencies": "missing",
}  # fmt: skip

_BFCL_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None, "String": "string"}
_MAX_DEPTH = 60


def _plain(schema: Any, depth: int = 0) -> Any:
    """The schema with BFCL's Python type names replaced by JSON Schema's."""
    if depth > _MAX_DEPTH:
        return schema
    if isinstance(schema, list):
        return [_plain(item, depth + 1) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str) and value in _BFCL_TYPES:
            if _BFCL_TYPES[value] is not None:
                out[key] = _BFCL_TYPES[value]
        else:
            out[key] = _plain(value, depth + 1)
    return out


def _no_fetch(uri: str) -> Any:
    raise ValueError(f"remote reference refused: {uri}")


def _validator(schema: Any) -> Any:
    """A compiled validator, or the reason (a string) why there is none."""
    try:
        return jsonschema_rs.validator_for(_plain(schema), retriever=_no_fetch)
    except Exception as failure:  # a broken schema is a finding, whatever the library raises for it
        return str(failure).splitlines()[0][:200] if str(failure) else type(failure).__name__


def _pointer(path: Any) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _not_object(arguments: Json) -> Violation:
    return Violation(kind="not_object", path="", detail=type(arguments).__name__)


def _violations(validator: Any, arguments: Json) -> tuple[Violation, ...]:
    if isinstance(validator, str):
        return (Violation(kind="schema_invalid", path="", detail=validator),)
    if not isinstance(arguments, dict):
        return (_not_object(arguments),)
    try:
        if validator.is_valid(arguments):
            return ()
        errors = list(validator.iter_errors(arguments))
    except Exception as failure:  # lone surrogates, numbers beyond what the library carries
        return (Violation(kind="schema_invalid", path="", detail=str(failure)[:200]),)
    out = []
    for error in errors:
        keyword = str(error.schema_path[-1]) if error.schema_path else ""
        words = [str(part) for part in error.schema_path if str(part) in _KINDS]
        kind = _KINDS.get(keyword) or (_KINDS[words[-1]] if words else "combination")
        out.append(Violation(kind=kind, path=_pointer(error.instance_path), detail=error.message[:200]))
    return tuple(out)


def check(arguments: Json, parameters_schema: Json) -> tuple[Violation, ...]:
    """Every way in which ``arguments`` break ``parameters_schema``; empty when they hold.

    A schema of None or one that is no object allows everything. A broken schema is one violation of
    kind ``schema_invalid``. Kinds: see `truecall.records.Violation`. Never raises.
    """
    if parameters_schema is None or parameters_schema is True or parameters_schema == {}:
        return () if isinstance(arguments, dict) else (_not_object(arguments),)
    return _violations(_validator(parameters_schema), arguments)


class Tool:
    """One offered tool: its name, the schema of its parameters and what is often asked of it."""

    __slots__ = ("_validator", "name", "order", "properties", "required", "schema")

    def __init__(self, name: str, schema: Any) -> None:
        self.name = name
        self.schema = schema
        found = schema.get("properties") if isinstance(schema, dict) else None
        self.properties: dict[str, Any] = found if isinstance(found, dict) else {}
        self.order = tuple(self.properties)
        needed = schema.get("required") if isinstance(schema, dict) else None
        self.required = tuple(k for k in needed if isinstance(k, str)) if isinstance(needed, list) else ()
        self._validator: Any = None

    def check(self, arguments: Json) -> tuple[Violation, ...]:
        """As `truecall.schema.check`, with the compiled schema kept."""
        if self._validator is None:
            if not self.schema or self.schema is True:
                return check(arguments, None)
            self._validator = _validator(self.schema)
        return _violations(self._validator, arguments)

    @property
    def only_parameter(self) -> str | None:
        """The one parameter that a bare value can mean: the only one, or the only required one."""
        if len(self.order) == 1:
            return self.order[0]
        return self.required[0] if len(self.required) == 1 else None

    def types(self, key: str) -> frozenset[str]:
        """The JSON types that a parameter may have; empty when nothing is said."""
        return _types(self.properties.get(key), self.schema, 0)


def _types(schema: Any, root: Any, depth: int) -> frozenset[str]:
    if not isinstance(schema, dict) or depth > 8:
        return frozenset()
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    out = {_BFCL_TYPES.get(n, n) for n in names if isinstance(n, str)}
    for word in ("anyOf", "oneOf", "allOf"):
        for branch in schema.get(word) or () if isinstance(schema.get(word), list) else ():
            out |= _types(branch, root, depth + 1)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target = root
        for part in reference[2:].split("/"):
            target = target.get(part) if isinstance(target, dict) else None
        out |= _types(target, root, depth + 1)
    values = schema.get("enum")
    if not out and isinstance(values, list) and values and all(isinstance(v, str) for v in values):
        out.add("string")
    if not out and "properties" in schema:
        out.add("object")
    if not out and "items" in schema:
        out.add("array")
    return frozenset(t for t in out if t)


class Toolset:
    """The tools of a request. ``known`` is False when no list was given at all.

    ``bare`` are the names without a low line: most names have one and most prose has none, so that these alone
    are searched for in most prose.
    """

    __slots__ = ("bare", "known", "names", "tools")

    def __init__(self, tools: dict[str, Tool], known: bool) -> None:
        self.tools = tools
        self.known = known
        self.names = tuple(tools)
        self.bare = tuple([name for name in tools if "_" not in name])

    def get(self, name: str | None) -> Tool | None:
        return self.tools.get(name) if name is not None else None

    def offered(self, name: str | None) -> bool | None:
        """Whether the name is offered; None when no list is known."""
        return (name in self.tools) if self.known else None


NO_TOOLS = Toolset({}, known=False)
_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder().decode
_cache: OrderedDict[bytes, Toolset] = OrderedDict()
_latest: tuple[bytes, Toolset] = (b"", NO_TOOLS)  # most texts come with the list of the text before
_CACHE_SIZE = 512


def _declarations(item: Any) -> list[tuple[str, Any]]:
    """The (name, schema) pairs that one entry of a tool list declares."""
    if not isinstance(item, dict):
        return []
    many = item.get("functionDeclarations") or item.get("function_declarations")
    if isinstance(many, list):
        return [pair for inner in many for pair in _declarations(inner)]
    inner = item.get("function")
    source = inner if isinstance(inner, dict) else item
    name = source.get("name")
    if not isinstance(name, str) or not name:
        return []
    for key in ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "schema"):
        if key in source:
            return [(name, source[key])]
    return [(name, None)]


def _build(tools: Any) -> Toolset:
    found: dict[str, Tool] = {}
    for item in tools if isinstance(tools, (list, tuple)) else [tools]:
        for name, schema in _declarations(item):
            found.setdefault(name, Tool(name, schema))
    return Toolset(found, known=True)


def compile_tools(tools: Any) -> Toolset:
    """Read a tool list once; equal lists share the result. None or no list at all: nothing is known."""
    global _latest
    if not isinstance(tools, (list, tuple, dict)):
        return NO_TOOLS
    try:
        key = _encode(tools)
    except Exception:  # garbage or something that msgspec can't encode: read it, don't keep it
        return _build(tools)
    latest = _latest
    if latest[0] == key:
        return latest[1]
    found = _cache.get(key)
    if found is None:
        found = _cache[key] = _build(_decode(key))  # a copy: the caller's list may change later
        if len(_cache) > _CACHE_SIZE:
            _cache.popitem(last=False)
    _latest = (key, found)
    return found
