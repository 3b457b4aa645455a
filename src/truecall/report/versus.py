"""Arms against each other: tests, differences, N/A with its reasons, the 2 × 2, heat maps, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from truecall.compare import Factorial, PairedTest, RateDifference
from truecall.errors import InputError
from truecall.report.arms import ArmView, left_out, shown
from truecall.report.charts.kinds import Heat, HeatCell, span
from truecall.report.data import Badge, Block, Cell, Figure, Note, Part, Table, Tone, columns
from truecall.report.words import limits, methods, points, points_between
from truecall.run.comparing import Compared, Pair, axes_between, compared
from truecall.run.crossstack import table as cross_stack
from truecall.run.predictions import judge
from truecall.run.result import ArmResult, RunResult
from truecall.run.study import Factorial as Cross

MOST_PAIRS: Final = 120

_PREDICTED: Final[dict[str, Tone]] = {"held": "good", "failed": "bad", "undecided": "warn", "N/A": "plain"}


# --------------------------------------------------------------------------- comparisons


def comparisons(
    arms: dict[str, ArmResult], crossed: Cross | None, pairs: Sequence[Pair] | None = None
) -> list[Part]:
    """Arms against each other, as `truecall compare` has them: ``pairs``, or all of one task and a single factor."""
    ended = {name: arm for name, arm in arms.items() if arm.episodes}
    if len(ended) < 2 or (pairs is not None and not pairs):
        return []
    if len(pairs or list(combinations(ended, 2))) > MOST_PAIRS:
        said = (
            f"{len(ended)} arms make too many pairs for a page: truecall compare RUN --pair A B compares two."
        )
        return [Part(title="Comparisons", blocks=(Note(text=said),))]
    try:
        done = compared(ended, pairs or (), crossed=crossed)
    except InputError as error:
        return [Part(title="Comparisons", blocks=(Note(text=f"N/A: {error}."),))]
    parts = [Part(title="Comparisons", blocks=(Note(text=_answer(done)), *_tests(done), _differences(done)))]
    crossings = [
        block
        for crossing in done.crossings
        for block in _crossing(crossing.where, crossing.effects, crossing.reason)
    ]
    if crossings:
        parts.append(Part(title="The 2 × 2", blocks=tuple(crossings)))
    return [*parts, _admissible(done)]


def across(runs: Sequence[tuple[str, RunResult]]) -> list[Pair]:
    """Pairs of arms of different runs, on one task, that differ in one factor at most."""
    named = [(name, f"{name}:{arm.name}", arm) for name, run in runs for arm in run.arms if arm.episodes]
    return [
        (a, b)
        for (run, a, first), (other, b, second) in combinations(named, 2)
        if run != other and first.arm.task == second.arm.task and len(axes_between(first, second)) < 2
    ]


def _answer(done: Compared) -> str:
    ran = [test for test in done.found.tests if test.p is not None]
    if not ran:
        return "No pair's pass rates can be compared; the reasons stand under Admissibility."
    left = [f"{test.b} against {test.a}" for test in ran if test.survives]
    of = f"of {len(ran)} paired test{'s' * (len(ran) != 1)}"
    return (
        f"{len(left)} {of} survive the correction: {', '.join(left)}."
        if left
        else f"None {of} survives the correction."
    )


def _tests(done: Compared) -> list[Table]:
    factors = {(a, b): ", ".join(axes) for a, b, axes in done.factors}
    rows = tuple(
        (f"{t.b} against {t.a}", factors.get((t.a, t.b), ""), *_test(t))
        for t in done.found.tests
        if t.difference.value is not None
    )
    head = (
        "b against a",
        "differs in",
        "#items",
        "#gained",
        "#lost",
        "#points",
        "#95 % interval",
    )
    more = ("#exact p", "#Holm", "#Bonferroni", "#Jaccard", "outcome")
    made = methods(t.difference.interval for t in done.found.tests)
    caption = f"Solved items, b against a: exact McNemar test, corrected over all tests that were run. {made}"
    return [Table(caption=caption, columns=columns(*head, *more), rows=rows)] if rows else []


def _test(test: PairedTest) -> list[Cell]:
    value = test.difference.value
    assert value is not None
    exact = [_p(p) for p in (test.p, test.p_holm, test.p_bonferroni)]
    overlap = "" if test.overlap.value is None else f"{test.overlap.value:.2f}"
    word = "survives" if test.survives else "not separated" if test.separated is False else "does not survive"
    tone: Tone = "good" if test.survives else "plain"
    return [
        str(test.n),
        str(test.gains),
        str(test.losses),
        points(value),
        limits(test.difference.interval),
        *exact,
        overlap,
        Badge(word=word if test.p is not None else "no exact test", tone=tone),
    ]


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _differences(done: Compared) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for c in done.found.changed:
        pair = f"{c.b} against {c.a}"
        own = [d for d in done.found.differences if (d.a, d.b) == (c.a, c.b)]
        rows += [
            (pair, d.number.replace("_", " "), *shown) for d in own if (shown := _difference(d)) is not None
        ]
        if c.count.n:
            rows.append((pair, "first turns changed", f"{c.count.k} of {c.count.n}", "", "", ""))
    return Table(
        caption="Paired differences of rates inside each item. Fidelities are conditioned on produced turns, an "
        "outcome of treatment; interface yield is over all items, and stands where the others are N/A. "
        + methods(d.interval for d in done.found.differences),
        columns=columns("b against a", "number", "#points", "#95 % interval", "#items", ""),
        rows=tuple(rows),
    )


def _difference(found: RateDifference) -> tuple[Cell, ...] | None:
    """A difference's cells; None where it is not available."""
    if found.low.value is None or found.high.value is None:
        return None
    said = "not separated" if found.separated is False else "separated" if found.separated else "no interval"
    shown = points_between(found.low.value, found.high.value)
    return shown, limits(found.interval), str(found.low.n), said


def _admissible(done: Compared) -> Part:
    """Every reason against a comparison once, with the arms or pairs that it stands against."""
    against: dict[str, dict[str, None]] = {}
    for a, b, reason in done.found.inadmissible:
        arm = next((name for name in (a, b) if reason.startswith(f"{name}: ")), None)
        text = reason.removeprefix(f"{arm}: ") if arm is not None else reason
        against.setdefault(text, {})[arm if arm is not None else f"{b} against {a}"] = None
    errors = ", ".join(f"{arm} {count}" for arm, count in done.found.request_errors.items())
    blocks: list[Block] = [Note(text=f"Failed requests before retries: {errors}.")]
    if against:
        barred = len({(a, b) for a, b, _ in done.found.inadmissible})
        said = f"The pass rates and fidelities of {barred} of {len(done.factors)} pairs are N/A."
        rows = tuple((reason, ", ".join(names)) for reason, names in against.items())
        table = Table(
            caption="Why, and in which arms or pairs", columns=columns("reason", "arms, or pairs"), rows=rows
        )
        blocks += [Note(text=said, tone="warn"), table]
    else:
        said = "Every pair may be compared: the same items, no request errors, whole cards, parameters as declared"
        blocks.append(Note(text=f"{said}, no other difference than the factor.", tone="good"))
    return Part(title="Admissibility", blocks=tuple(blocks))


def _crossing(where: str, effects: Factorial | None, reason: str) -> list[Block]:
    if effects is None:
        return [Note(text=f"{where or 'The 2 × 2'}: N/A, {reason}.")]
    cells = tuple(
        HeatCell(
            row=f"{effects.a} {_state(cell[0])}",
            column=f"{effects.b} {_state(cell[1])}",
            value=e.value,
            text=span(e.value, e.value),
        )
        for cell, e in effects.cells.items()
    )
    rows = tuple(
        (
            e.name,
            points(e.estimate.value) if e.estimate.value is not None else f"N/A: {e.estimate.reason}",
            limits(e.estimate.interval),
            str(e.estimate.n),
            "not separated" if e.separated is False else "",
        )
        for e in (*effects.alone, *effects.beside, *effects.marginal, effects.interaction)
    )
    heads = ("points", "95 % interval", "items")
    made = methods(
        e.estimate.interval for e in (*effects.alone, *effects.beside, *effects.marginal, effects.interaction)
    )
    return [
        Note(text=effects.summary),
        Figure(
            name="factorial",
            title=f"{effects.a} × {effects.b}",
            says=f"Interface yield over all sent items. {where}",
            chart=Heat(cells=cells, row_title=effects.a, column_title=effects.b),
        ),
        Table(
            caption=f"Effects on interface yield, item by item. {made}",
            columns=columns("effect", *(f"#{h}" for h in heads), ""),
            rows=rows,
        ),
    ]


def _state(digit: str) -> str:
    return "on" if digit == "1" else "off"


# --------------------------------------------------------------------------- heat maps


def conditions_by_models(arms: Sequence[tuple[str, ArmResult, ArmView]]) -> list[Part]:
    """Conditions by everything else that varies (model, task, run); empty where there is nothing to cross.

    ``arms``: each with the words that stand before its row's name.
    """
    axes = dict.fromkeys(name for _, arm, _ in arms for name in arm.arm.values if name != "condition")
    varying = [axis for axis in axes if len({arm.arm.values.get(axis) for _, arm, _ in arms}) > 1]
    rows = {id(view): _row(prefix, arm, varying) for prefix, arm, view in arms}
    conditions = dict.fromkeys(arm.arm.factors.condition for _, arm, _ in arms)
    if len(set(rows.values())) < 2 or len(conditions) < 2:
        return []
    blocks: list[Block] = []
    for name, title in (("emitted_fidelity", "Emitted fidelity"), ("observed_fidelity", "Observed fidelity")):
        cells = []
        for _, arm, view in arms:
            rate = view.rate(name)
            cells.append(
                HeatCell(
                    row=rows[id(view)],
                    column=arm.arm.factors.condition,
                    value=rate.low,
                    text=span(rate.low, rate.high),
                )
            )
        says = f"{title} per seed, " + (
            "the model's part" if name.startswith("emitted") else "what came out of the stack"
        )
        blocks.append(
            Figure(
                name=f"conditions-{name.partition('_')[0]}",
                title=title,
                says=f"{says}. Grey: undefined.",
                chart=Heat(cells=tuple(cells), row_title="arm", column_title="condition"),
            )
        )
    return [Part(title="Conditions × models", blocks=tuple(blocks))]


def _row(prefix: str, arm: ArmResult, varying: Sequence[str]) -> str:
    words = [arm.arm.values[axis] for axis in varying if axis in arm.arm.values]
    return " · ".join(dict.fromkeys([*([prefix] if prefix else []), *words])) or arm.arm.task


def stack_by_stack(result: RunResult) -> list[Part]:
    """What came of the first request on each stack; nothing with a single endpoint."""
    every = cross_stack(result)
    rows = shown(every)
    if not rows:
        return []
    kinds = list(dict.fromkeys(kind for row in rows for kind in row.cells))
    cells = []
    for row in rows:
        total = sum(row.cells.values())
        name = f"{row.endpoint} · {row.task} · {row.condition}"
        cells += [
            HeatCell(
                row=name,
                column=kind,
                value=row.cells.get(kind, 0) / total if total else None,
                text=f"{row.cells.get(kind, 0)} of {total}",
            )
            for kind in kinds
        ]
    says = "What came of the first turn of every episode: the same requests, stack by stack."
    chart = Heat(cells=tuple(cells), row_title="endpoint", column_title="outcome")
    figure = Figure(name="stacks", title="First requests", says=says, chart=chart)
    return [Part(title="Stack by stack", blocks=(*left_out(every, "left out"), figure))]


def predicted(result: RunResult) -> list[Part]:
    """The predictions that were hashed before the first request, judged."""
    found = judge(result)
    if not found:
        return []
    rows = tuple((j.text, j.arm, Badge(word=j.state, tone=_PREDICTED[j.state]), j.said) for j in found)
    caption = f"Made before the first request ({result.card.predictions_sha256})"
    head = columns("prediction", "arm", "judged", "measured")
    return [Part(title="Predictions", blocks=(Table(caption=caption, columns=head, rows=rows),))]
