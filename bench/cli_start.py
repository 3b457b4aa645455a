"""How long ``truecall --help`` takes beside a bare click program's ``--help``.

Both run in the same environment, in turns, so that whatever else the machine does hits both alike. The
medians decide; the goal is a ratio of at most 2.5. Exit code 1 above it.

    python bench/cli_start.py [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOAL = 2.5
BARE = '''
import click

@click.group()
def cli():
    """A program."""

@cli.command()
@click.option("--name", help="A name.")
def hello(name):
    """Say hello."""

if __name__ == "__main__":
    cli()
'''


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def measure(commands: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    for command in commands.values():  # byte-compile and warm the disk cache
        seconds(command)
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds):
        names = list(commands)[:: 1 if turn % 2 else -1]
        for name in names:
            times[name].append(seconds(commands[name]))
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder, "bare.py")
        bare.write_text(BARE)
        times = measure(
            {
                "python -c pass": [sys.executable, "-c", "pass"],
                "bare click --help": [sys.executable, str(bare), "--help"],
                "truecall --help": [str(Path(sys.executable).with_name("truecall")), "--help"],
            },
            rounds,
        )
    for name, values in times.items():
        low, middle, high = min(values), statistics.median(values), max(values)
        print(f"{name:<20} median {middle * 1e3:6.1f} ms   min {low * 1e3:6.1f}   max {high * 1e3:6.1f}")
    ratio = statistics.median(times["truecall --help"]) / statistics.median(times["bare click --help"])
    print(f"truecall / bare click: {ratio:.2f} (goal: at most {GOAL}), {rounds} rounds each")
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
