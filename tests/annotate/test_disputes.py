"""The rule: what is disputed, and whose answer stands."""

from __future__ import annotations

import msgspec
import pytest

from tests.annotate.material import BROKEN, NO, UNCLEAR, YES, annotation
from tests.annotate.test_numbers import decide
from truecall.annotate.disputes import AXES, disputed, disputed_axes, final
from truecall.annotate.numbers import adjudication_numbers
from truecall.annotate.records import Answer
from truecall.records import Count

OSLO = msgspec.structs.replace(YES, tool="offered:get_weather")
OTHER = msgspec.structs.replace(YES, tool="other")


@pytest.mark.parametrize(
    ("answers", "axes"),
    [
        ((YES, YES, YES), []),
        ((YES, YES, NO), ["call", "well_formed"]),
        ((YES, YES, BROKEN), ["well_formed"]),
        ((NO, NO, BROKEN), ["call"]),
        ((UNCLEAR, UNCLEAR, YES), ["call", "well_formed"]),
        ((UNCLEAR, UNCLEAR, UNCLEAR), ["call", "well_formed"]),
        ((OSLO, OSLO, OTHER), ["tool"]),
        ((NO, OSLO, OSLO), ["call", "well_formed"]),
    ],
)
def test_what_is_disputed(answers: tuple[Answer, ...], axes: list[str]) -> None:
    assert disputed_axes(answers) == axes


def test_it_does_not_matter_who_is_alone() -> None:
    """Against the detector, or against the other annotator: disputed either way."""
    strata = ["tight", "tight", "none", "none", "tight"]
    made = annotation(strata, {"a": [NO, NO, YES, YES, YES], "b": [NO, YES, YES, NO, YES]})
    assert disputed(made) == [0, 1, 2, 3]


def test_the_common_answer_stands_and_else_the_adjudicators() -> None:
    made = annotation(["tight"] * 3, {"a": [YES, NO, YES], "b": [YES, YES, BROKEN]})
    assert [final(made, n, "call") for n in range(3)] == ["yes", None, "yes"]
    made = decide(made, {0: NO, 1: NO, 2: BROKEN})
    assert [final(made, n, "call") for n in range(3)] == ["no" if n == 1 else "yes" for n in range(3)]
    assert [final(made, n, "well_formed") for n in range(3)] == ["yes", "no", "no"]


def test_undisputed_answers_of_the_adjudicator_are_reported_and_change_nothing() -> None:
    made = decide(
        annotation(["tight"] * 4, {"a": [NO, YES, YES, YES], "b": [NO, YES, YES, YES]}),
        {0: NO, 2: NO, 3: YES},
    )
    assert [final(made, n, "call") for n in range(4)] == ["no", "yes", "yes", "yes"]
    found = adjudication_numbers(made)
    assert found is not None
    assert (found.disputed, found.away, found.controls) == (1, Count(k=1, n=1), Count(k=1, n=2))


def test_there_is_an_axis_for_each_question() -> None:
    assert set(AXES) == {"call", "well_formed", "tool"}
