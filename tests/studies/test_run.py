"""Studies end to end against a model that plays by rules: conditions, loops, budgets, retries, the folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.studies.conftest import study
from truecall.conditions import CONDITIONS
from truecall.errors import InputError, UsageError
from truecall.records import Part
from truecall.run.result import read
from truecall.run.study import Limits, arms_of
from truecall.sources.base import Turn
from truecall.sources.table import read_file
from truecall.store import read_log
from truecall.store.history import Bodies


async def test_every_condition_solves_the_chain_with_a_model_that_can(player: Any, play: Any) -> None:
    server = await player("native")
    result, outcome = await play(study(conditions=["native", "native_hint"]), server.base_url)
    text = await player("text")
    in_text, _ = await play(study(conditions=["text_tools", "constrained"]), text.base_url, "text")
    react = await player("react")
    in_react, _ = await play(study(conditions=["react"]), react.base_url, "react")
    arms = [*result.arms, *in_text.arms, *in_react.arms]
    assert [arm.name for arm in arms] == list(CONDITIONS)
    for arm in arms:
        assert [episode.solved for episode in arm.episodes] == [True] * 3, arm.name
        assert arm.numbers.ended == {"submitted": 3}
        assert arm.numbers["observed_fidelity"].per_seed.point == 1
        assert arm.numbers["naive_rate"].n == sum(len(e.turns) for e in arm.episodes) >= 15
    assert outcome.left == 0 and outcome.episodes == 6
    forced = {arm.name: arm.numbers.forced for arm in arms}
    assert forced.pop("constrained") > 0 and not any(forced.values())


async def test_requests_are_what_the_condition_says(player: Any, play: Any) -> None:
    server = await player("text")
    await play(study(conditions=list(CONDITIONS), seeds=1, schemas=["strict"]), server.base_url)
    first = dict.fromkeys(CONDITIONS)
    for body in server.played:
        system = body["messages"][0]["content"]
        name = (
            ("native_hint" if "Allowed tool names" in system else "native") if "tools" in body
            else "constrained" if "response_format" in body else "react" if "stop" in body else "text_tools"
        )  # fmt: skip
        first[name] = first[name] or body
    assert all(first.values())
    native, hint, text = first["native"], first["native_hint"], first["text_tools"]
    assert "open_box" not in native["messages"][0]["content"] and native["tool_choice"] == "auto"
    assert native["tools"] == hint["tools"] and all(t["function"]["strict"] for t in native["tools"])
    assert "Allowed tool names: open_box, check_shelf" in hint["messages"][0]["content"]
    assert '"additionalProperties":false' in text["messages"][0]["content"]
    assert len(first["constrained"]["response_format"]["json_schema"]["schema"]["anyOf"]) == 5
    assert first["react"]["stop"] == ["\nObservation:"]


async def test_a_loop_is_found_and_the_policy_is_on_the_card(player: Any, play: Any) -> None:
    server = await player("loop")
    stopped, _ = await play(study(), server.base_url, "stop")
    observed, _ = await play(study(limits={"turns": 12, "loops": "observe"}), server.base_url, "observe")
    [stop], [observe] = stopped.arms, observed.arms
    assert stop.numbers.ended == {"loop": 3} and observe.numbers.ended == {"turn_cap": 3}
    assert {len(e.turns) for e in stop.episodes} == {3} and {len(e.turns) for e in observe.episodes} == {12}
    assert [each.loop.kind for each in observe.loops] == ["same_call"] * 3
    assert {each.loop.turn for each in observe.loops} == {3}
    assert 'open_box({"code":"A-100"})' in stop.loops[0].loop.call
    policies = [str(arm.card.entry("loop_policy").value) for arm in (stop, observe)]
    assert policies[0].startswith("stop: ") and policies[1].startswith("observe: ")


async def test_calls_left_in_the_text_are_lost_by_the_part_whose_parser_it_was(
    player: Any, play: Any
) -> None:
    server = await player("leaks")
    result, _ = await play(study(conditions=["native", "text_tools"]), server.base_url)
    for arm, part in zip(result.arms, (Part.PARSER, Part.HARNESS), strict=True):
        assert arm.numbers["observed_fidelity"].yes == 0
        assert arm.numbers["emitted_fidelity"].per_seed.point == 1
        assert arm.numbers["censored_share"].per_seed.point == 1
        assert set(arm.numbers.causes) == {str(part)}
        assert arm.numbers.ended == {"no_call": 3}
        assert all(len(episode.turns) == 2 for episode in arm.episodes)  # one reminder, then the end


async def test_prose_is_no_call_and_abstaining_is_right(player: Any, play: Any) -> None:
    server = await player("prose")
    result, _ = await play(study(tasks=["chain", "abstain"]), server.base_url)
    chain, abstain = result.arms
    assert chain.numbers["observed_fidelity"].yes == 0 and chain.numbers.solved.yes == 0
    assert abstain.numbers.solved.per_seed.point == 1 and abstain.numbers.ended == {"single_turn": 3}
    assert {turn.expected for e in abstain.episodes for turn in e.turns} == {False}


async def test_the_budget_ends_a_run_and_a_larger_one_goes_on(player: Any, play: Any) -> None:
    server = await player("native")
    part, outcome = await play(study(limits={"turns": 12, "requests": 7, "concurrency": 2}), server.base_url)
    assert outcome.requests == 7 == len(server.played) and outcome.left > 0
    whole, after = await play(study(limits={"turns": 12, "requests": 99, "concurrency": 1}), server.base_url)
    assert after.left == 0 and after.resent == 0
    assert len(whole.arms[0].episodes) == 3 and len(part.arms[0].episodes) < 3
    assert len(server.played) == sum(len(e.turns) for e in whole.arms[0].episodes)


async def test_a_failed_request_is_retried_by_choice_alone(player: Any, play: Any) -> None:
    server = await player("native", fail_first=1)
    what = study(seeds=1)
    result, _ = await play(what, server.base_url)
    [arm] = result.arms
    assert arm.numbers.ended == {"request_failed": 1} and arm.numbers.request_errors == 1
    assert arm.episodes[0].solved is None
    again, outcome = await play(what, server.base_url)
    assert outcome.episodes == 0 and again.arms[0].numbers.ended == {"request_failed": 1}
    retried, outcome = await play(what, server.base_url, retry_failed=True)
    [arm] = retried.arms
    assert outcome.episodes == 1 and arm.numbers.ended == {"submitted": 1}
    assert arm.numbers.request_errors == 1  # before retries: it stays in the census
    whys = [line.get("why") for line in read_log(result.path) if line["kind"] == "intent"]
    assert whys.count("retry") == 1


async def test_retries_within_a_run(player: Any, play: Any) -> None:
    server = await player("native", fail_first=2)
    result, _ = await play(study(seeds=1, limits={"turns": 12, "retries": 2}), server.base_url)
    [arm] = result.arms
    assert arm.numbers.ended == {"submitted": 1} and arm.numbers.request_errors == 2


async def test_a_long_loop_stores_each_message_once(player: Any, play: Any, tmp_path: Path) -> None:
    server = await player("loop")
    limits = {"turns": 400, "loops": "observe"}
    result, _ = await play(study(seeds=1, limits=limits), server.base_url)
    lines = list(read_log(result.path))
    intents = [line for line in lines if line["kind"] == "intent"]
    assert len(intents) == 400 and sum(len(line["messages"]) for line in intents) == 2 + 2 * 399
    log = (tmp_path / "run" / "log.jsonl").stat().st_size
    assert log < 400 * 3000, log  # a turn, not a history
    bodies = Bodies(result.path)
    exchanges = [line for line in lines if line["kind"] == "exchange"]
    for line, sent in list(zip(exchanges, server.played, strict=True))[::57]:
        assert bodies.body(line["request"]["body"]) == sent


async def test_samples_and_sampling_seeds(player: Any, play: Any) -> None:
    server = await player("native")
    result, _ = await play(study(seeds=[4, 9], sampling={"seed": 100, "samples": 2}), server.base_url)
    [arm] = result.arms
    assert [(e.seed, e.sample) for e in arm.episodes] == [(4, 100), (4, 101), (9, 100), (9, 101)]
    assert Counter(body["seed"] for body in server.played).keys() == {100, 101}
    assert arm.numbers.instances == 2 and arm.card.entry("sampling_seeds").value == [100, 101]
    assert "seed" not in {**arm.card.sent, **arm.card.sent_many}


async def test_the_card_is_probed_and_sent_equals_declared(player: Any, play: Any) -> None:
    server = await player("native")
    conditions = list(CONDITIONS)
    result, _ = await play(study(conditions=conditions, seeds=1), server.base_url)
    for arm in result.arms:
        assert arm.card.sent == arm.card.declared and not arm.card.sent_many, arm.name
        assert arm.card.entry("model").value == "player"
        assert (arm.card.entry("harness_parser").value is None) == arm.name.startswith("native")
        assert arm.drift.steady
    assert result.card.known["endpoint"].rendered is True
    assert len({arm.card.entry("tools").value for arm in result.arms}) == 1


async def test_another_study_does_not_go_into_the_same_folder(player: Any, play: Any) -> None:
    server = await player("native")
    await play(study(seeds=1), server.base_url)
    with pytest.raises(UsageError, match="another study"):
        await play(study(seeds=2), server.base_url)


async def test_few_shot_and_thought_change_the_messages(player: Any, play: Any) -> None:
    server = await player("native")
    await play(study(seeds=1, few_shot=[False, True], thought=[True]), server.base_url)
    lengths = {len(body["messages"]) for body in server.played if body["messages"][-1]["role"] == "user"}
    assert min(lengths) == 2 and max(lengths) > 10
    assert all("Thought:" in body["messages"][0]["content"] for body in server.played)


@pytest.mark.parametrize("keep", ["shape", "none"])
async def test_texts_are_kept_as_asked(player: Any, play: Any, keep: str) -> None:
    server = await player("native")
    result, _ = await play(study(seeds=1), server.base_url, keep=keep)
    log = (result.path / "log.jsonl").read_text()
    assert result.arms[0].numbers.ended == {"submitted": 1}
    assert "Follow the chain" not in log


async def test_what_was_not_kept_can_not_be_gone_on_with_but_is_played_again(player: Any, play: Any) -> None:
    server = await player("native")
    part, outcome = await play(
        study(seeds=1, limits={"turns": 12, "requests": 3}), server.base_url, keep="none"
    )
    assert outcome.left == 1 and not part.arms[0].episodes
    whole, outcome = await play(study(seeds=1, limits={"turns": 12}), server.base_url, keep="none")
    assert whole.arms[0].numbers.ended == {"submitted": 1} and outcome.resent == 3


def test_a_folder_that_is_no_run_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is it a run folder"):
        read(tmp_path)
    (tmp_path / "card.json").write_text("[]")
    with pytest.raises(InputError, match="no card of a run"):
        read(tmp_path)


def test_arms_are_every_combination_once() -> None:
    what = study(
        conditions=["native", "text_tools"], tool_choices=["auto", "required"], schemas=["terse", "rich"]
    )
    names = [arm.name for arm in arms_of(what)]
    assert len(names) == len(set(names)) == 6
    assert "native/rich/required" in names and "text_tools/terse/auto" in names
    assert arms_of(study(turns={"constrained": 1}, conditions=["constrained"]))[0].turns == 1


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"conditions": ["nativ"]}, "no condition"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"limits": {"turns": 0}}, "at least 1"),
        ({"limits": {"turn": 3}}, "unknown field `turn`"),
        ({"tasks": []}, "at least"),
        ({"predictions": [{"text": "x", "number": "solved"}]}, "says nothing"),
        ({"endpoints": [{"name": "a"}, {"name": "a"}]}, "same name"),
    ],
)
def test_what_is_wrong_with_a_study_is_one_line(fields: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word) as caught:
        study(**fields)
    assert "\n" not in str(caught.value)


def test_defaults_of_limits_stand_in_the_record() -> None:
    assert msgspec.to_builtins(Limits()) == {}


async def test_a_run_is_a_source_for_scans(player: Any, play: Any, tmp_path: Path) -> None:
    server = await player("native")
    result, _ = await play(study(conditions=["native"]), server.base_url)
    log = tmp_path / "run" / "log.jsonl"
    turns = [item for item in read_file(str(log)) if isinstance(item, Turn)]
    assert len(turns) == sum(len(episode.turns) for episode in result.arms[0].episodes)
    assert all(turn.tools for turn in turns), "the request, and so its tools, is put together from the log"
