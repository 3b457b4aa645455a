"""The run folder (DESIGN §6): what a run sent, what came back, what was concluded; for the user alone.

::

    card.json      what was measured
    report.json    the result, where there is one
    log.jsonl      append-only: {"kind": …, "v": 1, "at": POSIX time, …} a line
    blobs/ab/…     texts and bodies above 4 kB, once each, by the SHA-256 of their (redacted) bytes, zstd
    lock           held by the one writer
    index.sqlite   where things stand in the log (`truecall.store.index`); can be deleted, is made again

Flush policy: a line is handed to the system before ``append`` returns, so that it survives the end of this
process. It is forced to the disk with the first line that comes a second or more after the last time, and on
closing: that is what a crash of the machine may cost. A torn last line is left out by readers and cut off by
the next writer. Everything goes through the redactor.
"""

from __future__ import annotations

from truecall.store.files import private_dir, state_dir, write_private
from truecall.store.folder import FORMAT, INLINE, Keep, RunFolder
from truecall.store.masks import shape_json, summary_verdict
from truecall.store.places import Place, find_place, name_of, new_place
from truecall.store.preflights import Asked, latest_preflight, load_preflight, save_preflight
from truecall.store.reading import body_of, exchange_of, read_blob, read_log, whole

__all__ = [
    "FORMAT",
    "INLINE",
    "Asked",
    "Keep",
    "Place",
    "RunFolder",
    "body_of",
    "exchange_of",
    "find_place",
    "latest_preflight",
    "load_preflight",
    "name_of",
    "new_place",
    "private_dir",
    "read_blob",
    "read_log",
    "save_preflight",
    "shape_json",
    "state_dir",
    "summary_verdict",
    "whole",
    "write_private",
]
