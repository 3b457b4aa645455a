"""A tally as numbers: rates with their bounds, by group, and what limits them.

Definitions are those of docs/numbers.md (DESIGN §3), over *eligible* turns: tools were offered and not forbidden.
Turns whose log does not say what was offered are counted as eligible, and told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from truecall.records import Record
from truecall.scan.outcome import Outcome
from truecall.scan.tally import Example, Group, Tally
from truecall.sources import Bad
from truecall.stats import wilson

SCHEMA_VERSION: Final = 1
_DRAWS: Final = 10_000
_MOST_EPISODES: Final = 2_000_000
_FEW_CALLS: Final = 5


class Rate(Record, frozen=True):
    """``k`` of ``n`` turns for certain, ``unknown`` more perhaps. ``value`` stands only where nothing is unknown;
    ``low`` and ``high`` are the 95 % limits (Wilson) of the lower and of the upper bound. None without turns."""

    k: int
    n: int
    unknown: int = 0
    value: float | None = None
    low: float | None = None
    high: float | None = None


class EpisodeMean(Record, frozen=True):
    """Emitted valid, averaged inside each episode and then over them. Bounds where something is unknown; the
    interval is a percentile bootstrap over episodes (10,000 draws), None with a reason under three episodes."""

    episodes: int
    mean: float | None
    mean_if_unknown_valid: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


class Numbers(Record, frozen=True):
    """One group's numbers. Rates are named as in docs/scan.md; ``causes`` counts turns by what went wrong."""

    group: dict[str, str]
    turns: int
    eligible: int
    tools_unknown: int
    rates: dict[str, Rate]
    per_episode: EpisodeMean | None
    emission: dict[str, int]
    delivery: dict[str, int]
    causes: dict[str, int]
    dialects: dict[str, int]
    tiers: dict[str, int]
    errors: dict[str, int]
    evidence: dict[str, int]
    placeholders: int
    capped: int
    stripped: int
    forced: int
    cold_start: bool


class Report(Record, frozen=True):
    """The result of a scan: all turns, then each group; what was read, what was not, and what limits it."""

    schema_version: int
    detector: str
    headline: str
    limits: tuple[str, ...]
    total: Numbers
    groups: tuple[Numbers, ...]
    by: tuple[str, ...]
    sources: dict[str, int]
    files: int
    bytes: int
    bad: int
    bad_files: dict[str, int]
    bad_named: tuple[Bad, ...]
    skipped: tuple[str, ...]
    examples: tuple[Example, ...]


def report(tally: Tally, *, detector: str, notes: Iterable[str] = ()) -> Report:
    """The report of a tally. ``notes``: what else limits the numbers (a sample, a shard)."""
    cap = _cap(tally)
    total: Counter[Outcome] = Counter()
    for counts in tally.groups.values():
        total.update(counts)
    episodes: Counter[tuple[int, int, int]] = Counter()
    for found in tally.episodes.values():
        episodes.update(found)
    whole = numbers({}, total, episodes, cap)
    groups = [
        numbers(dict(zip(tally.by, group, strict=True)), counts, tally.episodes.get(group, Counter()), cap)
        for group, counts in sorted(tally.groups.items(), key=lambda pair: _order(pair[0]))
    ]
    return Report(
        schema_version=SCHEMA_VERSION,
        detector=detector,
        headline=headline(whole, groups if tally.by else []),
        limits=(*notes, *limits(whole, tally, cap)),
        total=whole,
        groups=tuple(groups) if tally.by else (),
        by=tally.by,
        sources=dict(tally.sources),
        files=len(tally.files),
        bytes=tally.bytes,
        bad=tally.bad_files.total(),
        bad_files=dict(tally.bad_files.most_common(100)),
        bad_named=tuple(tally.bad),
        skipped=tuple(tally.skipped[:100]),
        examples=tuple(example for kept in tally.examples.values() for _, example in kept),
    )


def _order(group: Group) -> tuple[Any, ...]:
    """Groups in order, with numbers as numbers."""
    return tuple((0, int(v), "") if v.lstrip("-").isdecimal() and len(v) < 18 else (1, 0, v) for v in group)


def _cap(tally: Tally) -> int:
    """The length at which the log cut texts: usual for it, the longest there is, and reached more than once."""
    size, n = tally.longest
    return size if n >= 2 and any(o.cap == size for counts in tally.groups.values() for o in counts) else 0


# --------------------------------------------------------------------------- one group


class _Sum:
    """Counts yes and unknown of one question over outcomes."""

    def __init__(self) -> None:
        self.yes = self.unknown = self.n = 0

    def add(self, value: bool | None, n: int) -> None:
        self.n += n
        if value is None:
            self.unknown += n
        elif value:
            self.yes += n

    def rate(self, of: int | None = None) -> Rate:
        return rate(self.yes, self.n if of is None else of, self.unknown)


def rate(k: int, n: int, unknown: int = 0) -> Rate:
    """``k`` of ``n`` with its limits."""
    if not n:
        return Rate(k=0, n=0)
    low, high = wilson(k, n), wilson(k + unknown, n)
    return Rate(
        k=k,
        n=n,
        unknown=unknown,
        value=None if unknown else k / n,
        low=low.low if low else None,
        high=high.high if high else None,
    )


def numbers(
    group: dict[str, str],
    counts: Mapping[Outcome, int],
    episodes: Mapping[tuple[int, int, int], int],
    cap: int,
) -> Numbers:
    """The numbers of one group."""
    sums = {name: _Sum() for name in _PRODUCED}
    naive, answered = _Sum(), _Sum()
    tallies: dict[str, Counter[str]] = {
        name: Counter() for name in ("emission", "delivery", "cause", "dialect", "tier", "errors", "evidence")
    }
    plain: Counter[str] = Counter()
    for outcome, n in counts.items():
        plain["turns"] += n
        if outcome.eligible is False:
            continue
        outcome = _with_cap(outcome, cap)
        plain["eligible"] += n
        plain["tools_unknown"] += n * (outcome.eligible is None)
        naive.add(outcome.surfaced_valid, n)
        answered.add(outcome.produced, n)
        for name in ("emission", "delivery", "cause", "dialect", "tier", "evidence"):
            value = getattr(outcome, name)
            if value and value != "none":
                tallies[name][value] += n
        for name in ("placeholder", "capped", "stripped", "forced"):
            plain[name] += n * bool(getattr(outcome, name))
        if not outcome.produced:
            tallies["errors"][f"{outcome.delivery}: {outcome.rule}"] += n
            continue
        for name, one in sums.items():
            one.add(_asked(outcome, name), n)
    rates = {name: one.rate() for name, one in sums.items()}
    rates["naive"] = naive.rate()
    rates["non_response"] = rate(plain["eligible"] - answered.yes, plain["eligible"])
    return Numbers(
        group=group,
        turns=plain["turns"],
        eligible=plain["eligible"],
        tools_unknown=plain["tools_unknown"],
        rates=rates,
        per_episode=episode_mean(episodes),
        emission=_ordered(tallies["emission"]),
        delivery=_ordered(tallies["delivery"]),
        causes=_ordered(tallies["cause"]),
        dialects=_ordered(tallies["dialect"]),
        tiers=_ordered(tallies["tier"]),
        errors=_ordered(tallies["errors"]),
        evidence=_ordered(tallies["evidence"]),
        placeholders=plain["placeholder"],
        capped=plain["capped"],
        stripped=plain["stripped"],
        forced=plain["forced"],
        cold_start=_is_cold_start(rates),
    )


_PRODUCED: Final = (
    *("emitted", "emitted_valid", "surfaced", "surfaced_valid", "censored", "executed", "observed"),
)
"""Rates over produced turns, in the order of the funnel."""


def _asked(outcome: Outcome, name: str) -> bool | None:
    if name == "emitted_valid":
        return False if outcome.forced else outcome.valid
    if name == "censored":
        return outcome.lost
    if name in ("executed", "observed") and outcome.emitted is False and not outcome.surfaced:
        return False
    value: bool | None = getattr(outcome, name)
    return value


def _with_cap(outcome: Outcome, cap: int) -> Outcome:
    """In a text that the log cut, a call that is not seen may have stood behind the cut."""
    capped = outcome.capped or (cap > 0 and outcome.cap == cap)
    if not capped:
        return outcome
    if outcome.emitted is False:
        outcome = outcome._replace(
            emitted=None, valid=None if outcome.valid is False else outcome.valid, lost=None
        )
    return outcome._replace(capped=True)


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return dict(counts.most_common())


def _is_cold_start(rates: Mapping[str, Rate]) -> bool:
    """Calls were emitted, and none was accepted, as far as the log can tell."""
    emitted, surfaced = rates["emitted"], rates["surfaced"]
    return emitted.k >= _FEW_CALLS and surfaced.k == 0 and surfaced.unknown == 0


def episode_mean(episodes: Mapping[tuple[int, int, int], int]) -> EpisodeMean | None:
    """The mean over episodes from counts of (valid, produced, unknown); None where no episode has two turns."""
    if not any(produced > 1 for _, produced, _ in episodes):
        return None
    keys = np.array(list(episodes), dtype=float)
    weights = np.array(list(episodes.values()), dtype=float)
    total = int(weights.sum())
    low_rates, high_rates = keys[:, 0] / keys[:, 1], (keys[:, 0] + keys[:, 2]) / keys[:, 1]
    mean, most = float(low_rates @ weights / total), float(high_rates @ weights / total)
    known = EpisodeMean(episodes=total, mean=mean, mean_if_unknown_valid=most)
    if total < 3:
        return _because(known, "under three episodes")
    if total > _MOST_EPISODES:
        return _because(known, "more episodes than are resampled")
    rng = np.random.default_rng(0)
    share = weights / total
    step = max(1, min(_DRAWS, 2_000_000 // len(share)))
    lows, highs = np.empty(_DRAWS), np.empty(_DRAWS)
    for at in range(0, _DRAWS, step):
        draws = rng.multinomial(total, share, size=min(step, _DRAWS - at))
        lows[at : at + step], highs[at : at + step] = draws @ low_rates / total, draws @ high_rates / total
    low, high = float(np.percentile(lows, 2.5)), float(np.percentile(highs, 97.5))
    return EpisodeMean(episodes=total, mean=mean, mean_if_unknown_valid=most, low=low, high=high)


def _because(known: EpisodeMean, reason: str) -> EpisodeMean:
    return EpisodeMean(
        episodes=known.episodes,
        mean=known.mean,
        mean_if_unknown_valid=known.mean_if_unknown_valid,
        reason=reason,
    )


# --------------------------------------------------------------------------- in words


def headline(total: Numbers, groups: list[Numbers]) -> str:
    """The answer in one sentence."""
    rates = total.rates
    produced, emitted, lost = rates["emitted"].n, rates["emitted"], rates["censored"]
    if not total.eligible:
        return "No turn offered tools."
    if not produced:
        return f"None of {total.eligible:,} turns holds anything that a model wrote."
    cold = [n for n in groups if n.cold_start]
    if total.cold_start or cold:
        where = "" if total.cold_start else " in " + ", ".join(_named(n.group) for n in cold[:3])
        return f"Calls are emitted and none is accepted{where}: {emitted.k:,} of {produced:,} turns hold a whole call."
    if lost.k:
        return f"{lost.k:,} of {emitted.k:,} turns with a whole call lost one before it came out of the interface."
    if not emitted.k:
        return f"No whole call was written in {produced:,} turns."
    if lost.unknown and rates["surfaced"].k == 0:
        most = next(iter(total.dialects), "")
        form = f" in {most} text" if most else ""
        return f"Calls are emitted{form}; whether they were accepted is not in the log."
    if lost.unknown:
        unsaid = f"of {lost.unknown:,} the log does not say what came out"
        return f"{emitted.k:,} of {produced:,} turns hold a whole call; {unsaid}."
    return f"Every whole call came out of the interface ({emitted.k:,} of {produced:,} turns hold one)."


def _named(group: Mapping[str, str]) -> str:
    return " ".join(f"{key} {value}" for key, value in group.items())


def limits(total: Numbers, tally: Tally, cap: int) -> list[str]:
    """What limits the numbers, a line each."""
    out = []
    if total.stripped:
        out.append(f"special tokens were stripped from {total.stripped:,} texts: tiers are capped at strong")
    if total.capped:
        where = f" at {cap:,} characters" if cap else ""
        out.append(f"{total.capped:,} texts were cut by the log{where}: a call behind the cut is unknown")
    if total.tools_unknown:
        out.append(
            f"{total.tools_unknown:,} turns do not say which tools were offered: names and arguments are unchecked"
            " (--tools FILE)"
        )
    unsaid = total.rates["surfaced"].unknown
    if unsaid:
        out.append(f"{unsaid:,} turns do not say what the interface gave: delivery is unknown")
    saved = sum(n for what, n in total.errors.items() if what.endswith("turn.error_text"))
    if saved:
        out.append(f"{saved:,} turns are errors that were saved as the model's text: they count as no answer")
    if total.turns > total.eligible:
        out.append(f"{total.turns - total.eligible:,} turns offered no tools or forbade them: left out")
    emitted, observed = total.rates["emitted"], total.rates["observed"]
    if total.stripped and emitted.k >= _FEW_CALLS and observed.k == 0:
        out.append(
            f"no tool's result follows any of the {emitted.k:,} turns with a call: where the trainer runs tools, none"
            " was accepted"
        )
    if tally.bad_files:
        out.append(f"{tally.bad_files.total():,} bad entries in {len(tally.bad_files):,} files were left out")
    if tally.skipped:
        out.append(f"{len(tally.skipped):,} files were not read (first: {tally.skipped[0]})")
    return out
