"""What brought a failed request about, by the error that a harness stored of it."""

from __future__ import annotations

import re
from typing import Final

_LONG = 4000

_CAUSES: Final = (
    ("dict_schema", re.compile(r"['\"]dict['\"] is not|type['\"]?:? ?['\"]dict['\"]", re.I)),
    ("name_pattern", re.compile(r"name['\"]?:? .{0,80}(?:pattern|\^\[a-zA-Z)", re.I)),
    ("arguments", re.compile(r"JSONDecodeError|Expecting (?:value|property name|',' delimiter|':' delimiter)|"
                             r"Unterminated string starting|Extra data: line|Invalid (?:control character|\\escape)")),
    ("context", re.compile(r"context[ _](?:length|window)|maximum context|ContextWindowExceeded|too many tokens",
                           re.I)),
    ("rate_limit", re.compile(r"RateLimit|\b429\b|rate limit|quota|ResourceExhausted|Throttling", re.I)),
    ("timeout", re.compile(r"Time(?:d )?-?out|\b50?4 Gateway", re.I)),
    ("connection", re.compile(r"Connection|ServiceUnavailable|RemoteProtocolError|Name or service|\b503\b", re.I)),
    ("server_error", re.compile(r"Internal ?Server ?Error|\b5\d\d\b|Overloaded|Bad ?Gateway|CUDA|EngineDead", re.I)),
    ("refused", re.compile(r"Bad ?Request|\b4\d\d\b|Not ?Found|Authentication|PermissionDenied|Unprocessable|"
                           r"Unsupported", re.I)),
)  # fmt: skip

HARNESS_CAUSES: Final = frozenset({"dict_schema", "name_pattern", "harness"})
"""Failures of the harness's making: ``dict`` for ``object``, dots in a function's name, its own exceptions."""

_OWN_EXCEPTION: Final = re.compile(
    r"(?:Assertion|Key|Type|Attribute|Index|Value|NotImplemented|Name|ZeroDivision|Recursion)Error\b"
)

OWN_CAUSES: Final = frozenset({"arguments", "context"})
"""Causes that are the model's own."""


_RAISED: Final = re.compile(r"^[\w.]+(?:Error|Exception|Timeout|Warning|Exit)\b.*", re.MULTILINE)


def cause_of(*texts: str) -> str:
    """The cause of a failure by the first of its texts that tells one; ``unknown`` where none does.

    Of a traceback only the exception that ended it counts: its line numbers look like HTTP statuses.
    """
    told = [_exception(text) if "Traceback (most recent" in text else text[:_LONG] for text in texts if text]
    for text in told:
        for name, pattern in _CAUSES:
            if pattern.search(text):
                return name
    return "harness" if any(_OWN_EXCEPTION.match(text) for text in told) else "unknown"


def _exception(traceback: str) -> str:
    """The last line of a traceback that names an exception, else its last line."""
    found = _RAISED.findall(traceback)
    return (found[-1] if found else traceback.strip().rpartition("\n")[2])[:_LONG]
