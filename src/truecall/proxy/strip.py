"""Takes out of an answer what came only because truecall asked for evidence."""

from __future__ import annotations

from typing import Final

from truecall.records import Json
from truecall.wire.values import objects

_TOP: Final = {
    "return_token_ids": ("prompt_token_ids", "prompt_text", "sglext"),
    "return_meta_info": ("sglext", "meta_info"),
    "verbose": ("__verbose",),
    "return_tokens": ("tokens",),
    "logprobs": ("logprobs",),  # Ollama's own API
}
_CHOICE: Final = {
    "return_token_ids": ("token_ids", "prompt_token_ids"),
    "return_meta_info": ("meta_info",),
    "logprobs": ("logprobs",),
}
_NULL: Final = {
    "vllm": frozenset({"prompt_token_ids", "token_ids", "prompt_text", "logprobs"}),
    "openai_compatible": frozenset({"logprobs"}),
}
"""Fields that an engine's answers and chunks hold as null when nobody asks for them."""


_OLLAMA: Final = ("content", "thinking", "tool_calls")


def strip(value: dict[str, Json], added: tuple[str, ...], engine: str) -> bool:
    """Takes the answers to the ``added`` fields out of a decoded body or chunk, in place; True where any was there."""
    found = False
    nulls = _NULL.get(engine, frozenset())
    for field in added:
        for name in _TOP.get(field, ()):
            found |= _take(value, name, nulls)
        for choice in objects(value.get("choices")):
            for name in _CHOICE.get(field, ()):
                found |= _take(choice, name, nulls)
    return found


def says_nothing(value: dict[str, Json]) -> bool:
    """Whether a chunk, its evidence taken out, holds nothing: without the evidence it had not been sent."""
    if value.get("usage") is not None or value.get("error") is not None:
        return False
    if isinstance(value.get("message"), dict):  # Ollama
        return value.get("done") is not True and not any(value["message"].get(key) for key in _OLLAMA)
    choices = objects(value.get("choices"))
    found = False
    for choice in choices:
        found = True
        delta = choice.get("delta")
        said = isinstance(delta, dict) and any(item is not None for item in delta.values())
        if said or choice.get("finish_reason") is not None:
            return False
    return found


def _take(where: dict[str, Json], name: str, nulls: frozenset[str]) -> bool:
    if where.get(name) is None:
        return False
    if name in nulls:
        where[name] = None
    else:
        del where[name]
    return True
