"""Chat templates out of the files that carry them: Jinja files, ``tokenizer_config.json``, GGUF models."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from truecall.errors import InputError
from truecall.records import Json, Record

_MOST: Final = 8 << 20  # bytes of a template or JSON file
_KEY: Final = "tokenizer.chat_template"
_SCALARS: Final = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9


class Template(Record, frozen=True):
    """A chat template: what it is called, and its Jinja source."""

    name: str
    source: str


def load(path: Path) -> list[Template]:
    """The chat templates that a file carries; a folder stands for its ``tokenizer_config.json`` or Jinja file.

    Raises:
        InputError: it can't be read, or carries none.
    """
    if path.is_dir():
        inside = [path / name for name in ("chat_template.jinja", "tokenizer_config.json")]
        path = next((file for file in inside if file.exists()), inside[0])
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            if magic == b"GGUF":
                found = _gguf(file, path)
            else:
                data = magic + file.read(_MOST)
                found = _text(data, path)
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from None
    if not found:
        raise InputError(f"{path}: carries no chat template")
    return found


def _text(data: bytes, path: Path) -> list[Template]:
    if len(data) > _MOST:
        raise InputError(f"{path}: too large for a chat template")
    if path.suffix == ".json":
        try:
            return _named(msgspec.json.decode(data), path.name)
        except msgspec.DecodeError as error:
            raise InputError(f"{path}: is no JSON ({error})") from None
    return [Template(name=path.name, source=data.decode("utf-8", "replace"))]


def _named(value: Json, name: str) -> list[Template]:
    """``chat_template``: one text, or a list of ``{"name", "template"}``."""
    given = value.get("chat_template") if isinstance(value, dict) else None
    if isinstance(given, str):
        return [Template(name=name, source=given)]
    some = given if isinstance(given, list) else []
    return [
        Template(name=f"{name}:{one.get('name')}", source=one["template"])
        for one in some
        if isinstance(one, dict) and isinstance(one.get("template"), str)
    ]


# --------------------------------------------------------------------------- GGUF


def _gguf(file: BinaryIO, path: Path) -> list[Template]:
    """Reads the header's keys until the templates are found (GGUF v2 and v3, little endian).

    Source: ggml's ``docs/gguf.md``.
    """
    found = []
    try:
        version, _, count = struct.unpack("<IQQ", file.read(20))
        if version not in (2, 3) or count > 100_000:
            raise InputError(f"{path}: GGUF version {version} is not read")
        for _ in range(count):
            key = _string(file).decode("utf-8", "replace")
            (kind,) = struct.unpack("<I", file.read(4))
            if kind == _STRING and key.startswith(_KEY):
                source = _string(file).decode("utf-8", "replace")
                found.append(Template(name=f"{path.name}{key.removeprefix(_KEY)}", source=source))
            else:
                _skip(file, kind)
    except (struct.error, KeyError) as error:
        raise InputError(f"{path}: is a damaged GGUF file ({error})") from None
    return found


def _string(file: BinaryIO) -> bytes:
    (size,) = struct.unpack("<Q", file.read(8))
    if size > _MOST:
        raise struct.error("a text of more than 8 MB")
    data = file.read(size)
    if len(data) < size:
        raise struct.error("it ends early")
    return data


def _skip(file: BinaryIO, kind: int) -> None:
    if kind == _STRING:
        (size,) = struct.unpack("<Q", file.read(8))
        file.seek(size, 1)
    elif kind == _ARRAY:
        inner, count = struct.unpack("<IQ", file.read(12))
        if inner in _SCALARS:
            file.seek(_SCALARS[inner] * count, 1)
        else:
            for _ in range(count):
                _skip(file, inner)
    else:
        file.seek(_SCALARS[kind], 1)
