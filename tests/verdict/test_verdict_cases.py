"""Real faults: the cases made after public reports, and two sets that were labelled before anything was run on them."""

from __future__ import annotations

from typing import Any

import pytest
from verdict_bodies import cases

from truecall import judge
from truecall.classify.rules import CALL_EMISSIONS
from truecall.records import Verdict

# A case's stack_outcome -> the deliveries that agree with it; other outcomes say nothing of delivery.
DELIVERIES = {
    "ok": {"surfaced", "nothing"},
    "rejected": {"rejected", "rate_limited"},
    "no_parser": {"leaked"},
    "envelope_mismatch": {"leaked", "erased"},
    "stream_loss": {"mangled", "erased", "cut_off", "leaked", "unknown"},
    "truncated": {"cut_off", "nothing"},
    "empty": {"unknown", "erased", "nothing"},
    "prose_mention": {"nothing", "phantom"},
    "schema_invalid": {"surfaced", "leaked", "erased", "mangled", "unknown"},
    "wrong_name": {"surfaced", "leaked", "erased", "mangled"},
    "reasoning_swallowed": {"leaked", "erased"},
}
ROWS = [
    (name, row)
    for name in ("dev_http.jsonl", "unseen_http.jsonl", "unseen2_http.jsonl")
    for row in cases(name)
]
IDS = [row["id"] for _, row in ROWS]

# The label says what was true; the body does not show it.
NOT_KNOWABLE = {
    "http-ollama-empty-coder-stream-native": "turn.unknown.tokens_vanished",
    "http-mlxlm-finish-toolcalls-empty": "turn.unknown.finish_says_call",
    "http-vllm-qwen3xml-leaked-tag": "call.mangled.cut",
    "http-ollama-gptoss-not-json": "call.stated",
    "http-abort-normalised-to-stop": "turn.unknown.empty",
    "sse-phi4-stub-parser": "turn.unknown.empty",
    "h-llamacpp-500-format-lost": "parser.llamacpp.peg_mismatch",
    "h-erased-unknown": "turn.unknown.tokens_vanished",
    "h-empty-reasoning-tokens-only": "turn.empty",
    "h-ollama-empty-eval-count": "turn.unknown.tokens_vanished",
    "h-gemini-empty-parts": "turn.unknown.tokens_vanished",
    "h-finish-toolcalls-empty-array": "turn.unknown.finish_says_call",
    "s-all-content-swallowed": "turn.unknown.tokens_vanished",
}


def verdict_of(row: dict[str, Any]) -> Verdict:
    status = row.get("http_status") or 200
    api = row.get("api") or "openai.chat"
    return judge(status, row["raw"], row["tools"], api=api, request=row.get("request"))


@pytest.mark.parametrize(("file", "row"), ROWS, ids=IDS)
def test_emission(file: str, row: dict[str, Any]) -> None:
    verdict, want = verdict_of(row), row["expected"]
    if want["observable"]:
        assert (verdict.emission in CALL_EMISSIONS) == want["emitted"]
    else:
        assert verdict.rule == NOT_KNOWABLE[row["id"]]


@pytest.mark.parametrize(("file", "row"), ROWS, ids=IDS)
def test_delivery(file: str, row: dict[str, Any]) -> None:
    outcome = row["expected"]["stack_outcome"]
    if outcome in DELIVERIES:
        assert str(verdict_of(row).delivery) in DELIVERIES[outcome]


@pytest.mark.parametrize(("file", "row"), ROWS, ids=IDS)
def test_calls(file: str, row: dict[str, Any]) -> None:
    """Names and arguments, wherever the label's payload parses as it stands."""
    want = row["expected"]
    verdict = verdict_of(row)
    if not (want["observable"] and want["emitted"] and want["calls"] and want["well_formed"]):
        return
    if verdict.rule == "call.mangled.cut":  # what the stack cut away is not made up
        assert [(c.name, c.arguments) for c in verdict.calls] == [(c["name"], None) for c in want["calls"]]
        assert verdict.flags.unknown
        return
    got = [(call.name, call.arguments) for call in verdict.calls]
    assert sorted(map(repr, got)) == sorted(repr((c["name"], c["arguments"])) for c in want["calls"])


def test_no_case_without_a_label_is_forgotten() -> None:
    assert {row["id"] for _, row in ROWS if not row["expected"]["observable"]} == set(NOT_KNOWABLE)
