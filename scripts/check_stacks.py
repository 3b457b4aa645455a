"""Starts two real stacks with the same weights, examines them with ``truecall preflight``, and holds the findings
against what is known of them. Run before an issue that touches stacks is closed.

    python3.11 scripts/check_stacks.py [--write docs/findings/two_stacks.md]

Prints a line for each expectation, then the side-by-side table; exit 1 when one is not met, 2 when a stack can't be
had. Needs what scripts/two_stacks.py needs, and truecall in this Python. About ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TRUECALL = [sys.executable, "-m", "truecall"]
Report = dict[str, Any]
Check = tuple[str, Callable[[Report], bool]]


class NoStack(Exception):
    """A stack ended, or never answered."""


# --------------------------------------------------------------------------- what must be found


def probe(report: Report, name: str) -> Report:
    return next(
        (p for p in report["probes"] if p["name"] == name), {"state": "not sent", "said": "", "data": {}}
    )


def finding(report: Report, *ids: str) -> Report | None:
    return next((f for f in report["findings"] if f["id"] in ids), None)


def table(report: Report) -> dict[str, str]:
    found: dict[str, str] = probe(report, "loopback").get("data", {}).get("table", {})
    return found


def never_blames_the_model(report: Report) -> bool:
    blamed = [f for f in report["findings"] if f["part"] == "model"]
    return not blamed and "wrote no valid call" not in report["answer"]


def change(report: Report, text: str, *ids: str) -> bool:
    found = finding(report, *ids)
    return found is not None and text in found.get("change", "")


def proven_by_token_ids(report: Report) -> bool:
    found = finding(report, "parser-mismatch")
    return found is not None and found["tier"] == "token_ids" and "<tool_call>" in found.get("wrote", "")


FLAGS = "--enable-auto-tool-choice --tool-call-parser hermes"
LLAMA_OWN: list[Check] = [
    ("tools-not-rendered, put down to the template", lambda r: finding(r, "tools-not-rendered") is not None),
    ("required is not enforced", lambda r: finding(r, "required-not-enforced") is not None),
    ("there is no rate of the model's", lambda r: probe(r, "auto").get("rate") is None),
    ("never that the model does not call tools", never_blames_the_model),
]
LLAMA_HERMES: list[Check] = [
    ("the tools are rendered", lambda r: probe(r, "rendered")["state"] == "ok"),
    ("hermes is surfaced", lambda r: table(r).get("hermes") == "surfaced"),
    ("bare JSON is leaked", lambda r: table(r).get("bare_json") == "leaked"),
    ("fenced JSON is leaked", lambda r: table(r).get("fenced_json") == "leaked"),
    (
        "required loops into the budget",
        lambda r: bool((finding(r, "required-not-enforced") or {}).get("detail", {}).get("looped")),
    ),
]
VLLM_NONE: list[Check] = [
    ("the gate refuses", lambda r: finding(r, "gate-refuses-auto") is not None),
    ("with the exact flags to add", lambda r: change(r, FLAGS, "gate-refuses-auto")),
    ("and the sentence names them", lambda r: FLAGS in r["answer"]),
    ("one finding for the closed gate, not one a probe", lambda r: len(r["findings"]) == 1),
]
VLLM_HERMES: list[Check] = [
    ("the tools are rendered", lambda r: probe(r, "rendered")["state"] == "ok"),
    ("hermes is surfaced", lambda r: table(r).get("hermes") == "surfaced"),
    ("bare JSON is leaked", lambda r: table(r).get("bare_json") == "leaked"),
    ("fenced JSON is leaked", lambda r: table(r).get("fenced_json") == "leaked"),
    ("required gives a call", lambda r: probe(r, "required")["said"].startswith("enforced")),
    ("strict arguments fit the schema", lambda r: probe(r, "strict")["state"] == "ok"),
]
VLLM_QWEN: list[Check] = [
    ("hermes text is erased", lambda r: table(r).get("hermes") == "erased"),
    ("which the token ids prove", proven_by_token_ids),
    ("qwen3_coder is surfaced", lambda r: table(r).get("qwen3_coder") == "surfaced"),
    (
        "the parser is inferred",
        lambda r: r["endpoint"]["facts"].get("tool_parser") == {"value": "qwen3_coder", "origin": "inferred"},
    ),
    (
        "the change names both parsers",
        lambda r: change(r, "--tool-call-parser qwen3_coder to hermes", "parser-mismatch"),
    ),
    ("tool_choice none does not keep the text", lambda r: finding(r, "none-erased") is not None),
]


# --------------------------------------------------------------------------- the stacks


@contextmanager
def served(*options: str) -> Iterator[dict[str, str]]:
    """The base URLs of what scripts/two_stacks.py started."""
    command = [sys.executable, str(HERE / "two_stacks.py"), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise NoStack(f"two_stacks.py {' '.join(options)} ended before it served")
        urls: dict[str, str] = json.loads(line)["base_urls"]
        yield urls
    finally:
        process.terminate()
        process.wait()


def examine(*options: str) -> Any:
    """The JSON of one preflight."""
    command = [
        *TRUECALL,
        "preflight",
        *options,
        "--json",
        "--no-save",
        "--fail-on",
        "never",
        "--timeout",
        "600",
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=without_keys())
    if done.returncode not in (0, 2) or not done.stdout:
        raise NoStack(f"preflight {' '.join(options)} ended with exit {done.returncode}")
    return json.loads(done.stdout)


def without_keys() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")}


# --------------------------------------------------------------------------- the run


@dataclass
class Examined:
    title: str
    report: Report
    checks: list[Check]

    def unmet(self) -> list[str]:
        return [f"{self.title}: {what}" for what, holds in self.checks if not holds(self.report)]


def run() -> tuple[list[Examined], Any]:
    """All stacks, one after the other: two at a time is what two cores can carry."""
    with served("--template", "hermes", "--vllm-parser", "hermes") as urls:
        beside = examine("--base-url", urls["llama.cpp"], "--beside", urls["vllm"])
    done = [
        Examined("llama.cpp, hermes.jinja", beside["reports"][0], LLAMA_HERMES),
        Examined("vLLM, --tool-call-parser hermes", beside["reports"][1], VLLM_HERMES),
    ]
    with served("--only", "llama", "--template", "own") as urls:
        report = examine("--base-url", urls["llama.cpp"])
        done.append(Examined("llama.cpp, the model's own template", report, LLAMA_OWN))
    for parser, checks in (("none", VLLM_NONE), ("qwen3_coder", VLLM_QWEN)):
        with served("--only", "vllm", "--template", "hermes", "--vllm-parser", parser) as urls:
            title = "vLLM without parser flags" if parser == "none" else f"vLLM, --tool-call-parser {parser}"
            done.append(Examined(title, examine("--base-url", urls["vllm"]), checks))
    return done, beside


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:300]


def page(done: list[Examined], beside: Any) -> str:
    """The results as Markdown, without what differs from run to run (ports, seconds)."""
    lines = [
        "# The same weights on two real stacks",
        "",
        "Made by `python scripts/check_stacks.py --write docs/findings/two_stacks.md` on two cores.",
        "SmolLM2-135M-Instruct on llama.cpp and on vLLM (CPU), both with `src/truecall/data/hermes.jinja`, except",
        "where said. How they are started: `scripts/two_stacks.py`; their answers: [contracts.md](contracts.md).",
        "",
        "## Side by side",
        "",
        "`truecall preflight --base-url LLAMA.CPP --beside VLLM`; that vLLM has `--tool-call-parser hermes`. The last",
        "column is the part that makes the difference; where it is empty there is none. The weights are the same (Q4_1",
        "there, dequantised to float32 here), so no difference is the model's.",
        "",
        "| probe | llama.cpp | vLLM | differs by |",
        "|---|---|---|---|",
    ]
    for row in beside["table"]:
        cells = " | ".join(cell(c) for c in row["cells"])
        lines.append(f"| `{row['probe']}` | {cells} | {', '.join(row.get('differs', ()))} |")
    for each in done:
        report = each.report
        lines += ["", f"## {each.title}", "", f"**{report['state']}**: {cell(report['answer'])}", ""]
        lines += [f"- `{p['name']}`: {cell(p['said'])}" for p in report["probes"]]
        for found in report["findings"]:
            lines.append(
                f"- **{found['id']}** [{found['part']}], {found['severity']}: {cell(found['title'])}"
            )
            if found.get("wrote") and found["tier"] == "token_ids":
                lines.append(f"  - the model wrote (token ids): `{cell(found['wrote'])[:160]}`")
                lines.append(f"  - the client got: `{cell(found.get('got', ''))[:160]}`")
            if found.get("change"):
                lines.append(f"  - change: {cell(found['change'])}")
        lines += ["", "Expected, and found:" if not each.unmet() else "Expected (unmet ones marked):", ""]
        lines += [f"- {'' if holds(report) else '**not met**: '}{what}" for what, holds in each.checks]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="the results as Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the reports as JSON")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # so that what was started is ended
    try:
        done, beside = run()
    except NoStack as error:
        print(f"check_stacks: {error}", file=sys.stderr)
        return 2
    if options.json:
        options.json.write_text(json.dumps([e.report for e in done], indent=1), "utf-8")
    text = page(done, beside)
    if options.write:
        options.write.write_text(text, "utf-8")
    unmet = [line for each in done for line in each.unmet()]
    for each in done:
        for what, holds in each.checks:
            print(f"{'ok  ' if holds(each.report) else 'FAIL'} {each.title}: {what}")
    print(f"\n{text}")
    return 1 if unmet else 0


if __name__ == "__main__":
    sys.exit(main())
