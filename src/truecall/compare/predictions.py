"""Predictions of a study, stated before its first request and judged afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from truecall.funnel import ArmNumbers
from truecall.records import Record

Judgement = Literal["held", "failed", "undecided"]


class Prediction(Record, frozen=True):
    """``number`` of ``arm`` lies between ``least`` and ``most`` (rates, 0 to 1). ``text`` is the author's own words."""

    arm: str
    number: str
    least: float = 0.0
    most: float = 1.0
    average: Literal["per_seed", "pooled"] = "per_seed"
    text: str = ""


class Judged(Record, frozen=True):
    """``held``: the whole interval lies in the predicted range; ``failed``: all of it lies outside; else undecided.

    ``measured_inside``: the measured rate itself lies in the range (both of its bounds); None without a rate.
    """

    prediction: Prediction
    verdict: Judgement
    measured_inside: bool | None
    reason: str


def judge_prediction(prediction: Prediction, arms: Mapping[str, ArmNumbers]) -> Judged:
    """Holds a prediction against the numbers. What was not measured leaves it undecided, with the reason."""

    def undecided(reason: str, inside: bool | None = None) -> Judged:
        return Judged(prediction=prediction, verdict="undecided", measured_inside=inside, reason=reason)

    numbers = arms.get(prediction.arm)
    if numbers is None:
        return undecided(f"no arm {prediction.arm}")
    try:
        number = numbers[prediction.number]
    except KeyError:
        return undecided(f"no number {prediction.number}")
    rate = number.per_seed if prediction.average == "per_seed" else number.pooled
    if rate.low is None or rate.high is None:
        return undecided(rate.reason)
    least, most = prediction.least, prediction.most
    inside = least <= rate.low and rate.high <= most
    if rate.interval is None:
        return undecided(rate.reason, inside)
    low, high = rate.interval.low, rate.interval.high
    shown = f"[{100 * low:.1f}, {100 * high:.1f}] against [{100 * least:.1f}, {100 * most:.1f}] predicted"
    if least <= low and high <= most:
        return Judged(prediction=prediction, verdict="held", measured_inside=inside, reason=shown)
    if high < least or low > most:
        return Judged(prediction=prediction, verdict="failed", measured_inside=inside, reason=shown)
    return undecided(shown, inside)
