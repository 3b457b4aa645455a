"""A run on a terminal: the answer first, then each arm, then warnings and what comes next."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import msgspec

from truecall.cli import screen
from truecall.cli.screen import visible
from truecall.funnel import Number, Rate
from truecall.run.crossstack import table
from truecall.run.output import answer
from truecall.run.predictions import judge
from truecall.run.result import ArmResult, RunResult

if TYPE_CHECKING:
    from truecall.run.runner import Outcome
    from truecall.run.study import Study
    from truecall.sandbox import Sandbox

_LABEL = 12
SHOWN = (
    ("observed", "observed_fidelity"),
    ("emitted", "emitted_fidelity"),
    ("lost", "censored_share"),
    ("yield", "interface_yield"),
)


def show(result: RunResult, outcome: Outcome | None = None) -> None:
    """Print a run on stdout."""
    _say(answer(result))
    screen.out()
    for known in result.card.known.values():
        rendered = {True: "rendered", False: "NEVER RENDERED", None: "not known"}[known.rendered]
        said = f" ({known.rendered_said})" if known.rendered_said else ""
        _line("endpoint", f'{known.name}: {known.label} · "{known.model}" · tools {rendered}{said}')
    for arm in result.arms:
        screen.out()
        _arm(arm)
    _cross_stack(result)
    for each in judge(result):
        _line("prediction", f"{each.state.upper()}: {each.text} ({each.arm}): {each.said}")
    screen.out()
    _ending(result, outcome)


# --------------------------------------------------------------------------- one arm


def _arm(arm: ArmResult) -> None:
    numbers = arm.numbers
    if numbers is None:
        _line(arm.name, "no episode came to its end")
        return
    ended = ", ".join(f"{word} {count}" for word, count in numbers.ended.items())
    loops = f" · loops in {len(arm.loops)}" if arm.loops else ""
    size = f"{_many(numbers.episodes, 'episode')}, {_many(numbers.turns, 'turn')}"
    _say(f"{arm.name}  {size} · ended: {ended}{loops}")
    if arm.never_rendered:
        _line("", "tools never rendered: the model saw no tool, so that there is no rate of its calls")
    for label, name in SHOWN:
        if not (arm.never_rendered and name != "interface_yield"):
            _line(label, rates(numbers[name]))
    _line("funnel", " → ".join(_step(step.name, step.k, step.unknown) for step in numbers.steps))
    emissions = ", ".join(f"{word} {count.k}" for word, count in numbers.emissions.items())
    _line("emissions", emissions)
    if arm.confused is not None:
        _line(
            "confused",
            f"{arm.confused.k} of {arm.confused.n} episodes took a tool for the function to be written",
        )
    if numbers.non_response:
        causes = ", ".join(f"{word} {count.k}" for word, count in numbers.non_response.items())
        _line("no response", f"{causes} of {numbers['non_response_share'].n} turns")
    if numbers.solved.n:
        first = f" · by the first turn {numbers.first_passes.yes} · later {numbers.rescues.yes}"
        _line("solved", rates(numbers.solved) + first)
    if len(numbers.positions) > 1:
        _line("by turn", " · ".join(_position(p) for p in numbers.positions))
    for each in arm.loops[:3]:
        assert each.loop is not None
        _line(
            "loop", f"{each.episode.name}: {each.loop.kind} at turn {each.loop.turn}, {each.loop.call[:80]}"
        )
    for warning in numbers.warnings:
        _line("warning", f"{', '.join(warning.numbers)}: {warning.text}")
    if not arm.drift.steady:
        change = arm.drift.changes[0]
        _line(
            "warning", f"the backend changed in mid-run: {change.mark} {change.before} became {change.after}"
        )


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


def rates(number: Number, unit: str = "seed") -> str:
    """A number in both averages, with n and intervals. ``unit``: what an episode is called."""
    if number.pooled.low is None:
        return f"N/A: {number.pooled.reason}"
    counted = f"{number.yes}/{number.n}"
    if number.unknown:
        counted = f"{number.yes} to {number.yes + number.unknown} of {number.n}"
    left = f", {number.left_out} without a turn that counts" if number.left_out else ""
    return (
        f"per {unit} {_rate(number.per_seed)} (n = {number.per_seed.n}{left}) · "
        f"pooled {_rate(number.pooled)} ({counted})"
    )


def _rate(rate: Rate) -> str:
    if rate.low is None or rate.high is None:
        return "undefined"
    text = (
        f"{100 * rate.low:.1f} %"
        if rate.low == rate.high
        else f"{100 * rate.low:.1f} to {100 * rate.high:.1f} %"
    )
    if rate.interval is None:
        return f"{text} (no interval)"
    return f"{text} [{100 * rate.interval.low:.1f}, {100 * rate.interval.high:.1f}]"


def _step(name: str, k: int, unknown: int) -> str:
    return f"{name} {k}" + (f" (+{unknown} unknown)" if unknown else "")


def _position(position: Any) -> str:
    valid = next(step for step in position.steps if step.name == "valid")
    name = (
        str(position.first) if position.last == position.first else f"{position.first}-{position.last or ''}"
    )
    return f"{name}: {valid.k}/{valid.n}"


def _cross_stack(result: RunResult) -> None:
    rows = table(result)
    if not rows:
        return
    screen.out()
    _say("first requests, stack by stack:")
    for row in rows:
        cells = ", ".join(f"{word} {count}" for word, count in row.cells.items())
        _line(row.endpoint, f"{row.task}, {row.condition}: {cells}")


def _ending(result: RunResult, outcome: Outcome | None) -> None:
    prompt = sum(each.prompt_tokens for arm in result.arms for each in arm.ended)
    completion = sum(each.completion_tokens for arm in result.arms for each in arm.ended)
    spent = f"{prompt:,} + {completion:,} tokens (prompt + completion)"
    from truecall.store import name_of

    name = name_of(result.path)
    if outcome is not None:
        again = f", {outcome.resent} sent again after an interruption" if outcome.resent else ""
        spent = f"{outcome.requests} requests{again}, {spent}"
        for endpoint, said in outcome.evidence_refused.items():
            _line("evidence", f"{endpoint} refuses the fields that show what the model wrote: {said[:120]}")
        if outcome.left:
            left = _many(outcome.left, "episode")
            _say(f"{left} left, the budget is spent; go on: truecall run --resume {name} --budget N")
    _say(f"{spent} · saved as {result.path}")
    _say(f"next: truecall card {name} · truecall compare {name} · truecall report {name}")


# --------------------------------------------------------------------------- the plan


def show_plan(study: Study, sandbox: Sandbox | None) -> None:
    """What a study would send at most, without sending it."""
    from truecall.run.cards import bank_of, seeds_of
    from truecall.run.runner import first_bodies
    from truecall.run.stage import PROBES

    bank = bank_of(study, sandbox=sandbox)
    total = 0
    for arm, body in first_bodies(study, bank):
        episodes = len(seeds_of(study, bank[arm.task])) * len(study.samples())
        cap = min(arm.turns, bank[arm.task].make(seeds_of(study, bank[arm.task])[0]).turns or arm.turns)
        total += episodes * cap
        tools = len(body.get("tools") or ())
        size = len(msgspec.json.encode(body))
        _line(
            arm.name,
            f"{episodes} episodes of at most {cap} turns: {episodes * cap} requests, "
            f"{episodes * cap * study.sampling.max_tokens:,} completion tokens; the first request has {tools} tools "
            f"in its tools field and {size:,} bytes",
        )
    probes = PROBES * len(study.endpoints)
    ceiling = total + probes
    if study.limits.requests is not None:
        ceiling = min(ceiling, study.limits.requests + probes)
    _say(
        f"at most {ceiling:,} requests ({probes} of them probes, retries not counted) and "
        f"{ceiling * study.sampling.max_tokens:,} completion tokens; nothing was sent"
    )


def _line(label: str, text: str) -> None:
    indent = " " * (_LABEL + 1)
    width = max(40, screen.width())
    head = f"{visible(label):<{_LABEL}} "
    body = textwrap.fill(
        visible(text), width, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False
    )
    screen.out(screen.plain(body))


def _say(text: str) -> None:
    screen.out(screen.plain(visible(text)))
