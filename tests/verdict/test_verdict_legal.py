"""Every legal combination can come out: the table holds nothing that never happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from test_verdict_logs import logged
from test_verdict_rules import assert_legal
from test_verdict_turns import exchange, sse
from verdict_bodies import CUT, TOOLS, call, chat, raw

from truecall import judge
from truecall.classify import LEGAL, judge_exchange
from truecall.records import FailureKind, Verdict
from truecall.scan.kernel import judge_turn

PAYLOADS: dict[str, tuple[str, Any]] = {
    "valid": ("get_weather", {"city": "Oslo"}),
    "invalid_arguments": ("get_weather", {"city": 3}),
    "wrong_name": ("get_news", {"city": "Oslo"}),
    "malformed": ("get_weather", '{"city": Oslo}'),
}
Make = Callable[[], Verdict]


def of(body: Any, status: int = 200, **request: Any) -> Verdict:
    return judge(status, body, TOOLS, request=request or None)


def hermes(name: str, arguments: Any) -> str:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return f'<tool_call>\n{{"name": "{name}", "arguments": {text}}}\n</tool_call>'


def of_calls() -> dict[tuple[str, str], Make]:
    made: dict[tuple[str, str], Make] = {}
    for emission, (name, arguments) in PAYLOADS.items():
        text, other = hermes(name, arguments), call(name, {"city": "Rome"})
        given = call(name, arguments)
        made[emission, "surfaced"] = lambda given=given: of(chat(None, given))
        made[emission, "leaked"] = lambda text=text: of(chat(text))
        made[emission, "erased"] = lambda text=text: of(raw(text, ""))
        made[emission, "mangled"] = lambda text=text, other=other: of(raw(text, "", other))
        made[emission, "nothing"] = lambda text=text: of(chat(text), tool_choice="none")
        made[emission, "unknown"] = lambda text=text: judge_turn(logged(text))
    return made


MADE: dict[tuple[str, str], Make] = {
    **of_calls(),
    ("malformed", "cut_off"): lambda: of(chat(CUT, finish="length")),
    ("no_call", "nothing"): lambda: of(chat("Hello.")),
    ("no_call", "phantom"): lambda: of(raw("Hello.", None, call())),
    ("truncated", "nothing"): lambda: of(chat("Let me", finish="length")),
    ("truncated", "phantom"): lambda: of(raw("Let me", None, call(), finish="length")),
    ("truncated", "timeout"): lambda: broke(FailureKind.TIMEOUT_BETWEEN_BYTES),
    ("truncated", "server_error"): lambda: broke(FailureKind.CLOSED_MID_STREAM),
    ("empty", "nothing"): lambda: of(chat("", tokens=1)),
    ("empty", "phantom"): lambda: of(raw("", None, call())),
    ("not_run", "rejected"): lambda: of(b"", 401),
    ("not_run", "rate_limited"): lambda: of(b"", 429),
    ("not_run", "server_error"): lambda: of(b"", 503),
    ("not_run", "timeout"): lambda: judge_exchange(exchange(FailureKind.TIMEOUT_CONNECT), TOOLS),
    ("not_run", "unreachable"): lambda: judge_exchange(exchange(FailureKind.REFUSED), TOOLS),
    ("not_run", "unknown"): lambda: of({**chat(None), "usage": {"prompt_tokens": 0, "completion_tokens": 0}}),
    ("unknown", "unknown"): lambda: of(chat("", tokens=35)),
    ("unknown", "server_error"): lambda: of(b"", 500),
    ("unknown", "timeout"): lambda: of(b"", 504),
}


def broke(kind: FailureKind) -> Verdict:
    return judge_exchange(exchange(kind, sse({"content": "Let me "}), 200), TOOLS)


def test_the_list_is_the_table() -> None:
    assert set(MADE) == {(str(e), str(d)) for e, allowed in LEGAL.items() for d in allowed}


@pytest.mark.parametrize("pair", MADE, ids="-".join)
def test_each_combination(pair: tuple[str, str]) -> None:
    verdict = MADE[pair]()
    assert_legal(verdict)
    assert (str(verdict.emission), str(verdict.delivery)) == pair
