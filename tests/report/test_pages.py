"""Reports in a real Chromium: nothing runs, nothing leaves, all is shown, and it can be used by everyone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.audits.snapshots import BFCL, needs_published
from tests.pages.browser import PHONE, Watched
from tests.report.hostile import TEXTS, chat_log
from truecall.cli import execute


def opened(watched: Watched, file: Path) -> Watched:
    """The page, with all that is folded opened, since what is folded must be sound too."""
    watched.page.goto(file.as_uri())
    watched.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    return watched


def sound(seen: Watched) -> None:
    """It asked for itself alone, and nothing ran, failed or was refused."""
    assert seen.foreign("file://") == [] and len(seen.requests) == 1
    assert seen.errors == [] and seen.dialogs == []
    assert seen.page.locator("script").count() == 0
    assert "truecall report" in seen.page.title()


def made(*results: str, to: Path, options: tuple[str, ...] = ()) -> Path:
    assert execute(["report", *results, "-o", str(to), *options]) == 0
    return to


@pytest.fixture(scope="module")
def page(stacks: Path, hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``hostile`` is asked for, too: it has to be made before a browser's event loop runs."""
    return made(str(stacks), to=tmp_path_factory.mktemp("page") / "report.html")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [None, PHONE])
def test_a_study_is_accessible(
    chromium: Browser, page: Path, dark: bool, size: dict[str, int] | None
) -> None:
    seen = opened(Watched.opened(chromium, dark=dark, size=size), page)
    sound(seen)
    assert seen.faults() == []
    wide = seen.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0  # wide tables and pictures scroll inside themselves
    seen.close()


def test_a_phone_shows_the_numbers_of_a_funnel_whole(chromium: Browser, page: Path) -> None:
    seen = Watched.opened(chromium, size=PHONE)
    seen.page.goto(page.as_uri())
    sent = seen.page.locator("figure").first.locator("svg text").filter(has_text=re.compile(r"^\d+$")).first
    box = sent.bounding_box()
    assert box is not None and box["x"] + box["width"] < PHONE["width"] - 14
    seen.close()


def test_headings_tell_the_story(watched: Watched, page: Path) -> None:
    seen = opened(watched, page)
    assert seen.page.locator("h1").all_inner_texts() == ["Study stacks"]
    titles = seen.page.locator("h2").all_inner_texts()
    assert titles[:4] == ["Findings", "What was measured", "Funnel", "Rates"]
    assert titles[-2:] == ["Worst examples", "Reporting checklist"]
    lead = seen.page.locator("p.answer").inner_text()
    assert lead.startswith("Well-formed calls were lost")


def test_every_link_of_the_contents_leads_somewhere(watched: Watched, page: Path) -> None:
    seen = opened(watched, page)
    for link in seen.page.locator("nav a").all():
        target = (link.get_attribute("href") or "").removeprefix("#")
        assert seen.page.locator(f"[id='{target}']").count() == 1


def test_the_keyboard_reaches_what_scrolls_and_unfolds(watched: Watched, page: Path) -> None:
    watched.page.goto(page.as_uri())
    watched.page.keyboard.press("Tab")
    assert watched.page.evaluate("document.activeElement.className") == "skip"
    kinds = set()
    for _ in range(60):
        watched.page.keyboard.press("Tab")
        kinds.add(watched.page.evaluate("document.activeElement.tagName"))
    assert {"A", "DIV", "SUMMARY"} <= kinds


def test_pictures_follow_light_and_dark(chromium: Browser, page: Path) -> None:
    fills = []
    for dark in (False, True):
        seen = opened(Watched.opened(chromium, dark=dark), page)
        fills.append(seen.page.locator("svg.chart text").first.evaluate("e => getComputedStyle(e).fill"))
        seen.close()
    assert fills[0] != fills[1]


def test_it_prints_on_white(chromium: Browser, page: Path, tmp_path: Path) -> None:
    seen = opened(Watched.opened(chromium), page)
    seen.page.emulate_media(media="print")
    back = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    pdf = seen.page.pdf(path=tmp_path / "out.pdf", format="A4")
    assert back == "rgb(255, 255, 255)" and pdf.startswith(b"%PDF")
    assert not seen.page.locator("nav").is_visible()
    seen.close()


def test_hostile_turns_are_text(watched: Watched, hostile: Path, tmp_path: Path) -> None:
    file = made(str(hostile), to=tmp_path / "report.html")
    seen = opened(watched, file)
    sound(seen)
    text = seen.page.locator("main").inner_text()
    assert "<script>document.title = 'ran'</script>" in text and "javascript:document.title=1" in text
    assert 'onerror="document.title' in text and "{{ 7*7 }}" in text
    assert "U+202E" in text and "U+0000" in text and "U+FFFE" in text
    assert seen.page.locator("pre.text .span-call").count() >= len(TEXTS)
    assert file.stat().st_size < 2_000_000  # the turn of 5 MB is cut, and says so
    assert "characters before" in text or "characters after" in text
    assert seen.faults() == []


def test_hostile_logs_are_text(watched: Watched, tmp_path: Path) -> None:
    log = chat_log(tmp_path / "chats.jsonl")
    saved = tmp_path / "scan.json"
    assert execute(["scan", str(log), "--by", "model", "-o", str(saved), "--fail-on", "never"]) == 0
    seen = opened(watched, made(str(saved), to=tmp_path / "report.html"))
    sound(seen)
    assert seen.page.locator("svg.chart").first.inner_html().count("&lt;script&gt;") >= 1
    assert seen.faults() == []


def test_a_preflight(watched: Watched, tmp_path: Path) -> None:
    report = json.loads((Path(__file__).parent / "preflight.json").read_text())
    file = tmp_path / "preflight.json"
    file.write_text(json.dumps(report))
    seen = opened(watched, made(str(file), to=tmp_path / "report.html"))
    sound(seen)
    assert seen.page.locator("p.answer").inner_text().startswith("BROKEN")
    assert seen.page.locator("article.example").count() == len(report["findings"])
    assert seen.page.locator("svg.chart").get_attribute("aria-label")
    assert seen.faults() == []


@needs_published
def test_the_published_audit(watched: Watched, tmp_path: Path) -> None:
    lock = tmp_path / "audit.lock"
    assert execute(["audit", "bfcl", str(BFCL), "--lock", str(lock), "--fail-on", "never"]) == 0
    seen = opened(watched, made(str(lock), to=tmp_path / "report.html"))
    sound(seen)
    assert "Three of 109 rows" in seen.page.locator("p.answer").inner_text()
    assert seen.page.locator("article.example .span-call").count() >= 1
    assert seen.faults() == []


@pytest.mark.engine
def test_the_embedded_engine(watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xllamacpp")
    monkeypatch.setenv(
        "TRUECALL_HOME", str(tmp_path)
    )  # the verbs below run a loop of their own: not in this process
    flags = ["--seeds", "1", "--turns", "3", "--max-tokens", "48", "--fail-on", "never"]
    flags += ["--condition", "native", "--condition", "constrained"]
    probes = ["--only", "auto,loopback", "--fail-on", "never"]
    for verb in (["run", "--local", *flags], ["preflight", "--local", *probes]):
        assert subprocess.run([sys.executable, "-m", "truecall", *verb], check=False).returncode == 0
    seen = opened(watched, made("run/1", "preflight/1", to=tmp_path / "report.html"))
    sound(seen)
    said = seen.page.locator("p.answer").all_inner_texts()
    assert said[0].startswith("In native the tools were never rendered") and said[1].startswith("BROKEN")
    assert seen.faults() == []
