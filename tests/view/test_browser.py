"""The viewer in a real Chromium: hostile turns do nothing, keys walk the turns, and everybody can use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.pages.browser import DESKTOP, PHONE, Watched
from tests.view.conftest import Viewer, viewing
from tests.view.folders import Answer, completion, stream, study_folder, surfaced
from truecall.records import Chunk

HOSTILE = (
    "<script>window.ran = 1; fetch('http://127.0.0.1:9/leak')</script>"
    '<img src=x onerror="window.ran = 1"><img src="http://127.0.0.1:9/pixel.png">'
    '<a href="javascript:window.ran=1">click</a><iframe src="http://127.0.0.1:9/"></iframe>'
    '</pre></textarea></title><svg onload="window.ran=1"><style>*{background:url(http://127.0.0.1:9/s)}</style>'
    '"><input autofocus onfocus=window.ran=1> {{ 7*7 }} {% raw %} \x00 \x1b[31m'
    " \u202edesrever\u202c \u2066x\u2069 \ud800"
    '<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/"> &lt;script&gt; ]]> <!-- --!> '
)
FOREIGN = (
    "script:not([src='/view.js']), iframe, img, svg:not(.stream), style, meta[http-equiv], input[autofocus]"
)
CALL = '<tool_call>{"name": "open_box", "arguments": {"code": "<script>window.ran=1</script>"}}</tool_call>'
BROKEN = b'{"error": {"message": "\xff\xfe<script>window.ran=1</script>\xc3\x28"}}'


def hostile_answers() -> list[Answer]:
    escaped = '{"code": "' + HOSTILE.replace("\\", "\\\\").replace('"', '\\"')[:200] + '"}'
    return [
        completion(HOSTILE + CALL, reasoning_content=HOSTILE),
        completion(HOSTILE, [surfaced(escaped, HOSTILE)]),
        completion(None, [surfaced(HOSTILE, HOSTILE)], finish=HOSTILE),
        stream(HOSTILE.replace("\ud800", "") + CALL),
        Answer(
            500, BROKEN, (Chunk(0.1, len(BROKEN)),), kind=HOSTILE.replace("\ud800", "").replace("\x00", "")
        ),
        completion(f"{HOSTILE * 50}{'x' * (5 << 20)}{CALL}"),
    ]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    answers = hostile_answers()
    folder = tmp_path_factory.mktemp("hostile") / "<b>run"
    with viewing(
        study_folder(folder, len(answers), answers=iter(answers), per_episode=len(answers))
    ) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    with viewing(study_folder(tmp_path_factory.mktemp("plain") / "run", 150)) as viewer:
        yield viewer


@pytest.fixture
def page(watched: Watched, plain: Viewer) -> Page:
    watched.page.goto(plain.door.address())
    return watched.page


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.textContent.trim()"))


# ------------------------------------------------------------------ hostile turns


def test_hostile_turns_do_nothing(watched: Watched, hostile: Viewer) -> None:
    page = watched.page
    page.goto(hostile.door.address())
    turns = page.eval_on_selector_all("a.turn", "links => links.map(link => link.href)")
    assert len(turns) == 6
    seen = 0
    for address in [page.url, *turns]:
        page.goto(address)
        page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true })")
        texts = page.eval_on_selector_all("a[href^='/text']", "links => links.map(link => link.href)")
        for text in [address, *dict.fromkeys(texts)]:
            if text != address:
                page.goto(text)
            assert page.evaluate("window.ran") is None
            assert page.locator(FOREIGN).count() == 0
            assert page.locator("a[href^='javascript:']").count() == 0
            assert page.url.startswith(hostile.origin)
            seen += 1
    assert seen > 20
    assert watched.foreign(hostile.origin) == []
    assert watched.errors == [] and watched.dialogs == []


def test_hostile_text_is_there_to_be_read(watched: Watched, hostile: Viewer) -> None:
    page = watched.page
    page.goto(hostile.door.address())
    page.locator("a.turn").first.click()
    wrote = page.locator("section:has(#wrote) pre").inner_text()
    assert "<script>window.ran = 1; fetch('http://127.0.0.1:9/leak')</script>" in wrote
    assert "U+202Edesrever" in wrote and "U+0000" in wrote and "{{ 7*7 }}" in wrote


def test_what_is_put_in_by_others_is_refused_by_the_policy(watched: Watched, plain: Viewer) -> None:
    page = watched.page
    page.goto(plain.door.address())
    page.evaluate(
        """() => {
            const image = document.createElement("img"); image.src = "http://127.0.0.1:9/i.png";
            const script = document.createElement("script"); script.textContent = "window.ran = 1";
            const frame = document.createElement("iframe"); frame.src = "http://127.0.0.1:9/";
            document.body.append(image, script, frame);
            fetch("http://127.0.0.1:9/f").catch(() => {});
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    assert len(watched.errors) >= 4
    assert watched.foreign(plain.origin) == []


def test_the_cookie_is_no_scripts_business(page: Page) -> None:
    assert page.evaluate("document.cookie") == ""
    assert "token" not in page.url


def test_a_big_turn_stays_quick(watched: Watched, hostile: Viewer) -> None:
    page = watched.page
    page.goto(hostile.door.address())
    page.locator("a.turn").last.click()
    page.wait_for_load_state()
    assert page.evaluate("document.documentElement.outerHTML.length") < 400_000
    page.locator("section:has(#wrote) a[href^='/text']").click()
    assert "part 1 of" in page.locator("nav.pages").first.inner_text()
    page.keyboard.press("j")
    page.wait_for_url("**part=2**")
    with page.expect_download() as got:
        page.locator("a[download]").first.click()
    assert got.value.suggested_filename == "b-run-native-chain-0-6-raw.txt"
    assert Path(got.value.path()).stat().st_size > 5 << 20


# ------------------------------------------------------------------ by keyboard


def test_the_keys_walk_the_list_and_the_turns(page: Page) -> None:
    page.keyboard.press("j")
    first = focused(page)
    page.keyboard.press("j")
    second = focused(page)
    assert first != second
    page.keyboard.press("k")
    assert focused(page) == first
    page.keyboard.press("Enter")
    page.wait_for_url("**/turn?**")
    assert page.locator("h1").inner_text().startswith(first)
    page.keyboard.press("j")
    page.wait_for_function(f"document.querySelector('h1').textContent.startsWith({second!r})")
    page.keyboard.press("k")
    page.wait_for_function(f"document.querySelector('h1').textContent.startsWith({first!r})")
    page.keyboard.press("u")
    page.wait_for_selector("a.turn")


def test_the_keys_go_on_over_the_end_of_a_page(page: Page) -> None:
    page.keyboard.press("k")  # the last of this page
    page.keyboard.press("j")
    page.wait_for_url("**after=**")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.wait_for_url("**before=**")


def test_the_keys_search_and_filter(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("lantern j ?")  # letters are text in here
    assert page.locator("#text").input_value() == "lantern j ?"
    page.locator("#text").fill("lantern")
    page.keyboard.press("Enter")
    page.wait_for_url("**text=lantern**")
    page.keyboard.press("f")
    page.keyboard.press("Tab")
    before = page.locator("#count").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_function(f"document.getElementById('count').innerText != {before!r}")
    assert "text=lantern" in page.url and page.locator(".chips li").count() == 3


def test_the_help_says_the_keys_and_turns_them_off(page: Page) -> None:
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()
    page.keyboard.press("j")  # nothing moves under the dialog
    page.locator("#keys-on").uncheck()
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    page.keyboard.press("j")
    assert page.locator("a.turn:focus").count() == 0
    page.locator("#keys-open").click()
    page.locator("#keys-on").check()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    assert page.locator("a.turn:focus").count() == 1


def test_all_of_it_works_without_a_script(chromium: Browser, plain: Viewer) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(plain.door.address())
    page.locator("nav.filters a", has_text="leaked").click()
    assert "delivery=leaked" in page.url
    page.locator("#text").fill("lantern")
    page.locator("form button", has_text="Search").click()
    assert "text=lantern" in page.url and "delivery=leaked" in page.url
    page.locator("a.turn").first.click()
    assert page.locator("#wrote").count() == 1
    context.close()


# ------------------------------------------------------------------ for everybody


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_pages_keep_to_wcag_aa_and_to_their_width(
    chromium: Browser, plain: Viewer, hostile: Viewer, dark: bool, size: dict[str, int]
) -> None:
    seen = Watched.opened(chromium, dark=dark, size=size)
    page = seen.page
    for viewer, turns in ((plain, (0,)), (hostile, (0, 1, 4))):
        page.goto(viewer.door.address())
        links = page.eval_on_selector_all("a.turn", "links => links.map(link => link.href)")
        addresses = [f"{viewer.origin}/?delivery=leaked&dialect=hermes", *(links[turn] for turn in turns)]
        if viewer is plain:
            addresses += [f"{viewer.origin}/nothing", links[0].replace("/turn?", "/text?") + "&what=raw"]
        for address in addresses:
            page.goto(address)
            page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true })")
            assert seen.faults() == [], address
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], address
    seen.close()


def test_the_focus_is_seen(page: Page) -> None:
    page.keyboard.press("Tab")
    assert "To the main part" in focused(page)
    for _ in range(8):
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Tab")


def test_the_list_is_told_to_those_who_hear_it(page: Page) -> None:
    for role in ("main", "navigation", "search", "banner", "contentinfo"):
        assert page.get_by_role(role).count() >= 1, role  # type: ignore[arg-type]
    assert page.get_by_label("Search in what the model wrote").count() == 1
    page.locator("nav.filters a", has_text="leaked").click()
    assert page.locator("nav.filters a[aria-current=true]").count() == 1
