"""Where results are kept, and files that the user alone can read, whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Mapping
from pathlib import Path


def state_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Where results are kept: ``$TRUECALL_HOME``, else ``truecall`` below the XDG state directory."""
    env = os.environ if environ is None else environ
    if home := env.get("TRUECALL_HOME"):
        return Path(home).expanduser()
    base = env.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "truecall"


def private_dir(path: Path) -> None:
    """Makes ``path`` and what is missing above it, for the user alone."""
    if not path.is_dir():
        private_dir(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Writes a file for the user alone, whole or not at all: beside it first, then renamed.

    Raises OSError, also where a device, pipe or folder of that name would be replaced.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is there and is no plain file", str(path))
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def blob_path(path: Path, digest: str) -> Path:
    """Where a run folder keeps the blob of this digest."""
    return path / "blobs" / digest[:2] / digest[2:]
