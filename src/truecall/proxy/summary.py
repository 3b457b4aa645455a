"""What a recorded run is told with: the answer first, then the funnel."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truecall.proxy.tally import lost_calls
from truecall.store import name_of

if TYPE_CHECKING:
    from truecall.proxy.session import Outcome

_STEPS = (
    ("sent", "requests with tools that were sent"),
    ("accepted", "accepted by the server"),
    ("produced", "produced tokens"),
    ("emitted", "the model wrote a valid call"),
    ("surfaced", "the server gave it as a tool call"),
)


def live_line(tally: dict[str, Any]) -> str:
    """The funnel on one line."""
    steps = tally.get("steps", {})
    parts = [f"{tally.get('exchanges', 0)} exchanges"]
    parts += [f"{name} {steps.get(name, 0)}" for name in ("sent", "emitted", "surfaced", "lost")]
    if steps.get("unknown"):
        parts.append(f"unknown {steps['unknown']}")
    return " · ".join(parts)


def summary_lines(outcome: Outcome, rates: Sequence[str] = ()) -> list[str]:
    """The whole summary. ``rates``: the lines of its numbers."""
    tally = outcome.tally
    lines = [_answer(outcome), ""]
    if outcome.went_past:
        return [*lines[:1], *_trouble(outcome), f"kept in {outcome.folder}"]
    lines.append(_exchanges(tally))
    steps = tally.get("steps", {})
    if steps.get("sent"):
        lines += [f"  {steps.get(key, 0):>7,}  {words}" for key, words in _STEPS]
        lines += _uptake(tally)
        lines += [f"  {count:>7,}  {name}" for name, count in sorted(tally.get("calls", {}).items())]
        lines += [
            f"  {count:>7,}  {name} (no call)" for name, count in sorted(tally.get("deliveries", {}).items())
        ]
        lines += rates
    prompt = tally.get("prompt", {})
    if prompt.get("turns"):
        lines.append(
            f"tools in the prompt: {prompt['turns']:,} turns, {prompt.get('emitted', 0):,} with a valid call in the "
            "text (the harness reads it itself)"
        )
    tiers = tally.get("tiers", {})
    if tiers:
        lines.append("evidence " + " · ".join(f"{name} {count:,}" for name, count in tiers.items()))
    lines += [*_trouble(outcome), f"kept in {outcome.folder}"]
    if tally.get("roles"):
        name = shlex.quote(name_of(Path(outcome.folder)))
        lines.append(f"next: truecall view {name} · truecall report {name}")
    return lines


def _answer(outcome: Outcome) -> str:
    tally, steps = outcome.tally, outcome.tally.get("steps", {})
    if outcome.went_past:
        return (
            "NOTHING CAME THROUGH THE PROXY: the command went past it, so nothing was measured. Look which variable "
            "or option holds its base URL, and give it with --env NAME."
        )
    if outcome.broken or outcome.lost:
        return f"INCOMPLETE RECORD: {outcome.broken or f'{outcome.lost:,} exchanges were not kept'}."
    emitted, surfaced, sent = steps.get("emitted", 0), steps.get("surfaced", 0), steps.get("sent", 0)
    if not sent:
        return f"No request offered tools ({tally.get('exchanges', 0):,} exchanges)."
    lost = lost_calls(tally.get("calls", {}))
    forced = steps.get("emitted_forced", 0)
    more = f" ({forced:,} more where a constraint made it)" if forced else ""
    given = steps.get("delivered_by_truecall", 0)
    if lost:
        wrote = f"the model wrote one in {emitted:,} of {sent:,} turns{more}"
        text = f"{lost:,} valid calls were lost by the server: {wrote}, the server gave {surfaced:,}."
        return text + (f" truecall delivered {given:,} of them." if given else "")
    if not emitted and not surfaced:
        unknown = steps.get("unknown", 0)
        return f"No valid call in {sent:,} turns" + (f"; {unknown:,} can't be told." if unknown else ".")
    return f"No call was lost: {surfaced:,} of {sent:,} turns gave a valid call."


def _exchanges(tally: dict[str, Any]) -> str:
    roles = tally.get("roles", {})
    judged = sum(roles.values())
    parts = [f"{tally.get('exchanges', 0):,} exchanges: {judged:,} turns judged"]
    words = {
        "no_tools": "without tools",
        "tools_forbidden": "that forbade tools",
        "simulator": "of a simulator",
    }
    words |= {"judge": "of a judge", "prompt": "with tools in the prompt"}
    parts += [f"{roles[key]:,} {text}" for key, text in words.items() if roles.get(key)]
    parts += [f"{tally.get('retries', 0):,} retries"]
    if tally.get("unjudged"):
        parts.append(f"{tally['unjudged']:,} on other paths")
    if tally.get("steps", {}).get("client_gone"):
        parts.append(f"{tally['steps']['client_gone']:,} that the client left")
    return " · ".join(parts)


def _uptake(tally: dict[str, Any]) -> list[str]:
    counts = tally.get("uptakes", {})
    words = {"observed": "whose result came back to the model", "dropped": "that the harness dropped"}
    words["altered"] = "that the harness altered"
    return [f"  {counts[key]:>7,}  calls {text}" for key, text in words.items() if counts.get(key)]


def _trouble(outcome: Outcome) -> list[str]:
    lines = [
        f"NOT SWAPPED in {count:,} turns: {why}" for why, count in outcome.tally.get("unswapped", {}).items()
    ]
    lines += [f"refused {count:,} times: {text}" for text, count in outcome.refusals.items()]
    lines += [f"upstream: {text}" for text in outcome.troubles]
    if outcome.tally.get("failed_to_judge"):
        lines.append(
            f"{outcome.tally['failed_to_judge']:,} exchanges could not be judged (a fault of truecall's)"
        )
    return lines
