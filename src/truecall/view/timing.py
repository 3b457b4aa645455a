"""When the bytes of an answer came: a small picture, and the same in words."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from markupsafe import Markup

from truecall.records import Chunk, Exchange, Record

WIDTH: Final = 640
HEIGHT: Final = 56
_MOST: Final = 800  # ticks that are drawn


class Timing(Record, frozen=True):
    """Seconds since the request began. ``gap`` is the longest pause between two chunks, ``gap_at`` where it began."""

    first_byte: float | None
    total: float | None
    chunks: int
    size: int  # bytes of the body as received
    gap: float | None = None
    gap_at: float | None = None

    def words(self) -> str:
        """The times as a sentence or two."""
        said = []
        if self.first_byte is not None:
            said.append(f"First byte after {_seconds(self.first_byte)}.")
        if self.total is not None:
            said.append(f"Over after {_seconds(self.total)}.")
        pieces = f" in {self.chunks:,} chunk{'s' * (self.chunks != 1)}" if self.chunks else ""
        said.append(f"{self.size:,} bytes{pieces}.")
        if self.gap is not None and self.gap_at is not None:
            at = _seconds(self.gap_at)
            said.append(f"The longest pause between two chunks: {_seconds(self.gap)}, from {at} on.")
        return " ".join(said)


def timing_of(exchange: Exchange) -> Timing:
    """The times of an exchange, from its chunks."""
    chunks = exchange.chunks
    pauses = [(after.at - before.at, before.at) for before, after in pairwise(chunks)]
    gap, gap_at = max(pauses, default=(None, None))
    return Timing(
        first_byte=exchange.timing.first_byte,
        total=exchange.timing.total,
        chunks=len(chunks),
        size=exchange.received,
        gap=gap,
        gap_at=gap_at,
    )


def picture(chunks: tuple[Chunk, ...], total: float | None) -> Markup:
    """An SVG without words: a tick for each chunk, and the share of the bytes that had come by then.

    Nothing for fewer than two chunks. Colours come from the style sheet by class, as the pages' policy wants it.
    """
    end = max([total or 0.0, *(chunk.at for chunk in chunks)], default=0.0)
    if len(chunks) < 2 or end <= 0:
        return Markup("")
    size = sum(chunk.size for chunk in chunks) or 1
    drawn = chunks[:: -(-len(chunks) // _MOST)]
    ticks = "".join(f"M{_x(chunk.at, end)} {HEIGHT - 14}v10" for chunk in drawn)
    came, line = 0, [f"M0 {HEIGHT - 18}"]
    for place, chunk in enumerate(chunks):
        came += chunk.size
        if place % (-(-len(chunks) // _MOST)) == 0 or place == len(chunks) - 1:
            line.append(f"H{_x(chunk.at, end)}V{round((HEIGHT - 18) * (1 - came / size) + 2, 1)}")
    return Markup(
        '<svg class="stream" viewBox="0 0 {w} {h}" width="{w}" height="{h}" aria-hidden="true" focusable="false">'
        '<path class="axis" d="M0 {axis}H{w}"/><path class="came" d="{line}"/><path class="ticks" d="{ticks}"/></svg>'
    ).format(w=WIDTH, h=HEIGHT, axis=HEIGHT - 3, line="".join(line), ticks=ticks)


def _seconds(time: float) -> str:
    return f"{time:.2f} s" if time >= 1 else f"{time * 1000:.1f} ms"


def _x(at: float, end: float) -> float:
    return round(max(0.0, min(1.0, at / end)) * WIDTH, 1)
