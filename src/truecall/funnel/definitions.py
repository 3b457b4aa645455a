"""What each number counts (DESIGN §3), and the papers' own conventions beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from truecall.classify.rules import CALL_EMISSIONS
from truecall.funnel.rates import Judged
from truecall.funnel.turns import FAILED, Turn
from truecall.records import Emission, Record


class Definition(Record, frozen=True):
    """A number: the turns that ``counts`` takes are its denominator, ``judge`` says yes, no or unknown of each.

    ``empty`` is the reason that stands where no turn counts. ``of`` says who the number belongs to.
    """

    name: str
    title: str
    judge: Callable[[Turn], Judged]
    counts: Callable[[Turn], bool]
    empty: str
    of: str = "model and stack"


def eligible(turn: Turn) -> bool:
    """Tools were offered and not forbidden."""
    return turn.eligible is True


def sent(turn: Turn) -> bool:
    """Sent with tools, as far as is known."""
    return turn.eligible is not False


def produced(turn: Turn) -> bool:
    """Eligible, with evidence of at least one generated token."""
    return eligible(turn) and turn.flags.produced


def unforced(turn: Turn) -> bool:
    """Produced, and no constraint made the text: evidence of what the model would do."""
    return produced(turn) and not turn.flags.forced


def non_response(turn: Turn) -> str | None:
    """Why an eligible turn has no evidence of a token; None where it has."""
    if not eligible(turn) or turn.flags.produced:
        return None
    if turn.delivery in FAILED:
        return str(turn.delivery)
    return "empty" if turn.emission in (Emission.EMPTY, Emission.NOT_RUN) else "unknown"


_NONE_PRODUCED = "no turn was produced: the rate is undefined, not 0"

DEFINITIONS: Final = (
    Definition(
        name="naive_rate",
        title="surfaced valid / eligible: what a harness that ignores the stack publishes",
        judge=lambda turn: turn.valid_surfaced,
        counts=eligible,
        empty="no eligible turn",
    ),
    Definition(
        name="observed_fidelity",
        title="surfaced valid / produced",
        judge=lambda turn: turn.valid_surfaced,
        counts=produced,
        empty=_NONE_PRODUCED,
    ),
    Definition(
        name="emitted_fidelity",
        title="emitted valid / produced, forced turns apart",
        judge=lambda turn: turn.valid_emitted,
        counts=unforced,
        empty="no unforced turn was produced: the rate is undefined, not 0",
        of="model, given the prompt that the stack made",
    ),
    Definition(
        name="censored_share",
        title="a well-formed call lost / produced",
        judge=lambda turn: turn.lost,
        counts=produced,
        empty=_NONE_PRODUCED,
        of="stack",
    ),
    Definition(
        name="non_response_share",
        title="eligible and not produced / eligible",
        judge=lambda turn: not turn.flags.produced,
        counts=eligible,
        empty="no eligible turn",
        of="stack",
    ),
    Definition(
        name="interface_yield",
        title="surfaced valid / sent, a refusal counting 0: a property of the stack, not a model's rate",
        judge=lambda turn: turn.valid_surfaced,
        counts=sent,
        empty="no turn was sent",
        of="stack",
    ),
)


def _answered(turn: Turn) -> bool:
    return produced(turn) and not turn.request_failed and turn.emission is not Emission.UNKNOWN


VARIANTS: Final = (
    Definition(
        name="serving_confounds",
        title="the serving-confounds paper's protocol fidelity: surfaced valid / turns with an answer; "
        "empty, vanished and failed answers are non-response and leave the denominator",
        judge=lambda turn: turn.valid_surfaced,
        counts=_answered,
        empty=_NONE_PRODUCED,
    ),
    Definition(
        name="interface_censoring",
        title="the interface-censoring paper's silent fraction: a well-formed call lost / all eligible turns "
        "with an answer; what is unknown counts as no call",
        judge=lambda turn: turn.flags.well_formed_lost,
        counts=lambda turn: eligible(turn) and not turn.request_failed,
        empty="no eligible turn was answered",
        of="stack",
    ),
)


# --------------------------------------------------------------------------- the funnel's steps

STEPS: Final[tuple[tuple[str, Callable[[Turn], Judged]], ...]] = (
    ("accepted", lambda turn: turn.accepted),
    ("produced", lambda turn: turn.flags.produced),
    ("emitted", lambda turn: turn.any_emitted),
    ("surfaced", lambda turn: turn.any_surfaced),
    ("valid", lambda turn: turn.valid_surfaced),
    ("executed", lambda turn: turn.executed),
    ("observed", lambda turn: turn.observed),
)
"""After ``sent``, in order. ``rendered`` stands beside them: a call can be written without it."""


def reached(turn: Turn) -> list[Judged]:
    """For each of ``STEPS``: the turn passed it and all before it. A no ends the way; unknown stays unknown."""
    ways: list[Judged] = []
    so_far: Judged = True
    for _, passed in STEPS:
        if so_far is not False:
            here = passed(turn)
            so_far = False if here is False else None if here is None or so_far is None else True
        ways.append(so_far)
    return ways


def final_answer(turn: Turn) -> bool:
    """A produced turn without any attempt at a call, and no word of the task's on whether it should call."""
    return produced(turn) and turn.expected is None and turn.emission not in CALL_EMISSIONS
