"""Known secrets and their echoes are replaced before anything is written or printed (DESIGN §6, privacy).

A *secret* is a text that the user gave us to authenticate with. Wherever it turns up again, plain or in one
of the codings of :func:`forms`, :data:`MARK` stands in its place. Header fields and URL parameters that carry
credentials are masked by their names, whether or not their values are known.

Secrets under :data:`MIN_LENGTH` characters and the dummy keys of :data:`PLACEHOLDERS` are not looked for in
texts: replacing "none" or "abc" everywhere would destroy the evidence. They are still masked by name.

Not found: a secret in pieces of one JSON string each (a model that repeats a key token by token). The text
assembled from such pieces must go through :meth:`Redactor.text` again, and the store sees to that.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from truecall.records import Headers

MARK = "[redacted]"
MIN_LENGTH = 6
# fmt: off
PLACEHOLDERS = frozenset({
    "-", "api-key", "api_key", "apikey", "bearer", "dummy", "dummy-key", "dummy_key", "empty",
    "fake", "fake-key", "key", "lm-studio", "lm_studio", "llama.cpp", "llamacpp", "local",
    "local-key", "n/a", "na", "no-key", "no-key-required", "no_key", "none", "not-needed",
    "not_needed", "notneeded", "null", "ollama", "openai", "placeholder", "sglang", "sk",
    "sk-no-key-required", "test", "test-key", "token", "truecall", "unused", "vllm", "x", "xx",
    "xxx",
})
# fmt: on

_MARK = MARK.encode()
_HEADER = re.compile(
    r"(^|[-_])(authorization|cookie2?|api[-_]?key|apikey|auth|token|secret|password|passwd|credentials?"
    r"|signature|subscription[-_]key)$",
    re.IGNORECASE,
)
_PARAM_NAMES = (
    r"(?:[\w.-]*[-_.])?"
    r"(?:key|api[-_]?key|apikey|token|auth|secret|password|passwd|pwd|sig|signature|credential)"
)
_PARAM = re.compile(rf"([?&;]{_PARAM_NAMES}=)([^&;#\s\"'<>]+)", re.IGNORECASE)
_PARAM_NAME = re.compile(rf"{_PARAM_NAMES}\Z", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^/?#@\s]+@")


def is_secret(text: str) -> bool:
    """True when ``text`` is looked for in bodies and texts: long enough and no well-known dummy key."""
    return len(text) >= MIN_LENGTH and text.lower() not in PLACEHOLDERS


def is_auth_header(name: str) -> bool:
    """True for header fields that carry credentials, by their names (Authorization, X-Api-Key, Cookie …)."""
    return _HEADER.search(name) is not None


def clean_url(url: str) -> str:
    """``url`` with user info and the values of key-like parameters masked."""
    return _PARAM.sub(rf"\1{MARK}", _USERINFO.sub(f"{MARK}@", url))


def secrets_of_url(url: str) -> list[str]:
    """The credentials that ``url`` carries: user info and the values of key-like parameters, decoded."""
    try:
        parts = urlsplit(url)
        found = [unquote(part) for part in (parts.username, parts.password) if part]
        query = parse_qsl(parts.query)
    except ValueError:
        return []
    return found + [value for name, value in query if value and _PARAM_NAME.match(name)]


def secrets_of_header(name: str, value: str) -> list[str]:
    """The credentials in a header field: the value, what follows an auth scheme, Basic's password."""
    if not is_auth_header(name):
        return []
    found = [value.strip()]
    scheme, _, rest = value.strip().partition(" ")
    if rest:
        found.append(rest.strip())
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
        except ValueError:
            return found
        found += [f"{user}:{password}", password]
    return [text for text in found if text]


def _aligned_base64(raw: bytes) -> Iterable[bytes]:
    """What base64 makes of ``raw`` inside a longer text, whichever of the three alignments it falls on."""
    for shift in range(3):
        first, last = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        code = base64.b64encode(b"\0" * shift + raw)[first:last]
        yield code
        yield code.translate(bytes.maketrans(b"+/", b"-_"))
        yield code.replace(b"/", b"\\/")


def forms(secret: str) -> list[bytes]:
    """How ``secret`` may be written in a body, longest first.

    Plain, URL-quoted, JSON- and HTML-escaped, hexadecimal, and base64 at any alignment ("Bearer x",
    "user:x" and the like are covered by that).
    """
    raw = secret.encode("utf-8", "surrogateescape")
    texts = {quote(raw, safe=""), quote(raw, safe="/"), quote_plus(raw), html.escape(secret)}
    texts |= {re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), text) for text in texts}
    texts |= {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    texts |= {text.replace("/", "\\/") for text in texts}
    found = {raw, raw.hex().encode(), raw.hex().upper().encode(), *_aligned_base64(raw)}
    found |= {text.encode("utf-8", "surrogateescape") for text in texts}
    return sorted(found, key=lambda form: (-len(form), form))


class Redactor:
    """Replaces the secrets that it knows. Without any it hands everything back as it is."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._forms: list[bytes] = []
        self._texts: list[str] = []
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Learns further secrets; those that :func:`is_secret` turns down are ignored."""
        new = {secret for secret in secrets if is_secret(secret)} - self._secrets
        if not new:
            return
        self._secrets |= new
        merged = set(self._forms).union(*(forms(secret) for secret in new))
        self._forms = sorted(merged, key=lambda form: (-len(form), form))
        self._texts = [form.decode("utf-8", "surrogateescape") for form in self._forms]

    def __bool__(self) -> bool:
        return bool(self._forms)

    def data(self, data: bytes, *, cut: bool = False) -> bytes:
        """``data`` with the known secrets replaced; ``cut``: the start of one at the very end, too."""
        for form in self._forms:
            if form in data:
                data = data.replace(form, _MARK)
        if cut:
            at = _partial(data, self._forms)
            if len(data) - at >= MIN_LENGTH:
                data = data[:at] + _MARK
        return data

    def text(self, text: str) -> str:
        """``text`` with the known secrets replaced."""
        for form in self._texts:
            if form in text:
                text = text.replace(form, MARK)
        return text

    def url(self, url: str) -> str:
        """``url`` with user info, key-like parameters and known secrets masked."""
        return self.text(clean_url(url))

    def header(self, name: str, value: str) -> str:
        """The value of a header field, masked by its name (an auth scheme is kept) and by its content."""
        if is_auth_header(name):
            scheme, space, _ = value.partition(" ")
            known = space and scheme.lower() in {"bearer", "basic", "digest", "token", "apikey"}
            return f"{scheme} {MARK}" if known else MARK
        return self.url(value) if self._forms or "://" in value or "?" in value else value

    def headers(self, headers: Headers) -> Headers:
        """Header fields with :meth:`header` applied to each, their names checked too."""
        return tuple((self.text(name), self.header(name, value)) for name, value in headers)

    def value(self, value: Any) -> Any:
        """A JSON-like value, bytes allowed inside, with the known secrets replaced, in keys too."""
        if not self._forms:
            return value
        try:
            return self._walk(value)
        except RecursionError:  # nothing of it can be vouched for
            return MARK

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes | bytearray):
            return self.data(bytes(value))
        if isinstance(value, dict):
            return {self._walk(key): self._walk(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in value]
        return value

    def stream(self) -> RedactingStream:
        """A redactor for one byte stream that comes in pieces."""
        return RedactingStream(self)


class RedactingStream:
    """Redacts a stream piece by piece; what may be the start of a secret is held back until it is known."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Takes the next piece; returns what can be handed on."""
        if not self._redactor:
            return data
        clean = self._redactor.data(self._held + data)
        at = _partial(clean, self._redactor._forms)
        self._held = clean[at:]
        return clean[:at]

    def finish(self) -> bytes:
        """The rest; a secret that the stream's end cut off is replaced too."""
        held, self._held = self._held, b""
        return self._redactor.data(held, cut=True)


def _partial(data: bytes, wanted: list[bytes]) -> int:
    """Where the longest end of ``data`` begins that starts one of ``wanted``; ``len(data)`` if none."""
    earliest = len(data)
    for form in wanted:
        at = data.find(form[:1], max(0, len(data) - len(form) + 1), earliest)
        while at != -1:
            if form.startswith(data[at:]):
                earliest = at
                break
            at = data.find(form[:1], at + 1, earliest)
    return earliest


# --------------------------------------------------------------------------- shape: values masked

# Words that dialects and wires are made of; the rest of a text is masked letter by letter.
# fmt: off
_KEPT_WORDS = frozenset({
    "analysis", "commentary", "final", "assistant", "user", "system", "tool", "functions", "function", "json",
    "python", "true", "false", "null", "None", "True", "False", "Thought", "Action", "Input", "Observation",
    "Final", "Answer", "name", "arguments", "parameters", "code", "call",
})
# fmt: on
_STRUCTURE = "|".join(
    (
        r"<[|｜][^|｜<>\s]{1,80}[|｜]?>",  # special tokens
        r"</?(?:[|｜]\w+[|｜])?[A-Za-z_][\w:.-]*(?:=[\w.:-]{1,80}|(?:\s+[\w:-]+=\"[\w.:-]{0,80}\")*)"
        r"\s*[/|｜]?>",  # tags
        r"\[/?[A-Z][A-Z_]{1,40}\]|✿\w+✿|```\w*",
        r"\\?\"[\w.$-]{0,80}\\?\"(?=\s*:)|'[\w.$-]{0,80}'(?=\s*:)",  # keys
        r"(?<=\"(?:name|type)\":)\s*\"[\w.:/-]{0,80}\"|(?<=\"(?:name|type)\": )\"[\w.:/-]{0,80}\"",
        # calls and their keywords; bounded, so that no text costs more than linear time
        r"(?<![\w.])[A-Za-z_][\w.]{0,80}(?=\(|=(?!=))|\bcall:[\w.-]{1,80}(?=\{)|\b\w{1,80}(?=:<[|｜])",
        r"\\u[0-9a-fA-F]{4}|\\.",  # escapes
        r"\bto=[\w.]+|\bfunctions\.[\w-]+(?::\d+)?",
    )
)
# Not one letter again and again: a value "xxxx" would be taken for a placeholder.
_MASK = "qzvkwjfp"
_NUMBER = r"\d+(?:\.\d+)?[eE][+-]?\d+(?![^\W_])"


def shape(text: str, keep: Iterable[str] = ()) -> str:
    """``text`` with the letters and digits of values replaced and all that makes up a call kept.

    Kept: special tokens, tags, keys, function names, escapes, punctuation, white space, JSON literals, and
    the words in ``keep`` (tool names and enum values, see :func:`words_of_tools`). The length in characters
    stays.
    """
    words = sorted({word for word in keep if word}, key=lambda word: (-len(word), word))
    known = "|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words)
    pattern = re.compile(rf"({_STRUCTURE}{'|' + known if known else ''})|({_NUMBER})|([^\W_]+)")
    return pattern.sub(_masked, text)


def _masked(match: re.Match[str]) -> str:
    kept, number, word = match.groups()
    if kept is not None:
        return f"{kept[:2]}0071" if kept.startswith("\\u") and len(kept) == 6 else kept
    if number is not None:
        return re.sub(r"\d", "1", number)
    if word in _KEPT_WORDS:
        return str(word)
    letters = (_MASK * (len(word) // len(_MASK) + 1))[: len(word)]
    return "".join("1" if char.isdigit() else letter for char, letter in zip(word, letters, strict=True))


def words_of_tools(tools: Iterable[Any]) -> set[str]:
    """The words that verdicts need: names of tools and parameters, enum and const values of their schemas."""
    found: set[str] = set()
    pending: list[Any] = list(tools)
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        elif isinstance(node, dict):
            for key, value in node.items():
                if key == "properties" and isinstance(value, dict):
                    found |= {str(name) for name in value}
                if key in {"name", "const"} and isinstance(value, str):
                    found.add(value)
                if key == "enum" and isinstance(value, list):
                    found |= {item for item in value if isinstance(item, str)}
                pending.append(value)
    return found
