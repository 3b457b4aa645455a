"""``truecall compare``: arms against each other, paired on items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from truecall.cli import screen
from truecall.errors import UsageError

if TYPE_CHECKING:
    from truecall.compare import Changed, Factorial, RateDifference
    from truecall.run.comparing import Compared


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option(
    "--pair", "pairs", nargs=2, multiple=True, metavar="A B", help="Compare B against A; repeatable."
)
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    metavar="NAME",
    help="solved, first_turn_passed, rescued, first_turn_valid or called; repeatable [solved].",
)
@click.option(
    "--factor", "factors", multiple=True, metavar="NAME", help="An entry of the card that may differ, too."
)
@click.option("--json", "as_json", is_flag=True, help="The comparison as JSON on stdout.")
def compare_command(
    runs: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...],
    outcomes: tuple[str, ...],
    factors: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compare arms of one or more runs (ids or folders), b against a.

    Without --pair all arms of one task that differ in a single factor are compared. Exit code 1: some
    difference survives the correction; 2: no pair may be compared.
    """
    from truecall.compare import OUTCOMES
    from truecall.run.comparing import arms_from, compared

    unknown = [name for name in outcomes if name not in OUTCOMES]
    if unknown:
        raise UsageError(f"--outcome {unknown[0]}: there are {', '.join(OUTCOMES)}")
    arms, results = arms_from(runs)
    crossed = next((r.card.study.factorial for r in results if r.card.study.factorial is not None), None)
    done = compared(arms, pairs, outcomes=outcomes or ("solved",), factors=factors, crossed=crossed)
    if as_json:
        import msgspec

        from truecall.run.output import CompareOutput

        made = CompareOutput(comparison=done)
        screen.emit_json({"schema_version": made.schema_version, **msgspec.to_builtins(made)})
    else:
        _show(done)
    tests = done.found.tests
    if tests and all(test.p is None for test in tests):
        return 2
    return 1 if any(test.survives for test in tests) else 0


def _show(done: Compared) -> None:
    from truecall.compare import describe

    _say(_answer(done))
    for a, b, axes in done.factors:
        screen.out()
        _say(f"{b} against {a} (differs in {', '.join(axes) or 'nothing that the study names'})")
        for test in done.found.tests:
            if (test.a, test.b) == (a, b):
                _say(f"  {describe(test)}")
                if test.overlap.value is not None:
                    _say(
                        f"  Jaccard of the {test.outcome} sets: {test.overlap.value:.2f} of {test.overlap.n} items"
                    )
        for difference in done.found.differences:
            if (difference.a, difference.b) == (a, b):
                _say(f"  {_difference(difference)}")
        for changed in done.found.changed:
            if (changed.a, changed.b) == (a, b):
                _say(f"  {_changed(changed)}")
    for crossing in done.crossings:
        screen.out()
        _say(f"2 × 2 over interface yield, {crossing.where}")
        if crossing.effects is None:
            _say(f"  N/A: {crossing.reason}")
        else:
            _factorial(crossing.effects)
    errors = {arm: count for arm, count in done.found.request_errors.items() if count}
    if errors:
        screen.out()
        _say("request errors before retries: " + ", ".join(f"{arm} {count}" for arm, count in errors.items()))


def _answer(done: Compared) -> str:
    tests = done.found.tests
    ran = [test for test in tests if test.p is not None]
    if not ran:
        return "No pair's pass rates can be compared: the reasons stand below."
    surviving = [f"{test.b} against {test.a}" for test in ran if test.survives]
    corrected = f"of {len(ran)} paired test{'s' * (len(ran) != 1)}"
    if surviving:
        return f"{len(surviving)} {corrected} survive the correction: {', '.join(surviving)}."
    return f"None {corrected} survives the correction: nothing here is separated by it."


def _difference(found: RateDifference) -> str:
    name = f"{found.number}" + (
        " (among produced turns, an outcome of treatment)" if found.conditioned else ""
    )
    if found.low.value is None or found.high.value is None:
        return f"{name}: {found.low.reason}"
    low, high = 100 * found.low.value, 100 * found.high.value
    text = f"{low:+.1f}" if low == high else f"{low:+.1f} to {high:+.1f}"
    interval = found.interval
    shown = "" if interval is None else f" [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    left = f", {found.left_out} items left out" if found.left_out else ""
    apart = ": not separated" if found.separated is False else ""
    return f"{name}: {text} points{shown}, n = {found.low.n}{left}{apart}"


def _changed(found: Changed) -> str:
    if found.share.value is None:
        return f"first turns changed: {found.share.reason}"
    return f"first turns changed: {found.count.k} of {found.count.n}"


def _factorial(found: Factorial) -> None:
    cells = ", ".join(
        f"{name} {100 * e.value:.1f} %" for name, e in found.cells.items() if e.value is not None
    )
    _say(f"  cells ({found.a}, {found.b}): {cells}; n = {found.n}")
    for effect in (*found.alone, *found.beside, *found.marginal, found.interaction):
        value, interval = effect.estimate.value, effect.estimate.interval
        if value is not None:
            shown = "" if interval is None else f" [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
            apart = ": not separated" if effect.separated is False else ""
            _say(f"  {effect.name}: {100 * value:+.1f} points{shown}{apart}")
    _say(f"  {found.summary}")


def _say(text: str) -> None:
    screen.out(screen.plain(screen.visible(text)))
