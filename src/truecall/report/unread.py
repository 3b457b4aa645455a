"""Where something stands in somebody's files, and what of them could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from truecall.report.data import Block, Bullets, Note, Part, Table, columns
from truecall.report.share import Mask
from truecall.sources import Bad, Place

MOST: Final = 30


def place(where: Place, mask: Mask) -> str:
    """A place in words."""
    line = f":{where.line}" if where.line else f" at byte {where.offset}" if where.offset is not None else ""
    return f"{mask.path(where.file)}{line}" + (f" {where.entry}" if where.entry else "")


def unread(bad: Sequence[Bad], count: int, mask: Mask, skipped: Sequence[str] = ()) -> list[Part]:
    """A part on ``count`` bad entries, the first of them named, and on files that were skipped; none without any."""
    blocks: list[Block] = []
    if count:
        rows = tuple((place(b.place, mask), mask.text(b.reason)) for b in bad[:MOST])
        caption = f"{count:,} entries were left out; the first of them"
        head = columns("place", "reason")
        blocks.append(Table(caption=caption, columns=head, rows=rows, left_out=count - len(rows)))
    if skipped:
        files = tuple(mask.path(name) for name in skipped)
        blocks += [Note(text="Files that were not read:"), Bullets(items=files)]
    return [Part(title="What could not be read", blocks=tuple(blocks), folded=True)] if blocks else []
