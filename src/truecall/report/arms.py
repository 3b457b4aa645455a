"""Parts that are made from the numbers of arms: funnel, rates, points, what became of turns, positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from truecall.compare import values_by_item
from truecall.funnel import DEFINITIONS, ArmNumbers, Episode, Number, Rate, Step
from truecall.report.charts.kinds import Dot, Dots, Estimate, Forest, Funnel, Slice, Stack, span
from truecall.report.data import Block, Bullets, Figure, Measure, Note, Part, Table, columns, count
from truecall.report.words import counted, limits, many, methods, tally
from truecall.run.crossstack import kind

T = TypeVar("T")
MOST_ARMS: Final = 40
MOST_DOTS: Final = 600

_SERIES: Final = {
    "naive_rate": "naive",
    "observed_fidelity": "observed",
    "emitted_fidelity": "emitted",
}
_LABELS: Final = {
    **_SERIES,
    "censored_share": "lost (censored)",
    "non_response_share": "non-response",
    "interface_yield": "interface yield",
}
_OF_THE_MODEL: Final = frozenset({"observed_fidelity", "emitted_fidelity", "censored_share"})
_UNSEEN: Final = "the tools were never rendered: nothing can be said of the model's calls"
_OF_EPISODES: Final = ("called_emitted", "called_surfaced", "solved", "first_passes", "rescues")


class ArmView(NamedTuple):
    """An arm with its numbers. ``unseen``: its prompts never showed the model a tool."""

    name: str
    numbers: ArmNumbers
    episodes: Sequence[Episode]
    unseen: bool = False

    def rate(self, name: str, *, pooled: bool = False) -> Rate:
        """One number's rate; undefined where the model saw no tool."""
        if self.unseen and name in _OF_THE_MODEL:
            return Rate(low=None, high=None, n=0, reason=_UNSEEN)
        number = self.numbers[name]
        return number.pooled if pooled else number.per_seed


def shown(arms: Sequence[T]) -> Sequence[T]:
    """The arms that a page shows; the CSV has all."""
    return arms[:MOST_ARMS]


def left_out(arms: Sequence[object], where: str = "in the CSV alone") -> tuple[Note, ...]:
    """What a page says of arms that it does not show."""
    rest = len(arms) - MOST_ARMS
    return (Note(text=f"The first {MOST_ARMS} arms are shown, {rest} more are {where}."),) if rest > 0 else ()


def numbers_parts(arms: Sequence[ArmView]) -> list[Part]:
    """Everything that the numbers say."""
    seen = shown(arms)
    return [
        Part(title="Funnel", blocks=(*left_out(arms), *_funnel(seen))),
        Part(
            title="Rates",
            blocks=(
                *_forest(seen),
                _rates(seen),
                *_methods(seen),
                *_notices(seen),
            ),
        ),
        *_dots(seen),
        Part(title="What became of each turn", blocks=_outcomes(seen)),
        *_positions(seen),
    ]


# --------------------------------------------------------------------------- funnel and rates


def _funnel(arms: Sequence[ArmView]) -> tuple[Block, ...]:
    panels = tuple((arm.name, _steps(arm)) for arm in arms)
    says = "Turns that passed each step and all before it. Lighter: turns of which it is not known."
    rendered = [
        (arm.name, counted(arm.numbers.rendered.k, arm.numbers.rendered.unknown, arm.numbers.rendered.n))
        for arm in arms
        if arm.numbers.rendered.unknown < arm.numbers.rendered.n
    ]
    table = Table(
        caption="Beside the funnel: turns whose prompt showed the tools to the model",
        columns=columns("arm", "#tools rendered"),
        rows=tuple(rendered),
    )
    figure = Figure(name="funnel", title="Funnel", says=says, chart=Funnel(panels=panels))
    return (figure, table) if rendered else (figure,)


def _steps(arm: ArmView) -> tuple[Step, ...]:
    """The funnel's steps; no last one where nobody says whether anything was solved."""
    return tuple(s for s in arm.numbers.steps if s.unit == "turns" or s.unknown < s.n)


def _forest(arms: Sequence[ArmView]) -> tuple[Block, ...]:
    def estimate(arm: ArmView, name: str) -> Estimate:
        rate = arm.rate(name)
        interval = (rate.interval.low, rate.interval.high) if rate.interval else None
        return Estimate(
            group=arm.name,
            series=_LABELS[name],
            low=rate.low,
            high=rate.high,
            interval=interval,
            n=f"{rate.n} instances",
            reason=rate.reason if rate.low is None else "",
        )

    chart = Forest(
        series=tuple(_SERIES.values()),
        estimates=tuple(estimate(arm, name) for arm in arms for name in _SERIES),
        beside=tuple(estimate(arm, "non_response_share") for arm in arms),
    )
    says = (
        "Means over task instances with 95 % intervals. "
        "Naive: surfaced valid of eligible turns; observed: surfaced valid of produced; "
        "emitted: written valid of produced. A bar stands for bounds where something is unknown. Turns without any "
        "token stand beside them as non-response."
    )
    return (Figure(name="rates", title="Naive, observed and emitted", says=says, chart=chart),)


def _rates(arms: Sequence[ArmView]) -> Table:
    heads = ("#per seed", "#95 % interval", "#instances", "#pooled", "#95 % interval", "#turns")
    rows = []
    for arm in arms:
        for definition in DEFINITIONS:
            number = arm.numbers[definition.name]
            one, all_turns = arm.rate(definition.name), arm.rate(definition.name, pooled=True)
            out = f" ({number.left_out} left out)" if number.left_out else ""
            row = (
                arm.name,
                _LABELS[definition.name],
                span(one.low, one.high),
                limits(one.interval) or _why(one),
                f"{one.n}{out}",
                span(all_turns.low, all_turns.high),
                limits(all_turns.interval) or _why(all_turns),
                counted(number.yes, number.unknown, number.n),
            )
            rows.append(row)
    return Table(
        caption="Every rate with its denominator. "
        + " ".join(f"{_LABELS[d.name]}: {d.title}." for d in DEFINITIONS),
        columns=columns("arm", "number", *heads),
        rows=tuple(rows),
        grouped=True,
    )


def _methods(arms: Sequence[ArmView]) -> list[Note]:
    """How the intervals of the table were made."""
    notes = []
    for words, pooled in (("Per seed, ", False), ("Pooled, ", True)):
        rates = (arm.rate(d.name, pooled=pooled) for arm in arms for d in DEFINITIONS)
        said = methods(rate.interval for rate in rates)
        notes += [Note(text=f"{words}{said}")] if said else []
    return notes


def _why(rate: Rate) -> str:
    """Why there is no rate or no interval, short."""
    return (
        "never rendered" if rate.reason == _UNSEEN else "none" if rate.low is not None else "no turn counts"
    )


def _notices(arms: Sequence[ArmView]) -> tuple[Block, ...]:
    told = [f"{arm.name}: {', '.join(w.numbers)}: {w.text}." for arm in arms for w in arm.numbers.warnings]
    told += [f"{arm.name}: {_UNSEEN}." for arm in arms if arm.unseen]
    more = [f"{arm.name}: {line}" for arm in arms for line in _asides(arm.numbers)]
    return (Bullets(items=(*told, *more)),) if told or more else ()


def _asides(numbers: ArmNumbers) -> list[str]:
    lines = []
    if numbers.forced:
        lines.append(
            f"{many(numbers.forced, 'turn')} forced by a constraint: in neither part of emitted fidelity."
        )
    if numbers.truncated:
        lines.append(
            f"{many(numbers.truncated, 'turn')} ended by the budget before any call: they count as no call."
        )
    if numbers.request_errors:
        lines.append(
            f"{many(numbers.request_errors, 'request')} failed, retries counted: in no model's rate."
        )
    if numbers.final_answers:
        lines.append(
            f"{many(numbers.final_answers, 'turn')} without a call where nothing says whether one was due."
        )
    return lines


# --------------------------------------------------------------------------- points, outcomes, positions


def _dots(arms: Sequence[ArmView]) -> list[Part]:
    dots: list[Dot] = []
    means: list[tuple[str, str, float]] = []
    for arm in arms:
        for name in ("observed_fidelity", "emitted_fidelity"):
            mean = arm.rate(name).low
            if mean is not None:
                values = values_by_item(name, arm.episodes)
                dots += [_dot(arm, name, instance, value) for instance, value in values.items()]
                means.append((arm.name, _SERIES[name], mean))
    if not dots:
        return []
    block: Block = Figure(
        name="instances",
        title="Every instance",
        says="Each point is a task instance: the rate inside it, its samples averaged. The line is the mean. What is "
        "unknown counts as no.",
        chart=Dots(series=("observed", "emitted"), dots=tuple(dots), means=tuple(means)),
    )
    if len(dots) > MOST_DOTS:
        said = (
            f"{len(dots):,} points are more than a picture can show; the run folder's log has every episode."
        )
        block = Note(text=said)
    return [Part(title="Every instance behind the means", blocks=(block,))]


def _dot(arm: ArmView, name: str, instance: tuple[str, int], value: float) -> Dot:
    item, seed = instance
    return Dot(group=arm.name, series=_SERIES[name], name=f"{item}, seed {seed}", value=value)


def _outcomes(arms: Sequence[ArmView]) -> tuple[Block, ...]:
    slices = []
    for arm in arms:
        kinds = Counter(kind(turn) for e in arm.episodes for turn in e.turns if turn.eligible is not False)
        slices += [Slice(group=arm.name, kind=name, count=count) for name, count in kinds.most_common()]
    if not slices:
        return (Note(text="No turn was sent."),)
    says = (
        "Native call: it came out of the interface. Text call: it was left in the text. Erased: in neither place. "
        "Damaged: with another name or other arguments."
    )
    rows = []
    for arm in arms:
        n = arm.numbers
        causes, silent = ({w: c.k for w, c in census.items()} for census in (n.causes, n.non_response))
        emissions = {word: count.k for word, count in n.emissions.items()}
        rows.append(
            (arm.name, tally(emissions), tally(causes) or "none", tally(silent) or "none", tally(n.ended))
        )
    heads = ("arm", "emission", "lost or not produced, by part", "no response, by cause", "episodes ended")
    return (
        Figure(
            name="outcomes",
            title="What became of each turn",
            says=says,
            chart=Stack(slices=tuple(slices), unit="turns"),
        ),
        Table(
            caption="Turns by what the model did, and by the part that lost them",
            columns=columns(*heads),
            rows=tuple(rows),
        ),
    )


def _positions(arms: Sequence[ArmView]) -> list[Part]:
    if all(len(arm.numbers.positions) < 2 for arm in arms):
        return []
    rows = []
    for arm in arms:
        for p in arm.numbers.positions:
            last = "" if p.last == p.first else f" to {p.last}" if p.last else " and later"
            steps = {s.name: s for s in (*p.steps, p.lost)}
            shown = (steps[name] for name in ("produced", "emitted", "valid", "lost"))
            cells = [counted(s.k, s.unknown, s.n) for s in shown]
            rows.append((arm.name, f"turn {p.first}{last}", str(p.episodes), *cells))
    table = Table(
        caption="Late positions hold only the episodes that got there",
        columns=columns(
            *(
                "arm",
                "position",
                "#episodes",
                "#produced",
                "#emitted",
                "#surfaced valid",
                "#lost, of produced",
            )
        ),
        rows=tuple(rows),
        grouped=True,
    )
    return [Part(title="By turn position", blocks=(table,), folded=True)]


# --------------------------------------------------------------------------- for the CSV


def measures(arm: ArmView) -> list[Measure]:
    """Every number of an arm, in both averages."""
    n = arm.numbers
    found = [*n.numbers, *n.variants, *(getattr(n, name) for name in _OF_EPISODES)]
    lines = [line for number in found for line in _lines(arm, number)]
    lines += [
        count(arm.name, f"funnel: {s.name}", s.k, s.n, s.unit, s.unknown) for s in (*n.steps, n.rendered)
    ]
    for name, census in (("emission", n.emissions), ("cause", n.causes), ("non_response", n.non_response)):
        lines += [
            count(arm.name, f"{name}: {word}", found.k, found.n, "turns") for word, found in census.items()
        ]
    return lines


def _lines(arm: ArmView, number: Number) -> Iterable[Measure]:
    unit = "episodes" if number.name in _OF_EPISODES else "turns"
    hidden = arm.unseen and number.name in _OF_THE_MODEL
    for average, rate in (("per seed", number.per_seed), ("pooled", number.pooled)):
        if hidden:
            rate = Rate(low=None, high=None, n=rate.n, reason=_UNSEEN)
        interval = rate.interval
        yield Measure(
            group=arm.name,
            number=number.name,
            average="per seed" if average == "per seed" else "pooled",
            low=rate.low,
            high=rate.high,
            unit=unit,
            k=None if hidden else number.yes,
            unknown=None if hidden else number.unknown,
            n=number.n,
            interval_low=interval.low if interval else None,
            interval_high=interval.high if interval else None,
            method=interval.method if interval else "",
            interval_n=interval.n if interval else None,
            reason=rate.reason,
        )
