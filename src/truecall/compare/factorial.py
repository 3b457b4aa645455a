"""The 2 × 2 of two factors, item by item: simple effects, marginal effects, interaction."""

from __future__ import annotations

from collections.abc import Mapping

from truecall.compare.outcomes import Instance
from truecall.compare.paired import Drawing, separated
from truecall.funnel.coverage import caution
from truecall.records import Record
from truecall.stats import Estimate
from truecall.stats.bootstrap import paired_difference, ratio


class Effect(Record, frozen=True):
    """A contrast of cell means with its interval over items. ``other``: where the other factor stands."""

    name: str
    factor: str
    other: str
    estimate: Estimate

    @property
    def separated(self) -> bool | None:
        """False where the interval holds zero."""
        return separated(self.estimate)


class Factorial(Record, frozen=True):
    """Two factors, each off (0) or on (1), on the ``n`` items that all four cells have.

    ``cells``: the mean of each cell, by (a, b) as ``"00"``, ``"10"``, ``"01"``, ``"11"``. ``alone``: each factor
    changed alone, from ``00`` (some papers call these the main effects). ``beside``: each factor changed
    where the other is on. ``marginal``: each factor's effect averaged over both states of the other.
    ``interaction``: y11 - y10 - y01 + y00.
    """

    a: str
    b: str
    n: int
    left_out: int
    cells: dict[str, Estimate]
    alone: tuple[Effect, ...]
    beside: tuple[Effect, ...]
    marginal: tuple[Effect, ...]
    interaction: Effect
    summary: str


Cell = Mapping[Instance, float]
"""Interface yield (or an outcome) of each item in one cell, 0 to 1; a refused item counts 0."""


def factorial(
    a: str, b: str, y00: Cell, y10: Cell, y01: Cell, y11: Cell, drawing: Drawing | None = None
) -> Factorial:
    """The effects of factors ``a`` and ``b``: ``y10`` has ``a`` on and ``b`` off.

    Items that a cell lacks are left out of all and counted.
    """
    drawing = drawing or Drawing()
    items = [i for i in y00 if i in y10 and i in y01 and i in y11]
    left_out = len({*y00, *y10, *y01, *y11}) - len(items)
    cells = {"00": y00, "10": y10, "01": y01, "11": y11}
    means = {
        name: ratio([cell[i] for i in items], unit="items", draws=drawing.draws, seed=drawing.seed)
        for name, cell in cells.items()
    }

    def effect(name: str, factor: str, other: str, plus: Cell, minus: Cell) -> Effect:
        estimate = paired_difference(
            [plus[i] - minus[i] for i in items], draws=drawing.draws, seed=drawing.seed, method=drawing.method
        )
        return Effect(name=name, factor=factor, other=other, estimate=estimate)

    alone = (
        effect(f"{a} alone", a, f"{b} off", y10, y00),
        effect(f"{b} alone", b, f"{a} off", y01, y00),
    )
    beside = (
        effect(f"{a} beside {b}", a, f"{b} on", y11, y01),
        effect(f"{b} beside {a}", b, f"{a} on", y11, y10),
    )
    halves = {
        "on_a": {i: (y10[i] + y11[i]) / 2 for i in items},
        "off_a": {i: (y00[i] + y01[i]) / 2 for i in items},
        "on_b": {i: (y01[i] + y11[i]) / 2 for i in items},
        "off_b": {i: (y00[i] + y10[i]) / 2 for i in items},
    }
    marginal = (
        effect(f"{a} on average", a, f"mean over {b}", halves["on_a"], halves["off_a"]),
        effect(f"{b} on average", b, f"mean over {a}", halves["on_b"], halves["off_b"]),
    )
    contrast = [y11[i] - y10[i] - y01[i] + y00[i] for i in items]
    crossed = ratio(
        contrast,
        unit="items",
        least=-2,
        most=2,
        draws=drawing.draws,
        seed=drawing.seed,
        method=drawing.method,
    )
    interaction = Effect(name=f"{a} × {b}", factor=f"{a} × {b}", other="", estimate=crossed)
    return Factorial(
        a=a,
        b=b,
        n=len(items),
        left_out=left_out,
        cells=means,
        alone=alone,
        beside=beside,
        marginal=marginal,
        interaction=interaction,
        summary=_summary(alone, marginal, interaction),
    )


def _summary(alone: tuple[Effect, ...], marginal: tuple[Effect, ...], interaction: Effect) -> str:
    if interaction.estimate.value is None:
        return f"no effect can be told: {interaction.estimate.reason}"
    changed = " and ".join(f"{e.factor} {_points(e)}" for e in alone)
    averaged = " and ".join(f"{e.factor} {_points(e)}" for e in marginal)
    tail = "; not separated from zero" if interaction.separated is False else ""
    told = caution(interaction.estimate.interval)
    return (
        f"Changed alone: {changed}. Averaged over the other factor (marginal): {averaged}. "
        f"Interaction: {_points(interaction)}{tail}.{f' {told}.' if told else ''}"
    )


def _points(effect: Effect) -> str:
    value = effect.estimate.value
    return "undefined" if value is None else f"{100 * value + 0.0:+.1f} points"
