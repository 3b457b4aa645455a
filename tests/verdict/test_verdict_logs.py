"""Turns of logs, in which what the interface gave, or even what the model wrote, is missing."""

from __future__ import annotations

from test_verdict_rules import assert_legal
from verdict_bodies import TOOLS

from truecall.records import Delivery, Emission, EvidenceTier
from truecall.scan.kernel import judge_turn
from truecall.sources.base import Place, Turn

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def logged(text: str | None) -> Turn:
    """A turn of a log that holds the text alone."""
    return Turn(place=Place(file="log.jsonl", line=1), text=text, tools=TOOLS)


def test_logs_of_text_alone() -> None:
    verdict = judge_turn(logged(CALL))
    assert_legal(verdict)
    assert (verdict.emission, verdict.delivery) == (Emission.VALID, Delivery.UNKNOWN)
    assert verdict.rule == verdict.calls[0].rule == "call.delivery_unknown"
    assert not verdict.flags.valid_surfaced and not verdict.flags.well_formed_lost


def test_logs_without_a_text() -> None:
    verdict = judge_turn(logged(None))
    assert_legal(verdict)
    assert (verdict.emission, verdict.delivery, verdict.tier) == (
        Emission.UNKNOWN,
        Delivery.UNKNOWN,
        EvidenceTier.NONE,
    )
    assert verdict.rule == "turn.unknown.no_text" and verdict.flags.unknown and not verdict.flags.produced
