"""A recorded run (`truecall record`) as a section: the harness's own requests, judged as they came."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from truecall.card import in_words
from truecall.errors import InputError
from truecall.funnel import Episode, Turn, measure, turn_of
from truecall.records import Json, Uptake, Verdict
from truecall.report.arms import ArmView, measures, numbers_parts
from truecall.report.data import Cell, Note, Part, Section, Table, columns
from truecall.report.examples import worst
from truecall.report.share import Mask
from truecall.report.words import many
from truecall.store import read_log, whole
from truecall.store.index import open_index

_ROLES: Final = {
    "agent": "offered tools",
    "prompt": "had its tools in the prompt alone",
    "no_tools": "offered no tools",
    "tools_forbidden": "forbade tools",
    "simulator": "were a simulator's",
    "judge": "were a judge's",
    "superseded": "were repeated without truecall's own fields",
    "other": "went to other paths",
}
_PAGE: Final = 2000


def section(path: Path, card: Mapping[str, Json], name: str, mask: Mask) -> Section:
    """All that a recorded run says. One arm for each model that was asked."""
    roles, episodes = _conversations(path)
    views = [ArmView(model, measure(found), found) for model, found in episodes.items()]
    parts = [_measured(card, roles, mask)]
    if views:
        parts += numbers_parts(views)
        parts.append(worst(path, mask, role="agent"))
    return Section(
        kind="record",
        name=name,
        title="Recorded run",
        subtitle=f"{many(sum(roles.values()), 'exchange')} · swap {card.get('swap', 'none')}",
        answer=_answer(views, roles),
        parts=tuple(parts),
        measures=tuple(line for view in views for line in measures(view)),
    )


class _Kept(NamedTuple):
    """The last attempt at a turn of the agent's. ``conversation`` None: the client left before the answer."""

    conversation: int | None
    attempts: int
    turns: list[Turn]  # one for each answer to the request


def _conversations(path: Path) -> tuple[dict[str, int], dict[str, list[Episode]]]:
    """Exchanges by role, and the agent's conversations by model, as `truecall record` gathered them."""
    models = _models(path)
    roles: dict[str, int] = {}
    kept: dict[int, _Kept] = {}
    told: dict[int, set[str]] = {}
    for line in read_log(path):
        if line.get("kind") != "verdict":
            continue
        role, number = str(line.get("role")), int(line.get("n") or 0)
        roles[role] = roles.get(role, 0) + 1
        for uptake in line.get("uptakes") or ():
            told.setdefault(int(uptake["n"]), set()).update(map(str, uptake["calls"]))
        if role == "agent":
            failed = kept.pop(int(line.get("retry_of") or 0), None)
            attempts = failed.attempts if failed is not None else 0
            kept[number] = _Kept(line.get("conversation"), attempts + 1, _judged(path, line, attempts))
    arms: dict[str, dict[str, list[Turn]]] = {}
    for number, (conversation, _, found) in kept.items():
        if conversation is None:
            continue
        arm = arms.setdefault(models.get(number, "(unknown)"), {})
        first, *further = found
        seen = first if number not in told else _taken(first, told[number])
        arm.setdefault(str(conversation), []).append(seen)
        for choice, turn in enumerate(further, 1):
            arm[f"{number}.{choice}"] = [turn]
    return roles, {
        model: [Episode(arm=model, item=item, turns=tuple(turns)) for item, turns in items.items()]
        for model, items in arms.items()
    }


def _judged(path: Path, line: Mapping[str, Any], failed: int) -> list[Turn]:
    try:
        verdicts = msgspec.convert(whole(path, line.get("verdicts") or []), list[Verdict])
    except msgspec.ValidationError as error:
        raise InputError(f"{path / 'log.jsonl'}: a verdict can't be read ({error})") from None
    return [turn_of(verdict, failed_attempts=failed) for verdict in verdicts]


def _taken(turn: Turn, uptakes: set[str]) -> Turn:
    """The turn with what its harness did, as a later request tells. Dropped: run or not, no result came back."""
    observed = Uptake.OBSERVED in uptakes
    return msgspec.structs.replace(turn, observed=observed, executed=observed or None)


def _models(path: Path) -> dict[int, str]:
    found: dict[int, str] = {}
    with open_index(path) as index:
        after = 0
        while rows := index.page(after=after, limit=_PAGE):
            after = rows[-1].id
            found |= {int(row.key.partition(".")[0]): row.model or "(not named)" for row in rows}
    return found


def _measured(card: Mapping[str, Json], roles: Mapping[str, int], mask: Mask) -> Part:
    stack = card.get("stack")
    rows: list[tuple[Cell, ...]] = [
        ("upstream", mask.address(str(card.get("upstream") or "unknown")), "as given")
    ]
    if not mask.on:
        rows.append(("command", " ".join(map(str, card.get("command") or ())) or "none", "as given"))
    rows += [
        (word, in_words(card.get(word, "unknown")), "as given")
        for word in ("swap", "evidence", "keep", "truecall")
    ]
    unknown = []
    for field, fact in stack.items() if isinstance(stack, dict) else ():
        if isinstance(fact, dict) and "origin" in fact:
            if fact["origin"] == "unknown" or fact.get("value") is None:
                unknown.append(field.replace("_", " "))
            elif field != "chat_template":
                rows.append(
                    (field.replace("_", " "), mask.places(in_words(fact["value"])), str(fact["origin"]))
                )
        elif field in ("engine", "label") and fact:
            rows.append((field, str(fact), "probed"))
    heads = columns("entry", "value", "known by")
    said = ", ".join(f"{count:,} {_ROLES.get(role, role)}" for role, count in roles.items())
    notes = [Note(text=f"Of the exchanges {said}." if said else "No exchange was recorded.")]
    if not isinstance(stack, dict):
        notes.append(Note(text="Nothing is known of the stack behind the upstream.", tone="warn"))
    if unknown:
        notes.append(Note(text=f"Unknown: {', '.join(unknown)}.", tone="warn"))
    return Part(
        title="What was measured",
        blocks=(
            Table(caption="The recorded run", columns=heads, rows=tuple(rows)),
            *notes,
            Note(
                text="An instance is a conversation here: a request goes on with one when it repeats the messages of "
                "its last request, or brings the results of its calls."
            ),
        ),
    )


def _answer(views: list[ArmView], roles: Mapping[str, int]) -> str:
    if not views:
        return f"No request offered tools in {many(sum(roles.values()), 'exchange')}."
    lost = sum(view.numbers["censored_share"].yes for view in views)
    produced = sum(view.numbers["censored_share"].n for view in views)
    failed = sum(view.numbers.request_errors for view in views)
    valid = [view.numbers["interface_yield"] for view in views]
    tail = f" {many(failed, 'request')} failed; they are in no model's rate." if failed else ""
    if lost:
        return f"Well-formed calls were lost in {lost} of {produced} produced turns.{tail}"
    yes, n = sum(v.yes for v in valid), sum(v.n for v in valid)
    return f"No call was lost: {yes} of {n} turns surfaced a valid call.{tail}"
