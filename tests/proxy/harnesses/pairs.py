"""The paired adapter experiment: a harness once plain and once with ``--surface``, same engine, same items.

``python -m tests.proxy.harnesses.pairs bfcl|inspect|tau --python INTERPRETER [OPTIONS]``: starts the embedded
engine with a chat template that shows the tools and whose calls llama.cpp's parser does not take, and prints one
table. INTERPRETER has the harness installed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from truecall.local import embedded

HERE = Path(__file__).parent
SCRIPTS = {"bfcl": "bfcl_items.py", "inspect": "inspect_loop.py", "tau": "tau_retail.py"}


def run(
    script: str, python: str, options: list[str], url: str, swap: list[str], folder: Path
) -> dict[str, Any]:
    """One recorded run: the harness's score and the funnel."""
    record = [
        sys.executable,
        "-m",
        "truecall",
        "record",
        "--json",
        *swap,
        "--upstream",
        url,
        "--out",
        str(folder),
    ]
    done = subprocess.run(
        [*record, "--env", "OPENAI_API_BASE", "--", python, str(HERE / script), *options],
        stdout=subprocess.PIPE,
        check=False,
        text=True,
    )
    lines = done.stdout.splitlines()
    score = next(
        (json.loads(line) for line in lines if line.startswith('{"harness"')), {"right": None, "rows": []}
    )
    outcome = json.loads(done.stdout[done.stdout.index("{\n") :])
    return {"code": done.returncode, "score": score, "tally": outcome["tally"]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("harness", choices=SCRIPTS)
    parser.add_argument("--python", default=sys.executable)
    options, rest = parser.parse_known_args()
    arms: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as base:
        for name, swap in (("plain", []), ("surface", ["--surface"])):
            # A new engine each time: a warm prompt cache changes what the model writes.
            with embedded(chat_template=HERE / "leaking.jinja", ctx=1024) as engine:
                script, folder = SCRIPTS[options.harness], Path(base) / name
                arms[name] = run(script, options.python, rest, engine.base_url, swap, folder)
    plain, surface = ({row[0]: row[1] for row in arms[n]["score"]["rows"]} for n in ("plain", "surface"))
    print(
        f"{'':10}{'right':>7}{'turns':>7}{'emitted':>9}{'surfaced':>10}{'delivered':>11}{'observed':>10}{'code':>6}"
    )
    for name, arm in arms.items():
        steps, uptakes = arm["tally"].get("steps", {}), arm["tally"].get("uptakes", {})
        counts = [steps.get(key, 0) for key in ("sent", "emitted", "surfaced", "delivered_by_truecall")]
        cells = [
            f"{arm['score']['right']}/{len(arm['score']['rows'])}",
            *map(str, counts),
            str(uptakes.get("observed", 0)),
        ]
        widths = (7, 7, 9, 10, 11, 10)
        print(
            f"{name:10}"
            + "".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True))
            + f"{arm['code']:>6}"
        )
    gained = sum(surface.get(item, False) and not good for item, good in plain.items())
    lost = sum(good and not surface.get(item, False) for item, good in plain.items())
    print(f"items gained {gained}, items lost {lost}")


if __name__ == "__main__":
    main()
