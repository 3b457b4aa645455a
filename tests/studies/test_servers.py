"""Failures of four servers behind one study stay failures: no model's non-call, and the totals add up."""

from __future__ import annotations

from typing import Any

from tests.studies.conftest import study
from truecall.run.crossstack import table
from truecall.run.predictions import judge
from truecall.run.result import read


async def test_four_servers(player: Any, play: Any) -> None:
    modes = ("refusing", "hanging", "500_with_call", "native")
    servers = [await player(mode) for mode in modes]
    endpoints = [
        {"name": mode, "base_url": server.base_url} for mode, server in zip(modes, servers, strict=True)
    ]
    result, outcome = await play(
        study(endpoints=endpoints, conditions=["native"]), "http://127.0.0.1:9/v1", patience=1.0
    )
    arms = {arm.arm.endpoint: arm for arm in result.arms}
    assert outcome.left == 0 and set(arms) == set(modes)
    for name in ("refusing", "hanging"):
        numbers = arms[name].numbers
        assert numbers["observed_fidelity"].n == 0 and numbers["observed_fidelity"].pooled.low is None
        assert numbers["emitted_fidelity"].n == 0
        assert numbers.ended == {"request_failed": 3} and numbers.request_errors == 3
        assert {e.solved for e in arms[name].episodes} == {None}
        assert "no_call" not in numbers.emissions
        assert numbers["non_response_share"].yes == 3 == sum(c.k for c in numbers.non_response.values())
    assert set(arms["refusing"].numbers.non_response) == {"rejected"}
    assert set(arms["hanging"].numbers.non_response) == {"timeout"}
    lost = arms["500_with_call"].numbers
    assert lost["emitted_fidelity"].per_seed.point == 1 and lost["censored_share"].per_seed.point == 1
    assert lost["observed_fidelity"].yes == 0 and lost.request_errors == 3
    assert "no_call" not in lost.emissions
    healthy = arms["native"].numbers
    assert healthy["observed_fidelity"].per_seed.point == 1 and healthy.request_errors == 0
    for arm in result.arms:
        census = sum(count.k for count in arm.numbers.emissions.values())
        assert census == arm.numbers["naive_rate"].n == arm.numbers.turns
        assert arm.numbers["non_response_share"].yes + arm.numbers["observed_fidelity"].n == arm.numbers.turns
    total = sum(arm.numbers.turns for arm in result.arms)
    assert total == sum(len(server.played) for server in servers[1:]) + len(servers[0].played) - _repeated(
        servers[0]
    )
    rows = {row.endpoint: row.cells for row in table(result)}
    assert rows == {
        "refusing": {"rejected": 3}, "hanging": {"timeout": 3},
        "500_with_call": {"erased": 3}, "native": {"native call": 3},
    }  # fmt: skip


def _repeated(server: Any) -> int:
    """Requests that were repeated without our evidence fields, as a 4xx might be their fault."""
    return sum("logprobs" in body for body in server.played)


async def test_predictions_are_hashed_before_and_judged_after(player: Any, play: Any) -> None:
    server = await player("native")
    told = [
        {"text": "all calls surface", "number": "observed_fidelity", "arm": "native", "at_least": 0.9},
        {"text": "none surfaces", "number": "observed_fidelity", "arm": "*", "at_most": 0.1},
        {"text": "native above text", "number": "interface_yield", "arm": "native", "above": "text_tools"},
        {"text": "no such number", "number": "beauty", "at_most": 0.1},
    ]
    what = study(conditions=["native", "text_tools"], predictions=told, seeds=4)
    result, _ = await play(what, server.base_url)
    assert result.card.predictions_sha256 is not None and result.card.predictions_sha256.startswith("sha256:")
    states = [(each.text, each.arm, each.state) for each in judge(result)]
    assert ("all calls surface", "native", "held") in states
    assert ("none surfaces", "native", "failed") in states
    assert [state for text, _, state in states if text == "no such number"] == ["N/A", "N/A"]
    card = (result.path / "card.json").read_text()
    assert card.count('"at_least": 0.9') == 1
    (result.path / "card.json").write_text(card.replace('"at_least": 0.9', '"at_least": 0.1'))
    assert [each.state for each in judge(read(result.path))] == ["N/A"]
