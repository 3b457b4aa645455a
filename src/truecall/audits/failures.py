"""Failed requests that a harness stored as results: which texts are such, and what the failure was.

`truecall.classify` tells errors from a model's words where a wrong guess would excuse a model. Stored results are
whole texts, and benchmarks store few forms, so that more of them can be told here.
"""

from __future__ import annotations

import re
from typing import Final

from truecall.classify.turns import is_error_text

_STATUS = r"[45]\d\d"
_PHRASE = (
    r"(?:Internal Server Error|Bad Gateway|Service (?:Temporarily )?Unavailable|Gateway Time-?out|Too Many Requests"
    r"|Bad Request|Unauthorized|Forbidden|Not Found|Request Timeout|Payload Too Large|Unprocessable Entity)"
)
_WHOLE: Final = re.compile(
    rf"(?:(?:HTTP[/ \d.]*\s?)?{_STATUS}[:\s-]*)?{_PHRASE}\.?"
    rf"|(?:HTTP(?:/[\d.]+)?|Status(?: code)?:?)\s?{_STATUS}\b.{{0,60}}"
    r"|(?:Request timed out|Connection error|Connection (?:refused|reset by peer|aborted)|Read timed out)\.?"
    r"|(?:Error|ERROR|Failed|FAILED|Timeout|TIMEOUT)[.!]?"
    r"|Error during inference\b.*",
    re.DOTALL,
)
_START: Final = re.compile(
    r"Traceback \(most recent call last\):"
    r"|(?:Error|ERROR|Exception):\s*(?:Connection|Request|Timeout|HTTP|Read timed|Max retries|Rate limit|"
    + _STATUS + r"\b)"
    r"|upstream (?:connect error|request timeout)"
    r"|(?i:<!doctype html>\s*)?<(?:html|HTML)[^>]*>.{0,200}?<title>\s*[45]\d\d\b"
    r"|(?:[a-z_]\w*\.)+[A-Z]\w*(?:Error|Exception|Timeout|Exhausted|Unavailable|Errors?)\b"  # module.ErrorClass
    r"|(?:API|HTTP|Read|Write|Connect|Pool|RateLimit|InternalServer|ServiceUnavailable|Overloaded|AsyncEngine)"
    r"\w*(?:Error|Exception|Timeout)\s*[:(]"
    r"|(?:RuntimeError: )?CUDA (?:error|out of memory)\b"
    r"|An error occurred(?: \(\w+\))?[ :]+(?:while|when|during|\(|" + _STATUS + r"\s+[A-Z])"
    r"|Rate limit (?:reached|exceeded)\b"
    r"|\{\s*[\"'](?:error|detail)[\"']\s*:.*\}\s*\Z"
    r"|\{\s*[\"']object[\"']\s*:\s*[\"']error[\"']",
    re.DOTALL,
)  # fmt: skip
_LONG = 4000


def is_failure(text: str) -> bool:
    """Whether a stored result is an error message as a whole."""
    if is_error_text(text):
        return True
    bare = text.strip()
    if _WHOLE.fullmatch(bare[:_LONG]):
        return True
    match = _START.match(bare[:_LONG])
    return match is not None and not _prose(match.group(), bare)


def _prose(start: str, text: str) -> bool:
    """Whether an error's name merely begins a sentence about it ("RuntimeError is raised …")."""
    return re.match(r"\s+(?:is|are|was|means|happens|occurs)\b", text[len(start) :]) is not None


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
