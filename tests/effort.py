"""Work counted instead of timed: the same on every machine and at any load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

HANGS = 60.0
"""Seconds of CPU after which a test says that its work hangs: a bound, not a measurement (those are in bench/)."""


def effort(work: Callable[[], object]) -> int:
    """How many lines of Python run in ``work``. What one line does in C is not seen."""
    lines = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines
