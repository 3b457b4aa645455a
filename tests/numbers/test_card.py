"""The card, drift, admissibility and the checklist."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from number_turns import empty, episodes, leaked, prose, rejected, timed_out, valid, vanished

from truecall.card import (
    ENTRIES,
    OPTIONAL,
    Card,
    admissibility,
    checklist,
    declared,
    digest,
    drift,
    faults_between,
    faults_of,
    fingerprint,
    from_stack,
    hashed,
    joined,
    render,
    sent_parameters,
)
from truecall.compare import compare
from truecall.funnel import Turn, measure
from truecall.records import Exchange, Request, Response, Timing
from truecall.stacks import StackInfo
from truecall.stacks.base import UNKNOWN, Fact, Gateway, probed

WHOLE = {name: declared(f"some {name}") for name in ENTRIES if name not in OPTIONAL}
PARAMETERS = {"temperature": 1.0, "max_tokens": 512}


def card(arm: str = "a", **changed: Any) -> Card:
    entries = {**WHOLE, **{name: declared(value) for name, value in changed.items()}}
    return Card(arm=arm, entries=entries, declared=PARAMETERS, sent=PARAMETERS)


# ------------------------------------------------------------------ entries


def test_a_card_lists_what_it_does_not_know() -> None:
    assert card().missing == ()
    assert Card(arm="a").missing == tuple(name for name in ENTRIES if name not in OPTIONAL)
    assert Card(arm="a").entry("engine") == UNKNOWN
    with pytest.raises(KeyError):
        card().entry("colour")


@pytest.mark.parametrize("value", [None, "qwen3:8b", "main", "v1", "abc123", "sha256:12"])
def test_an_alias_is_no_digest(value: str | None) -> None:
    assert digest(probed(value)) == UNKNOWN


@pytest.mark.parametrize(
    "value", ["a" * 64, "sha256:" + "0f" * 32, "0123456789abcdef0123456789abcdef01234567"]
)
def test_digests_and_revisions_stand(value: str) -> None:
    assert digest(probed(value)) == Fact(value=value, origin="probed")


def test_entries_of_a_stack() -> None:
    info = StackInfo(
        engine="vllm",
        title="vLLM",
        signals=("version route",),
        gateways=(Gateway(name="nginx", signals=("Server",)),),
        version=probed("0.32.0"),
        model=probed("prod-chat"),
        digest=probed("prod-chat"),
        chat_template=probed("{{ messages }}"),
        tool_parser=Fact(value="hermes", origin="inferred"),
    )
    found = from_stack(info)
    assert found["engine"] == Fact(value="vllm", origin="probed")
    assert found["gateway"].value == ["nginx"]
    assert found["model_digest"] == UNKNOWN
    assert found["chat_template"].value == hashed("{{ messages }}")
    assert found["tool_parser"].origin == "inferred"
    assert set(found) <= set(ENTRIES)


def test_probed_stands_before_declared_and_contradictions_are_named() -> None:
    facts, quarrels = joined(
        {"tool_parser": declared("hermes"), "task": declared("chain")},
        {"tool_parser": probed("qwen3_coder"), "engine": probed("vllm")},
    )
    assert facts["tool_parser"] == probed("qwen3_coder")
    assert facts["task"] == declared("chain")
    assert quarrels == ("tool_parser: declared 'hermes', probed 'qwen3_coder'",)


def test_hashes_do_not_depend_on_the_order_of_keys() -> None:
    assert hashed({"a": 1, "b": [2]}) == hashed({"b": [2], "a": 1}) != hashed({"a": 1, "b": [3]})


def test_parameters_as_sent() -> None:
    bodies = [
        {"model": "m", "messages": [], "temperature": 1.0, "max_tokens": 512, "seed": seed}
        for seed in (1, 2, 1)
    ]
    sent, many = sent_parameters([*bodies, {"messages": [], "temperature": 1.0, "seed": 1}])
    assert sent == {"temperature": 1.0}
    assert many == {"max_tokens": ("512", "null"), "seed": ("1", "2")}


# ------------------------------------------------------------------ drift


def exchange(**headers: str) -> Exchange:
    return Exchange(
        request=Request(method="POST", url="http://127.0.0.1/v1/chat/completions"),
        timing=Timing(started_at=0.0),
        status=200,
        headers=tuple(headers.items()),
    )


def test_a_backend_that_changes_in_mid_run_is_found() -> None:
    answers = [Response(api="openai.chat", model="m", fingerprint=f) for f in ("fp_1", None, "fp_1", "fp_2")]
    marks = [fingerprint(exchange(Server="nginx"), answer) for answer in answers]
    found = drift([*marks, fingerprint(exchange(), None)])
    assert found.exchanges == 5
    assert found.values["system_fingerprint"] == {"fp_1": 2, "fp_2": 1}
    assert found.values["server"] == {"nginx": 4}
    assert not found.steady
    (change,) = found.changes
    assert (change.mark, change.at, change.before, change.after) == ("system_fingerprint", 3, "fp_1", "fp_2")


def test_an_error_that_shows_no_mark_is_no_change() -> None:
    found = drift([{"model": "m"}, {}, {"model": "m"}])
    assert found.steady
    assert found.values == {"model": {"m": 2}}


def test_two_backends_in_turn_are_counted_whole() -> None:
    found = drift({"model": f"m{i % 2}"} for i in range(1000))
    assert found.changed == 999
    assert len(found.changes) == 20


# ------------------------------------------------------------------ admissibility


def test_a_whole_card_sent_as_declared_has_no_fault() -> None:
    assert faults_of(card(), drift([{"model": "m"}] * 3)) == ()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"entries": {**WHOLE, "tool_parser": UNKNOWN}}, "the card does not know: tool_parser"),
        ({"sent": {"temperature": 1.0, "max_tokens": 2048}}, "max_tokens: declared 512, sent 2048"),
        ({"sent": {"temperature": 1.0}}, "max_tokens: declared 512, not sent"),
        ({"sent": {**PARAMETERS, "top_p": 0.9}}, "sent and not declared: top_p"),
        (
            {"sent": {"temperature": 1.0}, "sent_many": {"max_tokens": ("512", "64")}},
            "max_tokens: declared 512, sent as 512, 64",
        ),
    ],
)
def test_each_fault_of_a_card_is_named(changed: dict[str, Any], words: str) -> None:
    assert words in faults_of(msgspec.structs.replace(card(), **changed))


def test_drift_is_a_fault() -> None:
    (fault,) = faults_of(card(), drift([{"model": "m"}, {"model": "n"}]))
    assert "'m' became 'n' at exchange 1" in fault


def test_cards_may_differ_in_the_named_factor_alone() -> None:
    one, other = card(tool_parser="hermes"), card("b", tool_parser="qwen3_coder")
    assert faults_between(one, other, ["tool_parser"]) == ()
    (fault,) = faults_between(one, other, ["chat_template"])
    assert fault == 'tool_parser differs and is not the factor: "hermes", "qwen3_coder"'
    hotter = msgspec.structs.replace(other, sent={"temperature": 0.0, "max_tokens": 512})
    assert faults_between(one, hotter, ["tool_parser"]) == ("temperature was sent as 1.0 and as 0.0",)
    assert faults_between(one, hotter, ["tool_parser", "temperature"]) == ()


@pytest.mark.parametrize("factor", ["task", "detector", "seeds", "truecall"])
def test_no_factor_excuses_another_way_of_measuring(factor: str) -> None:
    with pytest.raises(ValueError, match=factor):
        faults_between(card(), card("b"), [factor])


def test_reasons_reach_the_comparison() -> None:
    cards = {"a": card("a", tool_parser="hermes"), "b": card("b", tool_parser="qwen3_coder")}
    arms = {arm: episodes([[valid()]] * 4, arm=arm) for arm in cards}
    for factors, available in ((["tool_parser"], True), ([], False)):
        found = compare(arms, faults=admissibility(cards, factors=factors), outcomes=["called"])
        assert (found.tests[0].p is not None) is available
        assert found.tests[0].reason.startswith("N/A: tool_parser differs") is not available


# ------------------------------------------------------------------ checklist


def filled(turns: list[list[Turn]], of: Card | None = None, marks: list[dict[str, str]] | None = None) -> str:
    return render(checklist(of or card(), measure(episodes(turns)), drift(marks or [{"model": "m"}])))


def test_the_checklist_of_a_whole_arm() -> None:
    text = filled([[valid(), prose()], [valid()], [prose(), prose(), valid()], [valid(), timed_out()]])
    assert "[ ]" not in text and "[~]" not in text
    assert "tool-call parser some tool_parser (declared)" in text
    assert "1 of 8 eligible turns: timeout 1" in text
    assert "observed fidelity per seed" in text and "over 4 episodes, pooled 57.1 %" in text
    assert "steady over 1 exchanges: model m" in text


def test_what_is_not_known_is_not_ticked() -> None:
    bare = Card(arm="a", entries={"engine": probed("vllm")})
    text = filled([[valid()]], bare, [{"model": "m"}, {"model": "n"}])
    assert "[~] serving engine and version: serving engine vllm (probed); its version unknown" in text
    assert "[ ] how tools are offered" in text
    assert "[~] per-seed rate with its interval" in text
    assert "model m became n at exchange 1" in text


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ([rejected(), empty()], "the 0 is the stack's, not the model's"),
        ([prose(rendered=False), rejected()], "the tools were never rendered"),
        ([leaked(), rejected()], "calls were lost on the way, in 1 of 1 turns"),
        ([vanished(), prose()], "can't be told: 1 of 2 turns are unknown"),
        ([prose(), prose()], "the model wrote no valid call in 2 produced turns"),
        ([valid(), prose()], "the rate is not 0"),
    ],
)
def test_a_rate_of_zero_is_read_in_the_right_order(turns: list[Turn], words: str) -> None:
    assert words in filled([[turn] for turn in turns])


def test_an_arm_of_refusals_gets_no_rate() -> None:
    text = filled([[rejected()]] * 8)
    assert "8 of 8 eligible turns: rejected 8" in text
    assert "per-seed rate with its interval: N/A: no turn was produced" in text
    assert "8 failed requests before retries" in text
