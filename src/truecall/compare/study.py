"""All comparisons of a set of arms: tests, differences of rates, changed first turns, N/A with reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from truecall.compare.outcomes import outcome
from truecall.compare.paired import (
    ALL_ITEMS,
    Changed,
    Drawing,
    PairedTest,
    RateDifference,
    changed_first_turns,
    corrected,
    not_available,
    paired_test,
    rate_difference,
)
from truecall.funnel.coverage import caution
from truecall.funnel.turns import Episode
from truecall.records import Record

Arms = Mapping[str, Sequence[Episode]]
"""The episodes of each arm, by its name."""

Pair = tuple[str, str]

FIDELITIES = ("observed_fidelity", "emitted_fidelity", ALL_ITEMS)


class Comparison(Record, frozen=True):
    """What arms differ in. ``tests`` are one family: corrections count all of those that were run.

    ``request_errors`` is each arm's error census, which stands for inadmissible arms too. ``inadmissible``
    gives the reasons for each pair whose pass rates can't be compared.
    """

    tests: tuple[PairedTest, ...]
    differences: tuple[RateDifference, ...]
    changed: tuple[Changed, ...]
    request_errors: dict[str, int]
    inadmissible: tuple[tuple[str, str, str], ...] = ()


def arm_faults(episodes: Sequence[Episode]) -> tuple[str, ...]:
    """Why the episodes of an arm can't carry a pass rate; empty: they can."""
    if not episodes:
        return ("no episode was run",)
    faults = []
    errors = sum(episode.request_errors for episode in episodes)
    if errors:
        touched = sum(episode.request_errors > 0 for episode in episodes)
        faults.append(f"request errors before retries: {errors} in {touched} of {len(episodes)} episodes")
    return tuple(faults)


def pair_faults(a: Sequence[Episode], b: Sequence[Episode]) -> tuple[str, ...]:
    """Why the items of two arms can't be paired; empty: they can."""
    first, second = {e.instance for e in a}, {e.instance for e in b}
    if first == second:
        return ()
    return (
        f"not the same items: {len(first - second)} only in the first, {len(second - first)} only in the second",
    )


def compare(
    arms: Arms,
    pairs: Sequence[Pair] | None = None,
    *,
    outcomes: Sequence[str] = ("solved",),
    numbers: Sequence[str] = FIDELITIES,
    faults: Mapping[Pair, Sequence[str]] | None = None,
    drawing: Drawing | None = None,
) -> Comparison:
    """Compares pairs of arms (all, where none are named), ``b`` against ``a``.

    ``faults`` gives further reasons against a pair, from the cards (``card.faults_between``). A conditioned
    number never stands without the all-items one: it is added where ``numbers`` lacks it. Only that one and
    the error census stand for an inadmissible pair. KeyError for an unknown arm, outcome or number.
    """
    drawing = drawing or Drawing()
    pairs = list(combinations(arms, 2)) if pairs is None else pairs
    numbers = (*numbers, *(() if ALL_ITEMS in numbers or not numbers else (ALL_ITEMS,)))
    alone = {arm: arm_faults(arms[arm]) for pair in pairs for arm in pair}
    tests: list[PairedTest] = []
    differences: list[RateDifference] = []
    changed: list[Changed] = []
    inadmissible: list[tuple[str, str, str]] = []
    for a, b in pairs:
        reasons = [f"{arm}: {fault}" for arm in (a, b) for fault in alone[arm]]
        reasons += [*pair_faults(arms[a], arms[b]), *(faults or {}).get((a, b), ())]
        inadmissible += [(a, b, reason) for reason in reasons]
        for name in outcomes:
            if reasons:
                outcome(name, ())  # an unknown name is an error here too
                tests.append(PairedTest(a=a, b=b, outcome=name, reason=f"N/A: {'; '.join(reasons)}"))
            else:
                tests.append(paired_test(a, b, name, outcome(name, arms[a]), outcome(name, arms[b]), drawing))
        for name in numbers:
            found = rate_difference(a, b, name, arms[a], arms[b], drawing)
            if reasons and name != ALL_ITEMS:
                found = not_available(found, reasons)
            differences.append(found)
        changed.append(changed_first_turns(a, b, arms[a], arms[b]))
    return Comparison(
        tests=corrected(tests),
        differences=tuple(differences),
        changed=tuple(changed),
        request_errors={arm: sum(e.request_errors for e in arms[arm]) for pair in pairs for arm in pair},
        inadmissible=tuple(inadmissible),
    )


def describe(found: PairedTest) -> str:
    """One line: the counts, the difference with its interval, the corrected p-value, or N/A and why."""
    head = f"{found.b} against {found.a}, {found.outcome}"
    value, interval = found.difference.value, found.difference.interval
    if value is None:
        return f"{head}: {found.reason or found.difference.reason}"
    text = f"{head}: {100 * value:+.1f} points"
    if interval is not None:
        text += f" [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    text += f", n = {found.n}"
    if found.p is not None:
        text += f", +{found.gains} -{found.losses}, exact p = {found.p:.3g}"
    if found.p_holm is not None:
        text += f" (Holm {found.p_holm:.3g}, Bonferroni {found.p_bonferroni:.3g} of {found.family})"
    if found.separated is False:
        text += ": not separated"
    if told := caution(interval):
        text += f"; {told}"
    return f"{text}; {found.reason}" if found.reason else text
