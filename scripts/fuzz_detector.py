"""Try the detector on mutated and generated texts, a million of them or more.

    python scripts/fuzz_detector.py [--count 1000000] [--seconds S] [--seed N] [--from K] [--corpus FILE ...]

With the same cases, text K of seed N is always the same: a run that was stopped goes on with ``--from``, and a
failure is made again with ``--from K --count 1``. Exit status 1 when any text failed.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

CASES = Path(__file__).parents[1] / "tests" / "detector"
sys.path.insert(0, str(CASES))

from fuzzing import Seed, check, make, seeds  # noqa: E402

EVERY = 20.0


def _report(seed: int, number: int, text: str, error: Exception) -> None:
    print(f"\nFAILED seed {seed}, text {number}: {type(error).__name__}: {str(error)[:600]}")
    print(ascii(text if len(text) < 2000 else text[:2000] + "…"))
    if not isinstance(error, AssertionError):
        print("".join(traceback.format_exception(error)[-3:]))
    sys.stdout.flush()


def run(seed: int, first: int, count: int, seconds: float | None, corpus: Sequence[Seed], most: int) -> int:
    """Try texts ``first`` to ``first + count``; print progress and failures; the number that failed."""
    started = shown = time.monotonic()
    failed = characters = calls = slowest = done = 0
    for number in range(first, first + count):
        text, tools = make(seed, number, corpus)
        before = time.monotonic()
        try:
            calls += len(check(text, tools, random.Random(number)).calls)
        except Exception as error:
            failed += 1
            _report(seed, number, text, error)
        now = time.monotonic()
        slowest = max(slowest, int((now - before) * 1000))
        characters += len(text)
        done += 1
        over = seconds is not None and now - started >= seconds
        if now - shown >= EVERY or over or failed >= most:
            shown = now
            print(
                f"seed {seed}: {done:,} texts, {failed} failed, {done / (now - started):,.0f}/s, "
                f"slowest {slowest} ms; next --from {number + 1}",
                file=sys.stderr,
                flush=True,
            )
        if over or failed >= most:
            break
    took = time.monotonic() - started
    print(
        f"seed {seed}: {done:,} texts ({characters / 1e6:,.1f} million characters, {calls:,} calls found), "
        f"{failed} failed, {took:,.0f} s, {done / took:,.0f} texts/s, slowest {slowest} ms"
    )
    return failed


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the options and run; 1 when a text failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="K")
    parser.add_argument("--corpus", type=Path, action="append", default=[], help="more JSON-lines cases")
    parser.add_argument("--most", type=int, default=20, help="stop after so many failures")
    arguments = parser.parse_args(argv)
    seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    own = sorted([*CASES.glob("golden/**/*.jsonl"), *CASES.glob("unseen.jsonl")])
    corpus = seeds([*own, *arguments.corpus])
    print(f"seed {seed}, {len(corpus)} texts to mutate", file=sys.stderr)
    return int(run(seed, arguments.first, arguments.count, arguments.seconds, corpus, arguments.most) > 0)


if __name__ == "__main__":
    sys.exit(main())
