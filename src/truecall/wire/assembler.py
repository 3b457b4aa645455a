"""What the assemblers of all APIs share: payloads in, one ``Response`` out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final

from truecall.records import Choice, ErrorBody, Json, Response, Usage
from truecall.wire.error_bodies import has_answer, read_error, read_text_error
from truecall.wire.sse import DONE
from truecall.wire.values import NOTHING, decode, encode, join, plain

MAX_EXTRA: Final = 4096
"""Characters of JSON up to which a field of the engine's own is kept in ``extra``."""


class Assembler(ABC):
    """Payloads of one body (``stream`` False: the body itself) or one stream to a record; never raises.

    ``failed``: the status was 400 or more. A subclass says in ``take`` what one decoded object means,
    and in ``choices`` and ``ended`` what came of them all.
    """

    api: ClassVar[str]

    def __init__(self, *, stream: bool = True, failed: bool = False) -> None:
        self.stream = stream
        self.failed = failed
        self.defects: set[str] = set()
        self.head: dict[str, str] = {}  # id, model, system_fingerprint
        self.usage: Usage | None = None
        self.error: ErrorBody | None = None
        self.done = False  # the stream's own terminator came
        self.prompt_text: str | None = None
        self.prompt_ids: tuple[int, ...] | None = None
        self.extra: dict[str, Json] = {}

    @abstractmethod
    def take(self, body: dict[str, Json], event: str | None) -> None:
        """One decoded object."""

    @abstractmethod
    def choices(self) -> tuple[Choice, ...]:
        """The choices so far."""

    def feed(self, payload: str | dict[str, Json], event: str | None = None) -> None:
        """One payload: JSON text, decoded JSON, or ``[DONE]``."""
        if not isinstance(payload, str):
            self._decoded(payload, event)
            return
        if payload.strip() == DONE:
            self.done = True
            return
        body = decode(payload)
        lines = payload.split("\n") if body is NOTHING and "\n" in payload else []
        values = [(line, decode(line)) for line in lines if line.strip()]
        if values and all(value is not NOTHING or line.strip() == DONE for line, value in values):
            self.defects.add("missing_blank_line")
            for line, _ in values:
                self.feed(line, event)
        elif body is NOTHING:
            self._undecodable(payload)
        else:
            self._decoded(body, event)

    def finish(self) -> Response:
        """The record of all that was fed."""
        choices = self.choices()
        ended = bool(choices) and all(choice.finish_reason for choice in choices)
        if self.stream and not self.done:
            self.defects.add("no_done")
        if choices and not ended:
            self.defects.add("no_finish_reason")
        if not choices and self.error is None:
            self.defects.add("no_choices")
        complete = not self.stream or self.done or ended
        return Response(
            api=self.api,
            choices=choices,
            id=self.head.get("id"),
            model=self.head.get("model"),
            fingerprint=self.head.get("system_fingerprint"),
            usage=self.usage,
            error=self.error,
            stream=self.stream,
            complete=complete and "overflow" not in self.defects,
            defects=tuple(sorted(self.defects)),
            prompt_text=self.prompt_text,
            prompt_token_ids=self.prompt_ids,
            extra=self.extra,
        )

    def keep(self, key: str, value: Json) -> None:
        """A small field of the engine's own; the first value that is not null stands."""
        if value is None or key in self.extra or len(self.extra) >= 32 or len(key) > 64:
            return
        if len(encode(value)) <= MAX_EXTRA:
            self.extra[join((key,))] = plain(value)

    def fail(self, error: ErrorBody | None) -> None:
        """An error that the body or stream states; the first one stands."""
        if error is None:
            return
        self.error = self.error or error
        if self.stream:
            self.defects.add("error_event")

    def _decoded(self, body: Json, event: str | None) -> None:
        error = read_error(body, failed=self.failed or event == "error")
        self.fail(error)
        if isinstance(body, dict) and (error is None or has_answer(body)):
            self.take(body, event)
        elif error is None:
            self.defects.add("not_object")

    def _undecodable(self, payload: str) -> None:
        """JSON that was cut is only named; a server's plain words in a stream are an error."""
        self.defects.add("bad_payload")
        if payload.strip() and payload.lstrip()[:1] not in '{["':
            self.fail(read_text_error(payload))
