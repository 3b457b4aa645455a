"""What happens to a folder while it is looked at, and what its index may have been through."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.view.conftest import Serve
from tests.view.folders import study_folder
from tests.view.test_list import told
from truecall.store.index import open_index
from truecall.store.index_file import NAME

TURNS = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study with its index."""
    path = study_folder(tmp_path / "run", TURNS)
    open_index(path).close()
    return path


@pytest.mark.parametrize("place", ["turns", "words", "by_arm"])
def test_a_damaged_index_is_made_again(serve: Serve, folder: Path, place: str) -> None:
    with open_index(folder) as index:
        found = index._db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?",
            (place if place != "words" else "words_data",),
        )
        page = found.fetchone()[0] - 1
    with (folder / NAME).open("r+b") as file:
        file.seek(page * 4096)
        file.write(b"\xff" * 4096)
    viewer = serve(folder)
    for address in ("/", "/?arm=native", "/?text=lantern"):
        assert viewer.ask(address).status == 200, address


@pytest.mark.parametrize("fate", ["log gone", "log a folder", "folder gone"])
def test_a_folder_that_goes_away_stays_in_sight_and_may_come_back(
    serve: Serve, folder: Path, tmp_path: Path, fate: str
) -> None:
    kept = shutil.copytree(folder, tmp_path / "kept")
    viewer = serve(folder)
    if fate == "folder gone":
        shutil.rmtree(folder)
    else:
        (folder / "log.jsonl").unlink()
    if fate == "log a folder":
        (folder / "log.jsonl").mkdir()
    for _ in range(2):  # and again, when it was given up once
        page = viewer.ask("/")
        assert page.status == 200 and told(page.text) == TURNS
        assert "log.jsonl can&#39;t be read any more (" in page.text and "Errno" not in page.text
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kept, folder)
    page = viewer.ask("/")
    assert told(page.text) == TURNS and "any more" not in page.text


def test_two_viewers_take_in_the_same_lines_once(serve: Serve, folder: Path) -> None:
    viewers = [serve(folder), serve(folder)]
    assert [told(viewer.ask("/").text) for viewer in viewers] == [TURNS, TURNS]
    more = study_folder(folder.parent / "more", 80)
    (folder / "log.jsonl").write_bytes((more / "log.jsonl").read_bytes())
    assert [told(viewer.ask("/").text) for viewer in viewers] == [80, 80]


def test_what_killed_makers_left_goes_after_a_day(folder: Path) -> None:
    (folder / NAME).unlink()
    old, new = folder / f".{NAME}.0000-journal", folder / f".{NAME}.1111"
    old.touch()
    new.touch()
    os.utime(old, (time.time() - 100_000,) * 2)
    open_index(folder).close()
    assert not old.exists() and new.exists()


def test_a_long_search_is_served(serve: Serve, folder: Path) -> None:
    viewer = serve(folder)
    page = viewer.ask("/?text=" + quote("字" * 2000))
    assert page.status == 200 and told(page.text) == 0
    page = viewer.ask("/?" + "&".join(f"arm={number}" for number in range(5000)))  # each link holds them all
    assert page.status == 200 and len(page.text) < 1_000_000
    many = "; ".join(f"other-{number}={'x' * 40}" for number in range(300))
    assert viewer.ask("/", {"Cookie": f"{many}; {viewer.cookie['Cookie']}"}).status == 200


def test_lines_that_are_left_out_are_counted(serve: Serve, folder: Path) -> None:
    with (folder / "log.jsonl").open("ab") as file:
        file.write(b"\xff\n")
    viewer = serve(folder)
    assert re.search(r"1 line of the log can&#39;t be read and is left out", viewer.ask("/").text)
