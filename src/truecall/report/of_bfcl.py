"""A BFCL audit as a section: leaderboard, gate and categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from truecall.audits.bfcl import LeaderboardAudit, Report, RunAudit
from truecall.audits.bfcl.answer import findings
from truecall.audits.bfcl.categories import CategoryAudit
from truecall.audits.bfcl.corrected import Bounds
from truecall.audits.bfcl.gated import GatedCategory
from truecall.audits.explain import Explained
from truecall.report.charts.kinds import Heat, HeatCell, Scatter, Slice, Spot, Stack
from truecall.report.data import (
    Badge,
    Block,
    Bullets,
    Cell,
    Example,
    Examples,
    Figure,
    Measure,
    Note,
    Part,
    Section,
    Table,
    Tone,
    columns,
    count,
    share,
)
from truecall.report.examples import excerpt
from truecall.report.share import Mask
from truecall.report.unread import unread
from truecall.report.words import limits, many, methods, tally

_STATES: Final[dict[str, Tone]] = {
    "ABSTAINED": "good",
    "MALFORMED": "warn",
    "CALLED": "warn",
    "SERVING_ERROR": "bad",
    "EMPTY": "plain",
}
_OUTCOMES: Final = {
    "right": "emitted, scored right",
    "rejected": "emitted, scorer rejected",
    "surfaced": "emitted, not scored here",
    "in_text": "emitted, left in the text",
    "no_call": "no call",
    "empty": "empty",
    "request_failed": "request failed",
}


def section(
    report: Report, answer: str, name: str, mask: Mask, examples: Sequence[Explained], notes: Sequence[str]
) -> Section:
    """A BFCL audit. ``examples``: entries in full, where the files are at hand; ``notes``: what is to be said first."""
    found = findings(report)
    parts = [Part(title="Findings", blocks=(Bullets(items=tuple(f"{f}." for f in found)),))] if found else []
    parts.append(_measured(report, notes))
    for board in report.leaderboards:
        parts += _leaderboard(board, len(report.leaderboards) > 1)
    gates = [(run, gate) for run in report.runs for gate in run.gated]
    parts += [_gates(gates)] if gates else []
    categories = [(run, category) for run in report.runs for category in run.categories]
    parts += [_categories(categories)] if categories else []
    if examples:
        items = tuple(_example(item, mask) for item in examples)
        parts.append(Part(title="Worst examples", blocks=(Examples(items=items),)))
    parts += unread(report.bad, report.bad_count, mask)
    return Section(
        kind="audit",
        name=name,
        title="Audit of BFCL results",
        subtitle=f"{many(len(report.files), 'file')} · {many(len(report.runs), 'run')} · rules {report.rules}",
        answer=answer,
        parts=tuple(parts),
        measures=tuple(_measures(report)),
    )


def _measured(report: Report, notes: Sequence[str]) -> Part:
    rows = [
        ("rules", report.rules),
        ("detector", report.detector),
        ("files read", f"{len(report.files):,}"),
        ("runs", ", ".join(run.model for run in report.runs) or "none"),
        ("tables", ", ".join(board.table.folder for board in report.leaderboards) or "none"),
    ]
    blocks: list[Block] = [Note(text=text, tone="warn") for text in notes]
    blocks.append(
        Table(
            caption="Published files, recounted",
            columns=columns("entry", "value"),
            rows=tuple(rows),
        )
    )
    blocks.append(Note(text=f"Not knowable from these files: {'; '.join(report.not_knowable)}.", tone="warn"))
    if report.disagreements:
        blocks.append(
            Bullets(
                items=tuple(f"Override {d.override.id}: {d.override.state}" for d in report.disagreements)
            )
        )
    return Part(title="What was measured", blocks=tuple(blocks))


# --------------------------------------------------------------------------- leaderboard


def _leaderboard(board: LeaderboardAudit, several: bool) -> list[Part]:
    table = board.table
    told = [
        (row, new) for row, new in zip(table.rows, board.corrected, strict=True) if row.flags or new.touched
    ]
    blocks: list[Block] = []
    spots = tuple(
        Spot(name=row.model, x=row.relevance, y=row.blocks["irrelevance"], told=bool(row.flags))
        for row in table.rows
        if row.relevance is not None
    )
    if len(spots) > 2:
        says = (
            "Each row of the table. A model that knows when to call and when not stands at the top right. Relevance 0 "
            "beside high irrelevance (top left) is the signature of calls that nobody could read."
        )
        chart = Scatter(x_title="relevance, %", y_title="irrelevance, %", spots=spots)
        blocks.append(Figure(name="signature", title="Relevance beside irrelevance", says=says, chart=chart))
    blocks += [Note(text=text) for text in _fits(board)]
    rows = tuple(
        (
            row.model,
            str(row.rank),
            f"{row.overall:.2f}",
            _bounds(new.overall) if new.touched else "as published",
            _ranks(new.best_rank, new.worst_rank),
            f"{row.blocks['irrelevance']:.2f}",
            "N/A" if row.relevance is None else f"{row.relevance:.2f}",
            "" if row.share is None else f"{row.share:.2f} %",
            Badge(word=", ".join(row.flags), tone="bad") if row.flags else "",
        )
        for row, new in told
    )
    heads = (
        "rank",
        "overall, %",
        "corrected",
        "ranks",
        "irrelevance, %",
        "relevance, %",
        "share of irrelevance",
    )
    blocks.append(
        Table(
            caption="Rows with the signature, and rows whose results were examined; the others stand as published",
            columns=columns("model", *(f"#{h}" for h in heads), "flag"),
            rows=rows,
        )
    )
    weighed = [
        f"{new.model}: {_bounds(new.as_weighed)} with EMPTY taken as the run speaks for."
        for new in board.corrected
        if new.as_weighed is not None
    ]
    blocks += [Bullets(items=tuple(weighed))] if weighed else []
    return [Part(title=f"Leaderboard {table.folder}" if several else "Leaderboard", blocks=tuple(blocks))]


def _fits(board: LeaderboardAudit) -> Iterable[str]:
    table = board.table
    if table.weighted is not None and table.unweighted is not None:
        fit, plain = table.weighted, table.unweighted
        yield (
            f"The weighted sum of blocks fits {fit.within} of {fit.rows} rows (largest gap {fit.largest:.3f} "
            f"points), the unweighted mean {plain.within} (mean gap {plain.mean:.2f})."
        )
    controls = table.controls
    if controls is not None and controls.rows > 1 and controls.share is not None:
        relevance = "" if controls.relevance is None else f" and have relevance {_range(controls.relevance)}"
        first = f"Control: the first {controls.rows} rows get {_range(controls.share)} % of their score"
        yield f"{first} from irrelevance{relevance}."
    yield from table.notes


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.2f} to {ends[1]:.2f}"


def _bounds(span: Bounds) -> str:
    low, high = f"{span.low:.2f}", f"{span.high:.2f}"
    return low if low == high else f"{low} to {high}"


def _ranks(best: int, worst: int) -> str:
    return str(best) if best == worst else f"{best} to {worst}"


# --------------------------------------------------------------------------- gate and categories


def _gates(gates: Sequence[tuple[RunAudit, GatedCategory]]) -> Part:
    slices, rows = [], []
    for run, gate in gates:
        group = f"{run.model} · {gate.category}"
        slices += [Slice(group=group, kind=state, count=count) for state, count in gate.every.states.items()]
        credited = gate.credited
        rows.append(
            (
                group,
                str(gate.every.entries),
                "not known" if credited is None else str(credited.entries),
                gate.credit_source,
                "" if credited is None else tally(credited.states) or "none",
                f"{gate.every.marked}" + ("" if credited is None else f", {credited.marked} credited"),
                tally(gate.every.tiers) or "none",
            )
        )
    says = (
        "BFCL credits every output that could not be parsed as a call. ABSTAINED: there is no call in the answer; "
        "MALFORMED: a call that nobody read; CALLED: a call; EMPTY: nothing is stored."
    )
    heads = columns(
        "run · category",
        "#entries",
        "#credited",
        "known from",
        "states of the credited",
        "with call markup",
        "detector tiers",
    )
    weighed = [
        f"{run.model}: {run.weighed.empty} EMPTY can't be settled one by one; as a run: {run.weighed.reading} "
        f"({run.weighed.why})."
        for run in dict(_runs(gates)).values()
        if run.weighed.empty
    ]
    blocks: list[Block] = [
        Figure(
            name="gate",
            title="What the irrelevance gate credits",
            says=says,
            chart=Stack(slices=tuple(slices), unit="entries"),
        ),
        Table(caption="The gate, category by category", columns=heads, rows=tuple(rows)),
    ]
    blocks += [Bullets(items=tuple(weighed))] if weighed else []
    notes = [f"{run.model}, {gate.category}: {problem}." for run, gate in gates for problem in gate.problems]
    blocks += [Bullets(items=tuple(notes))] if notes else []
    return Part(title="The gate", blocks=tuple(blocks))


def _runs(gates: Sequence[tuple[RunAudit, GatedCategory]]) -> Iterable[tuple[str, RunAudit]]:
    return ((f"{run.root} {run.model}", run) for run, _ in gates)


def _categories(found: Sequence[tuple[RunAudit, CategoryAudit]]) -> Part:
    slices, rows = [], []
    for run, category in found:
        group = f"{run.model} · {category.category}"
        slices += [
            Slice(group=group, kind=name, count=category.outcomes[name])
            for name in _OUTCOMES
            if category.outcomes.get(name)
        ]
        rows.append((group, *_category(category)))
    models = list(dict.fromkeys(run.model for run, _ in found))
    says = (
        "Each entry of a category by what became of it. "
        + "; ".join(f"{k}: {v}" for k, v in _OUTCOMES.items())
        + "."
    )
    figure = Figure(
        name="categories",
        title="Every category",
        says=says,
        chart=Stack(slices=tuple(slices), unit="entries"),
    )
    heads = ("score", "emitted valid, of produced", "95 % interval", "right if delivered")
    table = Table(
        caption="“Right if delivered” is an upper bound by BFCL's rules, not a score. "
        + methods(category.interval for _, category in found),
        columns=columns(
            "run · category",
            *(f"#{h}" for h in heads),
            "reasons",
        ),
        rows=tuple(rows),
    )
    blocks: list[Block] = [figure, table]
    if len(models) > 1:
        blocks.insert(1, _heat(found))
    return Part(title="Categories", blocks=tuple(blocks))


def _heat(found: Sequence[tuple[RunAudit, CategoryAudit]]) -> Figure:
    cells = []
    for run, category in found:
        k, n = category.emitted_valid or category.emitted
        cells.append(
            HeatCell(row=category.category, column=run.model, value=k / n if n else None, text=f"{k} of {n}")
        )
    says = "Entries with a valid call, of those produced (with any call where the functions are not at hand)."
    chart = Heat(cells=tuple(cells), row_title="category", column_title="model")
    return Figure(name="categories-by-model", title="Categories × models", says=says, chart=chart)


def _category(found: CategoryAudit) -> tuple[Cell, ...]:
    score = "not known" if found.score is None else f"{found.score[0]} of {found.score[1]}"
    emitted = "" if found.emitted_valid is None else f"{found.emitted_valid[0]} of {found.emitted_valid[1]}"
    delivered = "" if found.if_delivered is None else _ranks(*found.if_delivered)
    reasons = "; ".join(
        f"{_OUTCOMES.get(outcome, outcome)}: {tally(why, 6)}" for outcome, why in found.reasons.items()
    )
    return score, emitted, limits(found.interval), delivered, reasons


def _example(item: Explained, mask: Mask) -> Example:
    state = item.gated.state if item.gated else item.judged.outcome if item.judged else "not audited"
    tone = _STATES.get(str(state), "warn")
    credited = item.gated.credited if item.gated else None
    told = [Badge(word=str(state), tone=tone)] + ([Badge(word="credited", tone="bad")] if credited else [])
    names = [{"name": name} for name in item.functions or ()]
    offered = (
        f"offered: {', '.join(item.functions)}" if item.functions else "offered functions are not at hand"
    )
    line = f":{item.line}" if item.line else ""
    returned = [
        ("scorer", excerpt(mask.text(item.scorer, names), None)),
        ("functions", excerpt(offered, None)),
    ]
    if item.traceback:
        returned.append(("traceback", excerpt(mask.text(item.traceback.strip().splitlines()[-1]), None)))
    return Example(
        title=f"{item.model} · {item.id}",
        verdict=tuple(told),
        why=item.rule_says + (f" (rule {item.gated.rule})" if item.gated else "")
        or (item.judged.reason if item.judged else ""),
        evidence=f"stored result, {mask.path(item.file)}{line}",
        wrote=excerpt(mask.text(item.raw, names), item.detection if item.is_text else None),
        returned=tuple(returned),
        sides=("Stored as the result", "What is known of it"),
    )


def _measures(report: Report) -> Iterable[Measure]:
    for board in report.leaderboards:
        for row, new in zip(board.table.rows, board.corrected, strict=True):
            for about, low, high in (
                ("published", row.overall, row.overall),
                ("corrected", new.overall.low, new.overall.high),
            ):
                yield Measure(
                    group=row.model,
                    number=f"overall, {about}",
                    average="range",
                    low=low / 100,
                    high=high / 100,
                    unit=board.table.folder,
                )
    for run in report.runs:
        for gate in run.gated:
            for state, k in gate.every.states.items():
                yield count(run.model, f"{gate.category}: {state}", k, gate.every.entries, "entries")
        for found in run.categories:
            for outcome, k in found.outcomes.items():
                yield count(run.model, f"{found.category}: {outcome}", k, found.entries, "entries")
            if found.emitted_valid is not None:
                k, n = found.emitted_valid
                yield share(run.model, f"{found.category}: emitted fidelity", k, n, "entries", found.interval)
