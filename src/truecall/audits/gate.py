"""The gate that a benchmark's "no call expected" check lacks: five states instead of a boolean.

A check that asks "could the output be parsed as a call?" credits broken markup, an empty reply and a server's
error as abstentions. `gate` keeps them apart; a grader should credit ABSTAINED alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from truecall.classify.error_texts import is_error_result
from truecall.detector import detect
from truecall.records import Call, CallTier, Json, ToolCall
from truecall.sources.bfcl import call_of


class GateState(StrEnum):
    """What a stored result is."""

    ABSTAINED = "ABSTAINED"  # the model answered, and there is no call in it
    MALFORMED = "MALFORMED"  # a call was attempted that can't be read (or that the scorer did not read)
    CALLED = "CALLED"
    SERVING_ERROR = "SERVING_ERROR"  # an error stored as a result: the model's answer is not known
    EMPTY = "EMPTY"  # nothing is stored: an abstention, or a call that was lost on the way


class Reading(NamedTuple):
    """A state with what decided it. ``rule`` is a key of `RULES`; ``calls`` are those read from text."""

    state: GateState
    rule: str
    calls: tuple[Call, ...] = ()


RULES: Final[dict[str, str]] = {
    "error_text": "The stored text is an error message of a server, client or harness, not the model's.",
    "traceback": "The entry carries the traceback of a failed request.",
    "no_result": "The entry has no stored result.",
    "null": "The stored result is null.",
    "empty_text": "The stored text is empty.",
    "empty_list": "The stored list of calls is empty; the text beside it was not kept.",
    "scorer_read": "The scorer read a call in it.",
    "calls_read": "Every stored call has a name and arguments that parse to an object.",
    "arguments_unread": "A stored call has arguments that do not parse to a JSON object.",
    "calls_unread": "The stored calls parse, yet the scorer read none.",
    "no_calls_form": "The stored value is neither text nor calls.",
    "text_call": "The text holds a well-formed call.",
    "text_call_unread": "The text holds a call that the scorer did not read.",
    "text_call_malformed": "The text holds a call whose payload does not parse.",
    "markup_only": "The text holds call markup in which no call can be read.",
    "stated_no_call": "The text says by its own markup that no function is to be called.",
    "text_without_call": "The text holds no call.",
    "override": "Set by the override file.",
}
"""Every rule by which a state is given."""

MARKERS: Final = (
    "<tool_call", "<|tool_call", "<tool▁call", "<｜tool▁call", "<TOOLCALL", "<function=", "<function_call",
    "<functioncall", "<|function_call", "<start_function_call", "<invoke", "<|python_tag|>", "[TOOL_CALLS]",
    "[TOOL_REQUEST]", "<minimax:tool_call", "<seed:tool_call", "<longcat_tool_call", "<|action_start|>",
    "<|START_ACTION|>", "<tools>", "functools[", "```tool_code", "<|channel|>commentary to=",
)  # fmt: skip
"""Literal openings of call markup, for counts that need no detector."""

_NO_CALL_BY_ITSELF = frozenset({"<tools>"})  # stands around tool lists, too
_NO_FUNCTION = re.compile(r'"name"\s*:\s*"no_function"')  # Granite's way to say that no tool fits
_QUOTES = "`'\"“‘«"
_NAME_KEY = re.compile(r"""\bname\s*=|["']name["']\s*:|\btool_name\b["']?\s*:""")


def gate(
    result: Json, *, decoded: bool | None = None, tools: Sequence[Json] | None = None, failed: bool = False
) -> GateState:
    """ABSTAINED, MALFORMED, CALLED, SERVING_ERROR or EMPTY.

    Args:
        result: what a harness stored: the text, a list of calls (``{name: arguments}`` or an API's objects), a
            message with ``content`` and ``tool_calls``, turns of steps, or None.
        decoded: whether the grader's own decoder read a call; None: it was not asked. A call in the text that it
            did not read is MALFORMED.
        tools: the tools that were offered, to read calls that only their names give away.
        failed: the harness noted a failed request beside the result (a traceback, say).

    Never raises, whatever ``result`` holds. The rules are in `RULES`; `read` names the one that decided.
    """
    return read(result, decoded=decoded, tools=tools, failed=failed).state


def read(
    result: Json, *, decoded: bool | None = None, tools: Sequence[Json] | None = None, failed: bool = False
) -> Reading:
    """As `gate`, with the rule that decided and the calls that were read from text."""
    if isinstance(result, str) and is_error_result(result):
        return Reading(GateState.SERVING_ERROR, "error_text")
    if failed:
        return Reading(GateState.SERVING_ERROR, "traceback")
    if isinstance(result, str):
        return _read_text(result, decoded, tools)
    if decoded:
        return Reading(GateState.CALLED, "scorer_read")
    if result is None:
        return Reading(GateState.EMPTY, "null")
    if isinstance(result, dict):
        return _read_object(result, decoded, tools)
    if isinstance(result, list):
        return _read_list(result, decoded, tools)
    return Reading(GateState.MALFORMED, "no_calls_form")


def _read_text(text: str, decoded: bool | None, tools: Sequence[Json] | None) -> Reading:
    if not text.strip():
        return Reading(GateState.EMPTY, "empty_text")
    calls = detect(text, tools).calls
    if decoded:
        return Reading(GateState.CALLED, "scorer_read", calls)
    if calls:
        if decoded is None and any(call.well_formed and call.name for call in calls):
            return Reading(GateState.CALLED, "text_call", calls)
        unread = decoded is False and any(call.well_formed for call in calls)
        return Reading(GateState.MALFORMED, "text_call_unread" if unread else "text_call_malformed", calls)
    if _NO_FUNCTION.search(text):
        return Reading(GateState.ABSTAINED, "stated_no_call")
    if any(_opens(text, marker) for marker in markers_in(text) if marker not in _NO_CALL_BY_ITSELF):
        return Reading(GateState.MALFORMED, "markup_only")
    return Reading(GateState.ABSTAINED, "text_without_call")


def _opens(text: str, marker: str) -> bool:
    """Whether ``marker`` stands in ``text`` other than inside quotes or backticks."""
    at = text.find(marker)
    while at >= 0:
        if not at or text[at - 1] not in _QUOTES:
            return True
        at = text.find(marker, at + 1)
    return False


def _read_object(result: dict[str, Json], decoded: bool | None, tools: Sequence[Json] | None) -> Reading:
    if "error" in result and result["error"] and not ("content" in result or "tool_calls" in result):
        return Reading(GateState.SERVING_ERROR, "error_text")
    if "content" in result or "tool_calls" in result:  # a chat message
        calls = result.get("tool_calls")
        if calls:
            return _read_list(calls if isinstance(calls, list) else [calls], decoded, tools)
        content = result.get("content")
        if isinstance(content, list):  # content parts
            content = "".join(part.get("text") or "" for part in content if isinstance(part, dict))
        return read(content, decoded=decoded, tools=tools)
    return _read_list([result], decoded, tools)


def _read_list(result: list[Json], decoded: bool | None, tools: Sequence[Json] | None) -> Reading:
    if not result or result == [{}]:
        return Reading(GateState.EMPTY, "empty_list")
    if any(isinstance(part, str | list) for part in result):
        return _read_steps(result, decoded, tools)
    calls = [call_of(part) for part in result]
    if any(call is None for call in calls):
        return Reading(GateState.MALFORMED, "no_calls_form")
    if any(call and arguments_of(call) is None for call in calls):
        return Reading(GateState.MALFORMED, "arguments_unread")
    if decoded is False:
        return Reading(GateState.MALFORMED, "calls_unread")
    return Reading(GateState.CALLED, "calls_read")


_STEP_ORDER = [
    GateState.CALLED, GateState.MALFORMED, GateState.SERVING_ERROR, GateState.ABSTAINED, GateState.EMPTY,
]  # fmt: skip
_MAX_DEPTH = 6


def _read_steps(
    result: list[Json], decoded: bool | None, tools: Sequence[Json] | None, depth: int = 0
) -> Reading:
    """Turns of steps: the state that weighs most in any of them."""
    found = []
    for part in result:
        deeper = isinstance(part, list) and any(isinstance(inner, str | list) for inner in part)
        if deeper and depth < _MAX_DEPTH:
            found.append(_read_steps(part, decoded, tools, depth + 1))
        elif not deeper:
            found.append(read(part, decoded=decoded, tools=tools))
    if not found:
        return Reading(GateState.MALFORMED, "no_calls_form")
    return min(found, key=lambda reading: _STEP_ORDER.index(reading.state))


def arguments_of(call: ToolCall) -> dict[str, Json] | None:
    """The arguments of a stored call as an object; None where they do not parse to one."""
    if isinstance(call.arguments, dict):
        return call.arguments
    if not isinstance(call.arguments, str):
        return None
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def markers_in(text: str) -> list[str]:
    """Which of `MARKERS` stand in the text, as literal strings."""
    return [marker for marker in MARKERS if marker in text]


def has_name_key(text: str) -> bool:
    """Whether a function's name is keyed in any spelling: ``name=``, ``"name":`` or ``tool_name:``."""
    return _NAME_KEY.search(text) is not None


_TIER_ORDER = [CallTier.TIGHT, CallTier.STRONG, CallTier.WEAK]


def best_tier(calls: Sequence[Call]) -> CallTier | None:
    """The strongest tier among the calls; None without one."""
    return min((call.tier for call in calls), key=_TIER_ORDER.index, default=None)
