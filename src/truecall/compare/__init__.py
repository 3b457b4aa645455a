"""Arms against each other, paired on items. Arm ``b`` is always compared against arm ``a``: b minus a."""

from truecall.compare.factorial import Effect, Factorial, factorial
from truecall.compare.outcomes import OUTCOMES, by_sample
from truecall.compare.paired import (
    Changed,
    Drawing,
    PairedTest,
    RateDifference,
    changed_first_turns,
    corrected,
    paired_test_of_counts,
    rate_difference,
    values_by_item,
)
from truecall.compare.predictions import Judged, Prediction, judge_prediction
from truecall.compare.study import Comparison, arm_faults, compare, describe, pair_faults

__all__ = [
    "OUTCOMES",
    "Changed",
    "Comparison",
    "Drawing",
    "Effect",
    "Factorial",
    "Judged",
    "PairedTest",
    "Prediction",
    "RateDifference",
    "arm_faults",
    "by_sample",
    "changed_first_turns",
    "compare",
    "corrected",
    "describe",
    "factorial",
    "judge_prediction",
    "pair_faults",
    "paired_test_of_counts",
    "rate_difference",
    "values_by_item",
]
