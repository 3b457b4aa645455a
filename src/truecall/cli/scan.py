"""``truecall scan``: other people's logs, counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecall.cli import scan_screen, screen
from truecall.errors import UsageError

if TYPE_CHECKING:
    from truecall.scan.saved import Saved

_FAIL = ("lost", "errors", "bad", "never")


def result_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options of ``scan`` and ``merge`` that say what becomes of the result."""
    for option in reversed((
        click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
                     help="Where to save the result."),
        click.option("--json", "as_json", is_flag=True, help="The report as JSON."),
        click.option("--csv", "as_csv", is_flag=True, help="One line of numbers for each group, as CSV."),
        click.option("--fail-on", type=click.Choice(_FAIL), default="lost", show_default=True,
                     help="What exit code 1 stands for."),
    )):  # fmt: skip
        command = option(command)
    return command


@click.command("scan")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--tools", "tools_file", type=click.Path(path_type=Path), metavar="FILE",
              help="The tools of turns whose log holds none, as a JSON list.")  # fmt: skip
@click.option(
    "--by",
    multiple=True,
    metavar="FIELD",
    help="Numbers for each model, file, step or other field; repeatable.",
)
@click.option(
    "--sample", metavar="SHARE", default="1", help="Read only this share of the entries: 0.005 or 0.5%."
)
@click.option("--seed", type=int, default=0, help="Which sample.")
@click.option(
    "--shard",
    metavar="I/N",
    default="1/1",
    help="Count only the I-th of N parts; add up with `truecall merge`.",
)
@click.option(
    "--workers", type=click.IntRange(0, 512), default=0, help="Processes; by default one for each core."
)
@click.option("--incremental", is_flag=True, help="Take files that have not changed from the last such scan.")
@click.option("--ray", "ray_address", is_flag=False, flag_value="", metavar="[ADDRESS]",
              help="Spread over Ray; paths may then be s3:// and gs:// too.")  # fmt: skip
@click.option("--entries", "entries_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Every turn with its place and what was counted of it, as JSON lines.")  # fmt: skip
@result_options
def scan_command(
    paths: tuple[str, ...],
    tools_file: Path | None,
    by: tuple[str, ...],
    sample: str,
    seed: int,
    shard: str,
    workers: int,
    incremental: bool,
    ray_address: str | None,
    entries_file: Path | None,
    output: Path | None,
    as_json: bool,
    as_csv: bool,
    fail_on: str,
) -> int:
    """Count what logs hold: which calls were emitted, what became of them, and where the worst stand.

    PATH is a file, a folder or a glob; plain, gzip or zstd. The format is told from the content
    (docs/sources.md): OpenAI chat JSONL, truecall runs, HAR, BFCL, tau-bench, tau2, inspect_ai, lm-eval, verl, TRL,
    OpenTelemetry GenAI. Exit code 1: a whole call was lost.
    """
    from truecall.cli.files import read_tools
    from truecall.scan import ScanOptions
    from truecall.scan import saved as results

    options = ScanOptions(
        by=_fields(by),
        tools=read_tools(tools_file) if tools_file else None,
        sample=_share(sample),
        seed=seed,
        shard=_part(shard),
        workers=workers,
    )
    if entries_file is not None and (incremental or ray_address is not None):
        raise UsageError("--entries goes with neither --incremental nor --ray")
    tally = _scan(list(paths), options, incremental, ray_address, entries_file)
    saved = results.result(tally, options)
    target = output or results.new_path()
    results.write(target, saved)
    return finish(saved, target, as_json=as_json, as_csv=as_csv, fail_on=fail_on)


def _scan(
    paths: list[str], options: Any, incremental: bool, ray_address: str | None, entries_file: Path | None
) -> Any:
    from truecall.scan import run as running
    from truecall.scan import saved as results
    from truecall.scan.units import sniffed
    from truecall.sources import files
    from truecall.store import state_dir

    if ray_address is not None:
        from truecall.scan.on_ray import scan_on_ray, start

        start(ray_address or None, options.workers)
        return scan_on_ray(paths, options)
    found = [sniffed(path) for path in files.expand(paths)]
    total = sum(file.size for file in found if file.source)
    out = entries_file.open("wb") if entries_file else None
    try:
        with screen.progress("reading", total, as_bytes=True) as bar:

            def told(done: Any) -> None:
                bar.update(done.tally.bytes)
                if out is not None and done.entries:
                    out.write(b"\n".join(done.entries) + b"\n")

            if incremental:
                return results.scan_incremental(found, options, state_dir() / "scan" / "files", told=told)
            return running.scan_files(found, options, told=told, entries=out is not None)
    finally:
        if out is not None:
            out.close()


def finish(saved: Saved, target: Path, *, as_json: bool, as_csv: bool, fail_on: str) -> int:
    """Prints a result in the form asked for; the exit code."""
    report = saved.report()
    if as_json:
        screen.emit_json({**scan_screen.plain(report), "saved": str(target)})
    elif as_csv:
        scan_screen.show_csv(report)
    else:
        scan_screen.show(report)
        screen.say(f"saved as {target}")
        if saved.of > 1 and len(saved.shards) < saved.of:
            screen.say(f"next: truecall merge SHARD...   (shard {saved.shards[0]} of {saved.of})")
    failed = {
        "lost": report.total.rates["censored"].k > 0
        or report.total.cold_start
        or any(g.cold_start for g in report.groups),
        "errors": bool(report.total.errors),
        "bad": report.bad > 0,
        "never": False,
    }
    return int(failed[fail_on])


# --------------------------------------------------------------------------- options


def _fields(by: tuple[str, ...]) -> tuple[str, ...]:
    names = [name.strip() for one in by for name in one.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


def _share(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise UsageError(f"--sample {text}: is no share between 0 and 1, such as 0.005 or 0.5%")
    return value


def _part(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard {text}: is not I/N with I from 1 to N, such as 2/8")
    return int(match[1]), int(match[2])
