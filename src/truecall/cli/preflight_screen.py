"""A preflight report on a terminal: the answer first, then the table, then each finding."""

from __future__ import annotations

import json
import shlex
import textwrap
from pathlib import Path

from truecall.cli import screen
from truecall.cli.screen import visible
from truecall.preflight.beside import Row
from truecall.preflight.compare import counted
from truecall.preflight.probes import Probe
from truecall.preflight.report import Change, ProbeResult, Rate, Report
from truecall.records import Finding
from truecall.stats import Interval

_LABEL = 10
_RECOVERABLE = ("-leaked", "-erased", "parser-mismatch", "no-parser")  # what a proxy can give back as calls
EMBEDDED = "embedded_template"
"""The fact of a run with --local: the chat template that the engine, gone by now, was started with."""
_NAMES = {"own": "yours"}
_MARK = {"ok": "ok", "finding": "FINDING", "unknown": "unknown", "skipped": "skipped"}


def show(report: Report, folder: Path | None = None) -> None:
    """Print the whole report on stdout. ``folder``: where the bodies of requests to repeat were kept."""
    _say(f"{report.state}: {report.answer}")
    if report.compared_with:
        _line("compared", f"with preflight/{report.compared_with}: {_changes(report.changes)}")
    screen.out()
    if report.endpoint is not None:
        _endpoint(report)
    for probe in sorted(report.probes, key=lambda p: p.name != "own"):  # the user's own request comes first
        _line(_NAMES.get(probe.name, probe.name), _probe(probe))
    told: set[tuple[str, str]] = set()
    template = template_of(report)
    for finding in report.findings:
        screen.out()
        _finding(finding, folder, (finding.part, finding.change) in told, gone=template is not None)
        if finding.change:
            told.add((finding.part, finding.change))
    screen.out()
    if template is not None:
        _say(_again(report, template))
    elif (
        any(f.id.endswith(_RECOVERABLE) and f.severity == "broken" for f in report.findings)
        and report.endpoint is not None
    ):
        _say(f"until then: truecall record --surface --upstream {report.endpoint.base_url} -- YOUR COMMAND")
    _say(_spent(report))


def template_of(report: Report) -> str | None:
    """The chat template of a run on the embedded engine; None for any other run."""
    fact = report.endpoint.facts.get(EMBEDDED) if report.endpoint is not None else None
    return str(fact["value"]) if isinstance(fact, dict) else None


def _again(report: Report, template: str) -> str:
    """The next step after --local that works: the engine has ended with the run, so its address is dead."""
    chosen = "" if template == "own" else f" --chat-template {shlex.quote(template)}"
    words = f"--again {report.id}" if report.id is not None else chosen.strip()
    said = f"the engine has ended; repeat: truecall preflight --local {words}".rstrip()
    if template == "own" and any(f.id == "tools-not-rendered" for f in report.findings):
        said += "; add --chat-template hermes for a template that renders tools"
    return said


def show_beside(reports: list[Report], rows: list[Row]) -> None:
    """Several reports side by side, with the part that makes each difference."""
    from rich.table import Table

    grid = Table(show_lines=True)
    grid.add_column("probe")
    for report in reports:
        endpoint = report.endpoint
        label = "?" if endpoint is None else f"{endpoint.label}\n{endpoint.model}\n{endpoint.base_url}"
        grid.add_column(visible_lines(label), ratio=1)
    grid.add_column("differs by")
    for row in rows:
        grid.add_row(row.probe, *(visible(cell, 300) for cell in row.cells), ", ".join(row.differs))
    grid.add_row("state", *(report.state for report in reports), "")
    screen.console().print(grid)
    for report in reports:
        _say(f"{report.state}: {report.answer}")
        _say(f"  {_spent(report)}")


def visible_lines(text: str) -> str:
    """Foreign text whose own line breaks are kept."""
    return "\n".join(visible(line) for line in text.split("\n"))


def show_plan(probes: list[Probe]) -> None:
    """What would be sent at most, without sending it."""
    _say("at most   chat requests   completion tokens")
    rows = [("warm-up", 1, 1, "does it answer at all, and what does it say of itself?")]
    rows += [(p.name, p.requests, p.tokens, p.asks) for p in probes]
    for name, requests, tokens, asks in rows:
        _say(f"{name:<{_LABEL}} {requests:>12,} {tokens:>19,}   {asks}")
    _say(f"{spending(probes)}; nothing was sent")


def ceiling(probes: list[Probe]) -> tuple[int, int, int]:
    """Requests and completion tokens at most, the warm-up included; last: tokens if the model thinks first."""
    return (
        1 + sum(p.requests for p in probes),
        1 + sum(p.tokens for p in probes),
        1 + sum(p.thinking or p.tokens for p in probes),
    )


def spending(probes: list[Probe]) -> str:
    """The ceiling in words."""
    requests, tokens, thinking = ceiling(probes)
    return f"at most {requests} chat requests and {_tokens(tokens, thinking)}"


def _tokens(tokens: int, thinking: int) -> str:
    more = f" ({thinking:,} if the model thinks first)" if thinking > tokens else ""
    return f"{tokens:,} completion tokens{more}"


def _endpoint(report: Report) -> None:
    endpoint = report.endpoint
    assert endpoint is not None
    warm = "" if endpoint.warm_up_seconds is None else f" · warm-up {endpoint.warm_up_seconds:.1f} s"
    _line("endpoint", f'{endpoint.label} · "{visible(endpoint.model)}" ({endpoint.model_origin}){warm}')
    known = {name: fact for name, fact in endpoint.facts.items() if isinstance(fact, dict)}
    shown = [
        f"{title} {visible(str(known[name]['value']), 60)}"
        + (" (inferred by loopback)" if name == "tool_parser" and known[name]["origin"] == "inferred" else "")
        for name, title in (
            ("tool_parser", "parser"),
            ("reasoning_parser", "reasoning parser"),
            ("template_dialect", "template asks for"),
            ("model_dialect", "model writes"),
            ("context_length", "context"),
        )
        if name in known
    ]
    if shown:
        _line("stack", " · ".join(shown))
    if "evidence_refused" in known:
        refused = visible(str(known["evidence_refused"]["value"]), 120)
        _line(
            "evidence", f"weaker: the server refuses the fields that ask for what the model wrote ({refused})"
        )


def _probe(probe: ProbeResult) -> str:
    text = visible(probe.said)
    if probe.rate is not None and probe.rate.interval is not None:
        text += f" · {_rate(probe.rate, probe.rate.interval)}"
    return text if probe.state == "ok" else f"{_MARK[probe.state]}: {text}"


def _rate(rate: Rate, interval: Interval) -> str:
    k, n = rate.count.k, rate.count.n
    return f"{100 * k / n:.0f} % [{100 * interval.low:.0f}, {100 * interval.high:.0f}]"


def _finding(finding: Finding, folder: Path | None, known: bool, gone: bool) -> None:
    """``known``: the same part has the same fix above, so this is more evidence of one cause. ``gone``: nothing
    listens any more where the request went, so that its curl line would be of no use."""
    count = f" · {finding.count.k}/{finding.count.n}" if finding.count else ""
    _say(f"{finding.id} [{finding.part}] {finding.severity}{count}")
    _line("", finding.title)
    if finding.severity != "note" and not known:
        if finding.wrote and not _same_text(finding):
            _line("", f"model wrote ({finding.tier}): {visible(finding.wrote, 200)}")
        if finding.got:
            _line("", f"client got: {visible(finding.got, 240)}")
    if finding.change:
        _line("", f"fix: {'as above' if known else visible(finding.change, 400)}")
    if finding.repeat and not gone:
        screen.out(f"{'':{_LABEL}} repeat: {visible(_repeat(finding, folder))}")


def _same_text(finding: Finding) -> bool:
    """What the model wrote is what the client got: once is enough."""
    start = json.dumps(finding.wrote, ensure_ascii=False)[1:-1]
    return finding.wrote == "" or start[:100] in finding.got


def _repeat(finding: Finding, folder: Path | None) -> str:
    """The curl line, its body named as a file where one was kept."""
    if folder is None:
        return finding.repeat
    line = finding.repeat[: finding.repeat.index(" -d ")]
    return f"{line} -d @{shlex.quote(str(body_path(folder, finding)))}"


def body_path(folder: Path, finding: Finding) -> Path:
    """Where the body of the request that repeats a finding is kept."""
    return folder / f"{finding.id}.json"


def body_of(finding: Finding) -> str | None:
    """The body in the finding's curl line: its last word."""
    return shlex.split(finding.repeat)[-1] if " -d " in finding.repeat else None


def _changes(changes: tuple[Change, ...]) -> str:
    parts = []
    for kind in ("fixed", "new", "unchanged", "gone"):
        names = [counted(c) for c in changes if c.change == kind]
        if names:
            parts.append(f"{kind} {', '.join(names)}")
    return "; ".join(parts) or "no findings, before or now"


def _spent(report: Report) -> str:
    spent = report.spent
    tokens = (
        "tokens not stated"
        if spent.prompt_tokens is None
        else f"{spent.prompt_tokens:,} + {spent.completion_tokens or 0:,} tokens"
    )
    saved = f" · saved as preflight/{report.id}" if report.id else ""
    return f"{spent.requests} chat requests, {tokens} (prompt + completion), {spent.seconds:.1f} s{saved}"


def _line(label: str, text: str) -> None:
    """A labelled line, wrapped beside its label."""
    indent = " " * (_LABEL + 1)
    width = max(40, screen.width())
    body = textwrap.fill(
        text, width, initial_indent=f"{label:<{_LABEL}} ", subsequent_indent=indent, break_on_hyphens=False
    )
    screen.out(screen.plain(body))


def _say(text: str) -> None:
    screen.out(screen.plain(visible(text)))
