"""What is kept of bodies and verdicts where texts are not (``--keep shape``, ``--keep none``)."""

from __future__ import annotations

from typing import Any

import msgspec

from truecall.records import CallVerdict, Verdict
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


def summary_verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict without any of the model's or server's texts, for runs that keep none."""
    return {
        "emission": verdict.emission,
        "delivery": verdict.delivery,
        "rule": verdict.rule,
        "tier": verdict.tier,
        "cause": verdict.cause,
        "flags": msgspec.to_builtins(verdict.flags),
        "calls": [_summary_call(call) for call in verdict.calls],
        "detector": verdict.detector,
    }


def _summary_call(call: CallVerdict) -> dict[str, Any]:
    return {
        "emission": call.emission,
        "delivery": call.delivery,
        "rule": call.rule,
        "name": call.name,
        "dialect": call.dialect,
    }
