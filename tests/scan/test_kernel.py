"""The short ways of the scan come to what the verdict comes to."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.scan import chats
from tests.sources.samples import TEXT_CALL, TOOLS
from truecall.detector import detect
from truecall.records import ToolCall
from truecall.scan import judge_turn, outcome_of
from truecall.scan.kernel import Kernel
from truecall.scan.prefilter import Prefilter
from truecall.scan.units import Piece, work
from truecall.schema import compile_tools
from truecall.sources import Options, Place, Turn, read_file

HERE = Path(__file__).parent
PLACE = Place(file="f")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chats") / "mixed.jsonl"
    path.write_bytes(chats.lines(900))
    return path


def test_short_cuts_of_the_kernel(mixed: Path) -> None:
    kernel = Kernel()
    short = 0
    for item in read_file(str(mixed)):
        if isinstance(item, Turn):
            outcome, verdict = kernel.outcome(item)
            short += verdict is None
            assert outcome == outcome_of(item, judge_turn(item)), item
    assert short > 300  # both ways were taken


@pytest.mark.parametrize("by", [(), ("model",), ("model", "step", "file")])
def test_the_short_way_for_chat_files(mixed: Path, by: tuple[str, ...]) -> None:
    piece = Piece(str(mixed), "chat", 0, None)
    short = work(piece, by, Options(), Kernel())
    entries = work(piece, by, Options(), Kernel(), entries=True)  # lists every turn: takes the general way
    assert chats.plain(short.tally) == chats.plain(entries.tally)
    assert entries.entries is not None and len(entries.entries) == short.tally.turns
    assert short.lines == entries.lines == mixed.read_bytes().count(b"\n")


def _texts() -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for path in sorted((HERE.parent / "detector").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            text = entry.get("raw", entry.get("text"))
            if isinstance(text, str):
                found.append((text, entry.get("tools")))
    return found


def test_the_prefilter_never_hides_a_call() -> None:
    rng = random.Random(5)
    texts = [*_texts(), (TEXT_CALL, TOOLS), ("call get_weather(city='Oslo')", TOOLS)]
    hidden = 0
    for text, tools in texts:
        for offered in (tools, None):
            prefilter = Prefilter(compile_tools(offered))
            cuts = [sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1))) for _ in range(4)]
            for piece in [text, *(text[:a] + text[b:] for a, b in cuts), *(text[a:b] for a, b in cuts)]:
                if not prefilter.may_call(piece):
                    found = detect(piece, offered)
                    assert not found.calls and not found.notes, piece
                    hidden += 1
    assert hidden


def test_the_prefilter_keeps_plain_text_from_the_detector() -> None:
    prefilter = Prefilter(compile_tools(TOOLS))
    for text in ("Hello.", "see (above)", "items[0] = 3", "a [link](x)", "a = {1: 2}"):
        assert not prefilter.may_call(text), text


# --------------------------------------------------------------------------- what is unknown


def test_unknown_is_never_no() -> None:
    def outcome(**fields: object) -> object:
        turn = Turn(place=PLACE, **fields)  # type: ignore[arg-type]
        return outcome_of(turn, judge_turn(turn))

    silent = outcome(tools=TOOLS)
    assert (silent.emitted, silent.valid, silent.surfaced, silent.lost) == (None, None, None, None)  # type: ignore[attr-defined]
    text_only = outcome(text=TEXT_CALL, tools=TOOLS)
    assert (text_only.emitted, text_only.valid, text_only.surfaced, text_only.lost) == (
        True,
        True,
        None,
        None,
    )  # type: ignore[attr-defined]
    no_tools = outcome(text=TEXT_CALL, surfaced=())
    assert (no_tools.emitted, no_tools.valid, no_tools.eligible, no_tools.lost) == (True, None, None, True)  # type: ignore[attr-defined]
    failed = outcome(error="Error code: 500", tools=TOOLS)
    assert (failed.produced, failed.emitted) == (False, None)  # type: ignore[attr-defined]
    prose = outcome(text="Hello.", tools=TOOLS)
    assert (prose.emitted, prose.surfaced) == (False, False)  # type: ignore[attr-defined]
    stripped = outcome(text=TEXT_CALL, tools=TOOLS, raw=True, stripped=True)
    assert stripped.tier == "strong"  # type: ignore[attr-defined]
    seen = outcome(text=TEXT_CALL, tools=TOOLS, raw=True, observed=True, executed=True)
    assert (seen.surfaced, seen.surfaced_valid, seen.observed, seen.lost) == (True, True, True, False)  # type: ignore[attr-defined]


def test_a_raw_text_is_held_against_what_was_surfaced() -> None:
    call = ToolCall(name="get_weather", arguments={"city": "Oslo"})
    kept = Turn(place=PLACE, text=TEXT_CALL, raw=True, content="", surfaced=(call,), tools=TOOLS)
    assert judge_turn(kept).delivery == "surfaced"
    erased = Turn(place=PLACE, text=TEXT_CALL, raw=True, content="", surfaced=(), tools=TOOLS)
    assert judge_turn(erased).delivery == "erased"
