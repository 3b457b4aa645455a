"""Two arms on the same items: exact tests, paired differences, overlap of what they solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from truecall.compare.outcomes import Instance, Values, has_unknown, outcome, rate
from truecall.funnel.turns import Episode
from truecall.records import Count, Record
from truecall.stats import Estimate, Interval, bonferroni, clopper_pearson, holm, jaccard, mcnemar, undefined
from truecall.stats.bootstrap import DRAWS, Method, paired_difference

ALPHA = 0.05


class Drawing(Record, frozen=True):
    """How items are drawn for the intervals of differences."""

    draws: int = DRAWS
    seed: int = 0
    method: Method = "percentile"


class PairedTest(Record, frozen=True):
    """A pass/fail outcome of arm ``b`` against arm ``a`` on ``n`` items that both have.

    ``gains``: items that only ``b`` passed; ``losses``: only ``a``. ``difference`` is b minus a. ``p`` is the
    exact McNemar test's; ``p_holm`` and ``p_bonferroni`` stand once the family of tests is known.
    ``separated`` is False ("not separated") where the difference's interval holds zero. ``left_out`` counts
    items that one arm lacks or whose outcome is unknown. ``reason`` says why something is missing (N/A).
    """

    a: str
    b: str
    outcome: str
    n: int = 0
    both: int = 0
    gains: int = 0
    losses: int = 0
    neither: int = 0
    left_out: int = 0
    difference: Estimate = undefined("not compared")
    overlap: Estimate = undefined("not compared")  # Jaccard of the passed sets
    p: float | None = None
    p_holm: float | None = None
    p_bonferroni: float | None = None
    family: int = 0
    reason: str = ""

    @property
    def separated(self) -> bool | None:
        """False where the interval of the paired difference holds zero; None where there is none."""
        return separated(self.difference)

    @property
    def survives(self) -> bool | None:
        """The Bonferroni-corrected p-value is below 0.05."""
        return None if self.p_bonferroni is None else self.p_bonferroni < ALPHA


def separated(difference: Estimate) -> bool | None:
    """False ("not separated"): the interval holds zero. None: there is no interval."""
    interval = difference.interval
    return None if interval is None else not interval.low <= 0 <= interval.high


def paired_test_of_counts(
    a: str, b: str, name: str, *, gains: int, losses: int, both: int, neither: int
) -> PairedTest:
    """A test from the four counts alone, as papers print them. Raises ValueError for negative counts."""
    first = {("item", i): float(i < both + losses) for i in range(both + losses + gains + neither)}
    second = {("item", i): float(i < both or both + losses <= i < both + losses + gains) for _, i in first}
    return paired_test(a, b, name, Values(values=first), Values(values=second), Drawing())


def paired_test(a: str, b: str, name: str, first: Values, second: Values, drawing: Drawing) -> PairedTest:
    """The paired test of two arms' values on the instances that both know."""
    shared = [instance for instance in first.values if instance in second.values]
    seen = {*first.values, *second.values, *first.unknown, *second.unknown}
    left_out = len(seen) - len(shared)
    if not shared:
        return PairedTest(a=a, b=b, outcome=name, left_out=left_out, reason="no item has both outcomes")
    difference = paired_difference(
        [second.values[i] - first.values[i] for i in shared],
        draws=drawing.draws,
        seed=drawing.seed,
        method=drawing.method,
    )
    found = PairedTest(a=a, b=b, outcome=name, n=len(shared), left_out=left_out, difference=difference)
    samples = max(first.samples, second.samples)
    if samples > 1:
        why = f"{samples} samples of an item: an exact test on items needs one; the difference stands"
        return msgspec.structs.replace(found, reason=why, overlap=undefined(why))
    passed_a = {i for i in shared if first.values[i] == 1}
    passed_b = {i for i in shared if second.values[i] == 1}
    gains, losses = len(passed_b - passed_a), len(passed_a - passed_b)
    return msgspec.structs.replace(
        found,
        both=len(passed_a & passed_b),
        gains=gains,
        losses=losses,
        neither=len(shared) - len(passed_a | passed_b),
        overlap=jaccard(passed_a, passed_b),
        p=mcnemar(gains, losses),
    )


def corrected(tests: Sequence[PairedTest]) -> tuple[PairedTest, ...]:
    """The same tests with Holm's and Bonferroni's p-values over the family: all tests that were run."""
    run = [t.p for t in tests if t.p is not None]
    adjusted = iter(zip(holm(run), bonferroni(run), strict=True))
    done = []
    for t in tests:
        if t.p is not None:
            step_down, plain = next(adjusted)
            t = msgspec.structs.replace(t, p_holm=step_down, p_bonferroni=plain, family=len(run))
        done.append(t)
    return tuple(done)


class RateDifference(Record, frozen=True):
    """The paired difference b minus a of a rate inside each item.

    ``low``/``high``: with unknown turns counted so as to make the difference least / most; the same where
    nothing is unknown. ``conditioned``: the population is an outcome of treatment (produced turns), so that
    the items compared may differ in kind; the all-items number stands beside it.
    """

    a: str
    b: str
    number: str
    conditioned: bool
    low: Estimate
    high: Estimate
    left_out: int

    @property
    def separated(self) -> bool | None:
        """False where the interval from the lower to the upper bound holds zero."""
        low, high = self.low.interval, self.high.interval
        return None if low is None or high is None else not low.low <= 0 <= high.high

    @property
    def interval(self) -> Interval | None:
        """From the lower limit of the lower bound to the upper limit of the upper one."""
        low, high = self.low.interval, self.high.interval
        if low is None or high is None:
            return None
        return Interval(low=low.low, high=high.high, method=low.method, n=low.n)


CONDITIONED = frozenset({"observed_fidelity", "emitted_fidelity", "censored_share"})
ALL_ITEMS = "interface_yield"


def rate_difference(
    a: str, b: str, name: str, first: Sequence[Episode], second: Sequence[Episode], drawing: Drawing
) -> RateDifference:
    """The paired difference of a number of ``funnel``, on the items that have it in both arms."""
    low = _difference(rate(name, second), rate(name, first, unknown_as=True), drawing)
    if not (has_unknown(name, first) or has_unknown(name, second)):
        high = low
    else:
        high = _difference(rate(name, second, unknown_as=True), rate(name, first), drawing)
    instances = {e.instance for e in (*first, *second)}
    return RateDifference(
        a=a,
        b=b,
        number=name,
        conditioned=name in CONDITIONED,
        low=low,
        high=high,
        left_out=len(instances) - low.n,
    )


def not_available(found: RateDifference, reasons: Sequence[str]) -> RateDifference:
    """The difference of two arms that can't be compared: no number, the reasons."""
    why = undefined(f"N/A: {'; '.join(reasons)}")
    return msgspec.structs.replace(found, low=why, high=why)


def _difference(minuend: Values, subtrahend: Values, drawing: Drawing) -> Estimate:
    shared = [i for i in minuend.values if i in subtrahend.values]
    if not shared:
        return undefined("no item has this rate in both arms")
    values = [minuend.values[i] - subtrahend.values[i] for i in shared]
    return paired_difference(values, draws=drawing.draws, seed=drawing.seed, method=drawing.method)


class Changed(Record, frozen=True):
    """First turns whose text differs between two arms, of those whose text both kept."""

    a: str
    b: str
    count: Count
    share: Estimate


def changed_first_turns(a: str, b: str, first: Sequence[Episode], second: Sequence[Episode]) -> Changed:
    """Pairs episodes by instance and sampling seed; undefined where no pair kept both texts."""
    texts = {(e.instance, e.sample): e.turns[0].digest for e in first if e.turns}
    pairs = [
        (texts[key], e.turns[0].digest)
        for e in second
        if e.turns and (key := (e.instance, e.sample)) in texts
    ]
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    k, n = sum(x != y for x, y in known), len(known)
    share = (
        Estimate(value=k / n, n=n, interval=clopper_pearson(k, n))
        if n
        else undefined("no first turn's text was kept in both arms")
    )
    return Changed(a=a, b=b, count=Count(k=k, n=n), share=share)


def values_by_item(name: str, episodes: Sequence[Episode]) -> Mapping[Instance, float]:
    """A pass/fail outcome or a rate of each instance, by whichever name it has."""
    try:
        return outcome(name, episodes).values
    except KeyError:
        return rate(name, episodes).values
