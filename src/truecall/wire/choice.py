"""One choice in the making, fed by messages or by the deltas of a stream."""

from __future__ import annotations

from truecall.records import Choice, Json
from truecall.wire.calls import CallDrafts
from truecall.wire.values import items, join, obj, objects, text, word

_REASONING = ("reasoning_content", "reasoning", "thinking")
_DETAIL = ("text", "summary")  # of an entry in OpenRouter's ``reasoning_details``


class ChoiceDraft:
    """One choice in the making."""

    def __init__(self, index: int, defects: set[str], *, text_arguments: bool = True) -> None:
        self.index = index
        self.calls = CallDrafts(defects, text_arguments=text_arguments)
        self.finish: str | None = None
        self._defects = defects
        self._content: list[str] | None = None
        self._reasoning: list[str] | None = None
        self._refusal: list[str] | None = None
        self._raw: list[str] = []
        self._token_ids: list[int] | None = None
        self._logprobs: bytearray | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing was said yet."""
        return not (self._content or self._reasoning or self._refusal or self.calls)

    def add_message(self, message: dict[str, Json], *, whole: bool) -> None:
        """A message (``whole``) or a delta."""
        self._add_content(message.get("content"))
        told = [message[key] for key in _REASONING if isinstance(message.get(key), str)]
        details = objects(message.get("reasoning_details"))
        detailed = [item[key] for item in details for key in _DETAIL if isinstance(item.get(key), str)]
        if told or detailed:  # servers give the same text under two names
            self.add_reasoning(next(filter(None, told), "") or join(detailed))
        if isinstance(message.get("refusal"), str):
            self._add_refusal(message["refusal"])
        calls = message.get("tool_calls")
        if whole:
            self.calls.whole(calls)
        else:
            self.calls.delta(calls)
        self.calls.legacy(message.get("function_call"), stream=not whole)
        self.add_finish(message.get("finish_reason"))  # some servers put it here

    def add_finish(self, reason: Json) -> None:
        """A finish_reason; null and "" say nothing."""
        if word(reason):
            self.finish = text(reason)

    def add_token_ids(self, found: tuple[int, ...]) -> None:
        """Token ids that continue those so far."""
        if self._token_ids is None:
            self._token_ids = []
        self._token_ids.extend(found)

    def add_logprobs(self, entries: Json) -> None:
        """Entries with ``bytes``, or with ``token`` where bytes is null."""
        for entry in items(entries):
            if not isinstance(entry, dict):
                continue
            if self._logprobs is None:
                self._logprobs = bytearray()
            try:
                self._logprobs += bytes(entry["bytes"]) if isinstance(entry.get("bytes"), list) else b""
            except (TypeError, ValueError):
                self._defects.add("bad_logprobs")
            if not isinstance(entry.get("bytes"), list):
                self._logprobs += (text(entry.get("token")) or "").encode()

    def add_raw(self, raw: str) -> None:
        """A piece of the text before parsing."""
        self._raw.append(raw)

    def add_content(self, piece: str) -> None:
        """A piece of the content."""
        if self._content is None:
            self._content = []
        self._content.append(piece)

    def add_reasoning(self, piece: str) -> None:
        """A piece of the reasoning."""
        if self._reasoning is None:
            self._reasoning = []
        self._reasoning.append(piece)

    def finished(self) -> Choice:
        """The record."""
        return Choice(
            index=self.index,
            content=_joined(self._content),
            reasoning=_joined(self._reasoning),
            refusal=_joined(self._refusal),
            tool_calls=self.calls.finish(),
            finish_reason=self.finish,
            token_ids=None if self._token_ids is None else tuple(self._token_ids),
            logprob_text=None if self._logprobs is None else self._logprobs.decode("utf-8", "replace"),
            raw_text=join(self._raw) if self._raw else None,
        )

    def _add_refusal(self, piece: str) -> None:
        if self._refusal is None:
            self._refusal = []
        self._refusal.append(piece)

    def _add_content(self, content: Json) -> None:
        if content is None:
            return
        if isinstance(content, str):
            self.add_content(content)
            return
        if not isinstance(content, (list, dict)):
            self._defects.add("content_not_text")
            return
        self.add_content("")
        for part in items(content) or [content]:
            self._add_part(part)

    def _add_part(self, part: Json) -> None:
        """A content part: text, refusal, or (Mistral) thinking, itself a list of text parts."""
        if isinstance(part, str):
            self.add_content(part)
            return
        part = obj(part)
        thinking = part.get("thinking")
        if thinking is not None:
            pieces = [thinking] if isinstance(thinking, str) else [p.get("text") for p in objects(thinking)]
            for piece in pieces:
                if isinstance(piece, str):
                    self.add_reasoning(piece)
        elif isinstance(part.get("refusal"), str):
            self._add_refusal(part["refusal"])
        elif isinstance(part.get("text"), str):
            self.add_content(part["text"])


def _joined(pieces: list[str] | None) -> str | None:
    return None if pieces is None else join(pieces)
