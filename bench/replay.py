"""What replaying costs beside the parsers themselves: python bench/replay.py [--parser verl:hermes] [--texts 10000]

Transport: what one worker takes for each text, less the parser's own time; on the wall, and in processor time (both
processes), which a busy machine's other work does not swell. Two workers against one: on the parser, and on one that
only waits. Where the cores are busy, the parser itself takes longer beside another: that is the machine's part.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from corpora import TOOLS
from truecall.engines import Job, Pool, resolve
from truecall.engines.specs import own
from truecall.replay.forms import FORMS

NOTHING = """
import time

def parse(text, tools):
    return [{"name": "get_weather", "arguments": '{"city": "Oslo", "days": 2}'}], ""

def wait(text, tools):
    time.sleep(0.001)
    return [], text
"""


def texts(count: int, seed: int) -> list[str]:
    """Turns with a call each, in all dialects, with prose before some."""
    rng = random.Random(seed)
    writers = [form for forms in FORMS.values() for form in forms.values()]
    made = []
    for number in range(count):
        call = ("get_weather", {"city": rng.choice(("Oslo", "Lisbon", "Rome")), "days": number})
        before = "I will look that up. " * rng.randrange(12)
        made.append(before + rng.choice(writers)([call]))
    return made


class Pass(NamedTuple):
    """Seconds of one pass over the jobs: on the wall, in the parser, and of processors in both processes."""

    wall: float
    parser: float
    cpu: float


def timed(pools: Sequence[Pool], jobs: list[Job], passes: int) -> list[list[Pass]]:
    """The passes of each pool over the jobs. Pools take turns, so that the machine's other work meets all alike."""
    found: list[list[Pass]] = [[] for _ in pools]
    for pool in pools:
        pool.warm()
        list(pool.run(jobs[:400]))
    for _ in range(passes):
        for pool, passed in zip(pools, found, strict=True):
            began, before = time.perf_counter(), _cpu(pool)
            results = list(pool.run(jobs))
            wall, used = time.perf_counter() - began, _cpu(pool) - before
            passed.append(Pass(wall, sum(result.seconds for result in results), used))
    return found


def _cpu(pool: Pool) -> float:
    """Processor seconds of this process and the workers so far."""
    ticks = 0
    for pid in pool.pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print a line for each measurement."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    asked.add_argument("--parser", action="append", default=[], metavar="ENGINE:NAME")
    asked.add_argument("--texts", type=int, default=10_000)
    asked.add_argument("--passes", type=int, default=5)
    asked.add_argument("--seed", type=int, default=0)
    arguments = asked.parse_args()
    made = texts(arguments.texts, arguments.seed)
    print(
        f"{len(made):,} texts of {sum(map(len, made)) // len(made)} characters; load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "nothing.py")
        file.write_text(NOTHING, encoding="utf-8")
        rows = [
            (f"python:{name}", own("python", f"{file}:{name}").launch, name) for name in ("parse", "wait")
        ]
        for spec in resolve(arguments.parser):
            rows += [(f"{spec.engine}:{name}", spec.launch, name) for name in spec.parsers or ()]
        for label, launch, name in rows:
            jobs = [Job(name, text, TOOLS) for text in (made[:2000] if name == "wait" else made)]
            with Pool(launch, 1) as first, Pool(launch, 2) as second, Pool(launch, 1, cpu=True) as third:
                ones, twos, busy = timed((first, second, third), jobs, arguments.passes)
            one, two, cpu = min(ones), min(twos), min(busy, key=lambda passed: passed.cpu)
            ratio = median(a.wall / b.wall for a, b in zip(ones, twos, strict=True))
            slower = median(b.parser / a.parser for a, b in zip(ones, twos, strict=True))
            print(
                f"{label}: one worker {one.wall:.2f} s, of it the parser {one.parser:.2f} s; transport "
                f"{(one.wall - one.parser) / len(jobs) * 1e6:.1f} µs a text on the wall, "
                f"{(cpu.cpu - cpu.parser) / len(jobs) * 1e6:.1f} of processors; two workers {ratio:.2f} times one "
                f"(median of {arguments.passes}), {100 * two.parser / two.wall / 2:.0f} % of their time in the "
                f"parser, which takes {slower:.2f} times as long beside another"
            )


if __name__ == "__main__":
    main()
