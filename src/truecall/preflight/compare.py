"""Before and after: the findings of two preflights, matched by id. Pure."""

from __future__ import annotations

from truecall.preflight.report import Change, ProbeResult, Report
from truecall.records import Count


def compare(before: Report, after: Report) -> tuple[Change, ...]:
    """Fixed, new and unchanged findings, each with its counts; ``gone`` where the deciding probe did not run now.

    A finding is only fixed when the probe that made it came to a decision this time. Its count is then 0 of the
    trials that the probe made now.
    """
    old = {f.id: f for f in before.findings}
    new = {f.id: f for f in after.findings}
    came_from: dict[str, str] = {}
    for probe_before in before.probes:  # a loss may show in several probes: the first is told
        for id in probe_before.data.get("findings", ()):
            came_from.setdefault(id, probe_before.name)
    decided = {p.name: p for p in after.probes if p.state in ("ok", "finding")}
    changes: list[Change] = []
    for id, finding in old.items():
        if id in new:
            changes.append(Change(id=id, change="unchanged", before=finding.count, after=new[id].count))
            continue
        probe = came_from.get(id)
        now = decided.get(probe) if probe is not None else None
        # What made a server unusable is fixed as soon as anything could be decided.
        fixed = now is not None or (bool(decided) and probe in (None, "warm-up", "stopped"))
        after_count = _none_of(now) if fixed and finding.count is not None else None
        changes.append(
            Change(id=id, change="fixed" if fixed else "gone", before=finding.count, after=after_count)
        )
    changes += [Change(id=id, change="new", after=f.count) for id, f in new.items() if id not in old]
    return tuple(changes)


def counted(change: Change) -> str:
    """``call-erased (5/5 → 0/5)``, or the id alone where nothing was counted."""
    before, after = change.before, change.after
    if before is None and after is None:
        return change.id
    shown = [f"{c.k}/{c.n}" if c else "–" for c in (before, after)]
    return f"{change.id} ({' → '.join(shown)})"


def _none_of(probe: ProbeResult | None) -> Count | None:
    """0 of the probe's trials; None where it states none."""
    if probe is None:
        return None
    if probe.rate is not None:
        return Count(k=0, n=probe.rate.count.n)
    tallies = [probe.data.get(name) for name in ("whole", "streamed")]
    n = sum(sum(tally.values()) for tally in tallies if isinstance(tally, dict))
    together = probe.data.get("together")
    n = len(together) if isinstance(together, list) else n
    return Count(k=0, n=n) if n else None
