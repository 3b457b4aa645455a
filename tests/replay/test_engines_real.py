"""The engines' own parsers on recorded texts; skipped where an engine is not at hand."""

from __future__ import annotations

from collections import defaultdict

import pytest

from truecall.engines import Job
from truecall.replay import Engine, Replayed, material
from truecall.replay.cuts import Cutter

from .defects import DEFECTS
from .recorded import TEXTS, TOOLS, recorded

COUNTS = {"vllm": 54, "sglang": 44, "verl": 9}
IDLE = {
    "vllm": {"cohere_command3", "cohere_command4", "hf", "openai"},
    "sglang": {"response_template"},
    "verl": set(),
}


def name_of(engine: Engine) -> str:
    return engine.spec.engine


def test_every_parser_starts_or_says_why(engine: Engine) -> None:
    name = name_of(engine)
    assert len(engine.parsers) + len(engine.idle) == COUNTS[name]
    assert {one.parser for one in engine.idle} == IDLE[name]
    assert all(one.reason for one in engine.idle)


def test_the_recorded_results_come_out(engine: Engine) -> None:
    rows = [row for row in recorded() if row.engine == name_of(engine)]
    if not rows:
        pytest.skip("nothing was recorded of it")
    pairs = [(row, parser) for row in rows for parser in engine.parsers]
    parses = engine.parse(Job(parser, row.text, TOOLS) for row, parser in pairs)
    for (row, parser), parse in zip(pairs, parses, strict=True):
        got = [(call.name, call.arguments) for call in parse.calls]
        assert got == row.calls.get(parser, []), (row.case, parser)
        if not got and parser not in row.calls:
            assert ((parse.content or "").strip() != row.text.strip()) == (parser in row.erased), (
                row.case,
                parser,
            )


def test_every_defect_is_shown_as_its_layer(engine: Engine) -> None:
    rows = [row for row in DEFECTS if row.engine == name_of(engine)]
    wanted = {case for row in rows for case in row.cases}
    texts = [material(TEXTS[case], TOOLS, case) for case in sorted(wanted)]
    found: dict[tuple[str, str], list[Replayed]] = defaultdict(list)
    for pieces in (1, 7):
        engine._cutter = Cutter(pieces=pieces)
        for done in engine.replay(texts):
            found[done.parser, done.material.id].append(done)
    wrong = []
    for row in rows:
        for parser in row.parsers:
            for case in row.cases:
                one, other = found[parser, case]
                layers = tuple(fate.whole.layer.value for fate in one.calls)
                if layers != row.layers:
                    wrong.append(f"{row.id} {parser} {case}: {layers}")
                if row.split and not (one.split or other.split):
                    wrong.append(f"{row.id} {parser} {case}: streams as it does whole")
                if bool(one.phantom) != row.phantom and row.phantom:
                    wrong.append(f"{row.id} {parser} {case}: no phantom")
    assert wrong == []
