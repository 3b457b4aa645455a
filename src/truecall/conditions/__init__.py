"""Conditions: how tools are offered to the model, and how the harness reads its calls.

``make(factors, tools)`` gives the condition of one arm for one tool list.
"""

from __future__ import annotations

from collections.abc import Sequence

from truecall.conditions.base import CONDITIONS, Condition, Executable, Factors, Message
from truecall.conditions.native import Native
from truecall.conditions.text import Text
from truecall.errors import UsageError
from truecall.records import Json

__all__ = ["CONDITIONS", "Condition", "Executable", "Factors", "Message", "make"]


def make(factors: Factors, tools: Sequence[dict[str, Json]], *, api: str = "openai.chat") -> Condition:
    """The condition that offers ``tools`` (OpenAI chat's form) under ``factors``.

    Raises:
        UsageError: no such condition, or factors that don't go together.
    """
    if factors.condition not in CONDITIONS:
        raise UsageError(f"no condition {factors.condition!r}; there are {', '.join(CONDITIONS)}")
    if factors.condition in ("native", "native_hint"):
        return Native(factors, list(tools))
    if factors.tool_choice != "auto":
        raise UsageError(
            f"condition {factors.condition} sends no tools field, so that tool_choice {factors.tool_choice!r} "
            "can't be sent"
        )
    return Text(factors, list(tools), api)
