"""A request of the user's own: a JSON body, a curl line, or a HAR entry."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from truecall.errors import InputError
from truecall.records import Api, Json, Record

_PATHS = {
    "/chat/completions": Api.OPENAI_CHAT,
    "/api/chat": Api.OLLAMA_CHAT,
    "/responses": Api.OPENAI_RESPONSES,
    "/messages": Api.ANTHROPIC,
}
_DATA_FLAGS = ("-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json")
_MAX_BYTES = 64 << 20


class OwnRequest(Record, frozen=True):
    """The body to send and its wire format. Headers and the address of the file are not used: the endpoint and
    its key are those of the connection options."""

    body: dict[str, Json]
    api: str


def load(path: Path) -> OwnRequest:
    """Read a request file.

    Raises:
        InputError: the file can't be read as any of the three forms.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(f"--request {path}: larger than 64 MB")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--request {path}: {_reason(error)}") from None
    base = path.parent
    stripped = text.strip()
    if stripped.startswith("curl"):
        return _curl(stripped, base, path)
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"--request {path}: no JSON body, curl line or HAR entry ({_reason(error)})"
        ) from None
    return _json(value, path)


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).splitlines()[0]


def _json(value: Json, path: Path) -> OwnRequest:
    if isinstance(value, Mapping):
        entries = value.get("log", {}).get("entries") if isinstance(value.get("log"), Mapping) else None
        if isinstance(entries, list):
            found = [e for e in entries if isinstance(e, Mapping) and _api(_url(e))]
            if not found:
                raise InputError(f"--request {path}: the HAR file holds no chat request")
            return _entry(found[-1], path)
        if isinstance(value.get("request"), Mapping) and "url" in value["request"]:
            return _entry(value, path)
        return _body(value, None, path)
    raise InputError(f"--request {path}: the JSON is no object")


def _url(entry: Mapping[str, Json]) -> str:
    request = entry.get("request")
    return str(request.get("url", "")) if isinstance(request, Mapping) else ""


def _entry(entry: Mapping[str, Json], path: Path) -> OwnRequest:
    post = entry["request"].get("postData")
    text = post.get("text") if isinstance(post, Mapping) else None
    try:
        body = json.loads(text or "")
    except (ValueError, RecursionError, TypeError):
        raise InputError(f"--request {path}: the HAR entry's postData holds no JSON body") from None
    return _body(body, _api(_url(entry)), path)


def _curl(text: str, base: Path, path: Path) -> OwnRequest:
    try:
        words = shlex.split(text.replace("\\\n", " "))
    except ValueError as error:
        raise InputError(f"--request {path}: the curl line can't be split ({error})") from None
    data: str | None = None
    url = ""
    for place, word in enumerate(words[1:], 1):
        flag, equals, rest = word.partition("=")
        if word in _DATA_FLAGS and place + 1 < len(words):
            data = words[place + 1]
        elif flag in _DATA_FLAGS and equals:
            data = rest
        elif word.startswith(("http://", "https://")):
            url = word
    if data is None:
        raise InputError(f"--request {path}: the curl line has no -d body")
    if data.startswith("@"):
        try:
            data = (base / data[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--request {path}: its body file {data[1:]}: {_reason(error)}") from None
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"--request {path}: the -d body is no JSON ({_reason(error)})") from None
    return _body(body, _api(url), path)


def _api(url: str) -> str | None:
    where = urlsplit(url).path.rstrip("/") if url else ""
    return next((str(api) for end, api in _PATHS.items() if where.endswith(end)), None)


def _body(value: Json, api: str | None, path: Path) -> OwnRequest:
    if not isinstance(value, dict):
        raise InputError(f"--request {path}: the body is no JSON object")
    if not isinstance(value.get("messages"), list):
        raise InputError(f"--request {path}: the body has no messages; a chat request is needed")
    api = api or str(Api.OPENAI_CHAT)
    if api not in (Api.OPENAI_CHAT, Api.OLLAMA_CHAT):
        raise InputError(f"--request {path}: {api} can be judged (truecall judge), but not sent by preflight")
    return OwnRequest(body=value, api=api)
