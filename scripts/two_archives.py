"""Records two archives of one model with ``truecall run``, and replays both through the engines' parsers.

    python3.11 scripts/two_archives.py FOLDER [--seeds 200] [--parser vllm:hermes …]

The same weights on vLLM with ``--tool-call-parser hermes`` both times. *matched*: the chat template asks for hermes.
*mismatched*: the same template without its tags asks for bare JSON, which that parser does not read. Each archive holds
the first turns of the task `chain` with one solved example, sampled at temperature 1. An archive that is there is not
recorded again. Needs what scripts/two_stacks.py needs, truecall in this Python, and an engine for the replay.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from check_stacks import TRUECALL, NoStack, served, without_keys
from two_stacks import HERMES

PARSERS = ("vllm:hermes", "vllm:qwen3_coder", "vllm:llama3_json")
STUDY = """
name = "two-archives"
tasks = ["chain"]
conditions = ["native"]
few_shot = [true]
seeds = {seeds}

[sampling]
temperature = 1.0
max_tokens = 96

[limits]
turns = 1
nudges = 0
concurrency = 8
"""


def without_tags(template: str) -> str:
    """The hermes template, asking for the bare JSON object."""
    asked = "between these tags, once per call:"
    if asked not in template:
        raise NoStack(f"{HERMES} is not the template that this script knows")
    bare = template.replace("<tool_call>\\n", "").replace("\\n</tool_call>", "")
    return bare.replace(asked, "and nothing else:")


def record(folder: Path, name: str, template: Path, seeds: int) -> Path:
    """The run folder of an archive."""
    target, part = folder / name, folder / f"{name}.part"
    if target.exists():
        print(f"{target} is there: not recorded again", file=sys.stderr)
        return target
    shutil.rmtree(part, ignore_errors=True)
    study = folder / "study.toml"
    study.write_text(STUDY.format(seeds=seeds), "utf-8")
    with served("--only", "vllm", "--template", str(template), "--vllm-parser", "hermes") as urls:
        command = [*TRUECALL, "run", str(study), "--base-url", urls["vllm"], "--out", str(part)]
        done = subprocess.run([*command, "--fail-on", "never"], env=without_keys())
    if done.returncode:
        raise NoStack(f"truecall run ended with exit {done.returncode}")
    return part.rename(target)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--parser", action="append", default=[])
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    bare = options.folder / "bare.jinja"
    try:
        bare.write_text(without_tags(HERMES.read_text("utf-8")), "utf-8")
        archives = [
            record(options.folder, name, template, options.seeds)
            for name, template in (("mismatched", bare), ("matched", HERMES))
        ]
    except NoStack as error:
        print(f"two_archives: {error}", file=sys.stderr)
        return 2
    chosen = [word for name in options.parser or PARSERS for word in ("--parser", name)]
    return subprocess.run(
        [*TRUECALL, "replay", *map(str, archives), *chosen, "--fail-on", "never"]
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
