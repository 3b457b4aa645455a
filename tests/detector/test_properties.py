"""What holds of every text: no exception, spans that partition it, and the same result for every split."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fuzzing import ODD_TOOLS, TOOLS, check, check_shape, check_split, make, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from markers import FRAGMENTS, MARKERS

from truecall import detect
from truecall.detector import detect_in_full
from truecall.dialects.base import Source
from truecall.dialects.quick import quick
from truecall.schema import compile_tools

HERE = Path(__file__).parent
CORPUS = seeds(sorted([*HERE.glob("golden/**/*.jsonl"), *HERE.glob("unseen.jsonl")]))

scraps = st.one_of(
    st.sampled_from(MARKERS),
    st.sampled_from(FRAGMENTS),
    st.text(st.characters(), max_size=12),
)
texts = st.lists(scraps, max_size=12).map("".join)
tool_lists = st.one_of(st.just(TOOLS), st.sampled_from(ODD_TOOLS))


@given(texts, tool_lists, st.randoms(use_true_random=False))
@settings(max_examples=400, deadline=None)
def test_any_text(text: str, tools: object, rng: random.Random) -> None:
    check(text, tools, rng)


@given(texts)
@settings(max_examples=100, deadline=None)
def test_the_same_text_gives_the_same_result(text: str) -> None:
    assert detect(text, TOOLS) == detect(text, TOOLS)


@given(texts.filter(lambda text: len(text) < 300))
@settings(max_examples=100, deadline=None)
def test_one_character_at_a_time(text: str) -> None:
    check_split(text, TOOLS, list(text), detect(text, TOOLS))


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>[[{"NaME": "clock_now", "arguments": {}}, {"name": "run_tests", "arguments": {"code": "x"}}]',
        '[{"tool_calls": [{"name": "run_tests", "arguments": {}}, {"name": "get_weather", "arguments": {}}]}]',
    ],
)
def test_calls_of_one_element_have_places_of_their_own(text: str) -> None:
    assert len(check(text, TOOLS, random.Random(1)).calls) == 2


@pytest.mark.parametrize("block", range(20))
def test_mutated_cases(block: int) -> None:
    for number in range(block * 100, block * 100 + 100):
        text, tools = make(20261130, number, CORPUS)
        check(text, tools, random.Random(number))


@pytest.mark.parametrize("place", range(len(CORPUS)))
def test_every_case_cut_at_every_place(place: int) -> None:
    text, tools = CORPUS[place]
    for end in range(0, len(text), max(1, len(text) // 40)):
        check_shape(text[:end], detect(text[:end], tools))


@pytest.mark.parametrize("place", range(len(CORPUS)))
def test_every_case_split_by_characters_and_in_two(place: int) -> None:
    text, tools = CORPUS[place]
    whole = detect(text, tools)
    check_split(text, tools, [*text[:300], text[300:]], whole)
    assert detect(text, tools) == whole
    rng = random.Random(place)
    for _ in range(3):
        cut = rng.randrange(len(text) + 1)
        check_split(text, tools, [text[:cut], text[cut:]], whole)


CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
BLOCK = "```python\nfor item in items[1:]:\n    print({'a': item < 3})\n```\n"
PLAIN = [
    (text, TOOLS)
    for text in (
        CALL,
        f"The list (see `items`) was read. Let me look:\n{CALL}\n{CALL}",
        f"This prints them:\n\n{BLOCK}\nIt stops where a < b holds (as before).\n",
        f'Done:\n```json\n{{"status": "ok", "items": [1, 2]}}\n```\n{BLOCK}Next, the weather.\n\n{CALL}\n',
    )
]


def test_the_short_way_says_what_the_full_sweep_says() -> None:
    """Prose, code blocks and plain calls are read by a short sweep: over these texts both ways are gone."""
    short = 0
    for number in range(3000):
        text, tools = make(7, number, CORPUS + PLAIN * (len(CORPUS) // 8))
        known = compile_tools(tools)
        short += quick(text, known) is not None
        assert detect(text, tools) == detect_in_full(Source(text, known))
    assert short > 200


@pytest.mark.parametrize(
    "unit",
    [
        f"{CALL}\n",
        "```text\nab\n```\n",
        f"{CALL}\n```text\nab\n```\n",
        f"> {CALL}\n" + "```text\nab\n```\n" * 9,
    ],
)
@pytest.mark.parametrize("count", [500, 990, 1000, 1100, 3500])
def test_the_short_way_ends_where_the_full_sweep_does(unit: str, count: int) -> None:
    """How much a text may hold is counted alike; what is beyond it stays unread and is noted."""
    text = unit * count + "."
    found = detect(text, TOOLS)
    assert found == detect_in_full(Source(text, compile_tools(TOOLS)))
    assert count < 3500 or found.notes == ("capped",)
