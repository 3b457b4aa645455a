"""``truecall replay``: archived turns through the engines' own parsers, offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecall.cli import screen
from truecall.errors import UsageError

if TYPE_CHECKING:
    from truecall.replay.replaying import Replayed

_FAIL = ("lost", "never")


@click.command("replay")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--parser", "parsers", multiple=True, required=True, metavar="ENGINE:NAME",
              help="vllm:hermes, sglang==0.5.23:all, all, python:FILE.py:FUNCTION or command:COMMAND. "
                   "Repeatable.")  # fmt: skip
@click.option("--all-turns", is_flag=True, help="Every turn, not only the first of an episode.")
@click.option("--tools", "tools_file", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help="The tools, for logs that hold none.")  # fmt: skip
@click.option("--no-stream", is_flag=True, help="Whole texts only.")
@click.option("--tokenizer", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help="Stream by this tokenizer.json's pieces [seeded text splits].")  # fmt: skip
@click.option("--pieces", type=click.IntRange(1), metavar="N", help="Stream by pieces of N characters.")
@click.option("--seed", type=int, default=0, help="Where texts are split.")
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="For each engine.")
@click.option("--seconds", type=click.FloatRange(0.1), default=20.0, show_default=True,
              help="After which a parser hangs on a text.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N turns.")
@click.option("--entries", "entries_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Every call of every turn with its layer, as JSON lines.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="The rows as CSV.")
@click.option("--fail-on", type=click.Choice(_FAIL), default="lost", show_default=True,
              help="What exit code 1 stands for.")  # fmt: skip
def replay_command(
    sources: tuple[str, ...],
    parsers: tuple[str, ...],
    all_turns: bool,
    tools_file: Path | None,
    no_stream: bool,
    tokenizer: Path | None,
    pieces: int | None,
    seed: int,
    workers: int,
    seconds: float,
    limit: int | None,
    entries_file: Path | None,
    as_json: bool,
    as_csv: bool,
    fail_on: str,
) -> int:
    """Which calls in a log do the engines' own parsers return, and at which layer are the others lost?

    SOURCE is a log, folder or glob of any format that `truecall scan` reads. Engines are added with
    `truecall engines add`. Exit code 1: a well-formed call did not come out of a parser.
    """
    from truecall.cli import replay_screen
    from truecall.cli.files import read_tools
    from truecall.engines import resolve
    from truecall.replay.cuts import Cutter
    from truecall.replay.run import Options, replay_logs

    if tokenizer and pieces:
        raise UsageError("--tokenizer and --pieces: choose one")
    specs = resolve(parsers)
    cutter = Cutter(seed, tokenizer, pieces)
    options = Options(
        streams=not no_stream,
        workers=workers,
        text_seconds=seconds,
        every=all_turns,
        tools=read_tools(tools_file) if tools_file else None,
        limit=limit,
    )
    screen.say(f"starting {', '.join(spec.launch.engine for spec in specs)}, {workers} workers each")
    out = entries_file.open("wb") if entries_file else None
    try:
        with screen.progress("replaying", limit) as bar:

            def kept(label: str, done: Replayed) -> None:
                if out is not None:
                    out.writelines(entries(label, done))

            report = replay_logs(sources, specs, options, cutter, bar.update, kept)
    finally:
        if out is not None:
            out.close()
    if not report.texts:
        why = ", ".join(f"{n:,} {reason}" for reason, n in report.skipped.items()) or "no turn was found"
        raise UsageError(f"nothing to replay: {why}")
    if as_json:
        screen.emit_json(report)
    elif as_csv:
        replay_screen.show_csv(report)
    else:
        replay_screen.show(report)
    return int(fail_on == "lost" and any(row.lost for row in report.rows))


def entries(label: str, done: Replayed) -> list[bytes]:
    """One JSON line for each call of a replayed text."""
    import msgspec

    lines = []
    for fate, call in zip(done.calls, done.material.found.calls, strict=True):
        row: dict[str, Any] = {
            "engine": label,
            "parser": done.parser,
            "turn": done.material.id,
            "dialect": call.dialect,
            "tier": call.tier,
            "name": call.name,
            "span": [call.span.start, call.span.end],
            "whole": fate.whole,
            "streamed": fate.streamed,
            "split": done.split,
        }
        lines.append(msgspec.json.encode(row) + b"\n")
    return lines
