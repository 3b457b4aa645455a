"""The page that all pages extend, in a real browser: what is not ours does not run, and nothing leaves."""

from __future__ import annotations

from pathlib import Path

from tests.pages.browser import Watched
from truecall.pages import one_file


def _opened(watched: Watched, html: str, folder: Path) -> Watched:
    file = folder / "page.html"
    file.write_text(html, "utf-8")
    watched.page.goto(file.as_uri())
    return watched


def test_our_style_is_allowed(watched: Watched, tmp_path: Path) -> None:
    seen = _opened(watched, one_file("truecall.pages", "page.html"), tmp_path)
    font = seen.page.evaluate("getComputedStyle(document.body).fontFamily")
    assert seen.errors == [] and "system-ui" in font


def test_what_is_put_in_by_others_is_refused(watched: Watched, tmp_path: Path) -> None:
    foreign = (
        "<script>document.title = 'ran'</script><img src=x onerror=\"document.title = 'ran'\">"
        '<img src="http://127.0.0.1:9/i.png"><iframe src="http://127.0.0.1:9/"></iframe><p style="color:red">p</p>'
        '<form action="http://127.0.0.1:9/"><button id="send">send</button></form>'
    )
    html = one_file("truecall.pages", "page.html").replace("</main>", foreign + "</main>")
    seen = _opened(watched, html, tmp_path)
    seen.page.evaluate("document.getElementById('send').click()")
    assert seen.page.title() == ""
    assert len(seen.errors) >= 5
    assert [url for url in seen.requests if "127.0.0.1:9" in url] == []
