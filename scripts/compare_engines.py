"""Labelled texts through the engines' own parsers and through the detector: who is right, and why.

    python scripts/compare_engines.py --vllm P --sglang P --verl P [--case FILE] [--write docs/engines.md]

Each P is the Python of an environment that holds that engine (``truecall engines add`` makes one). The labels stood
before any parser ran. Exit status 1 when some parser returned the labelled calls where the detector did not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from truecall import detect
from truecall.engines import Job, Launch, Pool
from truecall.engines.registry import WORKERS

ROOT = Path(__file__).parents[1]

Json = Any
Calls = list[tuple[str | None, Json]]

RIGHT = "right"
WHY = {
    "call kept as text": "the call stays in the text: the parser does not take this form",
    "call erased": "no call, and the text is gone too",
    "phantom": "a quotation, an example, a result or a replaced draft is taken for a call",
    "some calls lost": "fewer calls than the model wrote",
    "extra calls": "more calls than the model wrote",
    "other name": "the name is not the one that the model wrote",
    "arguments as string": "the arguments decode to a string instead of an object",
    "arguments not JSON": "the arguments that would be sent do not parse",
    "parameters lost": "some parameters, or all, are missing from the call",
    "value not typed": "the right text, with another type than the schema's",
    "other value": "a value is not the one that the model wrote",
    "error": "the parser raised an exception",
}


class Case(NamedTuple):
    """A labelled text. Arguments of None in ``calls`` are not compared."""

    id: str
    dialect: str
    text: str
    tools: list[Json]
    calls: Calls


def cases(paths: Sequence[Path]) -> list[Case]:
    """The text cases of JSON-lines files whose label tells the calls."""
    found = []
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line) if line.strip() else {}
            want = row.get("expected")
            if not isinstance(row.get("raw"), str) or not isinstance(want, dict):
                continue
            calls = [(call["name"], call["arguments"]) for call in want["calls"]]
            if want["emitted"] and not calls:
                continue  # an attempt that nobody can read: nothing to compare
            dialect = want["dialect"] if want["emitted"] else "no call"
            found.append(Case(f"{path.stem}/{row['id']}", dialect, row["raw"], row.get("tools") or [], calls))
    return found


def _value(given: Json) -> Json:
    """Arguments as an engine sends them, decoded; ValueError where they are no JSON."""
    return json.loads(given) if isinstance(given, str) else given


def _exact(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def _loose(value: Json) -> str:
    """The text of a value without its type: "2" and 2, "true" and True are one."""
    return (
        _exact(value if isinstance(value, str) else json.dumps(value)).replace('\\"', '"').strip('"').lower()
    )


def _arguments(given: Json, wanted: Json) -> str:
    """How the arguments of one call differ from the label."""
    if wanted is None:
        return RIGHT
    try:
        given = _value(given)
    except ValueError:
        return "arguments not JSON"
    if isinstance(given, str):
        return "arguments as string"
    if _exact(given) == _exact(wanted):
        return RIGHT
    if not isinstance(given, dict) or given.keys() - wanted.keys():
        return "other value"
    if wanted.keys() - given.keys():
        return "parameters lost"
    return "value not typed" if all(_loose(given[k]) == _loose(wanted[k]) for k in wanted) else "other value"


def outcome(got: Calls, content: str | None, case: Case) -> str:
    """``right``, or the kind of difference between what was returned and the label (a key of ``WHY``)."""
    if not got:
        if not case.calls:
            return RIGHT
        kept = any(name and name in (content or "") for name, _ in case.calls)
        return "call kept as text" if kept else "call erased"
    if not case.calls:
        return "phantom"
    if len(got) != len(case.calls):
        return "some calls lost" if len(got) < len(case.calls) else "extra calls"
    if [name for name, _ in got] != [name for name, _ in case.calls]:
        return "other name"
    kinds = [_arguments(given, wanted) for (_, given), (_, wanted) in zip(got, case.calls, strict=True)]
    return next((kind for kind in kinds if kind != RIGHT), RIGHT)


def ours(case: Case) -> str:
    """The detector's outcome on a case."""
    found = detect(case.text, case.tools)
    return outcome([(call.name, call.reading()) for call in found.calls], case.text, case)


class Ran(NamedTuple):
    """One engine's results: ``outcomes[parser][case id]``; ``idle`` are parsers that raise on every text."""

    engine: str
    version: str
    outcomes: dict[str, dict[str, str]]
    idle: list[str]


def run(name: str, python: str, texts: Sequence[Case]) -> Ran:
    """Every parser of an engine over every text."""
    script = WORKERS / f"{name.lower()}_worker.py"
    with Pool(Launch(engine=name, python=python, script=str(script))) as pool:
        about = pool.hello()
        pairs = [(parser, case) for parser in about.parsers for case in texts]
        outcomes: dict[str, dict[str, str]] = {parser: {} for parser in about.parsers}
        results = pool.run(Job(parser, case.text, case.tools) for parser, case in pairs)
        for (parser, case), parse in zip(pairs, results, strict=True):
            calls = [(call.name, call.arguments) for call in parse.calls]
            failed = parse.state != "parsed"
            outcomes[parser][case.id] = "error" if failed else outcome(calls, parse.content, case)
    # Some want a package, a template or a tokenizer that a bare environment lacks: they were not tried.
    idle = [parser for parser, results in outcomes.items() if set(results.values()) == {"error"}]
    return Ran(name, about.version, {k: v for k, v in outcomes.items() if k not in idle}, idle)


# ------------------------------------------------------------------------------------- the page


def _knowing(ran: Ran, group: Sequence[Case]) -> dict[str, int]:
    """Parsers that read at least one call of ``group`` rightly, with how many."""
    counts = {
        parser: sum(results[case.id] == RIGHT for case in group if case.calls)
        for parser, results in ran.outcomes.items()
    }
    return {parser: count for parser, count in counts.items() if count}


def _cell(text: str, limit: int = 110) -> str:
    shown = text if len(text) <= limit else text[:limit] + "…"
    return "`" + shown.replace("\n", "⏎").replace("`", "ˋ").replace("|", "\\|") + "`"


def _by_dialect(groups: dict[str, list[Case]], mine: dict[str, str], engines: Sequence[Ran]) -> Iterator[str]:
    yield (
        "| dialect | texts | truecall | " + " | ".join(f"{ran.engine}: best parser" for ran in engines) + " |"
    )
    yield "|---" * (3 + len(engines)) + "|"
    for dialect, group in sorted(groups.items()):
        cells = [dialect, str(len(group)), str(sum(mine[case.id] == RIGHT for case in group))]
        for ran in engines:
            if dialect == "no call":
                least = min(
                    sum(results[case.id] == "phantom" for case in group) for results in ran.outcomes.values()
                )
                most = max(
                    sum(results[case.id] == "phantom" for case in group) for results in ran.outcomes.values()
                )
                cells.append(f"{least} to {most} phantoms, by parser")
                continue
            knowing = _knowing(ran, group)
            best = max(knowing.values(), default=0)
            names = sorted(parser for parser, count in knowing.items() if count == best)
            more = f" and {len(names) - 2} more" if len(names) > 2 else ""
            cells.append(f"{best} ({', '.join(names[:2])}{more})" if names else "none")
        yield "| " + " | ".join(cells) + " |"


def _differences(
    groups: dict[str, list[Case]], mine: dict[str, str], engines: Sequence[Ran]
) -> Iterator[str]:
    """Where a parser that knows the dialect returns something else than the label: one row a kind."""
    yield "| engine | dialect | what comes out | texts | parsers | an example | right |"
    yield "|---|---|---|---|---|---|---|"
    for ran in engines:
        for dialect, group in sorted(groups.items()):
            rows: dict[str, list[tuple[str, Case]]] = defaultdict(list)
            for parser in ran.outcomes if dialect == "no call" else _knowing(ran, group):
                for case in group:
                    kind = ran.outcomes[parser][case.id]
                    if kind != RIGHT:
                        rows[kind].append((parser, case))
            for kind, found in sorted(rows.items()):
                texts = {case.id: case for _, case in found}
                parsers = Counter(parser for parser, _ in found)
                names = ", ".join(parser for parser, _ in parsers.most_common(3))
                more = f" and {len(parsers) - 3} more" if len(parsers) > 3 else ""
                example = min(texts.values(), key=lambda case: len(case.text))
                good = sum(mine[name] == RIGHT for name in texts)
                right = (
                    "truecall"
                    if good == len(texts)
                    else f"truecall in {good}, neither in {len(texts) - good}"
                )
                yield (
                    f"| {ran.engine} | {dialect} | {kind} | {len(texts)} | {names}{more} | "
                    f"{_cell(example.text)} | {right} |"
                )


def missed(texts: Sequence[Case], mine: dict[str, str], engines: Sequence[Ran]) -> list[str]:
    """Texts where some parser returned the labelled calls and the detector did not."""
    lines = []
    for case in texts:
        if mine[case.id] == RIGHT or not case.calls:
            continue
        who = [
            f"{ran.engine} {parser}"
            for ran in engines
            for parser, results in ran.outcomes.items()
            if results[case.id] == RIGHT
        ]
        if who:
            lines.append(f"{case.id}: {mine[case.id]}; right: {', '.join(who[:4])}; {_cell(case.text, 200)}")
    return lines


def page(texts: Sequence[Case], mine: dict[str, str], engines: Sequence[Ran]) -> str:
    """docs/engines.md."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in texts:
        groups[case.dialect].append(case)
    calls = [case for case in texts if case.calls]
    others = [case for case in texts if not case.calls]
    right = sum(mine[case.id] == RIGHT for case in calls)
    lost = missed(texts, mine, engines)
    lines = [
        "# The detector against the engines' own parsers",
        "",
        "Written by `scripts/compare_engines.py`. The texts were labelled before any parser ran. An engine's",
        "parser is asked for whole texts (not streamed), a new one for each text, with the text's own tools.",
        "",
        f"{len(texts)} texts: {len(calls)} with calls, {len(others)} without. truecall returns the",
        f"labelled calls in {right} of {len(calls)}, and sees a call in "
        f"{sum(mine[case.id] != RIGHT for case in others)} of the {len(others)} without.",
        "",
        "The detector's own tests hold it to these texts, so its count says no more than that they pass; what it read",
        "rightly of a set that its author had not seen is in `detector.md`.",
        "",
        "| engine | version | parsers | could not be run | texts with calls that a parser of it reads rightly |",
        "|---|---|---|---|---|",
    ]
    for ran in engines:
        some = sum(any(results[case.id] == RIGHT for results in ran.outcomes.values()) for case in calls)
        idle = ", ".join(ran.idle) or "–"
        lines.append(
            f"| {ran.engine} | {ran.version} | {len(ran.outcomes)} | {idle} | {some} of {len(calls)} |"
        )
    lines += ["", "## A parser is right and truecall is not", ""]
    lines += [f"- {line}" for line in lost] or ["Nowhere."]
    lines += [
        "",
        "## By dialect",
        "",
        "Texts read exactly as labelled (names, arguments, types, number of calls).",
        "",
    ]
    lines += _by_dialect(groups, mine, engines)
    lines += [
        "",
        "## Where they differ: who is right, and why",
        "",
        "Only parsers that read at least one text of the dialect are listed (all of them for texts without a",
        "call). `right` says who agrees with the label.",
        "",
    ]
    lines += [f"- **{kind}**: {why}." for kind, why in WHY.items()]
    lines += ["", *_differences(groups, mine, engines), ""]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the engines given and print or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for engine in ("vLLM", "SGLang", "verl"):
        parser.add_argument(
            f"--{engine.lower()}", metavar="PYTHON", help=f"the Python of {engine}'s environment"
        )
    parser.add_argument("--case", type=Path, action="append", default=[], help="more JSON-lines cases")
    parser.add_argument("--write", type=Path, help="write the page here instead of printing it")
    arguments = parser.parse_args(argv)
    own = ROOT / "tests" / "detector"
    texts = cases([*sorted(own.glob("golden/**/*.jsonl")), *sorted(own.glob("*.jsonl")), *arguments.case])
    mine = {case.id: ours(case) for case in texts}
    given = {name: getattr(arguments, name.lower()) for name in ("vLLM", "SGLang", "verl")}
    engines = [run(name, python, texts) for name, python in given.items() if python]
    made = page(texts, mine, engines)
    if arguments.write:
        arguments.write.write_text(made, encoding="utf-8")
    else:
        print(made)
    lost = missed(texts, mine, engines)
    print(f"{len(lost)} texts that a parser reads and truecall does not", file=sys.stderr)
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
