"""A study's run folder as a section."""

from __future__ import annotations

from collections.abc import Sequence

from truecall import tasks
from truecall.errors import TruecallError
from truecall.records import Json
from truecall.report import versus
from truecall.report.arms import ArmView, measures, numbers_parts
from truecall.report.data import Bullets, Note, Part, Section, Table, columns
from truecall.report.examples import worst
from truecall.report.measured import checklists, measured
from truecall.report.share import Mask
from truecall.report.words import many, some
from truecall.run.output import answer, findings
from truecall.run.result import ArmResult, RunResult
from truecall.store.index import TurnRow

MOST_LOOPS = 20


def section(result: RunResult, name: str, mask: Mask) -> Section:
    """All that a run says, the diagnosis first."""
    study = result.card.study
    views = views_of(result.arms)
    found = findings(result)
    first = [Part(title="Findings", blocks=(Bullets(items=_grouped(found)),))] if found else []
    waiting = [arm.name for arm in result.arms if arm.numbers is None]
    if waiting:
        text = f"No episode came to its end yet in {some(waiting)}: these arms are not in the numbers."
        first.append(Part(title="Unfinished", blocks=(Note(text=text, tone="warn"),)))
    parts = [*first, measured(result.card, result.arms, mask)]
    if views:
        parts += numbers_parts(views)
        pairs = [("", arm, view) for arm, view in zip(_done(result.arms), views, strict=True)]
        parts += versus.conditions_by_models(pairs)
        parts += versus.stack_by_stack(result)
        parts += versus.comparisons({arm.name: arm for arm in result.arms}, study.factorial)
        parts += versus.predicted(result)
        parts += _loops(result.arms, mask)
        parts.append(worst(result.path, mask, tools=lambda row: _tools(result, row)))
        parts.append(checklists(result.card, _done(result.arms), mask))
    episodes = many(sum(view.numbers.episodes for view in views), "episode")
    turns = many(sum(view.numbers.turns for view in views), "turn")
    about = (study.description, many(len(result.arms), "arm"), episodes, turns)
    return Section(
        kind="run",
        name=name,
        title="Study" if study.name == "study" else f"Study {study.name}",
        subtitle=" · ".join(word for word in about if word),
        answer=answer(result),
        parts=tuple(parts),
        measures=tuple(line for view in views for line in measures(view)),
    )


def _grouped(found: Sequence[str]) -> tuple[str, ...]:
    """What was found, each once, with the arms that it was found in."""
    arms: dict[str, list[str]] = {}
    for finding in found:
        arm, _, what = finding.partition(": ")
        arms.setdefault(what, []).append(arm)
    return tuple(f"{what[:1].upper()}{what[1:]}: {some(names)}." for what, names in arms.items())


def _done(arms: Sequence[ArmResult]) -> list[ArmResult]:
    return [arm for arm in arms if arm.numbers is not None]


def views_of(arms: Sequence[ArmResult], prefix: str = "") -> list[ArmView]:
    """The arms that have numbers. ``prefix``: what stands before their names."""
    return [
        ArmView(f"{prefix}{arm.name}", arm.numbers, arm.episodes, arm.never_rendered)
        for arm in arms
        if arm.numbers is not None
    ]


def _loops(arms: Sequence[ArmResult], mask: Mask) -> list[Part]:
    seen = [(arm.name, each) for arm in arms for each in arm.loops if each.loop is not None]
    confused = [
        f"{arm.name}: {arm.confused.k} of {arm.confused.n} episodes took a tool for the function to be written."
        for arm in arms
        if arm.confused is not None
    ]
    blocks: list[Table | Bullets] = [Bullets(items=tuple(confused))] if confused else []
    rows = []
    for name, each in seen[:MOST_LOOPS]:
        assert each.loop is not None
        call = each.loop.call.partition("(")[0] if mask.on else each.loop.call[:200]
        rows.append(
            (f"{name} · {each.episode.name}", each.loop.kind.replace("_", " "), str(each.loop.turn), call)
        )
    if rows:
        heads = columns(
            "episode",
            "loop",
            "#turn",
            "call",
        )
        caption = "Episodes in which a loop was seen: the same call again, or calls without progress"
        blocks.append(Table(caption=caption, columns=heads, rows=tuple(rows), left_out=len(seen) - len(rows)))
    return [Part(title="Loops and confusions", blocks=tuple(blocks))] if blocks else []


def _tools(result: RunResult, row: TurnRow) -> list[Json] | None:
    """The tools that a text condition offered in its prompt, made again from the task and its seed."""
    arm = next((each.arm for each in result.arms if each.name == row.arm), None)
    if arm is None or row.seed is None or arm.factors.condition in ("native", "native_hint"):
        return None
    try:
        return list(tasks.get(arm.task).make(row.seed).tools(arm.factors.schema))
    except TruecallError:  # its data file is not here
        return None
