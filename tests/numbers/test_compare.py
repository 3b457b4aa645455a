"""Arms against each other: paired, corrected, and N/A where they can't be compared."""

from __future__ import annotations

import msgspec
import pytest
from number_turns import episodes, judged, leaked, malformed, prose, rejected, valid, vanished

from truecall.compare import (
    Comparison,
    Drawing,
    by_sample,
    changed_first_turns,
    compare,
    describe,
    factorial,
    values_by_item,
)
from truecall.funnel import Episode
from truecall.stats import mcnemar

QUICK = Drawing(draws=500)


def pass_fail(both: int, gains: int, losses: int, neither: int) -> tuple[list[Episode], list[Episode]]:
    first = [True] * (both + losses) + [False] * (gains + neither)
    second = [True] * both + [False] * losses + [True] * gains + [False] * neither
    return judged(first, arm="a"), judged(second, arm="b")


def test_a_paired_test_of_two_arms() -> None:
    a, b = pass_fail(both=40, gains=13, losses=1, neither=46)
    found = compare({"a": a, "b": b})
    (test,) = found.tests
    assert (test.n, test.both, test.gains, test.losses, test.neither) == (100, 40, 13, 1, 46)
    assert test.p == pytest.approx(mcnemar(13, 1))
    assert test.p_holm == test.p_bonferroni == test.p
    assert test.difference.value == pytest.approx(0.12)
    assert test.overlap.value == pytest.approx(40 / 54)
    assert test.separated is True
    assert "+12.0 points" in describe(test)


def test_equal_totals_with_other_members_are_not_separated() -> None:
    """The paper's 72 / 72: the same pass rate, three quarters of the sets shared."""
    a, b = pass_fail(both=62, gains=10, losses=10, neither=18)
    (test,) = compare({"a": a, "b": b}).tests
    assert test.difference.value == 0
    assert test.separated is False
    assert test.p == 1
    assert test.overlap.value == pytest.approx(62 / 82)
    assert "not separated" in describe(test)


def test_few_discordant_items_get_the_papers_interval() -> None:
    a, b = pass_fail(both=300, gains=0, losses=3, neither=239)
    (test,) = compare({"a": a, "b": b}).tests
    assert test.difference.interval is not None
    limits = test.difference.interval.low, test.difference.interval.high
    assert limits == pytest.approx((-0.0179, 0.0072), abs=5e-5)
    assert test.separated is False


def test_corrections_count_only_the_tests_that_were_run() -> None:
    a, b = pass_fail(both=40, gains=13, losses=1, neither=46)
    broken = judged([None] * 100, arm="c")
    found = compare({"a": a, "b": b, "c": broken})
    run = [t for t in found.tests if t.p is not None]
    assert len(found.tests) == 3
    assert [t.family for t in run] == [1]
    unknown = [t for t in found.tests if t.p is None]
    assert {t.reason for t in unknown} == {"no item has both outcomes"}
    assert {t.left_out for t in unknown} == {100}


def test_an_arm_with_request_errors_is_not_available() -> None:
    a, b = pass_fail(both=50, gains=10, losses=5, neither=35)
    b[7] = msgspec.structs.replace(b[7], turns=(valid(failed_attempts=1),))
    found = compare({"a": a, "b": b}, drawing=QUICK)
    (test,) = found.tests
    assert test.p is None and test.p_holm is None and test.difference.value is None
    assert test.separated is None
    assert test.reason == "N/A: b: request errors before retries: 1 in 1 of 100 episodes"
    assert found.request_errors == {"a": 0, "b": 1}  # the census stands
    assert found.inadmissible[0][:2] == ("a", "b")
    numbers = {d.number: d.low for d in found.differences}
    assert numbers["observed_fidelity"].value is None
    assert numbers["observed_fidelity"].reason.startswith("N/A")
    assert numbers["interface_yield"].value is not None  # counts refusals as 0 by definition


def test_arms_on_other_items_are_not_available() -> None:
    a, b = pass_fail(both=5, gains=2, losses=2, neither=3)
    (test,) = compare({"a": a, "b": b[:-1]}, drawing=QUICK).tests
    assert test.reason == "N/A: not the same items: 1 only in the first, 0 only in the second"


def test_an_arm_without_episodes_is_not_available() -> None:
    a, _ = pass_fail(both=5, gains=2, losses=2, neither=3)
    found = compare({"a": a, "b": []}, drawing=QUICK)
    assert "b: no episode was run" in found.tests[0].reason
    assert all(d.low.value is None for d in found.differences)


def test_reasons_of_the_cards_stand_too() -> None:
    a, b = pass_fail(both=5, gains=2, losses=2, neither=3)
    found = compare({"a": a, "b": b}, faults={("a", "b"): ["tool_parser differs"]}, drawing=QUICK)
    assert found.tests[0].reason == "N/A: tool_parser differs"


def test_a_conditioned_number_never_stands_alone() -> None:
    a, b = pass_fail(both=5, gains=2, losses=2, neither=3)
    found = compare({"a": a, "b": b}, numbers=["observed_fidelity"], drawing=QUICK)
    assert [(d.number, d.conditioned) for d in found.differences] == [
        ("observed_fidelity", True),
        ("interface_yield", False),
    ]


def test_fidelity_and_all_items_part_where_an_arm_answers_only_some() -> None:
    a = episodes([[valid()]] * 5 + [[prose()]] * 5, arm="a")
    b = episodes([[valid()]] * 5 + [[rejected()]] * 5, arm="b")
    found = {d.number: d for d in compare({"a": a, "b": b}, drawing=QUICK).differences}
    assert found["interface_yield"].low.value == 0
    assert found["interface_yield"].low.n == 10
    free = compare({"a": a[:5], "b": b[:5]}, drawing=QUICK).differences[0]
    assert (free.low.n, free.left_out) == (5, 0)


def test_unknown_turns_bound_a_difference() -> None:
    a = episodes([[prose()]] * 4, arm="a")
    b = episodes([[valid()], [vanished()], [vanished()], [prose()]], arm="b")
    found = {d.number: d for d in compare({"a": a, "b": b}, drawing=QUICK).differences}
    emitted = found["emitted_fidelity"]
    assert (emitted.low.value, emitted.high.value) == (0.25, 0.75)
    assert emitted.interval is not None and emitted.separated is False
    observed = found["observed_fidelity"]
    assert observed.low == observed.high


def test_several_samples_get_a_difference_and_no_exact_test() -> None:
    def arm(name: str, passes: list[list[bool]]) -> list[Episode]:
        return [
            Episode(arm=name, item="code", seed=seed, sample=s, turns=(valid(),), solved=passed)
            for seed, some in enumerate(passes)
            for s, passed in enumerate(some)
        ]

    a = arm("a", [[True, False], [False, False], [False, False], [True, True]])
    b = arm("b", [[True, True], [True, False], [False, False], [True, True]])
    (test,) = compare({"a": a, "b": b}, drawing=QUICK).tests
    assert test.difference.value == pytest.approx(0.25)
    assert test.p is None
    assert "2 samples" in test.reason


def test_equal_totals_over_sampling_seeds_can_hide_other_items() -> None:
    passes = {1: range(72), 2: range(12, 84), 3: range(6, 78)}
    arm = [
        Episode(arm="react", item="code", seed=i, sample=s, turns=(valid(),), solved=i in passed)
        for s, passed in passes.items()
        for i in range(100)
    ]
    samples = {str(s): found for s, found in by_sample(arm).items()}
    tests = compare(samples, drawing=QUICK).tests
    assert [t.difference.value for t in tests] == [0, 0, 0]
    assert [t.overlap.value for t in tests] == [pytest.approx(k / (144 - k)) for k in (60, 66, 66)]


def test_changed_first_turns() -> None:
    a = episodes([[valid(digest=d)] for d in ("x", "y", "z", None)], arm="a")
    b = episodes([[valid(digest=d)] for d in ("x", "Y", "z", "w")], arm="b")
    found = changed_first_turns("a", "b", a, b)
    assert (found.count.k, found.count.n) == (1, 3)
    assert found.share.value == pytest.approx(1 / 3)
    assert found.share.interval is not None
    none = changed_first_turns("a", "b", a[3:], b[3:])
    assert none.share.value is None and "text was kept" in none.share.reason


def test_few_items_are_said_to_be_few() -> None:
    a, b = pass_fail(both=0, gains=9, losses=4, neither=2)
    (few,) = compare({"a": a, "b": b}, drawing=QUICK).tests
    assert "15 items: bootstrap intervals are too narrow below 20" in describe(few)
    a, b = pass_fail(both=10, gains=9, losses=4, neither=2)
    (enough,) = compare({"a": a, "b": b}, drawing=QUICK).tests
    assert "too narrow" not in describe(enough)


def test_unknown_names_are_errors() -> None:
    a, b = pass_fail(both=1, gains=1, losses=1, neither=1)
    with pytest.raises(KeyError):
        compare({"a": a, "b": b}, outcomes=["happy"])
    with pytest.raises(KeyError):
        compare({"a": a, "b": b}, numbers=["accuracy"])
    with pytest.raises(KeyError):
        compare({"a": a, "b": b}, [("a", "c")])


def test_a_comparison_comes_back_from_json() -> None:
    a, b = pass_fail(both=5, gains=2, losses=2, neither=3)
    found = compare({"a": a, "b": b}, drawing=QUICK)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Comparison) == found


# ------------------------------------------------------------------ factorial


def cell(valid_items: int, of: int = 100, *, miss: object = prose) -> dict[tuple[str, int], float]:
    turns = [[valid()]] * valid_items + [[miss() if callable(miss) else miss]] * (of - valid_items)
    return dict(values_by_item("interface_yield", episodes(turns)))  # type: ignore[arg-type]


def test_template_by_parser_puts_the_whole_effect_in_the_interaction() -> None:
    """The paper's 2 × 2: 0, 0, 0 and 0.96."""
    found = factorial("template", "parser", cell(0, miss=leaked), cell(0, miss=malformed), cell(0), cell(96))
    values = {e.name: e.estimate.value for e in (*found.alone, *found.beside, *found.marginal)}
    assert values["template alone"] == values["parser alone"] == 0
    assert values["template beside parser"] == values["parser beside template"] == pytest.approx(0.96)
    assert values["template on average"] == values["parser on average"] == pytest.approx(0.48)
    assert found.interaction.estimate.value == pytest.approx(0.96)
    assert found.interaction.separated is True
    assert [effect.separated for effect in found.alone] == [False, False]
    assert found.cells["11"].value == pytest.approx(0.96)
    assert "template +0.0 points and parser +0.0 points" in found.summary
    assert "template +48.0 points and parser +48.0 points" in found.summary
    assert found.summary.endswith("Interaction: +96.0 points.")


def test_two_effects_that_add_up_have_no_interaction() -> None:
    items = [("code", i) for i in range(40)]
    y10 = {item: float(item[1] < 10) for item in items}
    y01 = {item: float(item[1] >= 20) for item in items}
    y11 = {item: y10[item] + y01[item] for item in items}
    found = factorial("a", "b", dict.fromkeys(items, 0.0), y10, y01, y11)
    assert [e.estimate.value for e in found.alone] == [0.25, 0.5]
    assert [e.estimate.value for e in found.marginal] == [0.25, 0.5]
    assert found.interaction.estimate.value == 0
    assert found.interaction.separated is False
    assert found.interaction.estimate.interval is not None
    assert found.interaction.estimate.interval.high > 0.1  # no spread seen is no certainty
    assert "not separated" in found.summary


def test_refused_items_count_zero_and_missing_ones_are_left_out() -> None:
    found = factorial("a", "b", cell(0, miss=rejected), cell(0), cell(0), cell(50, of=90))
    assert (found.n, found.left_out) == (90, 10)
    assert found.cells["00"].value == 0


def test_a_factorial_without_common_items_has_no_effect() -> None:
    found = factorial("a", "b", {}, cell(1), cell(1), cell(1))
    assert found.interaction.estimate.value is None
    assert found.summary == "no effect can be told: no items"
