"""Finds loops: the same call again and again, or calls without progress."""

from __future__ import annotations

import msgspec

from truecall.run.journal import Loop
from truecall.tasks import Call


class LoopWatch:
    """Follows the executed calls of one episode.

    ``repeats``: the same call (name and arguments) this often in a row. ``idle``: calls in a row by which the
    task got no further. ``found`` is the first loop; None while there is none.
    """

    def __init__(self, repeats: int, idle: int) -> None:
        self._repeats, self._idle = repeats, idle
        self._last = ""
        self._same = 0
        self._without = 0
        self.found: Loop | None = None

    def saw(self, turn: int, call: Call, *, new: bool) -> None:
        """A call was executed at ``turn``; ``new``: the task got further by it."""
        text = f"{call.name}({msgspec.json.encode(call.arguments, order='sorted').decode()})"
        self._same = self._same + 1 if text == self._last else 1
        self._last = text
        self._without = 0 if new else self._without + 1
        if self.found is None:
            if self._same >= self._repeats:
                self.found = Loop(turn=turn, kind="same_call", call=text[:500])
            elif self._without >= self._idle:
                self.found = Loop(turn=turn, kind="no_progress", call=text[:500])
