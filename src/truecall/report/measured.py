"""What was measured: the cards of a run's arms, what is unknown of them, and the reporting checklist."""

from __future__ import annotations

from collections.abc import Sequence

from truecall.card import ENTRIES, Card, Item, in_words
from truecall.report.arms import left_out, shown
from truecall.report.data import Badge, Block, Bullets, Cell, Note, Part, Table, Tone, columns
from truecall.report.share import Mask
from truecall.run.cards import RunCard
from truecall.run.output import arm_card
from truecall.run.result import ArmResult

_HIDDEN = frozenset({"condition", "task"})  # the arms' own factors
_STATES: dict[str, Tone] = {"yes": "good", "partly": "warn", "no": "bad"}


def measured(card: RunCard, arms: Sequence[ArmResult], mask: Mask) -> Part:
    """The cards: what all arms share, in what they differ, and what nobody knows."""
    cards = [arm.card for arm in arms]
    same = [name for name in ENTRIES if name not in _HIDDEN and len({_text(c, name) for c in cards}) == 1]
    shared = [name for name in same if cards[0].entry(name).origin != "unknown"]
    unknown = [name for name in same if name not in shared]
    rows: list[tuple[Cell, ...]] = [
        (ENTRIES[name], mask.places(in_words(cards[0].entry(name).value)), cards[0].entry(name).origin)
        for name in shared
    ]
    rows += [
        _parameter(name, cards, mask)
        for name in dict.fromkeys(n for c in cards for n in (*c.sent, *c.sent_many))
    ]
    blocks: list[Block] = [
        _endpoints(card, mask),
        Table(
            caption="The same in every arm; each entry probed, inferred, or declared by the one who ran it",
            columns=columns("entry", "value", "known by"),
            rows=tuple(rows),
        ),
    ]
    differing = [name for name in ENTRIES if name not in same and name not in _HIDDEN]
    if len(arms) > 1:
        blocks.append(_arms(arms, differing, mask))
    if unknown:
        named = ", ".join(ENTRIES[name] for name in unknown)
        blocks.append(Note(text=f"Unknown in every arm: {named}.", tone="warn"))
    if card.unsafe_sandbox:
        blocks.append(
            Note(text="Code that the model wrote ran without a sandbox (--unsafe-sandbox).", tone="warn")
        )
    quarrels = [f"{name}: {q}" for name, found in card.quarrels.items() for q in found]
    if quarrels:
        blocks.append(Bullets(items=tuple(f"Probed against declared: {mask.places(q)}" for q in quarrels)))
    return Part(title="What was measured", blocks=tuple(blocks))


def _text(card: Card, name: str) -> str:
    fact = card.entry(name)
    return f"{fact.origin} {in_words(fact.value)}"


def _parameter(name: str, cards: Sequence[Card], mask: Mask) -> tuple[Cell, ...]:
    """A request parameter as it was sent, over all arms."""
    many = dict.fromkeys(text for c in cards for text in c.sent_many.get(name, ()))
    sent = dict.fromkeys(in_words(c.sent[name]) for c in cards if name in c.sent)
    some = "" if all(name in c.sent or name in c.sent_many for c in cards) else " (not in every arm)"
    shown = mask.places(", ".join((*sent, *many)))
    return f"sent: {name}", f"{shown if len(shown) <= 120 else shown[:119] + '…'}{some}", "as sent"


def _endpoints(card: RunCard, mask: Mask) -> Table:
    told = {
        True: Badge(word="rendered", tone="good"),
        False: Badge(word="never rendered", tone="bad"),
        None: Badge(word="not known", tone="warn"),
    }
    rows = tuple(
        (
            known.name,
            known.label,
            known.model,
            mask.address(known.base_url),
            told[known.rendered],
            mask.text(known.rendered_said) if known.gate or known.rendered is None else known.rendered_said,
        )
        for known in shown(list(card.known.values()))
    )
    heads = ("endpoint", "stack", "model as named", "address", "tools in the prompt", "how that is known")
    left = len(card.known) - len(rows)
    return Table(caption="Endpoints", columns=columns(*heads), rows=rows, left_out=left)


def _arms(arms: Sequence[ArmResult], differing: Sequence[str], mask: Mask) -> Table:
    factors = [
        f
        for f in dict.fromkeys(n for arm in arms for n in arm.arm.values)
        if len({arm.arm.values.get(f) for arm in arms}) > 1
    ]
    heads = columns("arm", *factors, *(ENTRIES[name] for name in differing))
    rows = tuple(
        (
            arm.name,
            *(arm.arm.values.get(f, "") for f in factors),
            *(mask.places(_short(arm.card, name)) for name in differing),
        )
        for arm in shown(arms)
    )
    left = len(arms) - len(rows)
    return Table(caption="Arms, and what differs between them", columns=heads, rows=rows, left_out=left)


def _short(card: Card, name: str) -> str:
    fact = card.entry(name)
    text = "unknown" if fact.origin == "unknown" else in_words(fact.value)
    return f"{text[:19]}…" if text.startswith("sha256:") else text


def checklists(card: RunCard, arms: Sequence[ArmResult], mask: Mask) -> Part:
    """The reporting checklist of the serving-confounds paper, filled in for every arm."""
    rows: list[tuple[Cell, ...]] = []
    for arm in shown(arms):
        made = arm_card(arm, card.quarrels.get(arm.name, ()))
        rows += [(arm.name, item.asks, _state(item), mask.places(item.answer)) for item in made.checklist]
    table = Table(
        caption="What the paper “Measuring the Serving Stack Instead of the Model” asks to be reported",
        columns=columns(
            "arm",
            "asked",
            "reported",
            "answer",
        ),
        rows=tuple(rows),
        grouped=True,
    )
    return Part(
        title="Reporting checklist", blocks=(*left_out(arms, "in `truecall card`"), table), folded=True
    )


def _state(item: Item) -> Badge:
    return Badge(word=item.state, tone=_STATES[item.state])
