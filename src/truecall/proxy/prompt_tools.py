"""Tools that stand inside the prompt, as chat templates and prompting harnesses write them: JSON descriptions."""

from __future__ import annotations

import json
import re
from typing import Final

from truecall.records import Json
from truecall.wire import RequestView
from truecall.wire.request import content_text

_START: Final = re.compile(r'[\[{](?=\s*[\[{"])')
_MOST: Final = 2000  # places that are tried in one prompt
_DECODER: Final = json.JSONDecoder()
_SCHEMAS: Final = ("parameters", "input_schema", "parameters_json_schema")


def tools_in_prompt(view: RequestView) -> tuple[Json, ...] | None:
    """The tools described in a request's prompt or system message, in the order found; None without any."""
    if view.prompt is not None:
        return _found(view.prompt)
    system = [
        content_text(m.get("content")) for m in view.messages if m.get("role") in ("system", "developer")
    ]
    return _found("\n".join(text for text in system if text))


def _found(text: str) -> tuple[Json, ...] | None:
    if not any(f'"{name}"' in text for name in _SCHEMAS):
        return None
    out: dict[str, Json] = {}
    at = tried = 0
    while tried < _MOST and (match := _START.search(text, at)) is not None:
        tried += 1
        at = match.start() + 1
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        tools = [tool for item in (value if isinstance(value, list) else [value]) if (tool := _tool(item))]
        if tools:
            at = end
            out |= {tool["function"]["name"]: tool for tool in tools if tool["function"]["name"] not in out}
    return tuple(out.values()) or None


def _tool(value: Json) -> dict[str, Json] | None:
    """A tool in OpenAI's shape, where the value describes one."""
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = value.get("name")
    schema = next((value[key] for key in _SCHEMAS if isinstance(value.get(key), dict)), None)
    if not isinstance(name, str) or schema is None:
        return None
    function = {"name": name, "description": value.get("description"), "parameters": schema}
    return {"type": "function", "function": function}
