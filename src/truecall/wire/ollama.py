"""Ollama ``/api/chat`` (and ``/api/generate``): one object, or a stream of NDJSON lines.

Arguments are objects and a call comes whole. Source: Ollama API documentation; ``_debug_info`` as in
docs/wire.md.
"""

from __future__ import annotations

from truecall.records import Api, Choice, Json, Usage
from truecall.wire.assembler import Assembler
from truecall.wire.choice import ChoiceDraft
from truecall.wire.values import count, join, obj, word

_EXTRA = (
    "total_duration",
    "load_duration",
    "prompt_eval_duration",
    "eval_duration",
    "remote_model",
    "remote_host",
)


class OllamaAssembler(Assembler):
    """Ollama chat objects or lines to one ``Response``; token counts are those of the last line."""

    api = Api.OLLAMA_CHAT.value

    def __init__(self, *, stream: bool = True, failed: bool = False) -> None:
        super().__init__(stream=stream, failed=failed)
        self._draft = ChoiceDraft(0, self.defects, text_arguments=False)
        self._said = False

    def take(self, body: dict[str, Json], event: str | None) -> None:
        """One object or line."""
        if word(body.get("model")):
            self.head.setdefault("model", word(body["model"]) or "")
        message = body.get("message")
        if isinstance(message, dict):
            self._said = True
            # A call is whole on its line, whatever its index.
            self._draft.add_message(message, whole=True)
        elif isinstance(body.get("response"), str):  # /api/generate
            self._said = True
            self._draft.add_content(body["response"])
            if isinstance(body.get("thinking"), str):
                self._draft.add_reasoning(body["thinking"])
        self._draft.add_logprobs(body.get("logprobs"))
        rendered = obj(body.get("_debug_info")).get("rendered_template")
        if isinstance(rendered, str):
            self.prompt_text = join((rendered,))
            self._said = True
        if body.get("done") is True:
            self.done = True
            self._draft.add_finish(body.get("done_reason"))
        usage = Usage(
            prompt_tokens=count(body.get("prompt_eval_count")),
            completion_tokens=count(body.get("eval_count")),
        )
        if usage != Usage():
            self.usage = usage
        for key in _EXTRA:
            self.keep(key, body.get(key))

    def choices(self) -> tuple[Choice, ...]:
        """The one choice, or none when no message came."""
        return (self._draft.finished(),) if self._said else ()
