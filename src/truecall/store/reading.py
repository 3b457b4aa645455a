"""Run folders read back."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import zstandard

from truecall.errors import InputError
from truecall.records import Exchange
from truecall.store.files import blob_path
from truecall.store.folder import FORMAT

_READ: Final = 16 << 20
_read: OrderedDict[tuple[Path, str], bytes] = OrderedDict()
"""Chains that were read last: the next turn's body goes on from one of them. At most ``_READ`` bytes."""

_LARGEST = 1 << 30  # bytes of one blob that are read back


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a run folder's log in order; what is no JSON object (a torn last line) is left out.

    Raises:
        InputError: the log can't be read, or a newer truecall wrote it.
    """
    try:
        with (path / "log.jsonl").open("rb") as file:
            for line in file:
                try:
                    value = msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    continue
                if isinstance(value, dict):
                    version = value.get("v", FORMAT)
                    if isinstance(version, int) and version > FORMAT:
                        said = f"written by a newer truecall (format {version})"
                        raise InputError(f"{path / 'log.jsonl'}: {said}")
                    yield value
    except OSError as error:
        raise InputError(f"{path / 'log.jsonl'}: can't be read ({error.strerror})") from None


def read_blob(path: Path, digest: str) -> bytes:
    """The bytes kept under ``digest`` in a run folder.

    Raises:
        InputError: no such blob, or one whose bytes are not those of its digest.
    """
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise InputError(f"{digest[:80]!r} is no digest")
    source = blob_path(path, digest)
    try:
        packed = source.read_bytes()
        if zstandard.frame_content_size(packed) > _LARGEST:
            raise InputError(f"{source}: larger than any blob of ours")
        data = zstandard.ZstdDecompressor().decompress(packed)
    except OSError as error:
        raise InputError(f"{source}: can't be read ({error.strerror})") from None
    except zstandard.ZstdError as error:
        raise InputError(f"{source}: is damaged ({error})") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise InputError(f"{source}: its bytes are not those of its name")
    return data


def whole(path: Path, value: Any) -> Any:
    """A value of a log line with the texts that were moved to the blobs put back.

    Raises:
        InputError: a blob is missing or damaged.
    """
    if isinstance(value, list):
        return [whole(path, item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"blob"} and isinstance(value["blob"], str):
        return read_blob(path, value["blob"]).decode("utf-8", "replace")
    return {key: whole(path, item) for key, item in value.items()}


def exchange_of(path: Path, line: dict[str, Any], request_body: bytes | None = None) -> Exchange:
    """The exchange of a log line, its bodies put back; one that was not kept is empty.

    ``request_body``: that of a study's request, which its line only names (`truecall.store.history`).

    Raises:
        InputError: a blob is missing or damaged.
        msgspec.ValidationError: the line is none of an exchange.
    """
    fields = {name: line[name] for name in Exchange.__struct_fields__ if name in line}
    request = dict(fields.get("request") or {})
    request["body"] = body_of(path, request.get("body")) if request_body is None else request_body
    fields |= {"request": request, "body": body_of(path, fields.get("body"))}
    return msgspec.convert(whole(path, fields), Exchange, builtin_types=(bytes,))


def body_of(path: Path, stored: Any) -> bytes:
    """The bytes of a body as its line has it; empty where it was not kept (see ``keep``).

    Raises:
        InputError: a blob is missing or damaged.
    """
    if isinstance(stored, str):
        return stored.encode("utf-8", "replace")
    if not isinstance(stored, dict):
        return b""
    if isinstance(stored.get("chain"), str):
        rest = stored.get("rest")
        parts = [body_of(path, part) for part in rest] if isinstance(rest, list) else []
        return _chained(path, stored["chain"]) + b"".join(parts)
    if isinstance(stored.get("text"), str):
        return str(stored["text"]).encode("utf-8", "replace")
    return read_blob(path, stored["blob"]) if isinstance(stored.get("blob"), str) else b""


def _chained(path: Path, digest: str) -> bytes:
    """The bytes that a chain of `truecall.store.chains` stands for, from its last link back to the first."""
    parts: list[bytes] = []
    last = digest
    known: bytes | None = None
    while digest and (known := _read.get((path, digest))) is None:
        before, _, part = read_blob(path, digest).partition(b"\n")
        parts.append(part)
        digest = before.decode("latin-1")
    data = (known or b"") + b"".join(reversed(parts))
    _read[path, last] = data
    _read.move_to_end((path, last))
    while len(_read) > 64 or (sum(map(len, _read.values())) > _READ and len(_read) > 1):
        _read.popitem(last=False)
    return data
