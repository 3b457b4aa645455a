"""Preflight reports as sections: the answer, the probes, the acceptance table, each finding with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from truecall.card import in_words
from truecall.detector import detect
from truecall.preflight.beside import table as beside_table
from truecall.preflight.compare import counted
from truecall.preflight.report import ProbeResult, Report
from truecall.records import Finding
from truecall.report.charts.kinds import Heat, HeatCell, percent
from truecall.report.data import (
    Badge,
    Block,
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
from truecall.report.words import limits, many, methods

_STATES: Final[dict[str, Tone]] = {
    "READY": "good",
    "DEGRADED": "warn",
    "BROKEN": "bad",
    "CANNOT TELL": "warn",
}
_PROBES: Final[dict[str, Tone]] = {"ok": "good", "finding": "bad", "unknown": "warn", "skipped": "plain"}
_SEVERITY: Final[dict[str, Tone]] = {"broken": "bad", "degraded": "warn", "note": "plain"}
_WIRE: Final = ("content", "reasoning", "tool_calls", "finish_reason", "stop", "length", "HTTP")
_LONGEST: Final = 4000


def section(report: Report, name: str, mask: Mask) -> Section:
    """One preflight."""
    endpoint = report.endpoint
    stack = f"{endpoint.label} · {endpoint.model}" if endpoint else "an endpoint that did not answer"
    parts: list[Part] = []
    if report.findings:
        shown = Examples(items=tuple(_finding(each, mask) for each in report.findings))
        parts.append(Part(title="Findings", blocks=(_summary(report), shown)))
    parts.append(_measured(report, mask))
    parts.append(Part(title="Probes", blocks=(_probes(report, mask),)))
    parts += _loopback([(name, report)])
    if report.changes:
        parts.append(_changes(report, mask))
    return Section(
        kind="preflight",
        name=name,
        title=f"Preflight of {stack}",
        subtitle=_spent(report),
        answer=report.answer,
        state=Badge(word=report.state, tone=_STATES[report.state]),
        parts=tuple(parts),
        measures=tuple(_measures(report)),
    )


def beside(reports: Sequence[tuple[str, Report]], mask: Mask) -> Section:
    """Several preflights against each other: which part makes each difference, and who takes which dialect."""
    found = beside_table([report for _, report in reports])
    rows = tuple(
        (row.probe, *(_masked(row.probe, cell, mask) for cell in row.cells), ", ".join(row.differs))
        for row in found
    )
    head = columns("probe", *(_label(name, report) for name, report in reports), "differs by")
    table = Table(caption="The same probes on every stack", columns=head, rows=rows)
    differing = sorted({part for row in found for part in row.differs})
    said = (
        f"The stacks differ by {', '.join(differing)}." if differing else "No probe tells these stacks apart."
    )
    return Section(
        kind="preflights",
        name="",
        title="Preflights side by side",
        answer=said,
        parts=(Part(title="Probe by probe", blocks=(table,)), *_loopback(reports)),
    )


def _label(name: str, report: Report) -> str:
    return f"{name}: {report.endpoint.label} {report.endpoint.model}" if report.endpoint else name


# --------------------------------------------------------------------------- parts


def _measured(report: Report, mask: Mask) -> Part:
    endpoint = report.endpoint
    if endpoint is None:
        return Part(
            title="What was measured", blocks=(Note(text="Nothing is known of the endpoint.", tone="warn"),)
        )
    rows: list[tuple[Cell, ...]] = [
        ("address", mask.address(endpoint.base_url), "as given"),
        ("engine", endpoint.label, "; ".join(endpoint.signals) or "not recognised"),
        ("model as named", endpoint.model, endpoint.model_origin),
    ]
    unknown = []
    for field, fact in endpoint.facts.items():
        known = fact if isinstance(fact, dict) else {"value": fact, "origin": ""}
        if known.get("value") is None or known.get("origin") == "unknown":
            unknown.append(field.replace("_", " "))
        elif field not in ("model", "evidence_refused"):
            said = mask.places(in_words(known["value"]))
            rows.append((field.replace("_", " "), said, str(known.get("origin", ""))))
    if endpoint.warm_up_seconds is not None:
        rows.append(("warm-up", f"{endpoint.warm_up_seconds:.1f} s", "measured"))
    heads = columns("entry", "value", "known by")
    blocks: list[Block] = [Table(caption="The endpoint", columns=heads, rows=tuple(rows))]
    refused = endpoint.facts.get("evidence_refused")
    if refused is not None:
        blocks.append(
            Note(
                text="The server refuses the fields that ask for what the model wrote: evidence is weaker.",
                tone="warn",
            )
        )
    missing = [
        w
        for w in ("tool_parser", "reasoning_parser", "template_dialect", "model_dialect")
        if w not in endpoint.facts
    ]
    if unknown or missing:
        named = ", ".join([*unknown, *(word.replace("_", " ") for word in missing)])
        blocks.append(Note(text=f"Unknown: {named}.", tone="warn"))
    return Part(title="What was measured", blocks=tuple(blocks))


def _summary(report: Report) -> Table:
    heads = ("finding", "part", "severity", "counted", "what to change")
    rows = tuple(
        (
            f.id,
            str(f.part),
            Badge(word=f.severity, tone=_SEVERITY[f.severity]),
            f"{f.count.k} of {f.count.n}" if f.count else "",
            f.change,
        )
        for f in report.findings
    )
    return Table(caption="What was found", columns=columns(*heads), rows=rows)


def _finding(found: Finding, mask: Mask) -> Example:
    wrote = mask.text(found.wrote)
    seen = detect(found.wrote, None) if found.wrote else None
    tries = f"{found.count.k} of {found.count.n} tries. " if found.count else ""
    return Example(
        title=f"{found.id}: {found.title}",
        verdict=(
            Badge(word=found.severity, tone=_SEVERITY[found.severity]),
            Badge(word=f"by the {found.part}"),
        ),
        why=tries + (f"Sent: {found.sent}." if found.sent else ""),
        evidence=str(found.tier),
        wrote=excerpt(wrote, seen) if found.wrote else None,
        returned=(("as the client got it", excerpt(mask.text(found.got, keep=_WIRE), None)),)
        if found.got
        else (),
        fix=found.change,
        repeat="" if mask.on or len(found.repeat) > _LONGEST else found.repeat,
    )


def _probes(report: Report, mask: Mask) -> Table:
    heads = columns("probe", "kind", "state", "what was seen", "#rate", "#95 % interval")
    rows = tuple(
        (p.name, p.kind, Badge(word=p.state, tone=_PROBES[p.state]), _masked(p.name, p.said, mask), *_rate(p))
        for p in report.probes
    )
    return Table(
        caption="A contract probe decides by what the interface did; a capability probe gives a rate of the model's. "
        + methods(p.rate.interval for p in report.probes if p.rate is not None),
        columns=heads,
        rows=rows,
    )


def _masked(probe: str, said: str, mask: Mask) -> str:
    """What a probe said holds texts of the user's where it sent the user's own request, or quotes an error."""
    return mask.text(said) if probe == "own" or "HTTP" in said else said


def _rate(probe: ProbeResult) -> tuple[str, str]:
    if probe.rate is None:
        return "", ""
    count = probe.rate.count
    shown = f"{count.k} of {count.n}" + (f" = {percent(count.k / count.n)}" if count.n else "")
    return shown, limits(probe.rate.interval) or probe.rate.reason


def _loopback(reports: Sequence[tuple[str, Report]]) -> list[Part]:
    """Dialect × parser: what each live parser makes of each dialect's text."""
    cells: list[HeatCell] = []
    ways: dict[str, None] = {}
    blank: set[str] = set()
    for name, report in reports:
        probe = next((p for p in report.probes if p.name == "loopback"), None)
        table = probe.data.get("table") if probe is not None else None
        if not isinstance(table, dict) or not table or probe is None:
            blank.add(name)
            continue
        label = report.endpoint.label if report.endpoint else "?"
        stack = f"{name} {label}" if len(reports) > 1 else label
        ways[str(probe.data.get("way"))] = None
        cells += [
            HeatCell(row=str(dialect), column=stack, value=None, text=str(outcome).replace("_", " "))
            for dialect, outcome in table.items()
        ]
    if not cells:
        return []
    says = (
        f"A text of each dialect was put through the live parser (by {', '.join(ways)}), whatever the model can do. "
        "Surfaced: it came out as a call; leaked: it stayed text; erased: it came out nowhere."
    )
    chart = Heat(cells=tuple(cells), row_title="dialect", column_title="stack", scale="tone")
    figure = Figure(name="loopback", title="Which dialects the parser takes", says=says, chart=chart)
    notes = (
        [Note(text=f"No table for {', '.join(sorted(blank))}: no way to put a text through.")]
        if blank
        else []
    )
    return [Part(title="Dialect × parser", blocks=(figure, *notes))]


def _changes(report: Report, mask: Mask) -> Part:
    tones: dict[str, Tone] = {"fixed": "good", "new": "bad", "unchanged": "warn", "gone": "plain"}
    rows = tuple((counted(c), Badge(word=c.change, tone=tones[c.change])) for c in report.changes)
    table = Table(
        caption=f"Against {mask.places(str(report.compared_with))}",
        columns=columns("finding", "change"),
        rows=rows,
    )
    return Part(title="Before and after", blocks=(table,))


def _spent(report: Report) -> str:
    spent = report.spent
    tokens = "tokens not stated"
    if spent.prompt_tokens is not None:
        tokens = f"{spent.prompt_tokens:,} + {spent.completion_tokens or 0:,} tokens (prompt + completion)"
    return f"{many(spent.requests, 'chat request')}, {tokens}, {spent.seconds:.1f} s"


def _measures(report: Report) -> list[Measure]:
    group = report.endpoint.model if report.endpoint else ""
    rates = [(p.name, p.rate) for p in report.probes if p.rate is not None]
    counts = [(f.id, f.count) for f in report.findings if f.count is not None]
    return [
        *(share(group, f"probe: {name}", r.count.k, r.count.n, "tries", r.interval) for name, r in rates),
        *(count(group, f"finding: {name}", c.k, c.n, "tries") for name, c in counts),
    ]
