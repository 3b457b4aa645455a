"""A scan's saved result as a section."""

from __future__ import annotations

from typing import Final

import msgspec

from truecall.detector import detect
from truecall.funnel import Step
from truecall.report.charts.kinds import Estimate, Forest, Funnel, Slice, Stack, span
from truecall.report.data import (
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
    columns,
    count,
    share,
)
from truecall.report.examples import badges, excerpt, said
from truecall.report.share import Mask
from truecall.report.unread import place, unread
from truecall.report.words import counted, many, size, tally
from truecall.scan.saved import Saved
from truecall.scan.summary import Numbers, Rate, Report
from truecall.scan.tally import Example as Turn
from truecall.stats import Interval

MOST_GROUPS: Final = 40
_SERIES: Final = {"naive": "naive", "surfaced_valid": "observed", "emitted_valid": "emitted"}
_STEPS: Final = ("emitted", "surfaced", "surfaced_valid", "executed", "observed")
_RATES: Final = (
    *("naive", "surfaced_valid", "emitted_valid", "emitted", "surfaced", "censored", "executed"),
    "observed",
)


def section(saved: Saved, name: str, mask: Mask) -> Section:
    """All that a scan says."""
    report = _hidden(saved.report(), mask)
    groups = list(report.groups) or [report.total]
    shown = groups[:MOST_GROUPS]
    named = [(_name(report, one), one) for one in shown]
    parts = [
        _measured(saved, report),
        Part(title="Funnel", blocks=_funnel(named, len(groups))),
        Part(title="Rates", blocks=(_forest(named), _table(named), *_beside(report))),
        Part(title="What became of each turn", blocks=(_outcomes(named), _counts(report.total))),
    ]
    if report.examples:
        found = tuple(_example(turn, mask) for turn in report.examples)
        parts.append(Part(title="Worst examples", blocks=(Examples(items=found, of=None),)))
    parts += unread(report.bad_named, report.bad, mask, report.skipped)
    return Section(
        kind="scan",
        name=name,
        title="Scan of " + (", ".join(report.sources) or "logs"),
        subtitle=f"{many(report.files, 'file')} · {size(report.bytes)} · {many(report.total.turns, 'turn')}",
        answer=report.headline,
        parts=tuple(parts),
        measures=tuple(
            line for one in (*report.groups, report.total) for line in _measures(_name(report, one), one)
        ),
    )


def _hidden(report: Report, mask: Mask) -> Report:
    """The report with files called by their own names alone, where it is shared; groups are named by files, too."""
    if not mask.on:
        return report
    files = {one.group["file"] for one in report.groups if "file" in one.group}
    named = [*sorted(files, key=len, reverse=True), *report.skipped]

    def said(text: str) -> str:
        for name in named:
            text = text.replace(name, mask.path(name))
        return text

    groups = tuple(
        msgspec.structs.replace(one, group={k: said(v) for k, v in one.group.items()})
        for one in report.groups
    )
    limits = tuple(said(line) for line in report.limits)
    return msgspec.structs.replace(report, groups=groups, limits=limits, headline=said(report.headline))


def _name(report: Report, one: Numbers) -> str:
    return " · ".join(one.group[field] for field in report.by) if one.group else "all turns"


def _measured(saved: Saved, report: Report) -> Part:
    made = saved.settings
    rows: list[tuple[Cell, ...]] = [
        ("formats", tally(report.sources)),
        ("grouped by", ", ".join(report.by) or "nothing"),
        ("share of the entries", f"{made.get('sample', 1):g}, seed {made.get('seed', 0)}"),
        ("tools given beside the logs (digest)", str(made.get("tools") or "none")),
        ("detector", report.detector),
        ("turns that offered tools, or may have", f"{report.total.eligible:,} of {report.total.turns:,}"),
        ("evidence", tally(report.total.evidence) or "none"),
    ]
    blocks: list[Block] = [
        Table(caption="The logs, and how they were read", columns=columns("entry", "value"), rows=tuple(rows))
    ]
    if report.limits:
        blocks += [
            Note(text="What limits the numbers:"),
            Bullets(items=tuple(f"{line}." for line in report.limits)),
        ]
    text = "A log does not say which stack made it: engine, template and parser are unknown."
    return Part(title="What was measured", blocks=(*blocks, Note(text=text, tone="warn")))


def _funnel(named: list[tuple[str, Numbers]], groups: int) -> tuple[Block, ...]:
    panels = []
    for name, one in named:
        n = one.eligible
        answered = n - one.rates["non_response"].k
        steps = [
            Step(name="eligible", k=n, unknown=0, n=n),
            Step(name="produced", k=answered, unknown=0, n=n),
        ]
        steps += [
            Step(name=step.replace("_", " "), k=one.rates[step].k, unknown=one.rates[step].unknown, n=n)
            for step in _STEPS
        ]
        panels.append((name, tuple(steps)))
    says = (
        "Eligible turns that reached each step. Emitted: a whole call was written; surfaced: the interface gave "
        "a call. Lighter: turns of which the log does not tell."
    )
    more = (
        [Note(text=f"{groups - len(named)} groups more are in the CSV alone.")] if groups > len(named) else []
    )
    return (Figure(name="funnel", title="Funnel", says=says, chart=Funnel(panels=tuple(panels))), *more)


def _forest(named: list[tuple[str, Numbers]]) -> Figure:
    def estimate(name: str, series: str, rate: Rate) -> Estimate:
        low = rate.k / rate.n if rate.n else None
        high = (rate.k + rate.unknown) / rate.n if rate.n else None
        interval = (rate.low, rate.high) if rate.low is not None and rate.high is not None else None
        return Estimate(
            group=name,
            series=series,
            low=low,
            high=high,
            interval=interval,
            n=f"{rate.n} turns",
            reason="" if rate.n else "no turn counts",
        )

    chart = Forest(
        series=tuple(_SERIES.values()),
        estimates=tuple(
            estimate(name, label, one.rates[key]) for name, one in named for key, label in _SERIES.items()
        ),
        beside=tuple(estimate(name, "non-response", one.rates["non_response"]) for name, one in named),
    )
    says = (
        "Shares of turns with Wilson's 95 % limits, which are too narrow where episodes are long. Naive: surfaced "
        "valid of eligible turns; observed: of produced turns; emitted: written valid of produced turns. A bar "
        "stands for bounds where the log does not tell. Turns without any token stand beside them as non-response."
    )
    return Figure(name="rates", title="Naive, observed and emitted", says=says, chart=chart)


def _table(named: list[tuple[str, Numbers]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, one in named:
        for key in (*_RATES, "non_response"):
            rate = one.rates[key]
            low = rate.k / rate.n if rate.n else None
            high = (rate.k + rate.unknown) / rate.n if rate.n else None
            limits = (
                f"[{100 * rate.low:.1f}, {100 * rate.high:.1f}]"
                if rate.low is not None and rate.high is not None
                else ""
            )
            rows.append(
                (name, key.replace("_", " "), span(low, high), limits, counted(rate.k, rate.unknown, rate.n))
            )
    heads = ("rate", "95 % limits", "turns")
    return Table(
        caption="Every rate with its denominator (docs/scan.md says what each counts)",
        columns=columns("group", "number", *(f"#{h}" for h in heads)),
        rows=tuple(rows),
        grouped=True,
    )


def _beside(report: Report) -> tuple[Block, ...]:
    mean = report.total.per_episode
    if mean is None or mean.mean is None:
        return ()
    shown = span(mean.mean, mean.mean_if_unknown_valid)
    limits = (
        f" [{100 * mean.low:.1f}, {100 * mean.high:.1f}] (95 % interval: percentile bootstrap over episodes)"
        if mean.low is not None and mean.high is not None
        else ""
    )
    said = f"Emitted valid inside each episode, averaged over {mean.episodes:,}: {shown}"
    return (Note(text=f"{said}{limits or f' ({mean.reason})'}."),)


def _outcomes(named: list[tuple[str, Numbers]]) -> Figure:
    slices = tuple(
        Slice(group=name, kind=kind, count=count)
        for name, one in named
        for kind, count in one.delivery.items()
    )
    says = "Eligible turns by delivery: what the stack did with the call, or why no answer came."
    return Figure(
        name="outcomes", title="Delivery", says=says, chart=Stack(slices=slices, unit="eligible turns")
    )


def _counts(total: Numbers) -> Table:
    counts = {
        "emission": total.emission,
        "delivery": total.delivery,
        "lost by": total.causes,
        "no answer": total.errors,
        "dialect": total.dialects,
        "tier of the best call": total.tiers,
    }
    odd = {
        "placeholders in place of arguments": total.placeholders,
        "texts cut by the log": total.capped,
        "special tokens stripped": total.stripped,
        "forced by a constraint": total.forced,
    }
    rows = [(name, tally(found, 20)) for name, found in counts.items() if found]
    rows += [(name, f"{count:,} turns") for name, count in odd.items() if count]
    return Table(
        caption="All eligible turns, counted",
        columns=columns("by", "turns"),
        rows=tuple(rows),
    )


def _example(turn: Turn, mask: Mask) -> Example:
    text = mask.text(turn.text)
    found = detect(turn.text, None) if turn.text else None
    where = place(turn.place, mask)
    surfaced = (
        "not in the log"
        if turn.surfaced is None
        else "[]"
        if not turn.surfaced
        else many(turn.surfaced, "call")
    )
    returned = [("calls that the interface gave", excerpt(surfaced, None))]
    if turn.detail:
        returned.append(("detail", excerpt(mask.text(turn.detail), None)))
    return Example(
        title=" · ".join(word for word in (turn.model or "", where) if word),
        verdict=badges(turn.emission, turn.delivery, turn.cause),
        why=said(turn.rule),
        evidence=f"an excerpt; call tier {turn.tier}" if turn.tier else "an excerpt",
        wrote=excerpt(text, found) if turn.text else None,
        returned=tuple(returned),
    )


def _measures(group: str, one: Numbers) -> list[Measure]:
    lines = [share(group, name, r.k, r.n, "turns", _limits(r), r.unknown) for name, r in one.rates.items()]
    counts = {
        "emission": one.emission,
        "delivery": one.delivery,
        "cause": one.causes,
        "dialect": one.dialects,
    }
    for about, found in counts.items():
        lines += [count(group, f"{about}: {word}", k, one.eligible, "turns") for word, k in found.items()]
    return lines


def _limits(rate: Rate) -> Interval | None:
    if rate.low is None or rate.high is None:
        return None
    return Interval(low=rate.low, high=rate.high, method="wilson", n=rate.n)
