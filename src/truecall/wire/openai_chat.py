"""OpenAI chat completions: bodies and streams, with the fields that engines add.

Source: OpenAI API reference; vLLM (``token_ids``, ``prompt_text``), SGLang (``sglext``, ``meta_info``) and
llama.cpp (``__verbose``, ``timings``) as in docs/wire.md.
"""

from __future__ import annotations

from truecall.records import Api, Choice, Json, Usage
from truecall.wire.assembler import Assembler
from truecall.wire.choice import ChoiceDraft
from truecall.wire.error_bodies import read_error
from truecall.wire.values import count, ids, integer, items, join, obj, objects, word

_KNOWN = frozenset(
    {
        *("id", "object", "created", "model", "choices", "usage", "system_fingerprint", "error"),
        *("prompt_token_ids", "prompt_text", "__verbose", "sglext"),
    }
)
_CHOICE_EXTRA = ("stop_reason", "matched_stop", "native_finish_reason", "meta_info")


class ChatAssembler(Assembler):
    """Chat completion payloads, a whole body or the chunks of a stream, to one ``Response``."""

    api = Api.OPENAI_CHAT.value

    def __init__(self, *, stream: bool = True, failed: bool = False) -> None:
        super().__init__(stream=stream, failed=failed)
        self._choices: dict[int, ChoiceDraft] = {}

    def take(self, body: dict[str, Json], event: str | None) -> None:
        """One body or chunk."""
        for key in ("id", "model", "system_fingerprint"):
            if key not in self.head and (found := word(body.get(key))):
                self.head[key] = found
        self.usage = read_usage(body.get("usage") or obj(body.get("x_groq")).get("usage")) or self.usage
        for position, item in enumerate(objects(body.get("choices"))):
            self._choice(item, position)
        self._engine_fields(body)

    def choices(self) -> tuple[Choice, ...]:
        """The choices by index."""
        return tuple(self._choices[index].finished() for index in sorted(self._choices))

    def _choice(self, item: dict[str, Json], position: int) -> None:
        index = integer(item.get("index"))
        if index is None:
            index = 0 if self.stream else position
        draft = self._draft(index)
        if not self.stream and not draft.empty:  # two choices with one index
            self.defects.add("choice_index_reused")
            draft = self._draft(max(self._choices) + 1)
        delta, message = item.get("delta"), item.get("message")
        if isinstance(delta, dict) and (self.stream or not isinstance(message, dict)):
            draft.add_message(delta, whole=False)
        elif isinstance(message, dict):
            if self.stream:
                self.defects.add("message_in_stream")
            if not self.stream or draft.empty:  # after deltas it says again what they said
                draft.add_message(message, whole=True)
            else:
                draft.add_finish(message.get("finish_reason"))
        elif isinstance(item.get("text"), str):
            draft.add_content(item["text"])
        draft.add_finish(item.get("finish_reason"))
        found = ids(item.get("token_ids"))
        if found is not None:
            draft.add_token_ids(found)
        draft.add_logprobs(self._logprobs(item))
        if isinstance(item.get("error"), dict):  # gateways put an upstream's error here
            self.fail(read_error(item))
        for key in _CHOICE_EXTRA:
            if item.get(key) is not None:
                self.keep(key, item[key])

    def _logprobs(self, item: dict[str, Json]) -> Json:
        return obj(item.get("logprobs")).get("content")

    def _draft(self, index: int) -> ChoiceDraft:
        if index not in self._choices:
            self._choices[index] = ChoiceDraft(index, self.defects)
        return self._choices[index]

    def _engine_fields(self, body: dict[str, Json]) -> None:
        for key in body.keys() - _KNOWN:
            self.keep(key, body[key])
        if isinstance(body.get("prompt_text"), str):
            self.prompt_text = join((body["prompt_text"],))
        self.prompt_ids = ids(body.get("prompt_token_ids")) or self.prompt_ids
        if isinstance(body.get("sglext"), dict):
            self._sglext(body["sglext"])
        if isinstance(body.get("__verbose"), dict):
            self._verbose(body["__verbose"], body)

    def _sglext(self, fields: dict[str, Json]) -> None:
        self.prompt_ids = ids(fields.get("input_ids")) or self.prompt_ids
        output = fields.get("output_ids")
        flat = ids(output)
        for index, found in enumerate([flat] if flat is not None else [ids(item) for item in items(output)]):
            if found is not None:
                self._draft(index).add_token_ids(found)

    def _verbose(self, fields: dict[str, Json], body: dict[str, Json]) -> None:
        first = next(objects(body.get("choices")), {})
        draft = self._draft(integer(first.get("index")) or 0)
        raw = fields.get("content")
        if isinstance(raw, str) and (raw or not self.stream):  # the last chunk of a stream has ""
            draft.add_raw(raw)
        found = ids(fields.get("tokens"))
        if found:
            draft.add_token_ids(found)
        if isinstance(fields.get("prompt"), str) and fields["prompt"]:
            self.prompt_text = join((fields["prompt"],))
        settings = obj(fields.get("generation_settings"))
        for key in ("chat_format", "grammar_lazy"):
            if settings.get(key) is not None:
                self.keep(key, settings[key])
        for key in ("stop_type", "stopping_word", "truncated"):
            if fields.get(key) not in (None, ""):
                self.keep(key, fields[key])


def read_usage(usage: Json) -> Usage | None:
    """Token counts of an OpenAI ``usage`` object (chat, completions and responses)."""
    if not isinstance(usage, dict):
        return None
    details = obj(usage.get("completion_tokens_details")) or obj(usage.get("output_tokens_details"))
    prompt = obj(usage.get("prompt_tokens_details")) or obj(usage.get("input_tokens_details"))
    found = Usage(
        prompt_tokens=_either(usage, "prompt_tokens", "input_tokens"),
        completion_tokens=_either(usage, "completion_tokens", "output_tokens"),
        reasoning_tokens=_first(count(details.get("reasoning_tokens")), count(usage.get("reasoning_tokens"))),
        cached_tokens=_first(count(prompt.get("cached_tokens")), count(usage.get("prompt_cache_hit_tokens"))),
    )
    return found if found != Usage() else None


def _either(usage: dict[str, Json], first: str, second: str) -> int | None:
    return _first(count(usage.get(first)), count(usage.get(second)))


def _first(first: int | None, second: int | None) -> int | None:
    return second if first is None else first
