"""A pytest plugin: tests that talk to a model run through a recording proxy, and the funnel ends their report.

``pytest --truecall-upstream URL`` starts one ``truecall record`` for the session and sets the variables that
harnesses read (``OPENAI_BASE_URL`` and the like). ``--truecall-fail-on lost`` fails a session in which calls were
lost. The fixture ``truecall_record`` starts a proxy of its own for a test::

    def test_agent(truecall_record):
        with truecall_record("http://localhost:8000/v1") as recorded:
            run_agent(base_url=recorded.base_url)
        assert recorded.lost == 0
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest


class Recorded:
    """A proxy in a process of its own, for as long as a ``with`` block lasts.

    After the block ``outcome`` is what ``truecall record --json`` printed; ``steps`` and ``calls`` are its counts,
    ``lost`` the turns in which a well-formed call was lost.

    Args:
        upstream: the server's base URL.
        options: further options of ``truecall record``, such as ``--surface``.
        folder: the run folder; a new one by default.
    """

    def __init__(self, upstream: str, *options: str, folder: Path | None = None) -> None:
        out = ["--out", str(folder)] if folder is not None else []
        command = [
            sys.executable,
            "-m",
            "truecall",
            "record",
            "--json",
            "--upstream",
            upstream,
            *out,
            *options,
        ]
        self.base_url = ""
        self.outcome: dict[str, Any] = {}
        self._command = command
        self._stdout = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=self._stdout, stderr=subprocess.PIPE)
        assert self._process.stderr is not None
        said: list[str] = []
        for raw in self._process.stderr:
            line = raw.decode("utf-8", "replace").strip()
            said.append(line)
            if line.startswith("recording "):
                self.base_url = line.split()[1]
                break
        else:
            self._process.wait()
            raise RuntimeError("truecall record did not start: " + " / ".join(said[-3:]))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.communicate()
        self._stdout.seek(0)
        data = self._stdout.read()
        self._stdout.close()
        self.outcome = json.loads(data) if data.strip() else {}

    @property
    def root_url(self) -> str:
        """The proxy's root, for Ollama and Anthropic clients."""
        return self.base_url.removesuffix("/v1")

    @property
    def tally(self) -> dict[str, Any]:
        """All counts of the run."""
        return dict(self.outcome.get("tally") or {})

    @property
    def steps(self) -> dict[str, int]:
        """Turns by step: sent, accepted, produced, emitted, surfaced, lost, unknown."""
        return dict(self.tally.get("steps") or {})

    @property
    def calls(self) -> dict[str, int]:
        """Calls by ``emission/delivery``."""
        return dict(self.tally.get("calls") or {})

    @property
    def lost(self) -> int:
        """Turns in which a well-formed call was lost."""
        return self.steps.get("lost", 0)


@pytest.fixture
def truecall_record() -> Callable[..., Recorded]:
    """Makes a :class:`Recorded`; its arguments are that class's."""
    return Recorded


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("truecall")
    group.addoption("--truecall-upstream", metavar="URL", help="record all model traffic to this server")
    group.addoption("--truecall-out", metavar="DIR", help="the run folder (default: a new one)")
    group.addoption("--truecall-surface", action="store_true", help="deliver calls that the server lost")
    group.addoption(
        "--truecall-fail-on", choices=["never", "lost"], default="never", help="fail when calls were lost"
    )


class _Session:
    """The proxy of a whole session, and its variables."""

    def __init__(self, config: pytest.Config) -> None:
        out = config.getoption("--truecall-out")
        options = ["--surface"] if config.getoption("--truecall-surface") else []
        folder = Path(out) if out else None
        self.recorded = Recorded(config.getoption("--truecall-upstream"), *options, folder=folder)
        self._fail_on = config.getoption("--truecall-fail-on")
        self._saved: dict[str, str | None] = {}
        self._ended = False

    def start(self) -> None:
        from urllib.parse import urlsplit

        from truecall.proxy.command import environment, variables

        self.recorded.__enter__()
        parts = urlsplit(self.recorded.base_url)
        pointing = variables(parts.hostname or "127.0.0.1", parts.port or 80, parts.path)
        for name, value in environment({}, pointing).items():
            self._saved[name] = os.environ.get(name)
            os.environ[name] = value

    def end(self) -> None:
        if self._ended:
            return
        self._ended = True
        self.recorded.__exit__(None, None, None)
        for name, value in self._saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.end()
        if self._fail_on == "lost" and self.recorded.lost and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        recorded = self.recorded
        terminalreporter.section("truecall")
        steps = recorded.steps
        counts = " · ".join(
            f"{name} {steps.get(name, 0)}" for name in ("sent", "emitted", "surfaced", "lost")
        )
        exchanges = recorded.outcome.get("exchanges", 0)
        if not exchanges:
            terminalreporter.write_line("nothing came through the proxy: the tests went past it", red=True)
        terminalreporter.write_line(f"{exchanges} exchanges: {counts}")
        terminalreporter.write_line(f"kept in {recorded.outcome.get('folder', '?')}")

    def pytest_unconfigure(self) -> None:
        self.end()


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--truecall-upstream") and not hasattr(config, "workerinput"):
        session = _Session(config)
        session.start()
        config.pluginmanager.register(session, "truecall-session")
