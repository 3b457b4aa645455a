"""What ``truecall annotate`` prints."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from truecall.annotate.disputes import pending
from truecall.annotate.records import STRATA
from truecall.cli import screen

if TYPE_CHECKING:
    from truecall.annotate.folder import Annotation
    from truecall.annotate.numbers import Agreement, AxisNumbers
    from truecall.annotate.records import Key
    from truecall.annotate.report import Output
    from truecall.stats import Estimate

_TITLES = {"call": "a call was made", "well_formed": "a well-formed call was made"}


def made(key: Key) -> None:
    """The sample of a new annotation."""
    sampled = {name: sum(item.text.stratum == name for item in key.items) for name in STRATA}
    drawn = ", ".join(
        f"{name} {sampled[name]} of {key.population.size(name):,}"
        for name in STRATA
        if key.population.size(name)
    )
    texts, turns = len(key.items), key.population.turns
    _say(f"{texts} text{'s' * (texts != 1)} drawn from {turns:,} turn{'s' * (turns != 1)}: {drawn}")
    _left_out(key.population.left_out)
    if key.population.bad:
        _say(f"{key.population.bad:,} entries could not be read")


def status(annotation: Annotation) -> None:
    """Who has answered, and what is disputed."""
    for name in annotation.annotators:
        _say(f"{name}: {'answered' if name in annotation.answers else 'nothing yet'}")
    if annotation.waiting:
        return
    name = annotation.key.adjudicator
    left = pending(annotation)
    if annotation.decided is not None:
        _say(f"{name}: answered")
    elif not left:
        _say("no text is disputed")
    else:
        state = "no pack yet" if annotation.adjudication is None else "nothing yet"
        _say(f"{name}: {state}, {left} disputed text{'s' * (left != 1)}")


def csv_rows(found: Iterator[dict[str, str | int | float]]) -> None:
    """One line for each text."""
    writer: csv.DictWriter[str] | None = None
    for row in found:
        if writer is None:
            writer = csv.DictWriter(sys.stdout, fieldnames=list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow({name: _cell(value) for name, value in row.items()})


def _cell(value: str | int | float) -> str | int | float:
    """A value that no spreadsheet takes for a formula."""
    if isinstance(value, str):
        value = screen.visible(value)
        return f"'{value}" if value[:1] in ("=", "+", "-", "@") else value
    return value


def show(found: Output) -> None:
    """All numbers on the screen, the answer first."""
    _say(_answer(found))
    screen.out()
    _say(
        f"{found.texts} texts of {found.turns:,} turns · {len(found.annotators)} annotators · "
        f"detector {found.detector} · protocol {found.protocol_sha256[:12]}"
    )
    _left_out(found.left_out)
    for axis, numbers in (("call", found.call), ("well_formed", found.well_formed)):
        screen.out()
        _axis(_TITLES[axis], numbers)
    screen.out()
    _say("which tool, where both see a call")
    for each in (*found.tool.agreement, found.tool.detector):
        _agreement(each)
    if found.adjudication is not None:
        screen.out()
        _say(f"adjudication: {found.adjudication.disputed} disputed")
        if found.adjudication.away is not None and found.adjudication.controls is not None:
            away, controls = found.adjudication.away, found.adjudication.controls
            _say(f"  on the call {away.n}, of which {away.k} went against the detector")
            _say(
                f"  undisputed texts among them, asked blind: the common answer on {controls.k} of {controls.n}"
            )


def _answer(found: Output) -> str:
    if found.waiting:
        return f"Not done: the answers of {', '.join(found.waiting)} are missing."
    if found.pending:
        return f"Not done: {found.pending} disputed texts wait for the adjudicator."
    said = [
        f"{name} {_estimate(value)}"
        for name, value in (("precision", found.call.precision), ("recall", found.call.recall))
    ]
    return f"The detector's calls, weighted back to {found.turns:,} turns: {', '.join(said)}."


def _axis(title: str, numbers: AxisNumbers) -> None:
    _say(title)
    for each in numbers.agreement:
        _agreement(each)
    if numbers.fleiss is not None:
        _say(f"  all annotators: Fleiss' kappa {_number(numbers.fleiss)}")
    if numbers.detector.share.value is None:  # no final answers yet
        _say(f"  everything else: {numbers.detector.share.reason}")
        return
    _agreement(numbers.detector)
    for stratum in numbers.strata:
        reviewed = f"{stratum.reviewed:,} of {stratum.population:,}"
        _say(
            f"  {stratum.stratum:<12} detector {stratum.detector:<3}  reviewed {reviewed:>16}  "
            f"yes {_estimate(stratum.share)}"
        )
    _say(f"  precision    {_estimate(numbers.precision)}")
    _say(f"  recall       {_estimate(numbers.recall)}")
    _say(f"  rate         {_estimate(numbers.rate)} of the turns that can be read")
    for one in numbers.calibrated:
        _say(f"  calibrated   {one.group}, {one.stratum}: {one.turns:,} → {_count(one.estimate)}")


def _agreement(each: Agreement) -> None:
    if each.share.value is None:
        _say(f"  {each.a} and {each.b}: {each.share.reason}")
        return
    _say(
        f"  {each.a} and {each.b}: {each.same.k} of {each.same.n} the same, {_estimate(each.share)}; "
        f"kappa {_number(each.kappa)}"
    )


def _estimate(value: Estimate) -> str:
    """A share in percent with its interval, or the reason why there is none."""
    if value.value is None:
        return f"unknown ({value.reason})"
    if value.interval is None:
        return f"{100 * value.value:.1f} % ({value.reason or 'no interval'})"
    return f"{100 * value.value:.1f} % [{100 * value.interval.low:.1f}, {100 * value.interval.high:.1f}]"


def _number(value: Estimate) -> str:
    if value.value is None:
        return f"undefined ({value.reason})"
    if value.interval is None:
        return f"{value.value:.3f} ({value.reason})"
    low, high = value.interval.low, value.interval.high
    return f"{value.value:.3f} [{low:.3f}, {high:.3f}] ({value.interval.method}, n = {value.n})"


def _count(value: Estimate) -> str:
    if value.value is None:
        return f"unknown ({value.reason})"
    shown = f"{value.value:,.1f}".removesuffix(".0")
    if value.interval is None:
        return f"{shown} ({value.reason})"
    return f"{shown} [{value.interval.low:,.1f}, {value.interval.high:,.1f}]"


def _left_out(reasons: dict[str, int]) -> None:
    for reason, count in reasons.items():
        _say(f"left out {count:,}: {reason}")


def _say(text: str) -> None:
    screen.out(screen.plain(screen.visible(text)))
