"""A turn's verdict from those of its calls: flags over all, the triple of the most severe."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from truecall.classify.calls import REPAIRED
from truecall.classify.rules import BY_ID, CALL_EMISSIONS, EMISSION_SEVERITY, LOST, SEVERITY
from truecall.evidence import STRONGER
from truecall.records import CallVerdict, Delivery, Emission, Evidence, EvidenceTier, Flags, Verdict


def noted(verdict: Verdict, notes: Sequence[str], version: str, *, forced: bool = False) -> Verdict:
    """The verdict with side observations, the detector's version and whether a constraint shaped the text."""
    flags = msgspec.structs.replace(verdict.flags, forced=True) if forced else verdict.flags
    unique = tuple(dict.fromkeys(notes))
    return msgspec.structs.replace(verdict, notes=unique, detector=version, flags=flags)


def of_calls(
    verdicts: Sequence[CallVerdict],
    found: Evidence,
    version: str,
    *,
    notes: Sequence[str] = (),
    forced: bool = False,
) -> Verdict:
    """The turn's verdict from those of its calls: flags over all, the triple of the most severe."""
    shown = min(verdicts, key=_weight)
    tier = found.tier
    if tier not in STRONGER and all(v.emitted is None for v in verdicts):
        tier = EvidenceTier.TOOL_CALLS
    rule = BY_ID[shown.rule]
    return Verdict(
        emission=shown.emission,
        delivery=shown.delivery,
        rule=shown.rule,
        tier=tier,
        cause=shown.cause,
        uptake=shown.uptake,
        calls=tuple(verdicts),
        flags=_flags(verdicts, forced),
        notes=tuple(dict.fromkeys(notes)),
        detail=f"{shown.name or 'a call without a name'}: {rule.says}",
        detector=version,
    )


def _flags(verdicts: Sequence[CallVerdict], forced: bool) -> Flags:
    """What the numbers count. Unknown: a call that the stack damaged may have been whole as written."""
    whole = [v for v in verdicts if v.emission in CALL_EMISSIONS and v.emission is not Emission.MALFORMED]
    surfaced = [v for v in verdicts if v.delivery is Delivery.SURFACED]
    return Flags(
        valid_emitted=any(v.emission is Emission.VALID for v in verdicts),
        valid_surfaced=any(v.emission is Emission.VALID or REPAIRED in v.defects for v in surfaced),
        well_formed_lost=any(v.delivery in LOST for v in whole),
        unknown=any(
            v.emission is Emission.MALFORMED and v.delivery is Delivery.MANGLED and v.emitted is None
            for v in verdicts
        ),
        produced=True,
        forced=forced,
    )


def _weight(verdict: CallVerdict) -> tuple[int, int]:
    rank = EMISSION_SEVERITY.index(verdict.emission)
    return SEVERITY.index(verdict.delivery), -rank if verdict.delivery is Delivery.SURFACED else rank
