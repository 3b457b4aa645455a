"""What live vLLM and llama.cpp servers answered (tests/recorded), and the verdict on each answer.

`recorded_verdicts.json` holds the expected verdicts, read and agreed to one by one. After new recordings,
`python test_verdict_recorded.py` writes the file again: read the difference before you keep it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_verdict_rules import assert_legal
from verdict_bodies import HERE, RECORDED

from truecall import wire
from truecall.classify import judge_response
from truecall.records import Emission, EvidenceTier, Verdict

EXPECTED = HERE / "recorded_verdicts.json"
CHAT = "/v1/chat/completions"


def load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def chats() -> list[str]:
    """The names of the recorded chat answers whose request was JSON."""
    found = []
    for path in sorted(RECORDED.glob("*.json")):
        request = load(path)["request"]
        if request["path"] == CHAT and isinstance(request["body"], dict):
            found.append(path.stem)
    return found


def verdict_of(name: str, *, evidence: bool = True) -> Verdict:
    """The verdict on a recorded answer, with its ids turned back to text where that was recorded."""
    record = load(RECORDED / f"{name}.json")
    response = wire.read(record["body"], "openai.chat", status=record["status"])
    request = wire.read_request(record["request"]["body"], "openai.chat")
    ids = RECORDED / f"{name}-detokenized.json"
    text = json.loads(load(ids)["body"])["prompt"] if evidence and ids.exists() else None
    return judge_response(response, request.tools, status=record["status"], request=request, detokenized=text)


def shown(verdict: Verdict) -> str:
    calls = [f"{call.name} {call.delivery}" for call in verdict.calls]
    said = f"{verdict.emission}/{verdict.delivery} {verdict.rule} by {verdict.tier}"
    return f"{said}: {', '.join(calls)}" if calls else said


NAMES = chats()


@pytest.mark.parametrize("name", NAMES)
def test_recorded(name: str) -> None:
    verdict = verdict_of(name)
    assert_legal(verdict)
    assert shown(verdict) == load(EXPECTED)[name]


def test_nothing_expected_is_missing() -> None:
    assert set(load(EXPECTED)) == set(NAMES)


LEFT_BY_BOTH = (
    "bare-json",
    "fenced-json",
    "llama3-json",
    "pythonic",
    "mistral",
    "react",
    "harmony",
    "deepseek-v31",
)


@pytest.mark.parametrize(
    "name", ["hermes", "hermes-prose", "hermes-parallel", "hermes-unicode", "hermes-no-close"]
)
def test_two_parsers_on_hermes_text(name: str) -> None:
    """The same bytes under two parsers of one engine: surfaced by hermes, erased by qwen3_coder."""
    assert {str(c.delivery) for c in verdict_of(f"vllm-hermes-choice-{name}").calls} == {"surfaced"}
    erased = verdict_of(f"vllm-qwen3coder-choice-{name}")
    assert {str(c.delivery) for c in erased.calls} == {"erased"}
    assert erased.tier is EvidenceTier.TOKEN_IDS and erased.flags.well_formed_lost and erased.flags.forced
    unseen = verdict_of(f"vllm-qwen3coder-choice-{name}", evidence=False)
    assert unseen.emission is Emission.UNKNOWN, "without the ids nobody can say, and nobody says no_call"


@pytest.mark.parametrize("parser", ["hermes", "qwen3coder"])
@pytest.mark.parametrize("name", LEFT_BY_BOTH)
def test_dialects_that_no_parser_here_reads(parser: str, name: str) -> None:
    for form in (f"vllm-{parser}-choice-{name}", f"vllm-{parser}-choice-{name}-stream"):
        verdict = verdict_of(form)
        assert {c.rule for c in verdict.calls} == {"call.leaked.content"}, form


def test_choice_none_keeps_the_text_or_erases_it() -> None:
    """vLLM's qwen3_coder parser takes a hermes call out of the text even under tool_choice none."""
    assert verdict_of("vllm-hermes-none-hermes").rule == "call.asked_as_text"
    assert verdict_of("vllm-qwen3coder-none-hermes").rule == "call.erased.evidence"


@pytest.mark.parametrize("name", [n for n in NAMES if "-choice-prose" in n])
def test_guided_prose_holds_no_call(name: str) -> None:
    assert verdict_of(name).emission is Emission.NO_CALL


@pytest.mark.parametrize("name", [n for n in NAMES if load(RECORDED / f"{n}.json")["status"] >= 400])
def test_an_error_is_no_non_call(name: str) -> None:
    assert verdict_of(name).emission in (Emission.NOT_RUN, Emission.UNKNOWN)


if __name__ == "__main__":
    table = {name: shown(verdict_of(name)) for name in NAMES}
    EXPECTED.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", "utf-8")
