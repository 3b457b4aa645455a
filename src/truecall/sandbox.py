"""Runs code that a model wrote: in bubblewrap, without network, with limits of time and memory.

Without bubblewrap nothing is run, unless the user insists (``unsafe``): then the same limits hold, and nothing
keeps the code from the user's files and the network.

The code's process gets only what it is to compute; what the right answer is stays outside, so that code can't look.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from truecall.errors import UsageError
from truecall.records import Json, Record

SECONDS = 10.0
MEMORY = 512 << 20
OUTPUT = 1 << 20  # bytes of answer that are read
_PATIENCE = 5.0  # seconds in which a killed process is gone

# Reads {"code", "calls"} and answers {"values"} or {"error"} on a descriptor of its own. It runs inside.
_WORKER = r"""
import json, os, sys, traceback
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
job = json.loads(sys.stdin.read())
space = {"__name__": "__main__"}
def short(error):
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return text[-400:]
answer = {"values": []}
try:
    exec(compile(job["code"], "solution.py", "exec"), space)
except BaseException as error:
    answer = {"error": short(error)}
else:
    for name, arguments in job["calls"]:
        function = space.get(name)
        if not callable(function):
            answer = {"error": "there is no function " + name}
            break
        try:
            value = function(*arguments)
            answer["values"].append({"value": json.loads(json.dumps(value))})
        except BaseException as error:
            answer["values"].append({"error": short(error)})
out.write(json.dumps(answer))
out.flush()
os._exit(0)
"""


class Ran(Record, frozen=True):
    """What came of a piece of code. ``values``: for each call ``{"value": …}`` or ``{"error": …}``.

    ``state``: ``ok``, ``error`` (the code itself failed), ``timeout``, ``killed`` (memory, or too much output).
    """

    state: Literal["ok", "error", "timeout", "killed"]
    values: tuple[dict[str, Json], ...] = ()
    detail: str = ""


class Sandbox:
    """A way of running Python code.

    Args:
        unsafe: run without bubblewrap where there is none. The user must have asked for this.

    Raises:
        UsageError: there is no bubblewrap that works here, and ``unsafe`` is False.
    """

    def __init__(self, *, unsafe: bool = False, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._seconds, self._memory = seconds, memory
        self._wrap = shutil.which("bwrap")
        fault = _fault(self._wrap)
        self.unsafe = bool(fault)
        if fault and not unsafe:
            raise UsageError(
                f"this task runs code that a model wrote, and {fault}: install bubblewrap, or insist with "
                "--unsafe-sandbox (the code could then read your files and use the network)"
            )

    async def run(self, code: str, calls: list[tuple[str, list[Json]]]) -> Ran:
        """Runs ``code``, then each call (function name, arguments) in it. The code's mistakes are data."""
        job = msgspec.json.encode({"code": code, "calls": calls})
        with tempfile.TemporaryDirectory(prefix="truecall-sandbox-") as folder:
            process = await asyncio.create_subprocess_exec(
                *self._command(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=folder,
                env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp"},
                start_new_session=True,
                preexec_fn=self._limits,
            )
            try:
                async with asyncio.timeout(self._seconds):
                    data = await _talk(process, job)
            except TimeoutError:
                return Ran(state="timeout", detail=f"not done after {self._seconds:g} s")
            finally:
                _end(process)
                await _gone(process)
        return _read(data, process.returncode)

    def _command(self) -> list[str]:
        executable = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
        base = Path(sys.base_prefix).resolve()
        worker = ["-I", "-S", "-c", _WORKER]
        if self.unsafe or self._wrap is None:
            return [str(executable), *worker]
        shown = [(p, p) for p in ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache") if Path(p).exists()]
        if base != Path("/usr") and executable.is_relative_to(base):
            shown.append((str(base), "/python"))  # its own place would show the user's
            executable = Path("/python") / executable.relative_to(base)
        binds = [word for path, place in shown for word in ("--ro-bind", path, place)]
        return [
            *(self._wrap, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"),
            *("--setenv", "PATH", "/usr/bin:/bin", "--cap-drop", "ALL"),
            *binds,
            *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp", "--"),
            str(executable),
            *worker,
        ]

    def _limits(self) -> None:
        """In the child, before anything of the code's runs. Limits are inherited and can't be raised again."""
        seconds = int(self._seconds) + 1
        for kind, value in (
            (resource.RLIMIT_AS, self._memory),
            (resource.RLIMIT_CPU, seconds),
            (resource.RLIMIT_FSIZE, 16 << 20),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, 64),
        ):
            resource.setrlimit(kind, (value, value))


def _fault(wrap: str | None) -> str:
    """Why bubblewrap can't be used here; "" where it can."""
    if wrap is None:
        return "there is no bubblewrap (bwrap) on this machine"
    import subprocess

    command = [wrap, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here ({type(error).__name__})"
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (
        ""
        if done.returncode == 0
        else f"bubblewrap does not work here ({(said or ['no reason given'])[0][:120]})"
    )


async def _talk(process: asyncio.subprocess.Process, job: bytes) -> bytes:
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it is gone already: its exit code tells
        process.stdin.write(job)
        await process.stdin.drain()
        process.stdin.close()
    data = b""
    while len(data) <= OUTPUT and (piece := await process.stdout.read(65536)):
        data += piece
    return data


def _end(process: asyncio.subprocess.Process) -> None:
    """Ends the process and all that it started (they share its session)."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Waits for the end of a process that was ended. Its output is read off: asyncio waits for that, too."""
    assert process.stdout is not None
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            while await process.stdout.read(65536):
                pass
            await process.wait()


def _read(data: bytes, code: int | None) -> Ran:
    if len(data) > OUTPUT:
        return Ran(state="killed", detail="more output than is taken")
    try:
        answer = msgspec.json.decode(data, type=_Answer)
    except msgspec.DecodeError:
        return Ran(
            state="killed", detail=f"ended with code {code} and no answer (memory, or it ended itself)"
        )
    if answer.error is not None:
        return Ran(state="error", detail=answer.error)
    return Ran(state="ok", values=tuple(answer.values))


class _Answer(msgspec.Struct):
    values: list[dict[str, Json]] = msgspec.field(default_factory=list)
    error: str | None = None
