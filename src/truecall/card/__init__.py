"""What an arm was measured on, whether arms may be compared, and the reporting checklist."""

from truecall.card.admissible import admissibility, faults_between, faults_of
from truecall.card.card import (
    ENTRIES,
    OPTIONAL,
    Card,
    declared,
    digest,
    from_stack,
    hashed,
    joined,
    sent_parameters,
)
from truecall.card.checklist import Item, checklist, render
from truecall.card.drift import Change, Drift, Fingerprint, drift, fingerprint
from truecall.card.words import in_words

__all__ = [
    "ENTRIES",
    "OPTIONAL",
    "Card",
    "Change",
    "Drift",
    "Fingerprint",
    "Item",
    "admissibility",
    "checklist",
    "declared",
    "digest",
    "drift",
    "faults_between",
    "faults_of",
    "fingerprint",
    "from_stack",
    "hashed",
    "in_words",
    "joined",
    "render",
    "sent_parameters",
]
