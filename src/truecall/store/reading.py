"""Run folders read back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from truecall.errors import InputError
from truecall.store.files import blob_path

_LARGEST = 1 << 30  # bytes of one blob that are read back


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a run folder's log in order; what is no JSON object (a torn last line) is left out."""
    try:
        with (path / "log.jsonl").open("rb") as file:
            for line in file:
                try:
                    value = msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    continue
                if isinstance(value, dict):
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


def body_of(path: Path, stored: Any) -> bytes:
    """The bytes of a body as its line has it; empty where it was not kept (see ``keep``)."""
    if isinstance(stored, dict) and isinstance(stored.get("text"), str):
        return str(stored["text"]).encode()
    if isinstance(stored, dict) and isinstance(stored.get("blob"), str):
        return read_blob(path, stored["blob"])
    return b""
