"""Verdicts to the numbers of one arm: rates in both averages, the funnel, positions, warnings.

numbers = funnel.measure(episodes)            # all episodes of one arm
numbers["observed_fidelity"].per_seed.interval
"""

from truecall.funnel.arm import ArmNumbers, Position, Step, measure
from truecall.funnel.definitions import DEFINITIONS, VARIANTS, Definition
from truecall.funnel.notices import Notice
from truecall.funnel.rates import Number, Rate, Settings
from truecall.funnel.turns import Episode, Turn, turn_of

__all__ = [
    "DEFINITIONS",
    "VARIANTS",
    "ArmNumbers",
    "Definition",
    "Episode",
    "Notice",
    "Number",
    "Position",
    "Rate",
    "Settings",
    "Step",
    "Turn",
    "measure",
    "turn_of",
]
