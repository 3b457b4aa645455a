"""The funnel of a recorded run, in counts: what was sent, what came back, what the harness took up."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from truecall.records import Delivery, Emission, Verdict

NOT_ACCEPTED = frozenset(
    {Delivery.REJECTED, Delivery.RATE_LIMITED, Delivery.SERVER_ERROR, Delivery.TIMEOUT, Delivery.UNREACHABLE}
)
_LOST = frozenset({Delivery.LEAKED, Delivery.ERASED, Delivery.MANGLED, Delivery.CUT_OFF})


class Turn(msgspec.Struct):
    """One turn as the tally counts it: the verdicts of its last attempt's choices.

    ``role``: ``agent`` (tools offered beside the messages), ``prompt`` (tools in the prompt: the harness reads
    the text itself), or why the turn is no agent's: ``no_tools``, ``tools_forbidden``, ``simulator``, ``judge``.
    """

    number: int
    role: str
    verdicts: tuple[Verdict, ...]
    at: float = 0.0
    attempts: int = 1
    delivered: int = 0
    client_gone: bool = False
    failed: bool = False


class Tally:
    """Counts of turns and calls. ``add`` with -1 takes a turn out again, when a retry stands for it."""

    def __init__(self) -> None:
        self.exchanges = 0
        self.unjudged = 0  # paths that are no model's
        self.retries = 0
        self.lost = 0
        self.failed_to_judge = 0
        self.roles: Counter[str] = Counter()
        self.steps: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.deliveries: Counter[str] = Counter()
        self.uptakes: Counter[str] = Counter()
        self.tiers: Counter[str] = Counter()
        self.prompt: Counter[str] = Counter()
        self.unswapped: Counter[str] = (
            Counter()
        )  # turns on which a swap was asked for and impossible, by reason

    def add(self, turn: Turn, sign: int = 1) -> None:
        self.roles[turn.role] += sign
        if turn.role == "prompt":
            for verdict in turn.verdicts:
                self.prompt["turns"] += sign
                self.prompt["emitted"] += sign * verdict.flags.valid_emitted
                self.prompt["forced"] += sign * verdict.flags.forced
        if turn.role != "agent":
            return
        if turn.client_gone:
            self.steps["client_gone"] += sign
            return
        self.steps["delivered_by_truecall"] += sign * max(0, turn.delivered)
        self.steps["hidden_by_truecall"] += sign * max(0, -turn.delivered)
        for verdict in turn.verdicts:
            self._verdict(verdict, sign)

    def _verdict(self, verdict: Verdict, sign: int) -> None:
        flags = verdict.flags
        steps = self.steps
        steps["sent"] += sign
        steps["accepted"] += sign * (verdict.delivery not in NOT_ACCEPTED)
        steps["produced"] += sign * flags.produced
        steps["emitted"] += sign * (flags.valid_emitted and not flags.forced)
        steps["emitted_forced"] += sign * (flags.valid_emitted and flags.forced)
        steps["surfaced"] += sign * flags.valid_surfaced
        steps["lost"] += sign * flags.well_formed_lost
        steps["unknown"] += sign * flags.unknown
        self.tiers[str(verdict.tier)] += sign
        if not verdict.calls:
            self.deliveries[f"{verdict.emission}/{verdict.delivery}"] += sign
        for call in verdict.calls:
            self.calls[f"{call.emission}/{call.delivery}"] += sign

    def uptake(self, values: list[str]) -> None:
        """What the harness did with the calls of one turn."""
        self.uptakes.update(values)

    def snapshot(self) -> dict[str, Any]:
        """All counts as plain data; zero counts are left out."""
        named = ("exchanges", "unjudged", "retries", "lost", "failed_to_judge")
        counted = ("roles", "steps", "calls", "deliveries", "uptakes", "tiers", "prompt", "unswapped")
        out: dict[str, Any] = {name: getattr(self, name) for name in named}
        for name in counted:
            out[name] = {key: count for key, count in sorted(getattr(self, name).items()) if count}
        return out


def lost_calls(counts: dict[str, int]) -> int:
    """How many valid calls were lost, in a snapshot's ``calls``."""
    keys = [f"{Emission.VALID}/{delivery}" for delivery in _LOST]
    return sum(counts.get(key, 0) for key in keys)
