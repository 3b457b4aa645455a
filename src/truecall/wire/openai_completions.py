"""OpenAI text completions, and llama.cpp's own ``/completion``.

Source: OpenAI API reference (legacy completions); llama.cpp server README; vLLM puts ``prompt_token_ids``
in each choice.
"""

from __future__ import annotations

from truecall.records import Api, Json
from truecall.wire.openai_chat import ChatAssembler
from truecall.wire.values import count, ids, items, obj


class CompletionsAssembler(ChatAssembler):
    """Text completions: a choice's ``text`` is its content; nothing in them is a structured call."""

    api = Api.OPENAI_COMPLETIONS.value

    def take(self, body: dict[str, Json], event: str | None) -> None:
        """One body or chunk."""
        if "choices" not in body and isinstance(body.get("content"), str):
            body = _as_choice(body)
            self.done = self.done or body["choices"][0]["finish_reason"] is not None
        super().take(body, event)

    def _choice(self, item: dict[str, Json], position: int) -> None:
        super()._choice(item, position)
        self.prompt_ids = self.prompt_ids or ids(item.get("prompt_token_ids"))

    def _logprobs(self, item: dict[str, Json]) -> Json:
        """The legacy form lists the pieces as ``tokens``."""
        logprobs = obj(item.get("logprobs"))
        tokens = items(logprobs.get("tokens"))
        return [{"token": token} for token in tokens] if tokens else logprobs.get("content")


def _as_choice(body: dict[str, Json]) -> dict[str, Json]:
    """llama.cpp's ``/completion`` in OpenAI's shape."""
    stopped = body.get("stop") is True
    choice = {
        "index": body.get("index"),
        "text": body["content"],
        "finish_reason": (body.get("stop_type") or "stop") if stopped else None,
        "token_ids": body.get("tokens") or None,
    }
    usage = {
        "prompt_tokens": count(body.get("tokens_evaluated")),
        "completion_tokens": count(body.get("tokens_predicted")),
    }
    kept: dict[str, Json] = {key: body[key] for key in ("model", "timings", "truncated") if key in body}
    return {**kept, "choices": [choice], "usage": usage, "prompt_text": body.get("prompt")}
