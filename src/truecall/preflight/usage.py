"""Token counts that can't be true: a verdict that rests on them would be wrong. Pure."""

from __future__ import annotations

from typing import Final

from truecall.preflight.answer import Answer

_SPARE: Final = 8  # tokens beyond a limit or a text that engines count in their own ways


def impossible(answer: Answer, limit: int | None) -> str | None:
    """Why the answer's usage can't be true; None where nothing speaks against it.

    ``limit``: the completion tokens that the request allowed. A server that ignores the limit and really writes
    more is no liar: the text must be shorter than the count, too (a token is at least a byte).
    """
    usage = answer.response.usage
    if usage is None:
        return None
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if limit is not None and completion is not None:
        completion -= min(
            completion, usage.reasoning_tokens or 0
        )  # hidden reasoning is text that never comes
        text = answer.content + answer.reasoning + (answer.evidence.text or "")
        text += "".join(str(c.arguments) for c in answer.response.choices[0].tool_calls)
        if completion > limit + _SPARE and completion > len(text.encode("utf-8", "replace")) + _SPARE:
            return (
                f"{completion:,} completion tokens where {limit} were allowed and {len(text)} characters came"
            )
    if prompt == 0 and completion and not usage.cached_tokens:
        return f"no prompt tokens beside {completion:,} completion tokens"
    if completion == 0 and answer.content.strip():
        return "no completion tokens beside an answer that has a text"
    return None
