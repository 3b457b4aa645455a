"""The same probes on several stacks, side by side: where they differ, and which part makes the difference. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from truecall.preflight.report import SCHEMA_VERSION, ProbeResult, Report
from truecall.records import Json, Part, Record

DECIDED_BY: Final = {
    "rendered": Part.TEMPLATE,
    "auto": Part.MODEL,
    "loopback": Part.PARSER,
    "required": Part.CONSTRAINT,
    "named": Part.CONSTRAINT,
    "none": Part.PARSER,
    "strict": Part.CONSTRAINT,
    "shapes": Part.PARSER,
    "stream": Part.STREAM,
    "result": Part.TEMPLATE,
    "abstain": Part.MODEL,
    "budget": Part.SERVER,
    "schema": Part.GATE,
    "load": Part.SERVER,
}
"""The part that a probe looks at: a difference that no finding explains is put down to it."""


class Row(Record, frozen=True):
    """One probe over all stacks. ``differs`` names the parts that make the difference; empty: there is none."""

    probe: str
    cells: tuple[str, ...]
    differs: tuple[str, ...] = ()


class Beside(Record, frozen=True):
    """What ``--beside --json`` prints: the reports in the order of the addresses, and the table over them."""

    reports: tuple[Report, ...]
    table: tuple[Row, ...]
    schema_version: int = SCHEMA_VERSION


def table(reports: Sequence[Report]) -> list[Row]:
    """A row a probe, in the order of the first report that ran it; a stack that did not run it says so."""
    names = list(dict.fromkeys(p.name for report in reports for p in report.probes))
    return [_row(name, reports) for name in names]


def _row(name: str, reports: Sequence[Report]) -> Row:
    results = [next((p for p in report.probes if p.name == name), None) for report in reports]
    cells = tuple("not sent" if p is None else p.said for p in results)
    ids = [frozenset() if p is None else frozenset(p.data.get("findings", ())) for p in results]
    shared = frozenset.intersection(*ids) if ids else frozenset()
    parts = {
        str(finding.part)
        for report, own in zip(reports, ids, strict=True)
        for finding in report.findings
        if finding.id in own - shared
    }
    gated = {str(Part.GATE) for p in results if p is not None and _behind_gate(p)}
    told = [p for p in results if p is not None and p.state != "unknown"]  # no decision is no difference
    essences = {json.dumps(_essence(p), sort_keys=True, default=str) for p in told}
    if not parts and len(essences) > 1:
        parts = gated or {str(DECIDED_BY.get(name, Part.UNKNOWN))}
    return Row(probe=name, cells=cells, differs=tuple(sorted(parts)))


def _behind_gate(result: ProbeResult) -> bool:
    return result.state == "skipped" and ("gate" in result.said or result.said.startswith("refused"))


def _essence(result: ProbeResult) -> Json:
    """What of a result a stack is responsible for: not its sampling, and not the way in which it was asked."""
    if result.state == "skipped" or result.name in ("stream", "load", "budget"):
        return result.state  # these compare a stack with itself: how it came out stands in their findings
    data = result.data
    if result.name == "loopback":
        return data.get("table")
    if result.name == "shapes":
        return data.get("outcomes")
    if result.name in ("rendered", "result"):
        return [result.state, data.get("prompt_tokens")]
    if (
        result.kind == "capability"
    ):  # rates of few tries differ by chance; the try at temperature 0 should not
        verdicts = data.get("verdicts")
        return [result.state, verdicts[0] if isinstance(verdicts, list) and verdicts else None]
    if result.name == "schema":
        return [result.state, result.said.partition(":")[0]]
    return [result.state, result.said.partition(" (")[0]]
