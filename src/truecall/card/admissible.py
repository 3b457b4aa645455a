"""May these arms' pass rates be compared? Every reason against it, in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import msgspec

from truecall.card.card import ENTRIES, Card
from truecall.card.drift import Drift

_OF_MEASURING = ("truecall", "detector", "task", "seeds")
"""Entries that no factor of a study excuses: arms measured by other rules or on other items don't pair."""


def faults_of(card: Card, drifted: Drift | None = None) -> tuple[str, ...]:
    """Why one arm's card can't carry a pass-rate comparison: not whole, sent otherwise than declared, drift."""
    faults = []
    if card.missing:
        faults.append(f"the card does not know: {', '.join(card.missing)}")
    for name, wanted in card.declared.items():
        if name in card.sent_many:
            faults.append(f"{name}: declared {_text(wanted)}, sent as {', '.join(card.sent_many[name])}")
        elif name not in card.sent:
            faults.append(f"{name}: declared {_text(wanted)}, not sent")
        elif _text(card.sent[name]) != _text(wanted):
            faults.append(f"{name}: declared {_text(wanted)}, sent {_text(card.sent[name])}")
    undeclared = [name for name in (*card.sent, *card.sent_many) if name not in card.declared]
    if undeclared:
        faults.append(f"sent and not declared: {', '.join(dict.fromkeys(undeclared))}")
    if drifted is not None and not drifted.steady:
        first = drifted.changes[0]
        faults.append(
            f"the backend changed in mid-run ({drifted.changed} times): {first.mark} {first.before!r} became "
            f"{first.after!r} at exchange {first.at}"
        )
    return tuple(faults)


def faults_between(a: Card, b: Card, factors: Collection[str]) -> tuple[str, ...]:
    """Entries and parameters in which two cards differ though they are not the named ``factors``.

    Factors are names of entries or of request parameters. What both cards leave unknown is no difference here
    (``faults_of`` names it). ValueError for a factor that would excuse the way of measuring.
    """
    excused = [name for name in _OF_MEASURING if name in factors]
    if excused:
        raise ValueError(f"{', '.join(excused)} can't be the factor of a paired comparison")
    faults = []
    for name in ENTRIES:
        first, second = _text(a.entry(name).value), _text(b.entry(name).value)
        if name not in factors and first != second:
            faults.append(f"{name} differs and is not the factor: {first}, {second}")
    for name in dict.fromkeys((*a.sent, *b.sent)):
        first, second = _text(a.sent.get(name)), _text(b.sent.get(name))
        if name not in factors and "sampling" not in factors and first != second:
            faults.append(f"{name} was sent as {first} and as {second}")
    return tuple(faults)


def admissibility(
    cards: Mapping[str, Card],
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    factors: Collection[str] = (),
    drifts: Mapping[str, Drift] | None = None,
) -> dict[tuple[str, str], tuple[str, ...]]:
    """The reasons against each pair of arms (all, where none are named), for ``compare(..., faults=)``.

    Items and request errors are judged there, from the episodes.
    """
    pairs = list(combinations(cards, 2)) if pairs is None else pairs
    own = {arm: faults_of(card, (drifts or {}).get(arm)) for arm, card in cards.items()}
    return {
        (a, b): (
            *(f"{arm}: {fault}" for arm in (a, b) for fault in own[arm]),
            *faults_between(cards[a], cards[b], factors),
        )
        for a, b in pairs
    }


def _text(value: object) -> str:
    return "unknown" if value is None else msgspec.json.encode(value, order="sorted").decode()
