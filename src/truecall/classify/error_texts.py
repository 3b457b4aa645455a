"""Errors that somebody saved as the model's own text: one table, read with two degrees of caution.

In a chat a wrong guess would excuse a model that wrote about an error, so that only the `_SURE` beginnings count.
A benchmark's stored result is a whole text of few known forms, so that more can be told.
"""

from __future__ import annotations

import re
from typing import Final

_STATUS = r"[45]\d\d"
_PHRASE = (
    r"(?:Internal Server Error|Bad Gateway|Service (?:Temporarily )?Unavailable|Gateway Time-?out|Too Many Requests"
    r"|Bad Request|Unauthorized|Forbidden|Not Found|Request Timeout|Payload Too Large|Unprocessable Entity)"
)
_SURE: Final = (
    r"Error during inference:",
    r"Error code: \d{3}\b",
    r"(?:litellm|openai|anthropic|httpx|requests|aiohttp|google)\.[\w.]*(?:Error|Exception|Timeout)\b",
    r"(?:API|HTTP|Connection|Internal Server|Server|Request|Timeout|Rate ?Limit|Bad ?Request|Authentication"
    r"|Service Unavailable|Inference|LLM|Model|Upstream)\s?(?:Request\s?)?Error\b\s*[:(]",
    rf"(?:Error|ERROR)[:\s]+(?:HTTP\s*)?{_STATUS}\b",
    rf"(?:HTTP\s)?{_STATUS} (?:Client|Server) Error:",
    r"Request failed with status code \d{3}",
    rf"(?:Client|Server) error '{_STATUS}",
    r"(?:Failed to (?:connect|generate|call)\b.{0,80}?)?(?:HTTPConnectionPool|ConnectionRefusedError)\b",
    r"\{\s*['\"]error['\"]\s*:\s*\{\s*['\"](?:message|type|code|status)['\"]\s*:",
)
"""Beginnings of a text that is an error wherever it is found."""

_STORED: Final = (
    r"Traceback \(most recent call last\):",
    r"(?:Error|ERROR|Exception):\s*(?:Connection|Request|Timeout|HTTP|Read timed|Max retries|Rate limit)",
    r"upstream (?:connect error|request timeout)",
    rf"(?i:<!doctype html>\s*)?<(?:html|HTML)[^>]*>(?s:.){{0,200}}?<title>\s*{_STATUS}\b",
    r"(?:[a-z_]\w*\.)+[A-Z]\w*(?:Error|Exception|Timeout|Exhausted|Unavailable|Errors?)\b",  # module.ErrorClass
    r"(?:API|HTTP|Read|Write|Connect|Pool|RateLimit|InternalServer|ServiceUnavailable|Overloaded|AsyncEngine)"
    r"\w*(?:Error|Exception|Timeout)\s*[:(]",
    r"(?:RuntimeError: )?CUDA (?:error|out of memory)\b",
    rf"An error occurred(?: \(\w+\))?[ :]+(?:while|when|during|\(|{_STATUS}\s+[A-Z])",
    r"Rate limit (?:reached|exceeded)\b",
    r"\{\s*[\"'](?:error|detail)[\"']\s*:(?s:.)*\}\s*\Z",
    r"\{\s*[\"']object[\"']\s*:\s*[\"']error[\"']",
)
"""Further beginnings that tell an error of a stored result, unless the text goes on as a sentence about it."""

_WHOLE: Final = (
    rf"(?:(?:HTTP[/ \d.]*\s?)?{_STATUS}[:\s-]*)?{_PHRASE}\.?",
    rf"(?:HTTP(?:/[\d.]+)?|Status(?: code)?:?)\s?{_STATUS}\b(?s:.){{0,60}}",
    r"(?:Request timed out|Connection error|Connection (?:refused|reset by peer|aborted)|Read timed out)\.?",
    r"(?:Error|ERROR|Failed|FAILED|Timeout|TIMEOUT)[.!]?",
    r"Error during inference\b(?s:.)*",
)
"""Stored results that are an error as a whole."""

_sure = re.compile(rf"\s*(?:{'|'.join(_SURE)})")
_stored = re.compile("|".join(_STORED))
_whole = re.compile("|".join(_WHOLE))
_LONG = 4000


def is_error_text(text: str | None) -> bool:
    """True for an error that somebody saved as the assistant's own text."""
    return bool(text and _sure.match(text))


def is_error_result(text: str) -> bool:
    """Whether a benchmark's stored result is an error message as a whole."""
    if is_error_text(text):
        return True
    bare = text.strip()
    start = bare[:_LONG]
    if _whole.fullmatch(start):
        return True
    match = _stored.match(start)
    return match is not None and not _prose(bare[match.end() :])


def _prose(rest: str) -> bool:
    """Whether an error's name merely begins a sentence about it ("RuntimeError is raised …")."""
    return re.match(r"\s+(?:is|are|was|means|happens|occurs)\b", rest) is not None
