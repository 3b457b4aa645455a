"""Error texts of engines, gateways and hosted services, and what must not be taken for one."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.effort import HANGS
from truecall import stacks
from truecall.records import Delivery, ErrorBody

# Texts after docs/findings/contracts.md and the services' own words; what each means was labelled by hand.
_LINES = (Path(__file__).parent / "error_texts.jsonl").read_text().splitlines()
ROWS: list[dict[str, Any]] = [json.loads(line) for line in _LINES]


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{r['rule']}" for i, r in enumerate(ROWS)])
@pytest.mark.parametrize("form", ["nested", "flat", "string", "body", "json_in_string"])
def test_row(row: dict[str, Any], form: str) -> None:
    found = _refusal(form, row["status"], row["text"])
    assert found is not None
    assert (found.rule, found.ran) == (row["rule"], row["ran"])


def _refusal(form: str, status: int, text: str) -> stacks.Refusal | None:
    nested = {"error": {"message": text, "type": "error", "code": status}}
    if form == "nested":
        return stacks.refusal(status, ErrorBody(message=text, code=status), json.dumps(nested))
    if form == "flat":
        return stacks.refusal(status, None, json.dumps({"object": "error", "message": text, "code": status}))
    if form == "string":
        return stacks.refusal(status, ErrorBody(message=text), json.dumps({"error": text}))
    if form == "body":
        return stacks.refusal(status, None, text)
    wrapped = {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps(nested)}}}
    return stacks.refusal(status, ErrorBody(message="Provider returned error"), json.dumps(wrapped))


def test_the_engine_that_is_known_goes_first() -> None:
    known = stacks.refusal(500, None, "failed to parse tool call: x", "ollama")
    assert known is not None
    assert known.rule == "parser.ollama.tool_call"
    first = stacks.patterns("llamacpp")[0]
    assert first in stacks.engine("llamacpp").refusals
    assert len(stacks.patterns("llamacpp")) == len(stacks.patterns())


RECORDED = sorted((Path(__file__).parents[1] / "recorded").glob("*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_recorded_answers(path: Path) -> None:
    """Live vLLM and llama.cpp: every error is known by its text, no other answer is taken for one."""
    record = json.loads(path.read_text())
    status, body = record["status"], record["body"]
    text = body if isinstance(body, str) else "\n".join(body)
    found = stacks.refusal(status, None, text, record["engine"])
    if status < 400:
        assert found is None
        return
    assert found is not None
    chat = record["request"]["path"] == "/v1/chat/completions"
    assert not chat or found.rule not in ("request.refused", "server.error")
    for part, rule in RECORDED_RULES.items():
        assert not re.search(part, path.stem) or found.rule == rule, part


RECORDED_RULES = {
    "nojinja": "gate.llamacpp.no_jinja",
    "noparser-auto": "gate.vllm.auto_flags",
    "noparser-required-warm": "gate.vllm.required_parser",
    "noparser-named$": "gate.vllm.named_parser",
    "context-exceeded": "request.context_too_long",
    "choice-bad-value": "request.bad_tool_choice",
    "choice-without-tools": "request.tool_choice_without_tools",
    "tools-empty": "request.empty_tools",
    "named-unknown": "request.unknown_tool",
    "model-unknown": "model.not_found",
    "body-not-json": "request.not_json",
    "grammar-with-tools": "request.constraint_conflict",
    "logprobs-stream": "request.unknown_field",
    "schema-not-an-object": "request.bad_schema",
    "prefill-hermes-bad-json": "parser.llamacpp.peg_mismatch",
}


def test_the_recorded_rules_are_all_used() -> None:
    assert RECORDED
    assert all(any(re.search(part, path.stem) for path in RECORDED) for part in RECORDED_RULES)


def test_every_known_text_has_a_row() -> None:
    covered = {row["rule"] for row in ROWS}
    unseen = {"policy.content_filter"}  # no engine's exact words are known
    assert {p.rule for p in stacks.patterns()} - covered <= unseen


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"choices": [{"message": {"content": "--enable-auto-tool-choice must be set"}}]}),
        (200, {"choices": [{"message": {"content": "x does not support tools"}, "finish_reason": "stop"}]}),
        (200, {"message": {"content": "error parsing tool call: raw='x'"}, "done": True}),
        (200, {}),
        (204, None),
    ],
)
def test_an_answer_is_no_refusal(status: int, body: object) -> None:
    assert stacks.refusal(status, None, json.dumps(body)) is None
    assert stacks.refusal(None, None, "") is None


def test_what_the_model_wrote_does_not_decide() -> None:
    wrote = '{"name": "bash", "arguments": {"cmd": "vllm --enable-auto-tool-choice # rate limit exceeded"}}'
    error = ErrorBody(message=f"Failed to parse input at pos 3: {wrote}", generation=wrote)
    found = stacks.refusal(500, error, json.dumps({"error": {"message": error.message}}))
    assert found is not None
    assert found.rule == "parser.llamacpp.parse_input"
    lost = ErrorBody(message="engine stopped", generation=wrote)
    other = stacks.refusal(500, lost, json.dumps({"error": {"message": "engine stopped", "output": wrote}}))
    assert other is not None
    assert other.rule == "server.error"


def test_an_error_in_a_stream_that_began_well() -> None:
    found = stacks.refusal(200, ErrorBody(message="error parsing tool call: raw='x', err=…"), "")
    assert found is not None
    assert (found.rule, found.attempted) == ("parser.ollama.tool_call", True)
    other = stacks.refusal(200, ErrorBody(message="something broke"), "")
    assert other is not None
    assert (other.rule, other.ran, other.delivery) == ("server.error_in_answer", None, Delivery.SERVER_ERROR)


NGINX = (
    "<html>\r\n<head><title>{0}</title></head>\r\n<body>\r\n<center><h1>{0}</h1></center>\r\n<center>nginx"
)


@pytest.mark.parametrize(
    ("status", "body", "rule"),
    [
        (502, NGINX.format("502 Bad Gateway"), "gateway.bad_gateway"),
        (504, NGINX.format("504 Gateway Time-out"), "gateway.timeout"),
        (413, NGINX.format("413 Request Entity Too Large"), "gateway.body_too_large"),
        (200, "<!DOCTYPE html><html><body>Sign in</body></html>", "gateway.html"),
        (520, "<!DOCTYPE html><html><head><title>host | 520: Web server", "gateway.html"),
        (302, "", "gateway.redirect"),
    ],
)
def test_pages_and_redirects(status: int, body: str, rule: str) -> None:
    for error in (None, ErrorBody(message="Sign in")):
        found = stacks.refusal(status, error, body)
        assert found is not None
        assert found.rule == rule


def test_fields_that_an_error_names() -> None:
    text = "Unrecognized request arguments supplied: return_token_ids, verbose_mode"
    fields = ("return_token_ids", "verbose", "logprobs")
    assert stacks.blamed_fields(ErrorBody(message=text), "", fields) == ("return_token_ids",)


def test_rules_are_stable_and_whole() -> None:
    dotted = [p.rule for p in stacks.patterns()]
    assert all("." in rule and rule == rule.lower() for rule in dotted)
    for pattern in stacks.patterns():
        assert pattern.title
        assert pattern.ran is not True or pattern.delivery in (Delivery.ERASED, Delivery.UNKNOWN)
        assert not pattern.attempted or pattern.ran


@pytest.mark.parametrize(
    "piece", ["tools ", "model ", "arguments json ", "\\\\u0022", "a", "tool_choice = x "]
)
def test_a_long_body_ends(piece: str) -> None:
    body = piece * (2_000_000 // len(piece))
    start = time.process_time()
    assert stacks.refusal(500, None, body) is not None
    assert time.process_time() - start < HANGS
