"""Intervals, exact tests and agreement. Undefined is None with a reason, never 0.

Import :mod:`truecall.stats.bootstrap` and :mod:`truecall.stats.agreement` by name: they load numpy.
"""

from truecall.stats.paired import (
    binomial_test,
    bonferroni,
    difference_of_counts,
    holm,
    jaccard,
    mcnemar,
)
from truecall.stats.rates import (
    Estimate,
    Interval,
    agreeing,
    calibrate,
    clopper_pearson,
    exact_limits,
    undefined,
    wilson,
)

__all__ = [
    "Estimate",
    "Interval",
    "agreeing",
    "binomial_test",
    "bonferroni",
    "calibrate",
    "clopper_pearson",
    "difference_of_counts",
    "exact_limits",
    "holm",
    "jaccard",
    "mcnemar",
    "undefined",
    "wilson",
]
