"""Model text as HTML: whole, escaped, visible."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

import truecall
from truecall.pages import Mark, marked, marks_of, shown

_TAG = re.compile(r"<[^>]*>")


def test_markup_is_text() -> None:
    made = shown('<script>alert(1)</script><img src=x onerror="alert(1)">')
    assert "<script" not in made and "<img" not in made
    assert html.unescape(made) == '<script>alert(1)</script><img src=x onerror="alert(1)">'


def test_what_cannot_be_seen_is_shown() -> None:
    made = shown("a\x00b\u202ec\ufeffd\ud800e\rf\U000e0041")
    assert [html.unescape(_TAG.sub("", part)) for part in made.split("</i>")] == [
        *("aU+0000", "bU+202E", "cU+FEFF", "dU+D800", "eU+000D", "fU+E0041", "")
    ]
    assert made.encode("utf-8")


def test_lines_and_tabs_stay() -> None:
    assert shown("a\n\tb") == "a\n\tb"


def test_a_call_is_marked_and_named() -> None:
    text = 'Sure. <tool_call>{"name": "f", "arguments": {}}</tool_call>'
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    made = marked(text, marks_of(truecall.detect(text, tools)))
    assert made.startswith(
        'Sure. <span class="span span-call"><b class="label">call 1 · hermes · tight</b>&lt;tool_call&gt;'
    )
    assert made.endswith("&lt;/tool_call&gt;</span>")


def test_a_window_shows_what_of_a_mark_it_holds() -> None:
    assert (
        marked("0123456789", [Mark("call", 2, 8, "c")], 4, 9) == '<span class="span span-call">4567</span>8'
    )


@given(
    st.text(st.characters()), st.lists(st.integers(0, 40), max_size=8), st.integers(0, 40), st.integers(0, 40)
)
def test_nothing_is_lost_or_added(text: str, cuts: list[int], start: int, end: int) -> None:
    edges = sorted(cuts)
    marks = [Mark("call", a, b) for a, b in zip(edges[::2], edges[1::2], strict=False)]
    made = marked(text, marks, start, end)
    plain = html.unescape(_TAG.sub("", marked(text[start:end])))
    assert html.unescape(_TAG.sub("", made)) == plain
    assert made.count("<span") == made.count("</span>")
