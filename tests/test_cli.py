"""The command line as a whole: light help, one line per failure, and the exit codes that every verb keeps."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from truecall import __version__, cli
from truecall.cli import screen
from truecall.errors import UsageError

TRUECALL = [sys.executable, "-m", "truecall"]
HEAVY = {
    "aiohttp",
    "rich",
    "msgspec",
    "jinja2",
    "numpy",
    "jsonschema_rs",
    "xllamacpp",
    "pypi_simple",
    "asyncio",
}


def truecall(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TRUECALL, *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def modules_after(code: str) -> set[str]:
    """The top-level modules that are loaded after ``code`` ran, and truecall's own in full."""
    tail = "import sys; print(*(m if m.startswith('truecall') else m.split('.')[0] for m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{tail}"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


# --------------------------------------------------------------------------- help and version


def test_help_has_one_line_for_each_verb() -> None:
    done = truecall("--help", COLUMNS="80")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    for name, verb in cli.VERBS.items():
        assert sum(line.split() == [name, *verb.summary.split()] for line in lines) == 1, name


def test_help_imports_nothing_heavy_and_no_verb() -> None:
    loaded = modules_after("from truecall.cli import execute; execute(['--help'])")
    assert not loaded & HEAVY
    assert {name for name in loaded if name.startswith("truecall")} == {
        "truecall", "truecall.cli", "truecall.errors"
    }  # fmt: skip


def test_a_verb_loads_itself_alone() -> None:
    loaded = modules_after("from truecall.cli import execute; execute(['local', '--help'])")
    others = {verb.target.partition(":")[0] for verb in cli.VERBS.values()} - {"truecall.cli.local"}
    assert "truecall.cli.local" in loaded
    assert not loaded & others


@pytest.mark.parametrize("name", cli.VERBS)
def test_each_verb_exists_and_describes_itself(name: str) -> None:
    command = cli.cli.get_command(click.Context(cli.cli), name)
    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help


def test_version() -> None:
    assert truecall("--version").stdout == f"truecall {__version__}\n"


def test_unknown_verb_is_a_usage_error() -> None:
    done = truecall("preflght")
    assert done.returncode == 2
    assert "preflght" in done.stderr
    assert done.stdout == ""


# --------------------------------------------------------------------------- how a run can end


def made_up_verb(body: str, **options: Any) -> subprocess.Popen[bytes]:
    """A process whose one verb runs ``body``, an expression."""
    code = (
        "from truecall import cli; from truecall.cli import screen; import click, time\n"
        f"verb = click.Command('x', callback=lambda: {body})\n"
        "cli.VerbGroup.get_command = lambda *_: verb\n"
        "cli.main(['x'])"
    )
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def ending_with(error: BaseException | None, code: object = None) -> click.Command:
    def callback() -> object:
        if error is not None:
            raise error
        return code

    return click.Command("probe", callback=callback)


@pytest.fixture
def run_verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[click.Command], int]:
    def run(command: click.Command) -> int:
        monkeypatch.setattr(cli.VerbGroup, "get_command", lambda *_: command)
        return cli.execute(["probe"])

    return run


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("model /x: no such file"), 2, "truecall: model /x: no such file\n"),
        (click.ClickException("no"), 2, "Error: no\n"),
        (click.BadParameter("no"), 2, "no\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (ZeroDivisionError("x"), 2, "truecall: internal error: ZeroDivisionError: x (TRUECALL_DEBUG=1 shows where)\n"),
    ],
)  # fmt: skip
def test_failures_are_one_line_and_a_code(run_verb, capsys, error, code, said) -> None:
    assert run_verb(ending_with(error)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.lstrip("\n").endswith(said)
    assert "Traceback" not in captured.err


def test_debug_shows_the_traceback(run_verb, monkeypatch) -> None:
    monkeypatch.setenv("TRUECALL_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run_verb(ending_with(ZeroDivisionError()))


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), (2, 2)])
def test_a_verbs_result_is_the_exit_code(run_verb, returned, code) -> None:
    assert run_verb(ending_with(None, returned)) == code


def test_ctx_exit_is_the_exit_code(run_verb) -> None:
    assert run_verb(ending_with(click.exceptions.Exit(1))) == 1


@pytest.mark.parametrize("print_", ["click.echo", "screen.out"])
def test_a_closed_pipe_is_quiet(print_: str) -> None:
    with made_up_verb(f"[{print_}('y' * 9999) for _ in range(999)]") as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141


def test_interrupt_from_the_keyboard_ends_with_130() -> None:
    with made_up_verb("[screen.out('up'), time.sleep(60)]") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"up\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", b"\\ud800 \\xe9\n"), ("utf-8", b"\\ud800 \xc3\xa9\n")]
)
def test_text_that_cannot_be_encoded_is_shown_escaped(encoding: str, shown: bytes) -> None:
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    with made_up_verb("screen.out('\\ud800 \\u00e9')", env=env) as process:
        assert process.communicate(timeout=30) == (shown, b"")
        assert process.returncode == 0


# --------------------------------------------------------------------------- the screen


@pytest.fixture
def utf8_terminal(monkeypatch: pytest.MonkeyPatch) -> io.TextIOWrapper:
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")


def test_glyphs_follow_the_encoding(utf8_terminal) -> None:
    assert screen.glyphs(utf8_terminal).unicode
    assert not screen.glyphs(io.TextIOWrapper(io.BytesIO(), encoding="ascii")).unicode


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("LC_ALL", "C"), ("LANG", "POSIX")])
def test_glyphs_are_plain_where_the_terminal_is(utf8_terminal, monkeypatch, name, value) -> None:
    monkeypatch.setenv(name, value)
    assert not screen.glyphs(utf8_terminal).unicode
    assert screen.plain("a · b → c …", utf8_terminal) == "a - b -> c ..."


def test_lc_all_outranks_lang(utf8_terminal, monkeypatch) -> None:
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert screen.glyphs(utf8_terminal).unicode


def test_foreign_text_cannot_steer_the_terminal(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    hostile = "a\x1b[2Jb\r\nc\u202ed\x9be\ud800"
    assert screen.visible(hostile) == "a\\x1b[2Jb\\r\\nc\\u202ed\\x9be\\ud800"
    assert screen.visible("x" * 50, 10) == "x" * 7 + "..."
    assert screen.visible("déjà vu 😀") == "déjà vu 😀"


@pytest.mark.parametrize(("columns", "expected"), [("10", 40), ("90", 90), ("999", 140)])
def test_width_has_bounds(monkeypatch, columns, expected) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert screen.width() == expected


def test_progress_is_silent_without_a_terminal(capfd) -> None:
    with screen.progress("model", 10, as_bytes=True) as bar:
        bar.update(10)
    assert capfd.readouterr() == ("", "")


def test_progress_shows_on_a_terminal_and_leaves_nothing(monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with screen.progress("model", 10) as bar:
        bar.update(10)
    shown = terminal.getvalue()
    assert "10/10" in shown
    assert shown.rstrip().endswith("\x1b[2K")  # the line is erased at the end


def test_json_goes_to_stdout(capsys) -> None:
    screen.emit_json({"a": [1, None]})
    screen.say("talk")
    captured = capsys.readouterr()
    assert captured.out == '{\n  "a": [\n    1,\n    null\n  ]\n}\n'
    assert captured.err == "talk\n"


def test_no_color_is_honoured(monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert screen.console().no_color


def test_the_module_runs_as_the_command(tmp_path: Path) -> None:
    done = subprocess.run([*TRUECALL, "--version"], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.startswith("truecall ")
