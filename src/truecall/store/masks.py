"""JSON bodies with their texts masked and their wire fields kept (``--keep shape``)."""

from __future__ import annotations

from typing import Any

from truecall.redact import shape

# What a wire format is made of; such strings stay readable under a mask.
_PLAIN_KEYS = frozenset(
    {"role", "type", "object", "finish_reason", "done_reason", "stop_reason", "status", "name", "model", "id"}
    | {"tool_call_id", "code", "created_at", "system_fingerprint", "tool_choice", "error_type", "param"}
)


def shape_json(value: Any, words: set[str], key: str = "") -> Any:
    """A JSON body with the texts in it masked by :func:`truecall.redact.shape` and its wire fields kept."""
    if isinstance(value, dict):
        return {name: shape_json(item, words, name) for name, item in value.items()}
    if isinstance(value, list):
        return [shape_json(item, words, key) for item in value]
    if isinstance(value, str) and key not in _PLAIN_KEYS:
        return shape(value, words)
    return value
