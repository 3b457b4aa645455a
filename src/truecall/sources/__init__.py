"""Other people's logs, one file a format, told from the content (see ``docs/sources.md``)."""

from __future__ import annotations

from truecall.sources.base import Bad, Item, Line, Options, Place, Source, Turn
from truecall.sources.table import SOURCES, read_file, source_of

__all__ = ["SOURCES", "Bad", "Item", "Line", "Options", "Place", "Source", "Turn", "read_file", "source_of"]
