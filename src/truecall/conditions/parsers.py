"""The harness's own strict parsers of text calls. They stand where a server's parser stands in native conditions.

They are strict on purpose and written down here in full: what they don't take is left in the text, and the
detector, which reads every dialect, says that a call was there (``leaked``). The file's digest is on the card.

``json``      the whole reply is one JSON object with exactly ``name`` (text) and ``arguments`` (object), or the
              reply holds exactly one fenced block, and that is such an object
``object``    the whole reply is such an object; a ``thought`` beside the two is allowed
``react``     the first ``Action:`` line and the ``Action Input:`` line after it, whose value begins with a JSON
              object; nothing after ``Observation:`` is looked at
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_ACTION = re.compile(r"^[ \t]*Action:[ \t]*([^\n]+?)[ \t]*\n+[ \t]*Action Input:[ \t]*(?=\{)", re.MULTILINE)


class Parsed(NamedTuple):
    """A call and what it leaves of the text."""

    name: str
    arguments: dict[str, Any]
    rest: str


def parse(form: str, text: str) -> Parsed | None:
    """The call in a reply by one of the forms above; None where the form is not kept."""
    return {"json": _json, "object": _object, "react": _react}[form](text)


@cache
def digest() -> str:
    """The digest of this file: the parsers as they were used."""
    return f"sha256:{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}"


def _json(text: str) -> Parsed | None:
    found = _call(text.strip(), {"name", "arguments"})
    if found is not None:
        return Parsed(*found, "")
    fences = list(_FENCE.finditer(text))
    if len(fences) != 1:
        return None
    found = _call(fences[0][1].strip(), {"name", "arguments"})
    return Parsed(*found, text[: fences[0].start()] + text[fences[0].end() :]) if found else None


def _object(text: str) -> Parsed | None:
    found = _call(text.strip(), {"name", "arguments", "thought"})
    return Parsed(*found, "") if found else None


def _react(text: str) -> Parsed | None:
    before = text.partition("\nObservation:")[0]
    action = _ACTION.search(before)
    if action is None:
        return None
    try:
        arguments, end = json.JSONDecoder().raw_decode(before, action.end())
    except (ValueError, RecursionError):
        return None
    return Parsed(action[1], arguments, text[: action.start()] + text[end:])


def _call(text: str, keys: set[str]) -> tuple[str, dict[str, Any]] | None:
    """Name and arguments of a JSON object with no other keys than these."""
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not {"name", "arguments"} <= set(value) <= keys:
        return None
    name, arguments = value["name"], value["arguments"]
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None
