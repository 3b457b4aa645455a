"""The user's own request: repeated, looked up in the prompt, put down to a part, and made smaller."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.faults.engine import Profile
from tests.preflight.conftest import Examine
from tests.preflight.native import ollama
from truecall.preflight.report import ProbeResult, Report
from truecall.preflight.request_file import OwnRequest
from truecall.records import Finding, Part


def tool(name: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }


BODY: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "You are careful. " * 40},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": "Use tool_5 please."},
    ],
    "tools": [tool(f"tool_{n}") for n in range(8)],
    "max_tokens": 50,
}


def own(body: dict[str, Any] = BODY, api: str = "openai.chat") -> OwnRequest:
    return OwnRequest(body=body, api=api)


def result(report: Report) -> ProbeResult:
    return next(p for p in report.probes if p.name == "own")


def the_finding(report: Report) -> Finding:
    [found] = [f for f in report.findings if f.id.startswith("own-")]
    return found


async def test_an_erased_call_is_proven_put_down_and_made_smaller(examine: Examine) -> None:
    report = await examine(Profile(parser="qwen3_coder"), only=("own", "loopback"), own=own())
    found = the_finding(report)
    assert (found.id, found.part, found.severity) == ("own-erased", Part.PARSER, "broken")
    assert found.count is not None and (found.count.k, found.count.n) == (10, 10)
    assert found.wrote.startswith("<tool_call>") and "tool_calls []" in found.got
    assert found.change == "change --tool-call-parser qwen3_coder to hermes"
    assert report.answer.startswith(
        "Your model calls; this server's parser erases the call. Change --tool-call"
    )
    data = result(report).data
    assert (data["names_in_prompt"], data["messages_in_prompt"]) == (8, 4)
    assert data["smallest"]["tools"] == 1 and data["smallest"]["messages"] == 1
    assert "rendered 8/8 tool names" in result(report).said and "nothing cut" in result(report).said
    repeated = json.loads(shlex.split(found.repeat)[-1])
    assert len(repeated["tools"]) == 1 and len(repeated["messages"]) == 1


async def test_a_long_text_is_cut_as_long_as_the_request_still_fails(examine: Examine) -> None:
    message = {"role": "user", "content": "Much ado. " * 900 + "Use tool_0 please."}
    body = {**BODY, "messages": [message], "tools": [tool("tool_0")]}
    report = await examine(Profile(parser="qwen3_coder"), only=("own",), own=own(body))
    assert result(report).data["smallest"]["characters"] < 1000
    repeated = json.loads(shlex.split(the_finding(report).repeat)[-1])
    assert repeated["messages"][0]["content"].endswith("Use tool_0 please.")


async def test_a_request_without_tools_is_told_to_say_nothing_of_calls(examine: Examine) -> None:
    report = await examine(Profile(), only=("own",), own=own({**BODY, "tools": []}))
    assert (report.state, the_finding(report).id) == ("CANNOT TELL", "own-no-tools")
    assert report.answer == "Your request offers no tools, so nothing can be said of tool calls."
    assert "no tools were offered" in result(report).said and result(report).state == "unknown"


async def test_a_request_that_works_is_said_to_work(examine: Examine) -> None:
    report = await examine(Profile(), only=("own",), own=own())
    assert report.state == "READY" and not report.findings
    assert "surfaced 10/10" in result(report).said


async def test_a_model_that_does_not_call_is_no_fault_of_the_stack(examine: Examine) -> None:
    report = await examine(Profile(model_calls=False), only=("own",), own=own())
    found = the_finding(report)
    assert (report.state, found.id, found.part) == ("READY", "own-no-call", Part.MODEL)
    assert report.answer == (
        "Your request: the model answers without a call, 10 times of 10; nothing is lost on the way."
    )


async def test_a_budget_that_ends_before_any_call_is_the_budgets(examine: Examine) -> None:
    body = {**BODY, "max_tokens": 5}
    report = await examine(Profile(writes="Let me think. " * 99), only=("own",), own=own(body))
    found = the_finding(report)
    assert (report.state, found.id, found.part) == ("BROKEN", "own-truncated", Part.BUDGET)
    assert found.change == "raise max_tokens (now 5)"


async def test_tools_that_never_reach_the_prompt_are_the_templates_fault(examine: Examine) -> None:
    profile = Profile(engine="llamacpp", template_renders_tools=False)
    report = await examine(profile, only=("own",), own=own())
    found = the_finding(report)
    assert (found.id, found.part) == ("own-tools-not-rendered", Part.TEMPLATE)
    assert "--chat-template-file" in found.change
    assert "rendered 0/8 tool names" in result(report).said


async def test_a_cut_prompt_names_what_is_missing(examine: Examine) -> None:
    report = await examine(Profile(context=250), only=("own",), own=own())
    found = the_finding(report)
    assert (found.id, found.part) == ("own-context-cut", Part.SERVER)
    assert "of 8 tools" in found.title


async def test_without_a_visible_prompt_token_counts_tell(examine: Examine) -> None:
    bare = Profile(engine="tgi", template_renders_tools=False)
    report = await examine(bare, only=("own",), own=own())
    assert "tools NOT rendered" in result(report).said
    assert the_finding(report).id == "own-tools-not-rendered"


async def test_a_refusal_is_reduced_to_what_is_refused(examine: Examine) -> None:
    report = await examine(Profile(gate=False), only=("own",), own=own())
    found = the_finding(report)
    assert (found.id, found.part) == ("own-rejected", Part.GATE)
    assert "without tool calling" in found.title
    assert result(report).data["smallest"]["tools"] == 1


async def test_a_rate_limit_is_no_fault_of_the_request(examine: Examine) -> None:
    weather = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
    body = {**BODY, "tools": [weather]}
    report = await examine("rate-limited-then-ok", only=("own",), own=own(body), timeout=5.0)
    assert not report.findings and result(report).state == "ok"


@pytest.mark.parametrize(
    ("profile", "id"),
    [
        (Profile(engine="ollama"), None),
        (Profile(engine="ollama", parser="none"), "own-leaked"),
        (Profile(engine="ollama", context=250), "own-context-cut"),
        (Profile(engine="ollama", gate=False), "own-rejected"),
    ],
    ids=["fine", "leaks", "cuts", "refuses"],
)
async def test_ollamas_own_api(examine: Examine, profile: Profile, id: str | None) -> None:
    body = {**BODY, "options": {"num_predict": 50}}
    del body["max_tokens"]
    report = await examine(ollama(profile), only=("own",), own=own(body, "ollama.chat"))
    assert [f.id for f in report.findings] == ([id] if id else []), report.answer
    if id != "own-rejected":
        assert result(report).data["names_in_prompt"] == (
            8 if id != "own-context-cut" else pytest.approx(4, abs=4)
        )
    for found in report.findings:
        words = shlex.split(found.repeat)
        assert any(word.endswith("/api/chat") for word in words)
        assert json.loads(words[-1])["stream"] is False  # Ollama streams unless told not to
