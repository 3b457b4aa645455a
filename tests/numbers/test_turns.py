"""From verdicts to turns: what real judged answers count as."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from truecall import judge
from truecall.classify import judge_exchange
from truecall.funnel import Episode, Turn, measure, turn_of
from truecall.records import Exchange, Failure, FailureKind, Request, Timing, Uptake, Verdict

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            },
        },
    }
]
WRITTEN = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>'


def chat(content: str | None, name: str | None = None, **usage: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if name is not None:
        arguments = json.dumps({"path": "a.txt"})
        message["tool_calls"] = [
            {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}
        ]
    body: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return {**body, **({"usage": usage} if usage else {})}


def of(status: int, body: object, **more: Any) -> Turn:
    return turn_of(judge(status, body, TOOLS), **more)  # type: ignore[arg-type]


def failed(kind: FailureKind) -> Turn:
    request = Request(method="POST", url="http://127.0.0.1/v1/chat/completions")
    exchange = Exchange(request=request, timing=Timing(started_at=0.0), failure=Failure(kind=kind))
    return turn_of(judge_exchange(exchange, TOOLS))


HEALTHY = of(200, chat(None, "read_file"))
LEAKED = of(200, chat(WRITTEN))
WRONG = of(200, chat(None, "write_file"))
PROSE = of(200, chat("The file is empty."))
VANISHED = of(200, chat("", completion_tokens=60, prompt_tokens=9))
REFUSED = of(400, {"error": {"message": "m does not support tools", "type": "invalid_request_error"}})
CRASHED = of(500, {"error": {"message": f"Failed to parse input at pos 0: {WRITTEN}", "code": 500}})
TIMED_OUT = failed(FailureKind.TIMEOUT_FIRST_BYTE)
UNREACHABLE = failed(FailureKind.REFUSED)


def seen(turn: Turn) -> tuple[bool | None, ...]:
    return (
        turn.accepted,
        turn.any_emitted,
        turn.any_surfaced,
        turn.valid_emitted,
        turn.valid_surfaced,
        turn.lost,
    )


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (HEALTHY, (True, True, True, True, True, False)),
        (LEAKED, (True, True, False, True, False, True)),
        (WRONG, (True, True, True, False, False, False)),
        (PROSE, (True, False, False, False, False, False)),
        (VANISHED, (True, None, False, None, False, None)),
        (REFUSED, (False, False, False, False, False, False)),
        (CRASHED, (True, True, False, True, False, True)),
        (TIMED_OUT, (None, None, False, None, False, None)),
        (UNREACHABLE, (False, False, False, False, False, False)),
    ],
    ids=["healthy", "leaked", "wrong", "prose", "vanished", "refused", "crashed", "timed_out", "unreachable"],
)
def test_a_turn_says_what_its_verdict_says(turn: Turn, expected: tuple[bool | None, ...]) -> None:
    assert seen(turn) == expected


def test_four_servers_behind_one_study() -> None:
    """One refuses, one times out, one answers 500 with a call in the body, one is healthy."""
    turns = {"refusing": REFUSED, "silent": TIMED_OUT, "crashing": CRASHED, "healthy": HEALTHY}
    totals = 0
    for arm, turn in turns.items():
        numbers = measure([Episode(arm=arm, item="chain", seed=s, turns=(turn,)) for s in range(3)])
        assert "no_call" not in numbers.emissions
        produced, silent = numbers["observed_fidelity"].n, numbers["non_response_share"].yes
        assert produced + silent == 3
        totals += produced + silent
        if arm in ("refusing", "silent"):
            assert numbers["observed_fidelity"].per_seed.low is None
            assert numbers["emitted_fidelity"].per_seed.low is None
        else:
            assert numbers["emitted_fidelity"].per_seed.point == 1
        assert numbers.request_errors == (0 if arm == "healthy" else 3)
    assert totals == 12


def test_a_500_that_holds_a_call_is_a_lost_call_and_a_request_error() -> None:
    assert CRASHED.request_failed and CRASHED.lost and CRASHED.flags.produced
    numbers = measure([Episode(arm="a", item="chain", turns=(CRASHED,))])
    assert numbers["censored_share"].yes == 1
    assert numbers["serving_confounds"].n == 0  # the paper's convention: a non-response


@pytest.mark.parametrize(
    ("uptake", "executed", "observed"),
    [
        (Uptake.UNKNOWN, None, None),
        (Uptake.EXECUTED, True, None),
        (Uptake.OBSERVED, True, True),
        (Uptake.DROPPED, False, False),
    ],
)
def test_uptake_of_a_log(uptake: Uptake, executed: bool | None, observed: bool | None) -> None:
    verdict = judge(200, chat(None, "read_file"), TOOLS)
    calls = tuple(msgspec.structs.replace(call, uptake=uptake) for call in verdict.calls)
    turn = turn_of(msgspec.structs.replace(verdict, uptake=uptake, calls=calls))
    assert (turn.executed, turn.observed) == (executed, observed)
    told = turn_of(verdict, executed=False, observed=True)
    assert (told.executed, told.observed) == (False, True)


def test_a_call_known_from_the_servers_word_alone_counts_as_emitted() -> None:
    body = {"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]}
    verdict: Verdict = judge(200, body, TOOLS, api="gemini.generateContent")
    assert verdict.rule == "call.stated"
    assert turn_of(verdict).any_emitted is True
