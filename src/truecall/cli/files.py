"""The user's files, read for a verb: one clear line where one can't be."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from truecall.errors import InputError

MAX_BYTES = 256 << 20


def read_bytes(path: Path, option: str = "") -> bytes:
    """The bytes of a file, or of standard input for ``-``.

    Raises:
        InputError: it can't be read, or is larger than 256 MB. ``option`` names the flag that it came with.
    """
    shown = f"{option} {path}".strip()
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"{shown}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"{shown}: larger than 256 MB")
    return data


def read_json(path: Path, option: str = "") -> Any:
    """The JSON value in a file; a byte order mark is no part of it. Raises InputError as `read_bytes`."""
    data = read_bytes(path, option)
    try:
        return json.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except RecursionError:
        raise InputError(f"{option} {path}: nested too deep to be read".strip()) from None
    except ValueError as error:
        raise InputError(f"{option} {path}: is no JSON ({str(error).splitlines()[0]})".strip()) from None


def read_tools(path: Path, option: str = "--tools") -> list[Any]:
    """The offered tools: a JSON list, or a request body that holds one. Raises InputError for anything else."""
    value = read_json(path, option)
    tools = value.get("tools") if isinstance(value, dict) else value
    if not isinstance(tools, list):
        raise InputError(f"{option} {path}: is no JSON list of tools, and no request that holds one")
    for number, tool in enumerate(tools, 1):
        if not isinstance(tool, dict):
            raise InputError(f"{option} {path}: entry {number} of the list is no tool: {str(tool)[:60]!r}")
    return tools
