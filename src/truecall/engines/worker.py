"""One worker process: orders in, answers out, and what to do when it dies, hangs or talks nonsense.

Answers come a line a text, so that the text at which a worker died or hung is known: that text's result says so, a
new worker takes the rest. Nothing that a parser does is an exception here.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import tempfile
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

from truecall.engines.base import Health, Hello, Job, Launch, Parse
from truecall.errors import CannotTell
from truecall.records import Json, ToolCall

START_SECONDS: Final = 300.0  # vLLM imports torch, which takes a minute on a busy machine
TEXT_SECONDS: Final = 20.0
MAX_TEXT: Final = 16 << 20  # characters
MAX_ANSWER: Final = 256 << 20  # bytes of one line
MEMORY: Final = 8 << 30
_TOOL_LISTS: Final = 64  # that a worker keeps
_BLOCK: Final = 1 << 18

_decode = msgspec.json.Decoder(tuple[float, list[tuple[Any, Any]] | None, Any]).decode
_encode = msgspec.json.Encoder().encode


class _Gone(Exception):
    """The worker's process ended (``crashed``) or was ended by us (``hung``)."""

    def __init__(self, state: Literal["crashed", "hung"], detail: str) -> None:
        super().__init__(detail)
        self.state: Literal["crashed", "hung"] = state
        self.detail = detail


class Worker:
    """A worker that is started when it is first needed, and again after it was lost. Close it after use.

    Args:
        text_seconds: how long one text may take before the worker is killed and the text counted as ``hung``.
        cpu: results tell the parser's processor time, not that on the wall.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        text_seconds: float = TEXT_SECONDS,
        start_seconds: float = START_SECONDS,
        cpu: bool = False,
    ) -> None:
        self.launch = launch
        self.health = Health()
        self._cpu = cpu
        self._text_seconds, self._start_seconds = text_seconds, start_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._hello: Hello | None = None
        self._lines: deque[bytes] = deque()
        self._tail: list[bytes] = []  # of a line that has not ended
        self._tools: OrderedDict[int, Json] = OrderedDict()  # what the process knows, by identity

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process at work, if there is one."""
        return self._process.pid if self._process else None

    def hello(self) -> Hello:
        """What the worker says of itself; starts it.

        Raises:
            CannotTell: it does not start, with what it said.
        """
        if self._process is None or self._hello is None:
            self._start()
        assert self._hello is not None
        return self._hello

    def run(self, jobs: Sequence[Job]) -> Iterator[Parse]:
        """The results of jobs, in order. Raises CannotTell where no worker can be started at all."""
        at = 0
        while at < len(jobs):
            if len(jobs[at].text) > MAX_TEXT:
                self.health += Health(too_large=1)
                yield Parse(state="too_large", detail=f"over {MAX_TEXT:,} characters")
                at += 1
                continue
            end = next((i for i in range(at, len(jobs)) if len(jobs[i].text) > MAX_TEXT), len(jobs))
            each = False
            while at < end:
                try:
                    self.hello()
                    self._send(self._order(jobs[at:end], each))
                    while at < end:
                        yield self._answer()
                        at += 1
                except _Gone as gone:
                    self.health += Health(**{gone.state: 1})
                    if each:  # answers came one by one: it was this text
                        yield Parse(state=gone.state, detail=gone.detail)
                        at += 1
                    each = True  # whose fault it was is told by asking once more, text by text

    def close(self) -> None:
        """End the worker and all that it started."""
        self._end()

    # ----------------------------------------------------------------------- the process

    def _start(self) -> None:
        self._end()
        self._home = tempfile.TemporaryDirectory(prefix="truecall-worker-", ignore_cleanup_errors=True)
        try:
            self._process = subprocess.Popen(
                self.launch.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(self._home.name),
                cwd=self.launch.folder or self._home.name,
                start_new_session=True,
                preexec_fn=_limits,
            )
        except OSError as error:
            self._end()
            raise CannotTell(
                f"{self.launch.engine}: {self.launch.python} can't be run ({error.strerror})"
            ) from None
        self.health += Health(started=1)
        assert self._process.stdin is not None and self._process.stdout is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        os.set_blocking(self._process.stdout.fileno(), False)
        try:
            self._hello = self._greeting()
        except _Gone as gone:
            self._end()
            raise CannotTell(f"{self.launch.engine}: its worker does not start: {gone.detail}") from None

    def _greeting(self) -> Hello:
        deadline = time.monotonic() + self._start_seconds
        while True:
            said = _object(self._line(deadline))
            if "failed" in said:
                raise _Gone("crashed", str(said["failed"]))
            if said.get("hello") == 1:
                with suppress(msgspec.ValidationError):
                    return msgspec.convert(said, Hello)
            self.health += Health(noise=1)

    def _end(self) -> str:
        """Ends the process; how it ended."""
        process, self._process, self._hello = self._process, None, None
        self._lines.clear()
        self._tail.clear()
        self._tools.clear()
        how = ""
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
        if self._home is not None:
            self._home.cleanup()
            self._home = None
        return how

    def _lost(self) -> _Gone:
        """The process closed its pipe: let it end by itself for its exit code, then see that it did."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1)
        return _Gone("crashed", f"the worker died ({self._end()})")

    def _late(self, seconds: float) -> _Gone:
        self._end()
        return _Gone("hung", f"no answer after {seconds:g} s")

    # ----------------------------------------------------------------------- lines

    def _order(self, jobs: Sequence[Job], each: bool) -> bytes:
        new: dict[str, Json] = {}
        needed = {id(job.tools): job.tools for job in jobs}
        for key, tools in needed.items():
            if key in self._tools:
                self._tools.move_to_end(key)
            else:
                self._tools[key] = tools  # held: an id belongs to a living list only
                new[str(key)] = tools
        forget = [
            str(self._tools.popitem(last=False)[0])
            for _ in range(len(self._tools) - max(_TOOL_LISTS, len(needed)))
        ]
        items = [(job.parser, _sendable(job.text), str(id(job.tools)), job.cuts) for job in jobs]
        return (
            _encode({"tools": new, "forget": forget, "items": items, "each": each, "cpu": self._cpu}) + b"\n"
        )

    def _send(self, data: bytes) -> None:
        assert self._process is not None and self._process.stdin is not None
        pipe = self._process.stdin.fileno()
        waiting = select.poll()
        waiting.register(pipe, select.POLLOUT)
        rest = memoryview(data)
        while rest:
            # While it does not read it is at work on nothing: the time is that of a text.
            if not waiting.poll(self._text_seconds * 1000):
                raise self._late(self._text_seconds)
            try:
                rest = rest[os.write(pipe, rest) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._lost() from None

    def _answer(self) -> Parse:
        deadline = time.monotonic() + self._text_seconds
        while True:
            line = self._line(deadline)
            try:
                seconds, calls, rest = _decode(line)
            except msgspec.DecodeError:
                self.health += Health(noise=1)
                continue
            if calls is None:
                return _unparsed(seconds, rest)
            made = tuple(ToolCall(name=_text(name), arguments=arguments) for name, arguments in calls)
            return Parse(state="parsed", calls=made, content=_text(rest), seconds=seconds)

    def _line(self, deadline: float) -> bytes:
        """The next line, without its end."""
        while not self._lines:
            piece = self._read(deadline)
            first, *rest = piece.split(b"\n")
            self._tail.append(first)
            if rest:
                self._lines.append(b"".join(self._tail))
                self._lines.extend(rest[:-1])
                self._tail = [rest[-1]]
        return self._lines.popleft()

    def _read(self, deadline: float) -> bytes:
        assert self._process is not None and self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        left = deadline - time.monotonic()
        if left <= 0 or not _readable(pipe, left):
            raise self._late(self._text_seconds if self._hello else self._start_seconds)
        try:
            piece = os.read(pipe, _BLOCK)
        except OSError:
            raise self._lost() from None
        if not piece or len(self._tail) * _BLOCK > MAX_ANSWER:
            raise self._lost()
        return piece


def _unparsed(seconds: float, said: Any) -> Parse:
    """An answer without a result: a reason in a list, an exception's text, or nothing."""
    if isinstance(said, list):
        return Parse(state="unasked", detail=" ".join(map(str, said)), seconds=seconds)
    return Parse(state="raised" if said else "no_stream", detail=str(said), seconds=seconds)


def _readable(pipe: int, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    return bool(waiting.poll(max(1, seconds * 1000)))


def _object(line: bytes) -> dict[str, Any]:
    try:
        said = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return {}
    return said if isinstance(said, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) or value is None else str(value)


def _sendable(text: str) -> str:
    """Lone surrogates, which UTF-8 can't carry, become replacement characters."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _environment(home: str) -> dict[str, str]:
    """Neither keys nor the user's folders; engines are told to stay off the network."""
    kept = {key: os.environ[key] for key in ("PATH", "LD_LIBRARY_PATH") if key in os.environ}
    return {
        **kept,
        **dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "HF_HOME"), home),
        "LANG": "C.UTF-8",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUTF8": "1",
    }


def _limits() -> None:
    """In the child, before the engine: no core files, and an end to its memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
