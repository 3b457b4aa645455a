"""The numbers of one arm, on counts that can be checked by hand."""

from __future__ import annotations

import msgspec
import pytest
from number_turns import (
    empty,
    episodes,
    forced,
    judged,
    leaked,
    malformed,
    prose,
    rejected,
    timed_out,
    valid,
    vanished,
)

from truecall.funnel import ArmNumbers, Episode, Rate, Settings, Turn, measure
from truecall.records import Count, Delivery, Emission, Flags
from truecall.stats import clopper_pearson


def looping_arm() -> list[Episode]:
    """39 of 41 turns valid in one looping episode, beside seven of one turn, two of them valid."""
    loop = [valid()] * 39 + [prose()] * 2
    return episodes([[valid()], [prose()], loop, [prose()], [prose()], [valid()], [prose()], [prose()]])


def rate(found: Rate) -> float:
    assert found.point is not None
    return found.point


# ------------------------------------------------------------------ pooled and per seed


@pytest.mark.parametrize("name", ["naive_rate", "observed_fidelity", "emitted_fidelity", "interface_yield"])
def test_the_papers_looping_episode(name: str) -> None:
    found = measure(looping_arm())[name]
    assert (found.yes, found.n) == (41, 48)
    assert round(100 * rate(found.pooled), 1) == 85.4
    assert round(100 * rate(found.per_seed), 1) == 36.9
    assert found.pooled.n == 48
    assert found.per_seed.n == 8


def test_the_looping_episode_is_named() -> None:
    told = {w.id: w for w in measure(looping_arm()).warnings}
    assert told["dominant_episode"].episode == "aggregate, seed 2"
    assert "41 of 48 turns" in told["dominant_episode"].text
    assert "pooled intervals held the truth in 70 %" in told["dominant_episode"].text
    apart = told["pooled_parts_from_per_seed"]
    assert apart.episode == "aggregate, seed 2"
    assert "48.5 points" in apart.text
    assert "observed_fidelity" in apart.numbers


def test_even_episodes_are_not_warned_of() -> None:
    even = measure(episodes([[valid(), prose()], [valid(), valid()], [prose(), valid()]] * 7))
    assert [w.id for w in even.warnings] == []


def test_per_seed_rates_below_twenty_episodes_carry_the_measured_coverage() -> None:
    told = {w.id: w for w in measure(looping_arm()).warnings}
    assert "8 episodes" in told["narrow_interval"].text
    assert "%" in told["narrow_interval"].text


def test_intervals_hold_their_rate_and_say_what_they_are() -> None:
    found = measure(looping_arm())["observed_fidelity"]
    for one in (found.per_seed, found.pooled):
        assert one.interval is not None
        assert one.interval.low <= rate(one) <= one.interval.high
        assert one.interval.n == 8
        assert one.interval.method == "percentile bootstrap over episodes"
    assert found.pooled.interval is not None
    assert found.pooled.interval.low < 0.4  # a resample without the loop has few valid turns


@pytest.mark.parametrize("count", [1, 2])
def test_under_three_episodes_there_is_no_interval(count: int) -> None:
    numbers = measure(episodes([[valid(), prose()]] * count))
    found = numbers["observed_fidelity"]
    assert rate(found.per_seed) == 0.5
    for one in (found.per_seed, found.pooled):
        assert one.interval is None
        assert "of at least 3" in one.reason
    assert any(w.id == "no_interval" for w in numbers.warnings)


@pytest.mark.parametrize(("turn", "k"), [(prose(), 0), (valid(), 8)])
def test_where_all_agree_the_exact_interval_over_episodes_stands(turn: Turn, k: int) -> None:
    numbers = measure(episodes([[turn] * length for length in (1, 2, 3, 1, 1, 40, 1, 1)]))
    exact = clopper_pearson(k, 8)
    for one in (numbers["observed_fidelity"].per_seed, numbers["observed_fidelity"].pooled):
        assert one.interval is not None and exact is not None
        assert (one.interval.low, one.interval.high) == pytest.approx((exact.low, exact.high), abs=1e-12)
        assert one.interval.n == 8
    assert not any(w.id == "narrow_interval" for w in numbers.warnings)


def test_samples_of_an_instance_are_averaged_first() -> None:
    many = [Episode(arm="arm", item="chain", seed=0, sample=s, turns=(valid(),)) for s in range(6)] + [
        Episode(arm="arm", item="chain", seed=1, turns=(prose(),))
    ]
    found = measure(many)["observed_fidelity"]
    assert rate(found.per_seed) == 0.5
    assert rate(found.pooled) == pytest.approx(6 / 7)
    assert found.per_seed.n == 2
    assert found.per_seed.interval is None  # two instances, however many samples
    more = [Episode(arm="arm", item="chain", seed=1, sample=s, turns=(prose(),)) for s in range(1, 30)]
    assert any(w.id == "no_interval" for w in measure(many + more).warnings)


def test_episodes_without_a_produced_turn_are_left_out_and_counted() -> None:
    found = measure(episodes([[valid()], [valid()], [valid(), prose()], [rejected()], []]))
    fidelity = found["observed_fidelity"]
    assert (fidelity.episodes, fidelity.left_out) == (3, 2)
    assert rate(fidelity.per_seed) == pytest.approx(2.5 / 3)


# ------------------------------------------------------------------ failures are no non-calls


def test_an_arm_of_refusals_has_no_fidelity() -> None:
    numbers = measure(episodes([[rejected()]] * 8))
    for name in ("observed_fidelity", "emitted_fidelity", "censored_share"):
        for one in (numbers[name].pooled, numbers[name].per_seed):
            assert one.low is None and one.high is None and one.point is None
            assert "undefined, not 0" in one.reason
    assert rate(numbers["naive_rate"].pooled) == 0
    assert rate(numbers["non_response_share"].pooled) == 1
    assert numbers.non_response == {"rejected": Count(k=8, n=8)}
    assert numbers.called_emitted.pooled.low is None
    assert numbers.request_errors == 8


def test_each_failure_keeps_its_cause_and_totals_add_up() -> None:
    unreachable = Turn(emission=Emission.NOT_RUN, delivery=Delivery.UNREACHABLE)
    limited = Turn(emission=Emission.NOT_RUN, delivery=Delivery.RATE_LIMITED)
    erased = Turn(
        emission=Emission.VALID,
        delivery=Delivery.ERASED,  # a 500 with the call in its body
        flags=Flags(valid_emitted=True, well_formed_lost=True, produced=True),
        emitted=True,
    )
    turns = [valid(), prose(), erased, rejected(), timed_out(), unreachable, limited, empty(), vanished()]
    numbers = measure(episodes([[turn] for turn in turns]))
    assert {cause: c.k for cause, c in numbers.non_response.items()} == {
        "rejected": 1,
        "timeout": 1,
        "unreachable": 1,
        "rate_limited": 1,
        "empty": 1,
    }
    produced, silent = numbers["observed_fidelity"].n, numbers["non_response_share"].yes
    assert produced + silent == numbers["naive_rate"].n == len(turns)
    assert sum(c.k for c in numbers.non_response.values()) == silent
    assert sum(c.k for c in numbers.emissions.values()) == len(turns)
    assert numbers.emissions["no_call"] == Count(k=1, n=9)
    emitted = numbers["emitted_fidelity"]
    assert (emitted.yes, emitted.unknown, emitted.n) == (2, 1, 4)
    assert numbers["censored_share"].yes == 1


def test_retries_count_as_request_errors() -> None:
    assert measure(episodes([[valid(failed_attempts=2)], [rejected(failed_attempts=1)]])).request_errors == 4


# ------------------------------------------------------------------ unknown


def test_unknown_makes_bounds_and_no_point() -> None:
    found = measure(episodes([[valid(), vanished()], [prose(), prose()], [vanished(), leaked()]]))
    emitted = found["emitted_fidelity"]
    assert emitted.pooled.point is None
    assert (emitted.pooled.low, emitted.pooled.high) == pytest.approx((2 / 6, 4 / 6))
    assert emitted.pooled.unknown == pytest.approx(2 / 6)
    assert emitted.pooled.among_known == pytest.approx(2 / 4)
    assert (emitted.per_seed.low, emitted.per_seed.high) == pytest.approx((1 / 3, 2 / 3))
    assert emitted.per_seed.among_known == pytest.approx((1 + 0 + 1) / 3)
    interval = emitted.per_seed.interval
    assert interval is not None
    assert interval.low <= 1 / 3 and interval.high >= 2 / 3
    assert interval.method.startswith("bounds: ")
    assert rate(found["observed_fidelity"].pooled) == pytest.approx(1 / 6)  # what surfaced is seen


def test_all_unknown_leaves_the_whole_range() -> None:
    found = measure(episodes([[vanished()]] * 5))["emitted_fidelity"]
    assert (found.per_seed.low, found.per_seed.high) == (0, 1)
    assert found.per_seed.among_known is None
    assert found.per_seed.interval is not None
    assert (found.per_seed.interval.low, found.per_seed.interval.high) == (0, 1)


def test_a_text_dump_cannot_say_what_surfaced() -> None:
    turn = leaked(surfaced_known=False)
    dump = msgspec.structs.replace(turn, flags=Flags(valid_emitted=True, produced=True))
    found = measure(episodes([[dump]] * 4))
    assert rate(found["emitted_fidelity"].pooled) == 1
    for name in ("observed_fidelity", "censored_share"):
        assert (found[name].pooled.low, found[name].pooled.high) == (0, 1)


# ------------------------------------------------------------------ definitions


def test_forced_turns_are_no_evidence_of_the_model() -> None:
    found = measure(episodes([[forced(), valid()], [forced(), prose()], [forced(), forced()]]))
    assert (found["emitted_fidelity"].yes, found["emitted_fidelity"].n) == (1, 2)
    assert (found["observed_fidelity"].yes, found["observed_fidelity"].n) == (5, 6)
    assert found.forced == 4
    only = measure(episodes([[forced()]] * 3))["emitted_fidelity"]
    assert only.pooled.low is None
    assert only.pooled.reason.startswith("no unforced turn")


def test_lost_calls_are_the_censored_share() -> None:
    found = measure(episodes([[leaked(), malformed()], [leaked(), valid()], [prose(), prose()]]))
    assert (found["censored_share"].yes, found["censored_share"].n) == (2, 6)
    assert rate(found["emitted_fidelity"].pooled) == pytest.approx(3 / 6)
    assert rate(found["observed_fidelity"].pooled) == pytest.approx(1 / 6)


def test_turns_without_tools_count_nowhere() -> None:
    found = measure(episodes([[valid(), prose(eligible=False)], [valid()], [prose(eligible=False)]]))
    assert found["naive_rate"].n == found["interface_yield"].n == 2
    assert found["naive_rate"].left_out == 1


def test_where_offered_tools_are_unknown_only_the_yield_counts() -> None:
    found = measure(episodes([[valid(), prose(eligible=None)]] * 3))
    assert found["naive_rate"].n == 3
    assert found["interface_yield"].n == 6


def test_expected_turns_alone() -> None:
    turns = [[valid(expected=True), prose(expected=False)], [prose(expected=True), prose(expected=False)]]
    found = measure(episodes(turns), Settings(population="expected"))
    assert (found["naive_rate"].yes, found["naive_rate"].n) == (1, 2)
    assert found.positions[0].steps[0].n == 2


def test_a_log_that_cannot_say_what_was_expected() -> None:
    numbers = measure(episodes([[valid(), prose()]] * 3), Settings(population="expected"))
    assert numbers["naive_rate"].pooled.low is None
    assert "nothing says" in numbers["naive_rate"].pooled.reason
    assert measure(episodes([[valid(), prose()]] * 3)).final_answers == 3


def test_the_papers_conventions_are_named_variants() -> None:
    turns = [valid(), prose(), vanished(), rejected(), leaked()]
    found = measure(episodes([[turn] for turn in turns]))
    ours, theirs = found["observed_fidelity"], found["serving_confounds"]
    assert (ours.yes, ours.n) == (1, 4)
    assert (theirs.yes, theirs.n) == (1, 3)  # the vanished answer is a non-response there
    silent = found["interface_censoring"]
    assert (silent.yes, silent.n) == (1, 4)
    with pytest.raises(KeyError):
        found["accuracy"]


def test_gemma_one_valid_call_then_silence() -> None:
    """The paper's Gemma-3-4B: a valid call in each of 8 seeds, then no answer: 100 % of 8, half non-response."""
    numbers = measure(episodes([[valid(), rejected()]] * 8))
    fidelity = numbers["observed_fidelity"]
    assert rate(fidelity.per_seed) == rate(fidelity.pooled) == 1
    assert fidelity.n == 8
    assert rate(numbers["non_response_share"].pooled) == 0.5
    assert rate(numbers["naive_rate"].pooled) == 0.5


# ------------------------------------------------------------------ funnel, positions, episodes


def steps(numbers: ArmNumbers) -> dict[str, tuple[int, int]]:
    return {step.name: (step.k, step.unknown) for step in numbers.steps}


def test_the_funnel_only_narrows() -> None:
    turns = [
        valid(executed=True, observed=True),
        valid(executed=True),
        valid(executed=False),
        leaked(),
        malformed(),
        prose(),
        vanished(),
        timed_out(),
        rejected(),
    ]
    found = measure(episodes([[turn] for turn in turns]))
    assert steps(found) == {
        "sent": (9, 0),
        "accepted": (7, 1),
        "produced": (7, 0),
        "emitted": (5, 1),
        "surfaced": (3, 0),
        "valid": (3, 0),
        "executed": (2, 0),
        "observed": (1, 1),
        "solved": (0, 9),
    }
    ups = [k + unknown for k, unknown in steps(found).values()][:-1]
    assert ups == sorted(ups, reverse=True)


def test_a_phantom_is_no_step_of_the_funnel() -> None:
    phantom = Turn(emission=Emission.NO_CALL, delivery=Delivery.PHANTOM, flags=Flags(produced=True))
    assert steps(measure(episodes([[phantom]])))["surfaced"] == (0, 0)


def test_rendered_stands_beside_the_funnel() -> None:
    found = measure(episodes([[valid(rendered=True)], [prose(rendered=False)], [prose()]]))
    assert (found.rendered.k, found.rendered.unknown, found.rendered.n) == (1, 1, 3)


def test_positions_hold_the_turns_of_the_episodes_that_got_there() -> None:
    found = measure(looping_arm())
    assert [(p.first, p.last, p.episodes) for p in found.positions][:2] == [(1, 1, 8), (2, 2, 1)]
    assert found.positions[-1].first == 20 and found.positions[-1].last == 49
    assert sum(p.steps[0].n for p in found.positions) == 48
    assert {s.name: s.k for s in found.positions[0].steps}["valid"] == 3


def test_share_of_episodes_with_a_call() -> None:
    found = measure(episodes([[prose(), valid()], [prose()], [leaked()], [vanished()]]))
    assert (found.called_surfaced.yes, found.called_surfaced.n) == (1, 4)
    emitted = found.called_emitted
    assert (emitted.yes, emitted.unknown, emitted.n) == (2, 1, 4)


def test_first_turn_passes_and_rescues() -> None:
    def one(first: bool | None, solved: bool | None, seed: int) -> Episode:
        turns = (valid(passed=first), valid(passed=solved))
        return Episode(arm="arm", item="code", seed=seed, turns=turns, solved=solved)

    found = measure([one(True, True, 0), one(False, True, 1), one(False, False, 2), one(None, True, 3)])
    assert (found.first_passes.yes, found.first_passes.unknown) == (1, 1)
    assert (found.rescues.yes, found.rescues.unknown) == (1, 1)
    assert (found.solved.yes, found.solved.n) == (3, 4)


def test_a_failed_episode_is_not_unsolved() -> None:
    found = measure(judged([True, False, None, None], arm="arm")).solved
    assert (found.pooled.low, found.pooled.high) == (0.25, 0.75)


def test_truncated_turns_are_counted_apart() -> None:
    cut = Turn(emission=Emission.TRUNCATED, delivery=Delivery.NOTHING, flags=Flags(produced=True))
    found = measure(episodes([[cut, valid()]] * 3))
    assert found.truncated == 3
    assert rate(found["emitted_fidelity"].pooled) == 0.5


def test_loops_are_named() -> None:
    loop = Episode(arm="arm", item="a", turns=(valid(),), ended="loop")
    assert measure([loop]).ended == {"loop": 1}


@pytest.mark.parametrize("arms", [(), ("a", "b")])
def test_numbers_belong_to_one_arm(arms: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="one arm"):
        measure([Episode(arm=arm, item="i", turns=(valid(),)) for arm in arms])


def test_the_numbers_encode_as_json_and_come_back() -> None:
    numbers = measure(looping_arm() + episodes([[vanished()]], item="chain"))
    assert msgspec.json.decode(msgspec.json.encode(numbers), type=ArmNumbers) == numbers
