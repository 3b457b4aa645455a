"""Error bodies of all engines and gateways, and the model text that some of them carry.

Source: research on the engines' HTTP contracts (docs/wire.md lists the shapes).
"""

from __future__ import annotations

import html
import re
from typing import Final

from truecall.records import ErrorBody, Json
from truecall.wire.values import encode, first_json, integer, items, join, obj, text, word

MAX_MESSAGE: Final = 64 * 1024
"""Characters of a message kept; model text inside it is read before the cut."""

_ANSWERS = frozenset({"choices", "candidates", "output", "content", "response", "done"})

# Each pattern's group 1 is text that the model wrote. DOTALL, and linear: one literal, then the rest.
_GENERATIONS: Final = (
    re.compile(r"Failed to parse input at pos \d+: (.*)", re.DOTALL),  # llama.cpp
    re.compile(r"unparsed [\w.-]{1,40} output: ?(.*)", re.DOTALL),  # llama.cpp, newer parser
    re.compile(r"Failed to parse generated text: ?(.*)", re.DOTALL),  # TGI
    re.compile(r"Malformed function call: ?(.*)", re.DOTALL),  # Gemini
)
_FAILED: Final = "failed_generation"  # Groq; gateways quote its whole body as text
_OLLAMA_RAW = "raw='"
_OLLAMA_ENDS = ("', err=", "'")


def read_error(body: Json, *, failed: bool = False) -> ErrorBody | None:
    """The error that a decoded body states, or None.

    ``failed``: the status was 400 or more, so a bare ``message``, ``msg`` or ``detail`` is an error too.
    """
    if isinstance(body, list):  # Gemini's OpenAI route wraps its error in an array
        return read_error(body[0], failed=failed) if len(body) == 1 else None
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    if error not in (None, "", {}, [], False):
        return _stated(error, body)
    if body.get("object") == "error" or (body.get("type") == "error" and "message" in body):
        return _made(body, body)
    errors = [item for item in items(body.get("errors")) if item]
    if errors:
        return _stated(errors[0], body)
    if "detail" in body and not has_answer(body):
        return _stated(body["detail"], body)
    if failed and (word(body.get("message")) or word(body.get("msg"))):
        return _made(body, body)
    return None


def has_answer(body: dict[str, Json]) -> bool:
    """Whether an object holds a part of an answer, beside any error."""
    return not _ANSWERS.isdisjoint(body) or isinstance(body.get("message"), dict)


def read_text_error(body: str) -> ErrorBody:
    """An error page or plain text as an error: an HTML page's title and words, else the text itself."""
    body = join((body,))
    head = body[: 4 * MAX_MESSAGE]
    if re.match(r"\s*<(?:!doctype|html|head|body|h1|\?xml)\b", head[:200], re.IGNORECASE):
        return ErrorBody(message=_page_words(head), type="html")
    kind = "binary" if head.count("\ufffd") + head.count("\0") > len(head) // 10 else "text"
    message = "" if kind == "binary" else head.strip()[:MAX_MESSAGE]
    return ErrorBody(message=message, type=kind, generation=generation_in(body))


def generation_in(message: str) -> str | None:
    """Model text quoted by an error message, or None."""
    if _FAILED in message and (begin := message.find("{")) >= 0:
        quoted = read_error(first_json(message, begin))
        if quoted is not None and quoted.generation:
            return quoted.generation
    for pattern in _GENERATIONS:
        found = pattern.search(message)
        if found and found[1].strip():
            return found[1]
    start = message.find(_OLLAMA_RAW)
    if start < 0:
        return None
    start += len(_OLLAMA_RAW)
    for end in _OLLAMA_ENDS:
        stop = message.rfind(end, start)
        if stop >= 0:
            return message[start:stop] or None
    return message[start:] or None


def _stated(error: Json, body: dict[str, Json]) -> ErrorBody:
    if isinstance(error, list) and error and isinstance(error[0], dict) and ("message" in error[0]):
        return _made(error[0], body)
    if isinstance(error, dict):
        return _made(error, body)
    return _made({"message": text(error) if isinstance(error, str) else encode(error)}, body)


def _made(error: dict[str, Json], body: dict[str, Json]) -> ErrorBody:
    """From the innermost error object; the body around it fills in what that one leaves out."""
    message = next(
        (found for key in ("message", "msg", "detail", "error") if (found := _line(error.get(key)))), None
    )
    if message is None:
        message = encode(error)
    metadata = obj(error.get("metadata"))
    upstream = _line(metadata.get("raw"))  # a gateway's copy of the upstream's body
    generation = (
        word(error.get(_FAILED))
        or word(body.get(_FAILED))
        or generation_in(message)
        or (generation_in(upstream) if upstream else None)
    )
    if upstream:
        message = f"{message}: {upstream}"
    kind = _first(error, body, ("type", "error_type", "status"))
    return ErrorBody(
        message=message[:MAX_MESSAGE],
        type=None if kind == "error" else kind,
        code=_code(error.get("code")) if _code(error.get("code")) is not None else _code(body.get("code")),
        generation=generation,
    )


def _first(error: dict[str, Json], body: dict[str, Json], keys: tuple[str, ...]) -> str | None:
    return next((found for source in (error, body) for key in keys if (found := word(source.get(key)))), None)


def _line(value: Json) -> str | None:
    if value in (None, "", {}, []):
        return None
    return text(value) if isinstance(value, str) else encode(value)


def _code(value: Json) -> str | int | None:
    if isinstance(value, str):
        return word(value)
    return integer(value)


def _page_words(page: str) -> str:
    title = re.search(r"<title[^>]{0,200}>([^<]{0,500})", page, re.IGNORECASE)
    if title and title[1].strip():
        return " ".join(html.unescape(title[1]).split())
    bare = re.sub(r"<[^<>]{0,1000}>", " ", page[:20_000])
    return " ".join(html.unescape(bare).split())[:500]
