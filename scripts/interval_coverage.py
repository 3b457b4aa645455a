"""Measures how often each interval holds the true value, and writes docs/coverage_of_intervals.md.

    python scripts/interval_coverage.py                  # measure all (minutes) and write the page's tables
    python scripts/interval_coverage.py --only exact     # only what is enumerated, printed

0/1 outcomes are enumerated: every possible count, weighted by its probability, so those figures are exact but
for the bootstrap's own draws. Other rates are simulated with a fixed seed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from functools import cache
from math import exp, isnan, lgamma, log, nan
from pathlib import Path

import numpy as np

from truecall.stats import Estimate, Interval, clopper_pearson, difference_of_counts, wilson
from truecall.stats.agreement import cohen_kappa
from truecall.stats.bootstrap import Floats, Method, paired_difference, ratio

PAGE = Path(__file__).resolve().parents[1] / "docs" / "coverage_of_intervals.md"
SIZES = (4, 6, 8, 10, 15, 20, 30, 50, 100)
DRAWS = 2_000  # per interval; the product draws 10,000
TRIALS = 2_000
SLACK = 1e-9


def holds(interval: Interval | None, truth: float) -> bool:
    return interval is not None and interval.low - SLACK <= truth <= interval.high + SLACK


def multinomial_pmf(counts: tuple[int, ...], rates: tuple[float, ...]) -> float:
    if any(k and not p for k, p in zip(counts, rates, strict=True)):
        return 0.0
    ways = lgamma(sum(counts) + 1) - sum(lgamma(k + 1) for k in counts)
    return exp(ways + sum(k * log(p) for k, p in zip(counts, rates, strict=True) if k))


# ------------------------------------------------------------------ 0/1 outcomes, enumerated


@cache
def resampled_rate(k: int, n: int, method: Method) -> Interval | None:
    return ratio([1.0] * k + [0.0] * (n - k), method=method, draws=DRAWS).interval


def of_counts(interval: Callable[[int, int], Interval | None], n: int, p: float) -> float:
    return sum(multinomial_pmf((k, n - k), (p, 1 - p)) for k in range(n + 1) if holds(interval(k, n), p))


@cache
def combined(gains: int, losses: int, n: int) -> Interval | None:
    return difference_of_counts(gains, losses, n).interval


@cache
def resampled_difference(gains: int, losses: int, n: int) -> Interval | None:
    return ratio(differences(gains, losses, n), least=-1, draws=DRAWS).interval


@cache
def as_used(gains: int, losses: int, n: int) -> Interval | None:
    return paired_difference(differences(gains, losses, n), draws=DRAWS).interval


def differences(gains: int, losses: int, n: int) -> list[float]:
    return [1.0] * gains + [-1.0] * losses + [0.0] * (n - gains - losses)


def of_pairs(interval: Callable[[int, int, int], Interval | None], n: int, gain: float, loss: float) -> float:
    held = 0.0
    for gains in range(n + 1):
        for losses in range(n + 1 - gains):
            weight = multinomial_pmf((gains, losses, n - gains - losses), (gain, loss, 1 - gain - loss))
            if weight > 1e-7 and holds(interval(gains, losses, n), gain - loss):
                held += weight
    return held


# ------------------------------------------------------------------ other rates, simulated


def simulated(draw: Callable[[np.random.Generator], Estimate], truth: float, trials: int = TRIALS) -> float:
    """Coverage among the trials that gave an interval; NaN where fewer than half of them did."""
    rng = np.random.default_rng(20260701)
    given = [found for found in (draw(rng).interval for _ in range(trials)) if found is not None]
    return sum(holds(found, truth) for found in given) / len(given) if 2 * len(given) >= trials else nan


def even(rng: np.random.Generator, n: int) -> Floats:
    return rng.uniform(size=n)


def skewed(rng: np.random.Generator, n: int) -> Floats:
    return rng.beta(0.5, 4.5, size=n)


def looping(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """(valid, produced) of episodes: one in eight loops for 41 turns, nearly all valid; the rest end at once."""
    loops = rng.random(n) < 1 / 8
    produced = np.where(loops, 41.0, 1.0)
    valid = np.where(loops, rng.binomial(41, 0.95, size=n), rng.binomial(1, 0.3, size=n))
    return valid.astype(np.float64), produced


LOOPING_POOLED = (41 * 0.95 + 7 * 0.3) / 48


def pooled_of_loops(n: int) -> float:
    def once(rng: np.random.Generator) -> Estimate:
        valid, produced = looping(rng, n)
        return ratio(valid.tolist(), produced.tolist(), draws=DRAWS)

    return simulated(once, LOOPING_POOLED)


def per_seed(
    rates: Callable[[np.random.Generator, int], Floats], truth: float, n: int, method: Method
) -> float:
    return simulated(lambda rng: ratio(rates(rng, n).tolist(), method=method, draws=DRAWS), truth)


def per_seed_of_loops(n: int) -> float:
    def once(rng: np.random.Generator) -> Estimate:
        valid, produced = looping(rng, n)
        return ratio((valid / produced).tolist(), draws=DRAWS)

    return simulated(once, (0.95 + 7 * 0.3) / 8)


def interaction(n: int, rate: float) -> float:
    """y11 - y10 - y01 + y00 where only the repaired pair calls, at ``rate``; the others at 5 %."""

    def once(rng: np.random.Generator) -> Estimate:
        y = [rng.binomial(1, p, size=n) for p in (rate, 0.05, 0.05, 0.05)]
        return ratio((y[0] - y[1] - y[2] + y[3]).astype(float).tolist(), least=-2, most=2, draws=DRAWS)

    return simulated(once, rate - 0.05)


def kappa(n: int, yes: float) -> float:
    """Two raters of whom each errs on one item in ten; the truth is ``yes`` with that share."""
    table = np.array([[0.81 * yes + 0.01 * (1 - yes), 0.09], [0.09, 0.01 * yes + 0.81 * (1 - yes)]])
    chance = float((table.sum(0) * table.sum(1)).sum())
    truth = (float(np.trace(table)) - chance) / (1 - chance)
    cells = [(0, 0), (0, 1), (1, 0), (1, 1)]

    def once(rng: np.random.Generator) -> Estimate:
        counts = rng.multinomial(n, table.ravel())
        pairs = [pair for pair, count in zip(cells, counts, strict=True) for _ in range(count)]
        return cohen_kappa(pairs, draws=DRAWS)

    return simulated(once, truth)


# ------------------------------------------------------------------ tables

Column = tuple[str, Callable[[int], float]]

PER_SEED: tuple[Column, ...] = (
    ("even", lambda n: per_seed(even, 0.5, n, "percentile")),
    ("skewed", lambda n: per_seed(skewed, 0.1, n, "percentile")),
    ("0/1 at 50 %", lambda n: of_counts(lambda k, m: resampled_rate(k, m, "percentile"), n, 0.5)),
    ("0/1 at 10 %", lambda n: of_counts(lambda k, m: resampled_rate(k, m, "percentile"), n, 0.1)),
    ("one in eight loops", per_seed_of_loops),
)
BCA: tuple[Column, ...] = (
    ("even", lambda n: per_seed(even, 0.5, n, "bca")),
    ("skewed", lambda n: per_seed(skewed, 0.1, n, "bca")),
    ("0/1 at 50 %", lambda n: of_counts(lambda k, m: resampled_rate(k, m, "bca"), n, 0.5)),
    ("0/1 at 10 %", lambda n: of_counts(lambda k, m: resampled_rate(k, m, "bca"), n, 0.1)),
)
POOLED: tuple[Column, ...] = (("one in eight loops", pooled_of_loops),)
EXACT: tuple[Column, ...] = (
    ("Wilson, 50 %", lambda n: of_counts(wilson, n, 0.5)),
    ("Wilson, 10 %", lambda n: of_counts(wilson, n, 0.1)),
    ("Wilson, 2 %", lambda n: of_counts(wilson, n, 0.02)),
    ("Clopper-Pearson, 50 %", lambda n: of_counts(clopper_pearson, n, 0.5)),
    ("Clopper-Pearson, 10 %", lambda n: of_counts(clopper_pearson, n, 0.1)),
    ("Clopper-Pearson, 2 %", lambda n: of_counts(clopper_pearson, n, 0.02)),
)
PAIRED_RATES = ((0.2, 0.2), (0.3, 0.05), (0.03, 0.01))
PAIRED: tuple[Column, ...] = (
    *(
        (f"combination, {g:.0%} / {b:.0%}", lambda n, g=g, b=b: of_pairs(combined, n, g, b))
        for g, b in PAIRED_RATES
    ),
    *(
        (f"bootstrap, {g:.0%} / {b:.0%}", lambda n, g=g, b=b: of_pairs(resampled_difference, n, g, b))
        for g, b in PAIRED_RATES
    ),
    *(
        (f"as used, {g:.0%} / {b:.0%}", lambda n, g=g, b=b: of_pairs(as_used, n, g, b))
        for g, b in PAIRED_RATES
    ),
)
OTHERS: tuple[Column, ...] = (
    ("interaction of 90 %", lambda n: interaction(n, 0.95)),
    ("interaction of 25 %", lambda n: interaction(n, 0.30)),
    ("kappa, even labels", lambda n: kappa(n, 0.5)),
    ("kappa, one label in ten", lambda n: kappa(n, 0.1)),
)
TABLES = {
    "per_seed": PER_SEED,
    "bca": BCA,
    "pooled": POOLED,
    "exact": EXACT,
    "paired": PAIRED,
    "others": OTHERS,
}


def rows(columns: tuple[Column, ...]) -> Iterator[str]:
    yield "| n | " + " | ".join(name for name, _ in columns) + " |"
    yield "| --- |" + " --- |" * len(columns)
    for n in SIZES:
        yield f"| {n} | " + " | ".join(shown(measure(n)) for _, measure in columns) + " |"


def shown(coverage: float) -> str:
    return "none" if isnan(coverage) else f"{100 * coverage:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=TABLES, help="measure one table and print it")
    only = parser.parse_args().only
    if only:
        for row in rows(TABLES[only]):
            print(row, flush=True)
        return
    page = PAGE.read_text(encoding="utf-8")
    for name, columns in TABLES.items():
        table = "\n".join(rows(columns))
        slot = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not slot.search(page):
            raise SystemExit(f"{PAGE.name} has no place for the table {name}")
        page = slot.sub(lambda found, table=table: f"{found[1]}{table}\n{found[2]}", page)
        print(name, flush=True)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
