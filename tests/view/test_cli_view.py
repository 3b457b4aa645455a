"""The verb itself: what it prints, how it ends, and that it reads what the other verbs wrote."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.view.folders import study_folder

TRUECALL = [sys.executable, "-m", "truecall"]


@contextmanager
def started(*command: str, home: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A program that prints an address first."""
    env = {**os.environ, "TRUECALL_HOME": str(home)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def fetched(address: str) -> str:
    """The page behind the address, its token taken for the cookie."""
    parts = urlsplit(address)
    client = http.client.HTTPConnection(parts.netloc, timeout=20)
    client.request("GET", f"{parts.path}?{parts.query}")
    first = client.getresponse()
    first.read()
    client.request("GET", "/", headers={"Cookie": (first.getheader("set-cookie") or "").partition(";")[0]})
    page = client.getresponse().read().decode()
    client.close()
    return page


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_and_serves_until_it_is_stopped(tmp_path: Path, end: signal.Signals) -> None:
    study_folder(tmp_path / "runs" / "0007", 30)
    with started(*TRUECALL, "view", "run/0007", "--no-browser", home=tmp_path) as (process, address):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", address)
        assert '<h2 id="count">30 turns' in fetched(address)
        process.send_signal(end)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0 and out == ""
        assert "30 turns in" in err and "Traceback" not in err


def test_it_reads_what_a_preflight_sent(tmp_path: Path) -> None:
    env = {**os.environ, "TRUECALL_HOME": str(tmp_path)}
    with started(sys.executable, "-m", "tests.studies.player", "leaks", "0", home=tmp_path) as (_, base_url):
        done = subprocess.run(
            [*TRUECALL, "preflight", "--base-url", base_url, "--only", "auto"],
            env=env, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    with started(*TRUECALL, "view", "preflight/0001", "--no-browser", home=tmp_path) as (_, address):
        page = fetched(address)
    assert "preflight/0001" in page and "auto · exchange" in page and "leaked" in page


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["run/0009"], "no run of that id"),
        (["nowhere"], "is no run folder"),
        (["."], "is no run folder"),
        (["loop"], "is no run folder"),
        ([], "Missing argument"),
    ],
)
def test_what_is_not_there_is_one_line(tmp_path: Path, asked: list[str], said: str) -> None:
    env = {**os.environ, "TRUECALL_HOME": str(tmp_path)}
    (tmp_path / "loop").symlink_to("loop")
    command = [*TRUECALL, "view", "--no-browser", *asked]
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr and "Traceback" not in done.stderr
