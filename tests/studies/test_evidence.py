"""Evidence in studies: asked for where the stack is known, given up where it is refused, kept for a resume."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.fault_server import Profile, fault_server  # noqa: F401 - a fixture
from tests.studies.conftest import study
from truecall.errors import UsageError
from truecall.records import Count, EvidenceTier
from truecall.run.study import arms_of, checked
from truecall.sandbox import Sandbox
from truecall.store import read_log
from truecall.tasks.base import Decoy

ONE = {"seeds": 2, "limits": {"turns": 2, "nudges": 1}}


async def test_an_erased_call_is_seen_in_the_token_ids(fault_server: Any, play: Any) -> None:  # noqa: F811
    server = await fault_server(Profile(engine="vllm", parser="qwen3_coder"))
    result, _ = await play(study(**ONE), server.base_url)
    [arm] = result.arms
    firsts = [episode.turns[0] for episode in arm.episodes]
    assert {turn.tier for turn in firsts} == {EvidenceTier.TOKEN_IDS}
    assert {turn.delivery.value for turn in firsts} == {"erased"}
    assert arm.card.entry("engine").value == "vllm" and arm.card.entry("engine_version").origin == "probed"
    kept = [line for line in read_log(result.path) if line["kind"] == "detokenized"]
    assert len(kept) == sum(len(e.turns) for e in arm.episodes) and "<tool_call>" in kept[0]["text"]
    assert arm.card.sent == arm.card.declared  # evidence fields are ours, not the study's


async def test_the_text_of_token_ids_is_kept_for_a_resume(fault_server: Any, play: Any) -> None:  # noqa: F811
    server = await fault_server(Profile(engine="vllm"))
    await play(study(seeds=1, limits={"turns": 3, "requests": 2}), server.base_url)
    asked = [r.path for r in server.received].count("/detokenize")
    result, outcome = await play(study(seeds=1, limits={"turns": 3}), server.base_url)
    assert outcome.left == 0 and len(result.arms[0].episodes[0].turns) == 3
    assert [r.path for r in server.received].count("/detokenize") == asked + 1
    assert {turn.tier for turn in result.arms[0].episodes[0].turns} == {EvidenceTier.TOKEN_IDS}


async def test_refused_evidence_is_given_up_and_is_no_failed_request(fault_server: Any, play: Any) -> None:  # noqa: F811
    server = await fault_server(Profile(engine="vllm", evidence=False))
    result, outcome = await play(study(**ONE), server.base_url)
    [arm] = result.arms
    assert "Unrecognized request argument" in outcome.evidence_refused["endpoint"]
    assert arm.numbers.request_errors == 0 and arm.numbers["naive_rate"].n > 0
    whys = [line.get("why") for line in read_log(result.path) if line["kind"] == "intent"]
    assert 1 <= whys.count("without_evidence") <= 4  # requests that were under way when it was given up


async def test_a_gate_is_a_refusal_and_the_card_says_so(fault_server: Any, play: Any) -> None:  # noqa: F811
    server = await fault_server(Profile(engine="vllm", gate=False))
    result, _ = await play(study(**ONE), server.base_url)
    [arm] = result.arms
    assert set(arm.numbers.non_response) == {"rejected"} and arm.numbers.request_errors == 2
    assert "--enable-auto-tool-choice" in result.card.known["endpoint"].gate


def test_the_study_file_in_the_docs_is_one() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "studies.md").read_text("utf-8")
    [block] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    what = checked(tomllib.loads(block), "docs")
    assert len(arms_of(what)) == 6 and what.factorial is not None and len(what.predictions) == 1


async def test_a_tool_taken_for_the_function_is_counted(fault_server: Any, play: Any) -> None:  # noqa: F811
    try:
        sandbox = Sandbox(seconds=5)
    except UsageError as error:
        pytest.skip(str(error))
    own = '<tool_call>\n{"name": "count_vowels", "arguments": {"text": "Alice"}}\n</tool_call>'
    server = await fault_server(Profile(engine="vllm", writes=own))
    result, _ = await play(
        study(tasks=["code"], seeds=2, limits={"turns": 2}), server.base_url, sandbox=sandbox
    )
    [arm] = result.arms
    assert [each.confused for each in arm.ended] == [1, 0]  # the second problem has another function
    assert arm.confused == Count(k=1, n=2) and arm.numbers.emissions["wrong_name"].k == 2
    parameters = Decoy(name="f", parameters=frozenset({"a", "b"}))
    assert parameters.taken("run_tests", {"a": 1}) and not parameters.taken("run_tests", {"code": "a"})
    assert not parameters.taken("run_tests", {}) and parameters.taken("f", None)
