"""Collects one response body as it arrives: decoded, counted, timed, and stopped at its limit."""

from __future__ import annotations

from collections.abc import Callable

from truecall.client.decode import DecodeError, Decoder, decoder
from truecall.records import Chunk, Failure, FailureKind
from truecall.redact import Redactor

OnChunk = Callable[[bytes], None]

# A stream dripping bytes must not fill the memory with timings: later pieces are added to the last one.
MAX_CHUNKS = 20_000


class Body:
    """The body of one response. ``failure`` is set, and ``add`` returns False, once no more is wanted."""

    def __init__(
        self,
        encoding: str | None,
        *,
        limit: int,
        redactor: Redactor,
        on_chunk: OnChunk | None = None,
        timed: bool = False,
    ) -> None:
        self.failure: Failure | None = None
        self.received = 0
        self._limit = limit
        self._timed = timed
        self._chunks: list[Chunk] = []
        self._data = bytearray()
        self._raw = bytearray()  # kept until the first decoded byte: a lying content-encoding loses nothing
        self._redactor = redactor
        self._on_chunk = on_chunk
        self._handed = redactor.stream()
        self._decoder: Decoder | None = None
        try:
            self._decoder = decoder(encoding)
        except DecodeError as error:
            self._bad(error)

    def add(self, data: bytes, at: float) -> bool:
        """Takes what arrived ``at`` seconds after the request; False when the exchange should end here."""
        self.received += len(data)
        if self._timed:
            self._time(at, len(data))
        if not self._data and len(self._raw) < self._limit:
            self._raw += data[: self._limit - len(self._raw)]
        if self._decoder is not None:
            self._decode(self._decoder, data)
        elif self.received > self._limit:
            self._too_large()
            return False
        return self._decoder is None or self.failure is None

    def finish(self, *, whole: bool) -> bytes:
        """The body without secrets; ``whole`` False: it ended early, perhaps inside a secret. Called once."""
        if whole and self._decoder is not None and self.failure is None:
            try:
                self._decoder.finish()
            except DecodeError as error:
                self._bad(error)
        if self._on_chunk is not None and (rest := self._handed.finish()):
            self._on_chunk(rest)
        kept = self._data if self._data or self.failure is None else self._raw
        data = bytes(kept)
        self._data, self._raw = bytearray(), bytearray()
        return self._redactor.data(data, cut=not whole or self.failure is not None)

    def chunks(self) -> tuple[Chunk, ...]:
        """When the pieces arrived, with their sizes on the wire."""
        return tuple(self._chunks)

    def _decode(self, engine: Decoder, data: bytes) -> None:
        room = self._limit - len(self._data)
        try:
            piece = engine.feed(data, room)
        except DecodeError as error:
            self._bad(error)
            return
        over = len(piece) > room
        piece = piece[:room]
        self._data += piece
        if self._data and self._raw:
            self._raw = bytearray()
        if self._on_chunk is not None and (clean := self._handed.feed(piece)):
            self._on_chunk(clean)
        if over:
            self._too_large()

    def _time(self, at: float, size: int) -> None:
        if len(self._chunks) < MAX_CHUNKS:
            self._chunks.append(Chunk(at=at, size=size))
        else:
            last = self._chunks[-1]
            self._chunks[-1] = Chunk(at=last.at, size=last.size + size)

    def _too_large(self) -> None:
        if self.failure is None:
            self.failure = Failure(
                kind=FailureKind.TOO_LARGE,
                detail=f"the body passes {self._limit:,} bytes; what came before is kept",
            )

    def _bad(self, error: DecodeError) -> None:
        self.failure = Failure(kind=FailureKind.BAD_ENCODING, detail=str(error))
        self._decoder = None
