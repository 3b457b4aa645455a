"""The embedded engine: llama.cpp's own server from the wheel ``xllamacpp``, on the CPU and on loopback.

It runs in a child process, so that a crash of the engine is something that the caller is told of. The child
ends when its standard input closes: it can't outlive its parent, however that ends.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import IO

import msgspec

from truecall.errors import CannotTell, UsageError
from truecall.model_file import ProgressFactory, model_path

OWN_TEMPLATE = "own"
PACKAGED_TEMPLATES = ("hermes",)
DEFAULT_CTX = 4096
READY_TIMEOUT = 120.0  # seconds; a big model on a slow disk
PROMPT_CACHE_MIB = 256  # the engine's own default is 8 GiB
_START_FAILED = 3  # the child's exit code when the engine refused its parameters
_QUIET, _TALKATIVE = 1, 3  # llama.cpp's verbosity: errors; information
_STOP_TIMEOUT = 5.0
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_LOG_PREFIX = re.compile(r"^[\d.]+ E\s+")


class EngineParams(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine is started with. ``ctx`` counts tokens per slot; ``template`` "" is the model's own."""

    model: str
    template: str
    port: int = 0
    ctx: int = DEFAULT_CTX
    parallel: int = 1
    threads: int = 0
    verbosity: int = _QUIET


class Engine:
    """A running embedded engine. ``base_url`` ends in ``/v1``."""

    def __init__(
        self, process: subprocess.Popen[bytes], root_url: str, params: EngineParams, log: Path
    ) -> None:
        self.root_url = root_url
        self.base_url = f"{root_url}/v1"
        self.model = Path(params.model)
        self.params = params
        self.pid = process.pid
        self._process = process
        self._log = log

    def failure(self) -> str | None:
        """How the engine ended, in one line; None while it runs."""
        code = self._process.poll()
        return None if code is None else _ending(code, self._log)

    def wait(self) -> str:
        """Block until the engine has ended, and say how in one line."""
        return _ending(self._process.wait(), self._log)


@contextmanager
def embedded(
    model: Path | None = None,
    chat_template: str | Path | None = None,
    *,
    port: int = 0,
    ctx: int = DEFAULT_CTX,
    parallel: int = 1,
    threads: int | None = None,
    log: Path | None = None,
    ready_timeout: float = READY_TIMEOUT,
    progress: ProgressFactory | None = None,
) -> Iterator[Engine]:
    """Run the engine for as long as the block lasts, and yield it once it answers.

    ``model`` is a GGUF file (None: SmolLM2-135M-Instruct, fetched when missing). ``chat_template`` is "own"
    or None (the model's), "hermes" (packaged; renders tools), or a Jinja file. ``port`` 0 takes a free one.
    ``ctx`` is in tokens per slot, with ``parallel`` slots. ``log`` keeps what the engine says. Raises
    UsageError for parameters that can't be, CannotTell when the engine does not start.
    """
    _require_engine()
    template = template_text(chat_template)
    _require_port(port)
    path = _checked(model) if model is not None else model_path(progress=progress)
    params = EngineParams(
        model=str(path),
        template=template,
        port=port,
        ctx=ctx,
        parallel=parallel,
        threads=threads or default_threads(),
        verbosity=_QUIET if log is None else _TALKATIVE,
    )
    with tempfile.TemporaryDirectory(prefix="truecall-engine-") as folder:
        log_path = log or Path(folder) / "engine.log"
        process = _spawn(params, log_path)
        try:
            yield Engine(process, _await_ready(process, log_path, ready_timeout), params, log_path)
        finally:
            _stop(process)


def default_threads() -> int:
    """All cores that this process may use but one, at least 1.

    llama.cpp's threads wait for each other: with one core too few, each token takes many times longer.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    usable = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, usable - 1)


def template_text(choice: str | Path | None) -> str:
    """The Jinja text of a template choice; "" for the model's own."""
    if choice is None or choice == OWN_TEMPLATE:
        return ""
    if choice in PACKAGED_TEMPLATES:
        return (files("truecall") / "data" / f"{choice}.jinja").read_text(encoding="utf-8")
    try:
        text = Path(choice).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        names = ", ".join((OWN_TEMPLATE, *PACKAGED_TEMPLATES))
        raise UsageError(
            f"chat template {choice}: {_plain(exc)}; give a Jinja file or one of {names}"
        ) from exc
    if not text.strip():
        raise UsageError(f"chat template {choice} is empty")
    return text


def _require_engine() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise UsageError("the embedded engine needs an extra: install truecall[local]")


def _require_port(port: int) -> None:
    """Told here: the engine does not say why it can't listen, and would share a port with another of its kind."""
    if port == 0:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        if os.name == "posix":  # elsewhere this option would let a taken port through
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError as exc:
            taken = exc.errno == errno.EADDRINUSE
            why = (
                "is taken by another program: name another one, or none for a free one"
                if taken
                else _plain(exc)
            )
            raise CannotTell(f"port {port} on 127.0.0.1 {why}") from None


def _checked(model: Path) -> Path:
    try:
        with model.open("rb") as file:
            magic = file.read(4)
    except OSError as exc:
        raise UsageError(f"model {model}: {_plain(exc)}") from exc
    if magic != b"GGUF":
        raise UsageError(f"model {model} is no GGUF file")
    return model.resolve()


def _plain(exc: OSError | UnicodeDecodeError) -> str:
    return (exc.strerror or str(exc)) if isinstance(exc, OSError) else "not UTF-8 text"


# --------------------------------------------------------------------------- the parent's side


def _spawn(params: EngineParams, log: Path) -> subprocess.Popen[bytes]:
    env = {name: value for name, value in os.environ.items() if not _SECRET_NAME.search(name)}
    # The child must find this very package, and nothing that happens to lie in the working directory (-P).
    home = str(Path(__file__).resolve().parents[1])
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (home, env.get("PYTHONPATH"))))
    try:
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "truecall.local"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                env=env,
                start_new_session=True,  # Ctrl-C is the parent's to handle
            )
    except OSError as exc:
        raise UsageError(f"can't start the engine with its log in {log}: {_plain(exc)}") from exc
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it died at once: _await_ready tells how
        process.stdin.write(msgspec.json.encode(params) + b"\n")
        process.stdin.flush()
    return process


def _await_ready(process: subprocess.Popen[bytes], log: Path, timeout: float) -> str:
    """The address that the child prints once its server listens."""
    assert process.stdout is not None
    line = _read_line(process.stdout, time.monotonic() + timeout)
    if line is None:
        raise CannotTell(f"the embedded engine was not ready after {timeout:g} s")
    if not line.endswith(b"\n"):
        raise CannotTell(_ending(process.wait(), log))
    return line.decode().strip()


def _read_line(stream: IO[bytes], deadline: float) -> bytes | None:
    """One line, or what came before the end of the stream; None when the time is up."""
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None
            piece = os.read(stream.fileno(), 4096)
            if not piece:
                break
            line += piece
    return line


def _ending(code: int, log: Path) -> str:
    """One line on a child that is gone, with the errors that it logged."""
    if code < 0:
        how = f"the embedded engine was killed by {_signal_name(-code)}"
    elif code == _START_FAILED:
        how = "the embedded engine did not start"
    else:
        how = f"the embedded engine ended by itself with exit code {code}"
    errors = _logged_errors(log)
    return f"{how}: {errors}" if errors else how


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _logged_errors(log: Path, limit: int = 300) -> str:
    """The first errors of llama.cpp's log (the rest follows from them), or its last line if it has none."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    errors = [_LOG_PREFIX.sub("", line) for line in lines if _LOG_PREFIX.match(line)]
    return "; ".join(dict.fromkeys(errors[:2] or [line for line in lines if line.strip()][-1:]))[:limit]


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


# --------------------------------------------------------------------------- the child's side


def _run_child() -> None:
    """Read EngineParams as one line of JSON, print the address when ready, live until stdin closes."""
    params = msgspec.json.decode(sys.stdin.buffer.readline(), type=EngineParams)
    answer = os.dup(1)
    os.dup2(2, 1)  # the engine prints to stdout too, and only the address belongs there

    from xllamacpp import CommonParams, Server

    wanted = CommonParams()
    wanted.model.path = params.model
    wanted.model_alias = {Path(params.model).stem}  # clients see a name, not a path of this machine
    wanted.port = params.port
    wanted.n_ctx = params.ctx * params.parallel
    wanted.n_parallel = params.parallel
    wanted.cpuparams.n_threads = params.threads
    wanted.n_gpu_layers = 0
    wanted.fit_params = False  # fitting is for GPU memory
    wanted.cache_ram_mib = PROMPT_CACHE_MIB
    wanted.use_jinja = True
    wanted.ui = False
    wanted.verbosity = params.verbosity
    if params.template:
        wanted.chat_template = params.template
    try:
        server = Server(wanted)
    except RuntimeError:
        os._exit(_START_FAILED)  # the reason stands in the log
    os.write(answer, f"{server.listening_address}\n".encode())
    os.close(answer)
    sys.stdin.buffer.read()
    os._exit(0)  # the server keeps nothing; its destructor would wait for running requests


if __name__ == "__main__":
    _run_child()
