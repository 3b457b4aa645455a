"""Layers, on an engine whose parsers are known line by line."""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truecall.engines import Parse, Spec
from truecall.errors import InputError, UsageError
from truecall.records import ToolCall
from truecall.replay import Engine, Replayed, material, matrix, samples
from truecall.replay.cuts import Cutter
from truecall.replay.matching import match
from truecall.replay.run import Options, replay

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
OTHER = CALL.replace("get_weather", "solve")


def run(fake: Spec, text: str, pieces: int = 5) -> dict[str, Replayed]:
    """The text through every parser of the fake engine."""
    with Engine(fake, cutter=Cutter(pieces=pieces)) as engine:
        return {done.parser: done for done in engine.replay([material(text, TOOLS)])}


def layers(done: Replayed) -> list[tuple[str, str | None]]:
    return [(f.whole.layer.value, f.streamed.layer.value if f.streamed else None) for f in done.calls]


def test_returned_whole_and_streamed(fake: Spec) -> None:
    done = run(fake, CALL)["plain"]
    assert layers(done) == [("returned", "returned")]
    assert not done.lost and done.split is False


def test_a_parser_of_another_form(fake: Spec) -> None:
    done = run(fake, CALL)["blind"]
    assert layers(done) == [("no_envelope", "no_envelope")]
    assert done.lost
    assert (done.calls[0].whole.start, done.calls[0].whole.end) == (0, len(CALL))


def test_lost_in_the_stream(fake: Spec) -> None:
    done = run(fake, CALL)["split"]
    assert layers(done) == [("returned", "stream_loss")]
    assert done.split


def test_a_name_that_is_not_offered(fake: Spec) -> None:
    done = run(fake, OTHER)["strict"]
    assert layers(done) == [("wrong_name_dropped", "wrong_name_dropped")]


def test_a_second_call_hides_nothing(fake: Spec) -> None:
    # The fake parsers read the first block only.
    done = run(fake, f"{CALL}\n{CALL.replace('Oslo', 'Rome')}")["plain"]
    assert [layer for layer, _ in layers(done)] == ["returned", "trailing_text"]
    assert done.calls[1].whole.start == 0  # what stands before it decided


def test_a_payload_that_does_not_parse(fake: Spec) -> None:
    done = run(fake, "<tool_call>\n{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}\n</tool_call>")[
        "plain"
    ]
    assert layers(done)[0][0] == "failed"  # json.loads raised in it
    assert "JSONDecodeError" in done.calls[0].whole.reason
    assert not done.lost  # it was not well-formed


def test_a_crash_is_a_layer(fake: Spec) -> None:
    done = run(fake, f"EXIT {CALL}")["plain"]
    assert layers(done)[0][0] == "failed"
    assert done.whole.state == "crashed"


def test_what_a_parser_could_not_be_given_is_no_loss(fake: Spec, tmp_path: Path) -> None:
    done = run(fake, f"UNASKED {CALL}")["plain"]
    assert layers(done) == [("unasked", "unasked")]
    assert done.calls[0].whole.reason == "unasked: the model wrote another text"
    assert not done.lost and not done.calls[0].whole.away
    file = tmp_path / "texts.jsonl"
    file.write_text(
        "".join(json.dumps({"text": text, "tools": TOOLS}) + "\n" for text in ("UNASKED " + CALL, CALL))
    )
    ran = matrix.run(fake, list(samples.read(file)))
    assert [cell.outcome for cell in ran.cells if cell.parser == "plain"] == ["unasked", "taken"]
    taken = msgspec.structs.replace(
        ran, cells=tuple(msgspec.structs.replace(c, outcome="taken") for c in ran.cells)
    )
    assert all(change.before != "unasked" for change in matrix.changes(taken, ran))


def test_layers_add_up_to_all_calls(fake: Spec) -> None:
    texts = [
        CALL,
        OTHER,
        f"{CALL}\n{OTHER}",
        "Hello.",
        f"So: {CALL} EXIT",
        CALL[:40],
        CALL + "x" * 50,
        "UNASKED" + CALL,
    ]
    found = [material(text, TOOLS, str(i)) for i, text in enumerate(texts)]
    report = replay(found, [fake], Options(workers=1), Cutter())
    calls = sum(len(one.found.calls) for one in found)
    assert len(report.rows) == 8  # four parsers, whole and streamed
    for row in report.rows:
        assert row.returned + sum(row.layers.values()) == row.emitted.calls == calls
        assert sum(row.states.values()) == len(texts)
        assert row.emitted.tight <= row.emitted.strong <= row.emitted.weak


def parse(*calls: tuple[str, str], content: str = "") -> Parse:
    made = tuple(ToolCall(name=name, arguments=arguments) for name, arguments in calls)
    return Parse(state="parsed", calls=made, content=content)


@pytest.mark.parametrize(
    ("returned", "state"),
    [
        (("get_weather", '{"city": "Oslo"}'), "returned"),
        (("get_weather", '{"city":"Oslo"}'), "returned"),
        (("get_weather", "{}"), "mangled"),
        (("get_weather", '{"city": "Rome"}'), "mangled"),
        (("get_weather", json.dumps('{"city": "Oslo"}')), "mangled"),
        (('{"name": "get_weather"}', "{}"), "mangled"),
        (("get_weather", '{"city": "Os'), "mangled"),
    ],
)
def test_what_came_back_is_held_against_what_was_written(returned: tuple[str, str], state: str) -> None:
    assert match(material(CALL, TOOLS), parse(returned)).calls == (state,)


def test_a_call_that_nobody_wrote_is_a_phantom() -> None:
    assert match(material("Hello.", TOOLS), parse(("get_weather", "{}"))).phantom == 1


@pytest.mark.parametrize(
    ("text", "content", "gone"),
    [
        (CALL, CALL, False),
        (CALL, "", True),
        (f"I use get_weather. {CALL}", "I use get_weather. ", True),
        (f"I use get_weather. {CALL}", f"I use get_weather. {CALL[11:]}", False),
        (CALL, " " + CALL.replace("\n", ""), False),
    ],
)
def test_gone_means_that_the_text_holds_it_no_more(text: str, content: str, gone: bool) -> None:
    assert match(material(text, TOOLS), parse(content=content)).gone == (gone,)


@given(st.text(max_size=3000), st.integers(0, 5))
def test_pieces_make_up_the_text(text: str, seed: int) -> None:
    cuts = Cutter(seed).cuts(text)
    assert list(cuts) == sorted(set(cuts))
    assert all(0 < cut < len(text) for cut in cuts)
    assert cuts == Cutter(seed).cuts(text)


def test_special_tokens_arrive_whole() -> None:
    text = "<|tool_calls_section_begin|>x[TOOL_CALLS]y<｜tool▁sep｜><tool_call>" * 5
    ends = [0, *Cutter(3).cuts(text), len(text)]
    pieces = Counter(text[a:b] for a, b in pairwise(ends))
    for token in ("<|tool_calls_section_begin|>", "[TOOL_CALLS]", "<｜tool▁sep｜>", "<tool_call>"):
        assert pieces[token] == 5


def test_a_tokenizer_gives_its_own_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tokenizer:
        @classmethod
        def from_file(cls, path: str) -> Tokenizer:
            if not Path(path).exists():
                raise Exception("no such file")
            return cls()

        def encode(self, text: str, add_special_tokens: bool) -> SimpleNamespace:
            return SimpleNamespace(offsets=[(0, 2), (2, 3), (2, 3), (3, len(text))])

    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=Tokenizer))
    (tmp_path / "tokenizer.json").write_text("{}")
    cutter = Cutter(tokenizer=tmp_path)
    assert cutter.cuts("abcdef") == (2, 3)
    assert "token pieces" in cutter.how
    with pytest.raises(InputError, match="is no tokenizer"):
        Cutter(tokenizer=tmp_path / "absent.json")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UsageError, match="pip install tokenizers"):
        Cutter(tokenizer=tmp_path)
