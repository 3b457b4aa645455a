"""What a call is, held against the offered tools."""

from __future__ import annotations

from truecall.records import Call, Emission, Json, Violation
from truecall.schema import Toolset

_BROKEN_SCHEMA = "schema_invalid"


def emission(
    tools: Toolset, name: str | None, arguments: dict[str, Json] | None
) -> tuple[Emission, tuple[Violation, ...]]:
    """What a call with this name and these arguments is, and the schema's complaints.

    A schema that is itself broken says nothing against the model: its complaint is kept, the call is valid.
    """
    if name is None or arguments is None:
        return Emission.MALFORMED, ()
    if tools.offered(name) is False:
        return Emission.WRONG_NAME, ()
    tool = tools.get(name)
    violations = tool.check(arguments) if tool is not None else ()
    return _by_schema(violations), violations


def emission_of(tools: Toolset, call: Call) -> tuple[Emission, tuple[Violation, ...]]:
    """What a call read from text is."""
    if not call.well_formed or call.name is None or call.arguments is None:
        return Emission.MALFORMED, call.violations or ()
    if tools.offered(call.name) is False:
        return Emission.WRONG_NAME, ()
    if call.violations is None:
        return emission(tools, call.name, call.arguments)
    return _by_schema(call.violations), call.violations


def _by_schema(violations: tuple[Violation, ...]) -> Emission:
    against_model = any(violation.kind != _BROKEN_SCHEMA for violation in violations)
    return Emission.INVALID_ARGUMENTS if against_model else Emission.VALID
