"""Gemini ``generateContent``: an object, an array of chunks, or an event stream of them.

Source: Google Gemini API reference. A stream has no terminator of its own: a finishReason ends it.
Gemini counts thoughts beside the answer; ``Usage.completion_tokens`` here is the sum, as on OpenAI's wires.
"""

from __future__ import annotations

from truecall.records import Api, Choice, ErrorBody, Json, Response, ToolCall, Usage
from truecall.wire.assembler import Assembler
from truecall.wire.error_bodies import generation_in
from truecall.wire.values import count, integer, join, obj, objects, plain, text, word


class _Candidate:
    def __init__(self) -> None:
        self.content: list[str] | None = None
        self.thoughts: list[str] | None = None
        self.calls: list[ToolCall] = []
        self.finish: str | None = None

    def part(self, part: dict[str, Json]) -> None:
        """A text, a thought or a call."""
        call = part.get("functionCall", part.get("function_call"))
        if isinstance(call, dict):
            self.calls.append(
                ToolCall(
                    name=word(call.get("name")), arguments=plain(call.get("args")), id=word(call.get("id"))
                )
            )
            return
        said = part.get("text", obj(part.get("executableCode")).get("code"))  # code is the model's text too
        if isinstance(said, str):
            if part.get("thought") is True:
                self.thoughts = self.thoughts or []
                self.thoughts.append(said)
            elif self.content is None:
                self.content = [said]
            else:
                self.content.append(said)


class GeminiAssembler(Assembler):
    """Gemini bodies or chunks to one ``Response``; parts of one candidate are joined in order."""

    api = Api.GEMINI.value

    def __init__(self, *, stream: bool = True, failed: bool = False) -> None:
        super().__init__(stream=stream, failed=failed)
        self._candidates: dict[int, _Candidate] = {}

    def take(self, body: dict[str, Json], event: str | None) -> None:
        """One body or chunk."""
        if isinstance(body.get("response"), dict):  # some routes wrap the body
            body = body["response"]
        for position, candidate in enumerate(objects(body.get("candidates"))):
            index = integer(candidate.get("index"))
            self._candidate(
                0 if index is None and self.stream else position if index is None else index, candidate
            )
        for key, names in (("id", ("responseId",)), ("model", ("modelVersion", "model"))):
            for name in names:
                if found := word(body.get(name)):
                    self.head.setdefault(key, found)
        self._count(obj(body.get("usageMetadata")))
        reason = word(obj(body.get("promptFeedback")).get("blockReason"))
        if reason:
            self.fail(ErrorBody(message=f"the prompt was blocked: {reason}", type=reason))

    def choices(self) -> tuple[Choice, ...]:
        """The candidates by index."""
        return tuple(
            Choice(
                index=index,
                content=None if found.content is None else join(found.content),
                reasoning=None if found.thoughts is None else join(found.thoughts),
                tool_calls=tuple(found.calls),
                finish_reason=found.finish,
            )
            for index, found in sorted(self._candidates.items())
        )

    def finish(self) -> Response:
        """The record; the stream is whole when every candidate has its finishReason."""
        found = self._candidates.values()
        self.done = self.done or (bool(found) and all(candidate.finish for candidate in found))
        return super().finish()

    def _candidate(self, index: int, candidate: dict[str, Json]) -> None:
        draft = self._candidates.setdefault(index, _Candidate())
        for part in objects(obj(candidate.get("content")).get("parts")):
            draft.part(part)
        draft.finish = word(candidate.get("finishReason")) or draft.finish
        message = text(candidate.get("finishMessage"))
        if message:
            self.error = self.error or ErrorBody(
                message=message, type=draft.finish, generation=generation_in(message)
            )

    def _count(self, usage: dict[str, Json]) -> None:
        answer, thoughts = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
        total = None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0)
        found = Usage(
            prompt_tokens=count(usage.get("promptTokenCount")),
            completion_tokens=total,
            reasoning_tokens=thoughts,
            cached_tokens=count(usage.get("cachedContentTokenCount")),
        )
        self.usage = found if found != Usage() else self.usage
