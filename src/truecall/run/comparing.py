"""Runs against each other: which arms are paired, by which factor, and what the comparison says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from truecall.card import Card, admissibility, faults_of
from truecall.compare import Comparison, Factorial, compare, factorial, values_by_item
from truecall.errors import InputError
from truecall.records import Record
from truecall.run.result import ArmResult, RunResult, find_run, read
from truecall.run.study import Factorial as Cross

Pair = tuple[str, str]

_SERVING = frozenset(
    {"engine", "engine_version", "gateway", "model", "model_digest", "quantisation", "chat_template"}
    | {"tool_parser", "reasoning_parser", "launch_flags"}
)
_EXCUSED: dict[str, frozenset[str]] = {
    "condition": frozenset(
        {"condition", "prompts", "harness_parser", "tool_choice", "response_format", "stop", "format"}
    ),
    "schema": frozenset({"condition", "prompts", "tools", "response_format", "format"}),
    "prompt": frozenset({"condition", "prompts"}),
    "thought": frozenset({"condition", "prompts", "response_format", "format"}),
    "few_shot": frozenset({"condition", "prompts"}),
    "tool_choice": frozenset({"condition", "prompts", "tool_choice"}),
    "template": frozenset({"chat_template", "launch_flags"}),
    "parser": frozenset({"tool_parser", "launch_flags"}),
    "model": frozenset({"model", "model_digest", "quantisation", "chat_template", "tool_parser"}),
    "scale": frozenset({"model", "model_digest", "quantisation"}),
    "endpoint": _SERVING,
}
"""What on a card, and of what was sent, each factor of a study is bound to change."""


class Crossing(Record, frozen=True):
    """A 2 × 2 over interface yield. ``where``: what its four arms share; ``reason``: why there is none."""

    where: str
    effects: Factorial | None = None
    reason: str = ""


class Compared(Record, frozen=True):
    """Everything that was compared. ``factors``: what each pair differs in, by ``a`` and ``b``."""

    found: Comparison
    factors: tuple[tuple[str, str, tuple[str, ...]], ...]
    crossings: tuple[Crossing, ...] = ()


def arms_from(names: Sequence[str]) -> tuple[dict[str, ArmResult], list[RunResult]]:
    """The arms of these runs by name; with several runs the run's name stands before the arm's.

    Raises:
        InputError: a run can't be read.
    """
    results = [read(find_run(name)) for name in names]
    arms: dict[str, ArmResult] = {}
    for name, result in zip(names, results, strict=True):
        for arm in result.arms:
            arms[arm.name if len(names) == 1 else f"{name}:{arm.name}"] = arm
    return arms, results


def compared(
    arms: dict[str, ArmResult],
    pairs: Sequence[Pair] = (),
    *,
    outcomes: Sequence[str] = ("solved",),
    factors: Collection[str] = (),
    crossed: Cross | None = None,
) -> Compared:
    """Compares ``pairs``, or, where none are named, all arms of one task that differ in a single factor.

    ``factors``: entries of the card that may differ beside those which follow from the arms' own factors.

    Raises:
        InputError: a pair names an arm that is not there, or there is nothing to compare.
    """
    for name in (name for pair in pairs for name in pair):
        if name not in arms:
            raise InputError(f"no arm {name!r}; there are {', '.join(arms)}")
    chosen = list(pairs) or _single_factor(arms)
    if not chosen:
        raise InputError("there are no two arms of one task to compare")
    episodes = {name: arm.episodes for name, arm in arms.items()}
    faults: dict[Pair, tuple[str, ...]] = {}
    differing = []
    for a, b in chosen:
        axes = axes_between(arms[a], arms[b])
        differing.append((a, b, axes))
        excused = {entry for axis in axes for entry in _EXCUSED.get(axis, frozenset({axis}))} | set(factors)
        faults[a, b] = _faults(a, b, arms, excused)
    found = compare(episodes, chosen, outcomes=outcomes, faults=faults)
    crossings = _crossings(arms, crossed) if crossed is not None else ()
    return Compared(found=found, factors=tuple(differing), crossings=crossings)


def axes_between(a: ArmResult, b: ArmResult) -> tuple[str, ...]:
    """The factors in which two arms differ. An endpoint whose labels say how it differs is none of its own."""
    first, second = a.arm.values, b.arm.values
    names = [n for n in dict.fromkeys((*first, *second)) if first.get(n) != second.get(n)]
    own = {"endpoint", "task", *_EXCUSED} - {"template", "parser", "model", "scale"}
    labelled = any(name not in own for name in names)
    return tuple(name for name in names if not (name == "endpoint" and labelled))


def _single_factor(arms: dict[str, ArmResult]) -> list[Pair]:
    same_task = [(a, b) for a, b in combinations(arms, 2) if arms[a].arm.task == arms[b].arm.task]
    single = [(a, b) for a, b in same_task if len(axes_between(arms[a], arms[b])) == 1]
    return single or same_task


def _faults(a: str, b: str, arms: dict[str, ArmResult], excused: Collection[str]) -> tuple[str, ...]:
    """Why two arms' pass rates can't be compared, by their cards and their backends."""
    cards: dict[str, Card] = {name: arms[name].card for name in (a, b)}
    drifts = {name: arms[name].drift for name in (a, b)}
    allowed = set(excused) - {"truecall", "detector", "task", "seeds"}
    return admissibility(cards, [(a, b)], factors=allowed, drifts=drifts)[a, b]


def card_faults(arm: ArmResult) -> tuple[str, ...]:
    """Why an arm by itself can't carry a pass-rate comparison."""
    return faults_of(arm.card, arm.drift)


# --------------------------------------------------------------------------- the 2 × 2


def _crossings(arms: dict[str, ArmResult], cross: Cross) -> tuple[Crossing, ...]:
    """One 2 × 2 for each set of arms that share everything but the two factors."""
    groups: dict[str, dict[str, ArmResult]] = {}
    for arm in arms.values():
        values = arm.arm.values
        cell = _level(values.get(cross.a), cross.a_off, cross.a_on) + _level(
            values.get(cross.b), cross.b_off, cross.b_on
        )
        if len(cell) == 2:
            shared = {n: v for n, v in values.items() if n not in (cross.a, cross.b, "endpoint")}
            groups.setdefault(", ".join(f"{n} {v}" for n, v in sorted(shared.items())), {})[cell] = arm
    if not groups:
        return (
            Crossing(
                where="", reason=f"no arm has values of {cross.a} and {cross.b} as the study names them"
            ),
        )
    return tuple(_crossing(where, cells, cross) for where, cells in groups.items())


def _level(value: str | None, off: str, on: str) -> str:
    return "0" if value == off else "1" if value == on else ""


def _crossing(where: str, cells: dict[str, ArmResult], cross: Cross) -> Crossing:
    missing = [cell for cell in ("00", "10", "01", "11") if cell not in cells or not cells[cell].episodes]
    if missing:
        return Crossing(where=where, reason=f"no episodes in the cells {', '.join(missing)}")
    y = {cell: values_by_item("interface_yield", arm.episodes) for cell, arm in cells.items()}
    effects = factorial(cross.a, cross.b, y["00"], y["10"], y["01"], y["11"])
    return Crossing(where=where, effects=effects)
