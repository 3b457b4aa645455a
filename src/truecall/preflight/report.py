"""What a preflight found: results by probe, findings, and the state that they add up to.

The JSON form has ``schema_version``; ``docs/schemas/preflight.json`` is made from these records.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from truecall.records import Count, Finding, Json, Part, Record
from truecall.stats import Interval

SCHEMA_VERSION: Final = 1

State = Literal["READY", "DEGRADED", "BROKEN", "CANNOT TELL"]
ProbeState = Literal["ok", "finding", "unknown", "skipped"]


class Rate(Record, frozen=True):
    """A capability: ``count`` of trials, its interval, and what was counted."""

    count: Count
    interval: Interval | None
    reason: str = ""  # why there is no interval


class ProbeResult(Record, frozen=True):
    """One probe's outcome.

    ``kind``: a ``contract`` probe decides by what the interface did, a ``capability`` probe gives a rate of
    the model's and never makes a stack look bad. ``state``: ``ok``, ``finding``, ``unknown`` (with the reason in
    ``said``) or ``skipped``.
    """

    name: str
    kind: Literal["contract", "capability", "fact"]
    state: ProbeState
    said: str
    rate: Rate | None = None
    data: dict[str, Json] = msgspec.field(default_factory=dict)


class Spent(Record, frozen=True):
    """What the preflight cost. Tokens are sums of what the server's usage said (None: it said nothing)."""

    requests: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0


class Endpoint(Record, frozen=True):
    """Whom the preflight spoke to, and how that is known."""

    base_url: str
    engine: str
    label: str
    signals: tuple[str, ...]
    model: str
    model_origin: str  # given | the only one | the first of n | …
    facts: dict[str, Json] = msgspec.field(default_factory=dict)
    warm_up_seconds: float | None = None


class Change(Record, frozen=True):
    """One finding beside an earlier preflight."""

    id: str
    change: Literal["fixed", "new", "unchanged", "gone"]  # gone: its probe did not run this time
    before: Count | None = None
    after: Count | None = None


class Report(Record, frozen=True):
    """A whole preflight."""

    state: State
    answer: str
    endpoint: Endpoint | None
    probes: tuple[ProbeResult, ...]
    findings: tuple[Finding, ...]
    spent: Spent
    created_at: float
    truecall: str
    detector: str
    schema_version: int = SCHEMA_VERSION
    id: str | None = None
    changes: tuple[Change, ...] = ()
    compared_with: str | None = None


def state_of(findings: tuple[Finding, ...], probes: tuple[ProbeResult, ...]) -> State:
    """BROKEN or DEGRADED by the worst finding. CANNOT TELL when no contract probe came to a decision, when the
    run was stopped before anything was found, or when nothing that could be asked was reached."""
    severities = {finding.severity for finding in findings}
    stop = next((f for f in findings if f.id == "no-answer"), None)
    if stop is not None and stop.part in (Part.NETWORK, Part.UNKNOWN):
        return "CANNOT TELL"
    if "broken" in severities:
        return "BROKEN"
    if not any(probe.kind == "contract" and probe.state in ("ok", "finding") for probe in probes):
        return "CANNOT TELL"
    if "degraded" in severities:
        return "DEGRADED"
    return "CANNOT TELL" if any(probe.name == "stopped" for probe in probes) else "READY"
