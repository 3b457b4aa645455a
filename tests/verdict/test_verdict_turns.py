"""Turns without a call, errors and failures: what is said of them, and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from verdict_bodies import CUT, HERMES, TOOLS, call, chat, chunks, raw

from truecall import judge
from truecall.classify import judge_exchange
from truecall.classify.error_texts import is_error_text
from truecall.records import (
    Emission,
    EvidenceTier,
    Exchange,
    Failure,
    FailureKind,
    Part,
    Request,
    Timing,
    Verdict,
)


def of(body: Any, *, status: int | None = 200, api: str = "openai.chat", **request: Any) -> Verdict:
    return judge(status, body, TOOLS, api=api, request=request or None)


def triple(verdict: Verdict) -> tuple[str, str, str]:
    return str(verdict.emission), str(verdict.delivery), verdict.rule


# --------------------------------------------------------------------------- answers


def test_prose_answer() -> None:
    verdict = of(chat("It is 3 degrees in Oslo."))
    assert triple(verdict) == ("no_call", "nothing", "turn.no_call")
    assert verdict.flags.produced and not verdict.flags.unknown
    assert triple(of(chat(None, refusal="I can't.")))[2] == "turn.no_call"


def test_required_ignored() -> None:
    verdict = of(chat("Which city?"), tool_choice="required")
    assert triple(verdict) == ("no_call", "nothing", "turn.required_ignored")
    assert verdict.cause is Part.CONSTRAINT
    loop = of(chat("Which city? Which city?", tokens=40), tool_choice="required", max_tokens=40)
    assert triple(loop) == ("truncated", "nothing", "turn.truncated.budget")


def test_truncated_prose() -> None:
    assert triple(of(chat("Let me", finish="length"))) == ("truncated", "nothing", "turn.truncated.budget")
    counted = of(chat("Let me", finish="stop", tokens=9), max_tokens=9)
    assert triple(counted) == ("truncated", "nothing", "turn.truncated.budget")
    assert "finish_reason_lies" in counted.notes
    assert triple(of(chat("Let me", tokens=9), max_tokens=10))[0] == "no_call"
    thinking = of(chat("", finish="length", reasoning_content="Hmm"))
    assert triple(thinking) == ("truncated", "nothing", "turn.truncated.budget")


def test_stream_cut_before_call() -> None:
    verdict = of(chunks({"content": "Let me "}, finish=None, done=False))
    assert triple(verdict) == ("truncated", "nothing", "turn.truncated.stream")
    assert triple(of(chunks({"content": "Hello."}, done=False)))[0] == "no_call", "only [DONE] is missing"
    broken_off = of(chat("Let me", finish="error"))
    assert triple(broken_off) == ("truncated", "nothing", "turn.truncated.stream")


def test_filtered() -> None:
    assert triple(of(chat("Let me", finish="content_filter"))) == (
        "truncated",
        "nothing",
        "turn.truncated.filter",
    )
    assert triple(of(chat(CUT, finish="content_filter")))[2] == "call.cut_off.filter"


def test_one_token_empty() -> None:
    verdict = of(chat("", tokens=1))
    assert triple(verdict) == ("empty", "nothing", "turn.empty")
    assert verdict.flags.produced
    assert not of(chat("", tokens=0)).flags.produced
    shown = of(raw("<|im_end|>", "", tokens=7))
    assert triple(shown) == ("empty", "nothing", "turn.empty"), "the raw text is empty, whatever the count"
    ids = chat("")
    ids["choices"][0]["token_ids"] = [2]
    assert triple(of(ids)) == ("empty", "nothing", "turn.empty")
    assert triple(of(chat("", tokens=1), max_tokens=1)) == ("truncated", "nothing", "turn.truncated.budget")


def test_empty_is_never_a_non_call() -> None:
    assert triple(of(chat("", tokens=35)))[2] == "turn.unknown.tokens_vanished"
    assert triple(of(chat(None)))[2] == "turn.unknown.empty"
    assert triple(of(chat("", tokens=20, finish="tool_calls")))[2] == "turn.unknown.finish_says_call"
    assert triple(of(chat("", tokens=30, thought=30)))[2] == "turn.empty"
    assert triple(of(chat("", tokens=60, thought=30)))[2] == "turn.unknown.tokens_vanished"
    assert triple(of(["[DONE]"]))[:2] == ("unknown", "unknown")


def test_prose_that_can_not_hold_its_tokens() -> None:
    prose = "I will look it up."
    verdict = of(chat(prose, tokens=60))
    assert triple(verdict) == ("unknown", "unknown", "turn.unknown.tokens_vanished")
    assert triple(of(chat(prose, tokens=20)))[2] == "turn.no_call"
    assert triple(of(chat(prose, tokens=60, thought=40)))[2] == "turn.no_call"
    assert triple(of(chat(prose, tokens=60, reasoning_content="Hm. " * 10)))[2] == "turn.no_call"
    assert triple(of(raw(prose, prose, tokens=60)))[2] == "turn.no_call", "the raw text is known"
    assert triple(of(chat(prose, tokens=60), max_tokens=60))[2] == "turn.truncated.budget"


def test_reasoning_only() -> None:
    silent = of(chat("", reasoning_content="The user greets me.", tokens=40))
    assert triple(silent) == ("unknown", "unknown", "turn.unknown.reasoning_only")
    counted = of(chat("", reasoning_content="The user greets me.", tokens=40, thought=38))
    assert triple(counted) == ("no_call", "nothing", "turn.no_call")
    shown = of(raw("<think>\nThe user greets me.\n</think>\n\n", "", reasoning_content="The user greets me."))
    assert triple(shown) == ("no_call", "nothing", "turn.no_call")


# --------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Error during inference: Connection error.", ("unknown", "server_error")),
        ("Error during inference: Error code: 400 - m does not support tools", ("not_run", "rejected")),
        ("litellm.RateLimitError: Too many requests", ("not_run", "rate_limited")),
        ("openai.APITimeoutError: Request timed out.", ("unknown", "timeout")),
        ('{"error": {"message": "boom", "type": "server_error"}}', ("unknown", "server_error")),
    ],
)
def test_error_saved_as_text(text: str, expected: tuple[str, str]) -> None:
    verdict = of(chat(text))
    assert triple(verdict) == (*expected, "turn.error_text")


@pytest.mark.parametrize(
    "text",
    [
        "An error occurred in your code: the index is wrong.",
        '{"error": "no such city"}',
        "Errors are raised by the parser.",
        "Error handling in Go is explicit.",
    ],
)
def test_prose_about_errors_is_prose(text: str) -> None:
    assert not is_error_text(text)
    assert triple(of(chat(text))) == ("no_call", "nothing", "turn.no_call")


def test_not_an_answer() -> None:
    page = b"<!doctype html><html><title>Sign in</title></html>"
    assert triple(of(page)) == ("unknown", "server_error", "turn.not_an_answer")
    assert triple(of({"hello": 1})) == ("unknown", "server_error", "turn.not_an_answer")
    assert triple(of(b"")) == ("unknown", "server_error", "turn.not_an_answer")
    assert triple(of(b'{"choices": [{"mess')) == ("unknown", "server_error", "net.closed")
    assert triple(of(17)) == ("unknown", "server_error", "turn.not_an_answer")


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (302, b"", ("not_run", "rejected", "gateway.redirect")),
        (302, b"<html>moved</html>", ("not_run", "rejected", "gateway.redirect")),
        (401, b"", ("not_run", "rejected", "auth.key")),
        (429, b"", ("not_run", "rate_limited", "rate.limited")),
        (500, b"", ("unknown", "server_error", "server.error")),
        (
            502,
            b"<html><title>502 Bad Gateway</title></html>",
            ("unknown", "server_error", "gateway.bad_gateway"),
        ),
        (503, b"", ("not_run", "server_error", "server.unavailable")),
        (504, b"", ("unknown", "timeout", "gateway.timeout")),
        (500, {"error": {"message": "boom"}}, ("unknown", "server_error", "server.error")),
        (
            429,
            {"error": {"message": "request tokens exceeded the limit"}},
            ("not_run", "rate_limited", "rate.limited"),
        ),
    ],
)
def test_error_statuses(status: int, body: Any, expected: tuple[str, str, str]) -> None:
    assert triple(of(body, status=status)) == expected


def test_error_event_after_text() -> None:
    stream = [
        *chunks({"content": "Let me "}, finish=None, done=False),
        json.dumps({"error": {"message": "boom"}}),
    ]
    verdict = of(stream)
    assert triple(verdict)[:2] == ("truncated", "server_error")
    assert verdict.flags.produced and "error_event" in verdict.notes
    whole = [
        *chunks({"content": HERMES}, finish=None, done=False),
        json.dumps({"error": {"message": "boom"}}),
    ]
    assert triple(of(whole)) == ("valid", "leaked", "call.leaked.content")


# --------------------------------------------------------------------------- failures


def exchange(kind: FailureKind, body: bytes = b"", status: int | None = None) -> Exchange:
    return Exchange(
        request=Request(method="POST", url="http://localhost/v1/chat/completions"),
        timing=Timing(started_at=0.0),
        status=status,
        body=body,
        failure=Failure(kind=kind, detail="it broke"),
    )


FAILURES = {
    FailureKind.REFUSED: ("not_run", "unreachable", "net.unreachable"),
    FailureKind.DNS: ("not_run", "unreachable", "net.unreachable"),
    FailureKind.TLS: ("not_run", "unreachable", "net.unreachable"),
    FailureKind.UNREACHABLE: ("not_run", "unreachable", "net.unreachable"),
    FailureKind.TIMEOUT_CONNECT: ("not_run", "timeout", "net.timeout"),
    FailureKind.TIMEOUT_FIRST_BYTE: ("unknown", "timeout", "net.timeout"),
    FailureKind.TIMEOUT_BETWEEN_BYTES: ("unknown", "timeout", "net.timeout"),
    FailureKind.TIMEOUT_TOTAL: ("unknown", "timeout", "net.timeout"),
    FailureKind.CLOSED_BEFORE_RESPONSE: ("unknown", "server_error", "net.closed"),
    FailureKind.CLOSED_MID_STREAM: ("unknown", "server_error", "net.closed"),
    FailureKind.NOT_HTTP: ("unknown", "server_error", "net.not_http"),
    FailureKind.BAD_ENCODING: ("unknown", "server_error", "net.not_http"),
    FailureKind.TOO_LARGE: ("unknown", "server_error", "net.too_large"),
}


@pytest.mark.parametrize("kind", FailureKind)
def test_failures(kind: FailureKind) -> None:
    assert triple(judge_exchange(exchange(kind), TOOLS)) == FAILURES[kind]


def sse(*deltas: dict[str, Any]) -> bytes:
    return "".join(f"data: {piece}\n\n" for piece in chunks(*deltas, finish=None, done=False)).encode()


@pytest.mark.parametrize(
    "kind", [FailureKind.TIMEOUT_BETWEEN_BYTES, FailureKind.CLOSED_MID_STREAM, FailureKind.TOO_LARGE]
)
def test_a_stream_that_broke_after_text(kind: FailureKind) -> None:
    prose = judge_exchange(exchange(kind, sse({"content": "Let me "}), 200), TOOLS)
    assert prose.emission is Emission.TRUNCATED
    assert triple(prose)[1:] == FAILURES[kind][1:]
    assert prose.flags.produced
    cut = judge_exchange(exchange(kind, sse({"content": CUT}), 200), TOOLS)
    assert triple(cut) == ("malformed", "cut_off", "call.cut_off.stream")
    whole = {"tool_calls": [{"index": 0, **call()}]}
    assert triple(judge_exchange(exchange(kind, sse(whole), 200), TOOLS))[1] == "surfaced"


def test_an_error_body_is_read_even_when_the_connection_broke() -> None:
    body = b'{"error": {"message": "tools param requires --jinja flag", "code": 500}}'
    verdict = judge_exchange(exchange(FailureKind.CLOSED_MID_STREAM, body, 500), TOOLS)
    assert triple(verdict) == ("not_run", "rejected", "gate.llamacpp.no_jinja")
    assert verdict.tier is EvidenceTier.NONE
