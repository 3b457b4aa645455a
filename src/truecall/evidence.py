"""The best text of what the model wrote in one answer, with the tier that it belongs to (DESIGN §1, §5)."""

from __future__ import annotations

import re
from typing import Final

from truecall.records import Choice, Evidence, EvidenceTier, Response
from truecall.wire import RequestView
from truecall.wire.request import content_text
from truecall.wire.values import join

STRONGER: Final = frozenset(
    {
        EvidenceTier.TOKEN_IDS,
        EvidenceTier.RAW_TEXT,
        EvidenceTier.LOGPROB_BYTES,
        EvidenceTier.ERROR_BODY,
    }
)
"""Tiers whose text did not pass the stack's parser."""

# Tokens that end a turn and close no call of any dialect.
_END: Final = re.compile(
    r"(?:\s*(?:<\|(?:im_end|endoftext|eot_id|eom_id|end_of_text|eot|return|end|eos|user|observation"
    r"|END_OF_TURN_TOKEN|end_of_sentence|endofprompt)\|>|</s>|<eos>|<end_of_turn>|<turn\|>|\[EOS\]"
    r"|<[|｜]end▁of▁sentence[|｜]>))+\s*\Z"
)
_LONGEST_END: Final = 200  # characters at the end of a text in which such tokens are looked for


def best(
    response: Response,
    choice: Choice | None,
    *,
    detokenized: str | None = None,
    request: RequestView | None = None,
) -> Evidence:
    """The strongest evidence at hand, without the tokens that only end the turn.

    ``detokenized`` is the text of ``choice.token_ids`` with special tokens kept, where somebody had the stack
    turn them back (``POST /detokenize``). ``request`` is asked for a prefill: llama.cpp's raw text begins
    after it. A text that is only the content again, beside surfaced calls, is no raw text and not taken.
    """
    if detokenized is not None:
        return Evidence(tier=EvidenceTier.TOKEN_IDS, text=without_end(join((detokenized,))))
    if choice is not None:
        if choice.raw_text is not None:
            text = _prefilled(without_end(choice.raw_text), request)
            return Evidence(tier=EvidenceTier.RAW_TEXT, text=text)
        if choice.logprob_text and not _is_content_again(choice.logprob_text, choice):
            return Evidence(tier=EvidenceTier.LOGPROB_BYTES, text=without_end(choice.logprob_text))
    if response.error is not None and response.error.generation is not None:
        return Evidence(tier=EvidenceTier.ERROR_BODY, text=response.error.generation)
    if choice is not None:
        if choice.content or choice.reasoning:
            return Evidence(tier=EvidenceTier.CONTENT, text=choice.content or "")
        if choice.tool_calls:
            return Evidence(tier=EvidenceTier.TOOL_CALLS, text=None)
    return Evidence(tier=EvidenceTier.NONE, text=None)


def without_end(text: str) -> str:
    """The text without a tail of end-of-turn tokens."""
    found = _END.search(text, max(0, len(text) - _LONGEST_END))
    return text[: found.start()] if found else text


def _is_content_again(logprob_text: str, choice: Choice) -> bool:
    """Whether logprobs list only the tokens of the parsed text, as some servers do."""
    content = choice.content or ""
    if len(logprob_text) < len(content):
        return True
    parsed_away = choice.tool_calls or choice.reasoning
    return bool(parsed_away) and without_end(logprob_text).strip() == content.strip()


def _prefilled(text: str, request: RequestView | None) -> str:
    """The text after the prefill that it goes on from; engines that give it whole are left alone."""
    if request is None or not request.prefill:
        return text
    start = content_text(request.messages[-1].get("content")) or ""
    return text if start and text.startswith(start) else start + text
