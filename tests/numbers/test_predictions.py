"""Predictions, judged by the interval."""

from __future__ import annotations

import pytest
from number_turns import episodes, leaked, prose, rejected, valid, vanished

from truecall.compare import Prediction, judge_prediction
from truecall.funnel import measure

ARMS = {
    "matched": measure(episodes([[valid()]] * 60, arm="matched")),
    "mismatched": measure(episodes([[leaked()]] * 48 + [[prose()]] * 12, arm="mismatched")),
    "refused": measure(episodes([[rejected()]] * 8, arm="refused")),
    "thin": measure(episodes([[valid()]] * 2, arm="thin")),
    "silent": measure(episodes([[vanished()]] * 8, arm="silent")),
}


@pytest.mark.parametrize(
    ("arm", "least", "most", "verdict", "inside"),
    [
        ("matched", 0.0, 0.1, "held", True),
        ("matched", 0.0, 0.02, "undecided", True),  # 0 of 60 leaves room for more than 2 %
        ("mismatched", 0.0, 0.02, "failed", False),
        ("mismatched", 0.5, 0.75, "undecided", False),
        ("mismatched", 0.5, 1.0, "held", True),
        ("refused", 0.0, 0.5, "undecided", None),
        ("thin", 0.0, 0.5, "undecided", True),
        ("silent", 0.0, 0.5, "undecided", False),  # anything from none to all
    ],
)
def test_the_interval_decides(arm: str, least: float, most: float, verdict: str, inside: bool | None) -> None:
    prediction = Prediction(arm=arm, number="censored_share", least=least, most=most)
    found = judge_prediction(prediction, ARMS)
    assert (found.verdict, found.measured_inside) == (verdict, inside)
    assert found.reason


@pytest.mark.parametrize(("arm", "number"), [("absent", "naive_rate"), ("matched", "accuracy")])
def test_what_was_not_measured_is_undecided(arm: str, number: str) -> None:
    found = judge_prediction(Prediction(arm=arm, number=number), ARMS)
    assert found.verdict == "undecided"
    assert found.measured_inside is None
