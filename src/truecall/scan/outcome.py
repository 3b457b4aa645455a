"""What is counted of one turn, and how it follows from the turn's verdict."""

from __future__ import annotations

from typing import Final, NamedTuple

from truecall.classify.rules import BY_ID
from truecall.records import Call, CallTier, CallVerdict, Delivery, Emission, Verdict
from truecall.sources import Turn

CAPS: Final = frozenset(
    {1000, 1024, 2000, 2048, 2400, 3000, 4000, 4096, 5000, 8000, 8192, 10000, 12000, 16000, 16384}
    | {20000, 30000, 32000, 32768, 40000, 50000, 64000, 65536, 100000, 131072, 200000, 1000000}
)
"""Lengths at which logs cut texts. Text of such a length may go on beyond what was stored."""


class Outcome(NamedTuple):
    """What is counted of one turn. True and False are known, None is unknown.

    ``emitted``: a whole call was written; ``valid``: one that fits an offered tool (unknown without tools);
    ``surfaced``, ``surfaced_valid``: the interface gave a call, a valid one; ``lost``: a whole call was not
    surfaced as written. ``tier`` is that of the best call. ``cap``: the length of the text, where it is one at
    which logs cut.
    """

    emission: str
    delivery: str
    cause: str
    rule: str
    evidence: str
    eligible: bool | None
    produced: bool
    emitted: bool | None
    valid: bool | None
    surfaced: bool | None
    surfaced_valid: bool | None
    lost: bool | None
    executed: bool | None
    observed: bool | None
    forced: bool = False
    tier: str = ""
    placeholder: bool = False
    dialect: str = ""
    first: bool | None = None
    stripped: bool = False
    capped: bool = False
    cap: int = 0


_WHOLE: Final = frozenset({Emission.VALID, Emission.INVALID_ARGUMENTS, Emission.WRONG_NAME})
_CAME_OUT: Final = frozenset({Delivery.SURFACED, Delivery.MANGLED, Delivery.PHANTOM})
_TIER_RANK: Final = {"": 0, "weak": 1, "strong": 2, "tight": 3}


def eligible(turn: Turn) -> bool | None:
    """Whether tools were offered and not forbidden; None where the log does not say what was offered."""
    if turn.role != "agent" or turn.tool_choice == "none":
        return False
    if turn.tools is None:
        return None
    return bool(turn.tools)


def is_first(turn: Turn) -> bool | None:
    return None if turn.position is None else turn.position == 0


def cap_of(turn: Turn) -> int:
    size = len(turn.text or "")
    return size if size in CAPS else 0


_NO_CALL_CAUSE: Final = BY_ID["turn.no_call"].cause.value


def prose_outcome(
    eligible: bool | None, *, first: bool | None, cap: int, stripped: bool = False, capped: bool = False
) -> Outcome:
    """What is counted of a turn that is plain prose."""
    return Outcome(
        "no_call", "nothing", _NO_CALL_CAUSE, "turn.no_call", "content", eligible, True,
        False, False, False, False, False, False, False,
        first=first, stripped=stripped, capped=capped, cap=cap,
    )  # fmt: skip


def given_outcome(
    eligible: bool | None,
    executed: bool | None,
    observed: bool | None,
    *,
    first: bool | None,
    cap: int,
    stripped: bool = False,
    capped: bool = False,
) -> Outcome:
    """What is counted of a turn whose calls came out whole and valid."""
    return Outcome(
        "valid", "surfaced", "none", "call.surfaced", "tool_calls", eligible, True,
        True, True, True, True, False, executed, observed,
        first=first, stripped=stripped, capped=capped, cap=cap,
    )  # fmt: skip


def outcome_of(turn: Turn, verdict: Verdict) -> Outcome:
    """What is counted of a turn with this verdict."""
    calls = verdict.calls
    flags = verdict.flags
    known = turn.surfaced is not None or turn.body is not None or bool(turn.observed)
    unknown = flags.unknown or verdict.emission is Emission.UNKNOWN
    emitted: bool | None = any(v.emission in _WHOLE and v.delivery is not Delivery.PHANTOM for v in calls)
    if not emitted and unknown:
        emitted = None
    checked = turn.tools is not None or (turn.request is not None and turn.request.get("tools") is not None)
    valid: bool | None = flags.valid_emitted
    if (valid and not checked) or (not valid and unknown):
        valid = None
    surfaced: bool | None = None
    surfaced_valid: bool | None = None
    lost: bool | None = False if emitted is False else None
    if known:
        surfaced = any(v.delivery in _CAME_OUT for v in calls)
        surfaced_valid = flags.valid_surfaced or (valid if turn.observed and turn.surfaced is None else False)
        if surfaced_valid and not checked:
            surfaced_valid = None
        lost = flags.well_formed_lost or (None if emitted is None else False)
    elif not calls and emitted is False:
        surfaced = surfaced_valid = False
    best = _best(calls)
    tier = best.tier.value if best else ""
    if tier == "tight" and turn.stripped:
        tier = "strong"
    executed, observed = (turn.executed, turn.observed) if calls else (False, False)
    return Outcome(
        emission=verdict.emission.value,
        delivery=verdict.delivery.value,
        cause=verdict.cause.value,
        rule=verdict.rule,
        evidence=verdict.tier.value,
        eligible=eligible(turn) if turn.request is None else _asked(turn),
        produced=flags.produced,
        emitted=emitted,
        valid=valid,
        surfaced=surfaced,
        surfaced_valid=surfaced_valid,
        lost=lost,
        executed=executed,
        observed=observed,
        forced=flags.forced,
        tier=tier,
        placeholder=best is not None and _is_placeholder(best),
        dialect=best.dialect if best else "",
        first=is_first(turn),
        stripped=turn.stripped,
        capped=turn.capped,
        cap=cap_of(turn),
    )


def _asked(turn: Turn) -> bool | None:
    request = turn.request or {}
    if turn.role != "agent" or request.get("tool_choice") == "none":
        return False
    return bool(turn.tools or request.get("tools") or request.get("functions"))


def _best(calls: tuple[CallVerdict, ...]) -> Call | None:
    emitted = [v.emitted for v in calls if v.emitted is not None]
    return max(emitted, key=lambda call: _TIER_RANK[call.tier.value], default=None)


def _is_placeholder(call: Call) -> bool:
    """A call that fits its tool and is no tight one: blanks or an echo of the schema stand for its arguments."""
    fits = call.well_formed and call.offered is True and call.violations == ()
    return fits and call.tier is not CallTier.TIGHT
