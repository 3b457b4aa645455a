"""The input of the numbers: turns and episodes, as a run or a reader of foreign logs gives them."""

from __future__ import annotations

from truecall.classify.rules import CALL_EMISSIONS
from truecall.records import Delivery, Emission, EvidenceTier, Flags, Part, Record, Uptake, Verdict

FAILED = frozenset(
    {
        *(Delivery.REJECTED, Delivery.RATE_LIMITED, Delivery.SERVER_ERROR),
        *(Delivery.TIMEOUT, Delivery.UNREACHABLE),
    }
)
"""Deliveries of a request that got no proper answer: a request error, whatever the model did."""

_NOT_ACCEPTED = frozenset({Delivery.REJECTED, Delivery.RATE_LIMITED, Delivery.UNREACHABLE})


class Turn(Record, frozen=True):
    """What the numbers need of one model turn. None: not known.

    ``eligible``: tools were offered and not forbidden; None where a log does not say. ``expected``: the task
    says that this turn should call. ``passed``: the task's check on the state after this turn. ``digest`` is
    that of the model's text, to tell whether a turn changed between arms. ``failed_attempts`` counts requests
    of this turn that failed before the last one. ``surfaced_known`` is False where the source holds the
    model's text alone and can't say what the interface gave.
    """

    emission: Emission
    delivery: Delivery
    flags: Flags = Flags()
    tier: EvidenceTier = EvidenceTier.NONE
    cause: Part = Part.NONE
    rule: str = ""
    emitted: bool = False  # some call was attempted, valid or not
    surfaced: bool = False  # some call that the model wrote came out as structured data
    eligible: bool | None = True
    expected: bool | None = None
    rendered: bool | None = None
    executed: bool | None = None
    observed: bool | None = None
    passed: bool | None = None
    digest: str | None = None
    failed_attempts: int = 0
    surfaced_known: bool = True

    @property
    def accepted(self) -> bool | None:
        """The server took the request; None where a failure leaves that open."""
        if self.flags.produced:
            return True
        if self.delivery in _NOT_ACCEPTED:
            return False
        return None if self.delivery in FAILED else True

    @property
    def any_emitted(self) -> bool | None:
        """A call was attempted; None where the evidence was taken away."""
        return True if self.emitted else None if self.flags.unknown else False

    @property
    def any_surfaced(self) -> bool | None:
        """A call that the model wrote came out of the interface."""
        return True if self.surfaced else False if self.surfaced_known else None

    @property
    def valid_emitted(self) -> bool | None:
        """A valid call was written, forced or not."""
        return True if self.flags.valid_emitted else None if self.flags.unknown else False

    @property
    def valid_surfaced(self) -> bool | None:
        """A valid call came out of the interface."""
        return True if self.flags.valid_surfaced else False if self.surfaced_known else None

    @property
    def lost(self) -> bool | None:
        """A well-formed call was lost."""
        if self.flags.well_formed_lost:
            return True
        unsure = self.flags.unknown or (self.emitted and not self.surfaced_known)
        return None if unsure else False

    @property
    def request_failed(self) -> bool:
        """No proper answer came to the last attempt, even if its error holds what the model wrote."""
        return self.delivery in FAILED or self.tier is EvidenceTier.ERROR_BODY

    @property
    def failed_requests(self) -> int:
        """Requests of this turn that got no proper answer, retries counted one by one."""
        return self.failed_attempts + self.request_failed


def turn_of(
    verdict: Verdict,
    *,
    eligible: bool | None = True,
    expected: bool | None = None,
    rendered: bool | None = None,
    executed: bool | None = None,
    observed: bool | None = None,
    passed: bool | None = None,
    digest: str | None = None,
    failed_attempts: int = 0,
    surfaced_known: bool = True,
) -> Turn:
    """A turn from its verdict. ``executed`` and ``observed`` None: taken from the verdict's uptake, if it tells."""
    calls = verdict.calls
    emissions = {verdict.emission, *(call.emission for call in calls)}
    uptakes = {verdict.uptake, *(call.uptake for call in calls)}
    return Turn(
        emission=verdict.emission,
        delivery=verdict.delivery,
        flags=verdict.flags,
        tier=verdict.tier,
        cause=verdict.cause,
        rule=verdict.rule,
        emitted=not emissions.isdisjoint(CALL_EMISSIONS),
        surfaced=any(c.delivery is Delivery.SURFACED and c.emission in CALL_EMISSIONS for c in calls),
        eligible=eligible,
        expected=expected,
        rendered=rendered,
        executed=_taken_up(uptakes, Uptake.EXECUTED, Uptake.OBSERVED) if executed is None else executed,
        observed=_taken_up(uptakes, Uptake.OBSERVED) if observed is None else observed,
        passed=passed,
        digest=digest,
        failed_attempts=failed_attempts,
        surfaced_known=surfaced_known,
    )


def _taken_up(uptakes: set[Uptake], *kinds: Uptake) -> bool | None:
    if not uptakes.isdisjoint(kinds):
        return True
    return None if Uptake.UNKNOWN in uptakes or Uptake.EXECUTED in uptakes else False


class Episode(Record, frozen=True):
    """One task instance run to its end in one arm.

    ``item`` names the task instance and ``seed`` the number that it was made from; ``sample`` is the sampling
    seed, another thing. ``turns`` are the model's own, in order. ``solved`` None: not judged. ``ended`` is the
    run's word for the end (``submitted``, ``loop``, ``turn_cap``, …).
    """

    arm: str
    item: str
    turns: tuple[Turn, ...]
    seed: int = 0
    sample: int | None = None
    solved: bool | None = None
    ended: str = ""

    @property
    def instance(self) -> tuple[str, int]:
        """What arms are paired on: samples of one instance share it."""
        return self.item, self.seed

    @property
    def name(self) -> str:
        """For people: ``aggregate, seed 3``."""
        sampled = f", sampling seed {self.sample}" if self.sample is not None else ""
        return f"{self.item}, seed {self.seed}{sampled}"

    @property
    def request_errors(self) -> int:
        """Failed requests before retries."""
        return sum(turn.failed_requests for turn in self.turns)

    @property
    def first_turn_passed(self) -> bool | None:
        """The task's check after the first turn; an episode without a turn did not pass."""
        return self.turns[0].passed if self.turns else False

    @property
    def rescued(self) -> bool | None:
        """Solved, but not by its first turn."""
        if self.solved is False or self.first_turn_passed is True:
            return False
        return True if self.solved and self.first_turn_passed is False else None
