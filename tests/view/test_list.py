"""The list of turns: filters and counts agree with the log, and paging shows each turn once."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.view.conftest import Serve, Viewer
from tests.view.folders import lines_of, study_folder
from truecall.view import Shelf
from truecall.view.query import Query, read

TURNS = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return study_folder(tmp_path_factory.mktemp("list") / "run", TURNS)


@pytest.fixture(scope="module")
def verdicts(folder: Path) -> list[dict[str, Any]]:
    """The verdict of each turn, with its arm and seed, from the log."""
    lines = [line for line in lines_of(folder) if line["kind"] == "verdict"]
    return [{**line["verdicts"][0], "arm": line["arm"], "seed": line["seed"]} for line in lines]


def links(page: str) -> list[str]:
    return [unescape(href) for href in re.findall(r'<a class="turn" href="([^"]+)"', page)]


def counts(page: str, heading: str) -> dict[str, int]:
    """The facet under this heading, as the page shows it."""
    part = page.partition(f">{heading}</h2>")[2].partition("<h2")[0]
    found = re.findall(r'class="value">([^<]*)</span> <span class="turns">([\d,]+)<', part)
    return {value: int(turns.replace(",", "")) for value, turns in found}


def told(page: str) -> int:
    found = re.search(r'<h2 id="count">([\d,]+)', page)
    assert found is not None
    return int(found[1].replace(",", ""))


@pytest.fixture
def viewer(serve: Serve, folder: Path) -> Viewer:
    return serve(folder)


def test_facets_count_what_the_log_holds(viewer: Viewer, verdicts: list[dict[str, Any]]) -> None:
    page = viewer.ask("/").text
    assert told(page) == TURNS == len(verdicts)
    assert counts(page, "Emission") == Counter(each["emission"] for each in verdicts)
    assert counts(page, "Delivery") == Counter(each["delivery"] for each in verdicts)
    assert counts(page, "Arm") == Counter(each["arm"] for each in verdicts)
    assert sum(counts(page, "Seed").values()) == TURNS


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("delivery=leaked", {"delivery": ["leaked"]}),
        ("delivery=leaked&delivery=surfaced", {"delivery": ["leaked", "surfaced"]}),
        ("emission=no_call&arm=native", {"emission": ["no_call"], "arm": ["native"]}),
        ("cause=budget&emission=malformed", {"cause": ["budget"], "emission": ["malformed"]}),
        ("tier=none&seed=3", {"tier": ["none"], "seed": [3]}),
    ],
)
def test_a_filter_finds_what_the_log_holds(
    viewer: Viewer, verdicts: list[dict[str, Any]], asked: str, wanted: dict[str, list[Any]]
) -> None:
    page = viewer.ask(f"/?{asked}").text
    expected = [each for each in verdicts if all(each.get(name) in wanted[name] for name in wanted)]
    assert told(page) == len(expected)
    # A facet counts under the other filters, so that its own alternatives stay in sight.
    others = {name: values for name, values in wanted.items() if name != "delivery"}
    beside = [each for each in verdicts if all(each.get(name) in others[name] for name in others)]
    if "delivery" in wanted:
        assert counts(page, "Delivery") == Counter(each["delivery"] for each in beside)


def test_the_pages_show_every_turn_once_in_both_directions(folder: Path) -> None:
    with Shelf([str(folder)]) as shelf:
        for query in (Query(), Query(where={"delivery": ("leaked",)}), Query(text="lantern")):
            forward, place = [], None
            while True:
                page = shelf.after(query, place, 7)
                forward += [entry.row.key for entry in page.entries]
                if not page.later:
                    break
                place = page.entries[-1]
            assert len(forward) == len(set(forward)) == shelf.counts(query)["run"] > 7
            backward, place = [forward[-1]], shelf.entry("run", forward[-1])
            while place is not None:
                page = shelf.before(query, place, 7)
                backward = [entry.row.key for entry in page.entries] + backward
                place = page.entries[0] if page.earlier else None
            assert backward == forward


def test_paging_is_by_links(viewer: Viewer) -> None:
    page = viewer.ask("/?delivery=surfaced").text
    seen = links(page)
    while later := re.search(r'rel="next" href="([^"]+)"', page):
        page = viewer.ask(unescape(later[1])).text
        seen += links(page)
    assert len(seen) == len(set(seen)) == told(page)
    earlier = re.search(r'rel="prev" href="([^"]+)"', page)
    assert earlier is not None
    assert len(links(viewer.ask(unescape(earlier[1])).text)) == 50


def test_search_finds_words_and_says_when_there_are_none(viewer: Viewer, folder: Path) -> None:
    held = [line for line in lines_of(folder) if line["kind"] == "exchange"]
    code = "A-587"
    expected = sum(code in str(line["body"]) for line in held)
    assert told(viewer.ask(f"/?text={code}").text) == expected > 0
    page = viewer.ask("/?text=zeppelin&delivery=leaked").text
    assert told(page) == 0 and "No turn is like that" in page
    assert viewer.ask("/?text=%22%27*)(%00%ff").status == 200


def test_several_runs_are_one_list(serve: Serve, tmp_path: Path) -> None:
    one, two = study_folder(tmp_path / "one", 30, seed=1), study_folder(tmp_path / "b" / "one", 25, seed=2)
    viewer = serve(one, two, one)  # the same folder twice is one run
    page = viewer.ask("/").text
    assert told(page) == 55
    assert counts(page, "Run") == {"one": 30, "one (2)": 25}
    later = re.search(r'rel="next" href="([^"]+)"', page)
    assert later is not None
    rest = links(viewer.ask(unescape(later[1])).text)
    assert len(links(page)) == 50 and len(rest) == 5
    only = viewer.ask("/?run=one+%282%29").text
    assert told(only) == 25 and counts(only, "Run") == {"one": 30, "one (2)": 25}


def test_a_running_run_is_followed_and_said_to_grow(serve: Serve, tmp_path: Path) -> None:
    whole = study_folder(tmp_path / "whole", 30)
    log = (whole / "log.jsonl").read_bytes().splitlines(keepends=True)
    running = tmp_path / "running"
    running.mkdir()
    shutil.copy(whole / "card.json", running)
    (running / "log.jsonl").write_bytes(b"".join(log[:20]) + log[20][:40])  # a line that is being written
    viewer = serve(running)
    first = viewer.ask("/").text
    with (running / "log.jsonl").open("ab") as file:
        file.write(log[20][40:] + b"".join(log[21:]))
    second = viewer.ask("/").text
    assert 0 < told(first) < told(second) == 30
    assert "Just written to: running" in second


def test_damaged_lines_are_told(serve: Serve, tmp_path: Path) -> None:
    folder = study_folder(tmp_path / "run", 30)
    log = (folder / "log.jsonl").read_bytes().splitlines(keepends=True)
    log[7], log[9] = b'{"kind": "exchange", \xff\n', b"[1, 2\n"
    (folder / "log.jsonl").write_bytes(b"".join(log))
    assert "2 lines of the log can't be read" in unescape(serve(folder).ask("/").text)


def test_a_log_that_went_away_is_told(serve: Serve, tmp_path: Path) -> None:
    folder = study_folder(tmp_path / "run", 10)
    viewer = serve(folder)
    turn = links(viewer.ask("/").text)[0]
    shutil.rmtree(folder)
    page = viewer.ask("/")
    assert page.status == 200 and "log.jsonl" in page.text
    gone = viewer.ask(turn)
    assert gone.status == 200 and "Not all of this turn can be read" in gone.text


def test_the_address_is_the_query() -> None:
    query = read(
        [
            ("delivery", "leaked"),
            ("text", " a b "),
            ("delivery", "erased"),
            ("of", "x"),
            ("delivery", "leaked"),
        ]
    )
    assert query == Query(where={"delivery": ("leaked", "erased")}, text="a b")
    assert query.link() == "/?delivery=leaked&delivery=erased&text=a+b"
    assert query.toggled("delivery", "leaked").toggled("delivery", "erased").link() == "/?text=a+b"
    assert read([("seed", "7"), ("seed", ""), ("seed", "--5")]).stored() == {"seed": [7, None, "--5"]}
    assert "%ED" not in Query(text="\udc80").link()
