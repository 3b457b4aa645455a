"""Predictions that were hashed into the card before the first request, judged by what came."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from truecall.card import hashed
from truecall.compare import Drawing, rate_difference
from truecall.funnel import Number
from truecall.records import Record
from truecall.run.result import ArmResult, RunResult
from truecall.run.study import Prediction
from truecall.stats import Interval

State = Literal["held", "failed", "undecided", "N/A"]
_OF_EPISODES = ("called_emitted", "called_surfaced", "solved", "first_passes", "rescues")


class Judged(Record, frozen=True):
    """A prediction in one arm. ``undecided``: the interval, or what is unknown, leaves both open."""

    text: str
    arm: str
    state: State
    said: str


def judge(result: RunResult) -> list[Judged]:
    """Every prediction of the study, in each arm that it speaks of; nothing where the card's hash does not fit."""
    study = result.card.study
    plain = [msgspec.to_builtins(each) for each in study.predictions]
    if study.predictions and hashed(plain) != result.card.predictions_sha256:
        return [
            Judged(text="all", arm="*", state="N/A", said="the predictions are not those of the card's hash")
        ]
    found = []
    for each in study.predictions:
        arms = [arm for arm in result.arms if fnmatchcase(arm.name, each.arm)]
        if not arms:
            found.append(Judged(text=each.text, arm=each.arm, state="N/A", said="no arm of that name"))
        found += [_judge(each, arm, result) for arm in arms]
    return found


def _judge(prediction: Prediction, arm: ArmResult, result: RunResult) -> Judged:
    def said(state: State, text: str) -> Judged:
        return Judged(text=prediction.text, arm=arm.name, state=state, said=text)

    if arm.numbers is None:
        return said("N/A", "no episode came to its end")
    if prediction.above is not None:
        return _above(prediction, arm, result)
    try:
        number = number_of(arm, prediction.number)
    except KeyError:
        return said("N/A", f"there is no number {prediction.number!r}")
    rate = number.per_seed
    if rate.low is None or rate.high is None:
        return said("N/A", rate.reason)
    least = prediction.at_least if prediction.at_least is not None else 0.0
    most = prediction.at_most if prediction.at_most is not None else 1.0
    text = f"{prediction.number} per seed {_bounds(rate.low, rate.high, rate.interval)}"
    if least <= rate.low and rate.high <= most:
        sure = rate.interval is not None and least <= rate.interval.low and rate.interval.high <= most
        return said("held", text if sure else f"{text}; the interval reaches beyond the prediction")
    if rate.high < least or rate.low > most:
        return said("failed", text)
    return said("undecided", text)


def _above(prediction: Prediction, arm: ArmResult, result: RunResult) -> Judged:
    def said(state: State, text: str) -> Judged:
        return Judged(text=prediction.text, arm=arm.name, state=state, said=text)

    other = next((each for each in result.arms if each.name == prediction.above), None)
    if other is None or not other.episodes:
        return said("N/A", f"no arm {prediction.above!r} with episodes")
    try:
        found = rate_difference(
            other.name, arm.name, prediction.number, other.episodes, arm.episodes, Drawing()
        )
    except KeyError:
        return said("N/A", f"there is no number {prediction.number!r} that arms are compared on")
    low, high = found.low.value, found.high.value
    if low is None or high is None or found.interval is None:
        return said("N/A", found.low.reason or found.high.reason)
    text = f"{prediction.number} minus that of {other.name}: {_bounds(low, high, found.interval)}"
    if not found.separated:
        return said("undecided", f"{text}: not separated")
    return said("held" if low > 0 else "failed", text)


def number_of(arm: ArmResult, name: str) -> Number:
    """A number of the arm by name, shares of episodes included. KeyError where there is none."""
    assert arm.numbers is not None
    if name in _OF_EPISODES:
        found: Number = getattr(arm.numbers, name)
        return found
    return arm.numbers[name]


def _bounds(low: float, high: float, interval: Interval | None) -> str:
    text = f"{100 * low:.1f} %" if low == high else f"{100 * low:.1f} to {100 * high:.1f} %"
    return text if interval is None else f"{text} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
