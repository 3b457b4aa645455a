"""The reporting checklist of *Measuring the Serving Stack Instead of the Model* (sections 5 and 7), filled in.

Its advice: report stack, version and tool-call parser; log rejected requests, timeouts and empty responses apart
from a model's non-calls, with their error metadata; give per-seed rates with intervals beside pooled ones; hold
the interface fixed to compare models, or report the whole configuration; read a 0 % in the right order.
"""

from __future__ import annotations

from typing import Literal

from truecall.card.card import ENTRIES, Card
from truecall.card.drift import Drift
from truecall.card.words import in_words
from truecall.funnel import ArmNumbers, Number, Rate
from truecall.records import Record
from truecall.stats import Interval

State = Literal["yes", "partly", "no"]


class Item(Record, frozen=True):
    """One line of the checklist: what is asked, whether it is reported, and the report."""

    asks: str
    state: State
    answer: str


def checklist(card: Card, numbers: ArmNumbers, drifted: Drift | None = None) -> tuple[Item, ...]:
    """The checklist for one arm, from its card and its numbers."""
    return (
        _entries("serving engine and version", card, ("engine", "engine_version", "gateway")),
        _entries("model and its weights", card, ("model", "model_digest", "quantisation")),
        _entries(
            "chat template and tool-call parser", card, ("chat_template", "tool_parser", "launch_flags")
        ),
        _entries("how tools are offered", card, ("wire", "condition", "prompts", "tools")),
        _entries("sampling and seeds", card, ("sampling", "seeds")),
        _failures(numbers),
        _errors_kept(numbers),
        _rates(numbers),
        _censored(numbers),
        _held_fixed(drifted),
        _zero(numbers),
    )


def render(items: tuple[Item, ...], title: str = "Reporting checklist") -> str:
    """The checklist as plain text; ``[x]`` reported, ``[~]`` in part, ``[ ]`` missing."""
    boxes = {"yes": "[x]", "partly": "[~]", "no": "[ ]"}
    return "\n".join([title, *(f"{boxes[i.state]} {i.asks}: {i.answer}" for i in items)]) + "\n"


def _entries(asks: str, card: Card, names: tuple[str, ...]) -> Item:
    said = []
    for name in names:
        fact = card.entry(name)
        value = "unknown" if fact.origin == "unknown" else f"{in_words(fact.value)} ({fact.origin})"
        said.append(f"{ENTRIES[name]} {value}")
    missing = [name for name in names if name in card.missing]
    needed = [name for name in names if name in card.missing or card.entry(name).origin != "unknown"]
    state: State = "yes" if not missing else "no" if len(missing) == len(needed) else "partly"
    return Item(asks=asks, state=state, answer="; ".join(said))


def _failures(numbers: ArmNumbers) -> Item:
    asks = "rejections, timeouts and empty responses apart from non-calls"
    number = numbers["non_response_share"]
    if not number.yes:
        return Item(asks=asks, state="yes", answer=f"none in {number.n} eligible turns")
    by_cause = ", ".join(f"{cause} {count.k}" for cause, count in numbers.non_response.items())
    return Item(asks=asks, state="yes", answer=f"{number.yes} of {number.n} eligible turns: {by_cause}")


def _errors_kept(numbers: ArmNumbers) -> Item:
    answer = f"{numbers.request_errors} failed requests before retries, each kept with status, body and cause"
    if not numbers.request_errors:
        answer = "no request failed"
    return Item(asks="structured error metadata", state="yes", answer=answer)


def _rates(numbers: ArmNumbers) -> Item:
    number = numbers["observed_fidelity"]
    if number.pooled.low is None:
        return Item(
            asks="per-seed rate with its interval", state="yes", answer=f"N/A: {number.pooled.reason}"
        )
    answer = (
        f"observed fidelity per seed {_shown(number.per_seed)} over {number.episodes} episodes, "
        f"pooled {_shown(number.pooled)} over {number.n} turns"
    )
    state: State = "yes" if number.per_seed.interval else "partly"
    told = [w.text for w in numbers.warnings if number.name in w.numbers]
    return Item(asks="per-seed rate with its interval", state=state, answer="; ".join([answer, *told]))


def _censored(numbers: ArmNumbers) -> Item:
    emitted, lost = numbers["emitted_fidelity"], numbers["censored_share"]
    asks = "calls emitted and not surfaced"
    if lost.pooled.low is None:
        return Item(asks=asks, state="yes", answer=f"N/A: {lost.pooled.reason}")
    answer = f"a well-formed call lost in {_counted(lost)}; emitted valid in {_counted(emitted)}"
    return Item(asks=asks, state="yes", answer=answer)


def _held_fixed(drifted: Drift | None) -> Item:
    asks = "the interface held fixed over the run"
    if drifted is None:
        return Item(asks=asks, state="no", answer="no fingerprints were kept")
    if not drifted.values:
        return Item(
            asks=asks, state="partly", answer=f"{drifted.exchanges} exchanges show no mark of the backend"
        )
    if drifted.steady:
        marks = ", ".join(f"{mark} {next(iter(seen))}" for mark, seen in drifted.values.items())
        return Item(asks=asks, state="yes", answer=f"steady over {drifted.exchanges} exchanges: {marks}")
    first = drifted.changes[0]
    answer = f"no: {first.mark} {first.before} became {first.after} at exchange {first.at}"
    return Item(asks=asks, state="partly", answer=answer)


def _zero(numbers: ArmNumbers) -> Item:
    """A 0 % read in the paper's order: refusal or empty responses, then the parser, then the model."""
    asks = "a rate of 0 % read in the right order"
    naive = numbers["naive_rate"]
    if naive.yes or not naive.n:
        return Item(asks=asks, state="yes", answer="the rate is not 0" if naive.yes else "no eligible turn")
    silent, lost, emitted = (
        numbers["non_response_share"],
        numbers["censored_share"],
        numbers["emitted_fidelity"],
    )
    if silent.yes == silent.n:
        return Item(
            asks=asks, state="yes", answer="no turn was produced: the 0 is the stack's, not the model's"
        )
    if numbers.rendered.k == 0 and numbers.rendered.unknown < numbers.rendered.n:
        return Item(
            asks=asks, state="yes", answer="the tools were never rendered: the model did not see them"
        )
    if lost.yes:
        return Item(asks=asks, state="yes", answer=f"calls were lost on the way, in {_counted(lost)}")
    if emitted.unknown:
        answer = f"can't be told: {emitted.unknown} of {emitted.n} turns are unknown"
        return Item(asks=asks, state="partly", answer=answer)
    if not emitted.n:
        return Item(asks=asks, state="partly", answer="all produced turns were forced")
    return Item(asks=asks, state="yes", answer=f"the model wrote no valid call in {emitted.n} produced turns")


def _counted(number: Number) -> str:
    unknown = f", {number.unknown} unknown" if number.unknown else ""
    return f"{number.yes} of {number.n} turns{unknown}"


def _shown(rate: Rate) -> str:
    if rate.low is None or rate.high is None:
        return f"N/A ({rate.reason})"
    text = f"{100 * rate.low:.1f} %"
    if rate.point is None:
        text = f"{100 * rate.low:.1f} to {100 * rate.high:.1f} %"
    return f"{text} {_limits(rate.interval)}" if rate.interval else f"{text} ({rate.reason})"


def _limits(interval: Interval) -> str:
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
