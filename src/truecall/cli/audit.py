"""``truecall audit``: published results, recounted from their files."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecall.cli import screen
from truecall.errors import UsageError

if TYPE_CHECKING:
    from truecall.audits.lock import Lock
    from truecall.audits.work import Asked, Kind

LOCK = "audit.lock"
_TABLES = ("rows", "gate", "categories", "entries")
_OUTPUT = (
    click.option("--entries", is_flag=True, help="Every count with the entries behind it."),
    click.option("--json", "as_json", is_flag=True, help="The whole report as JSON."),
    click.option("--csv", "as_csv", is_flag=True, help="One table as CSV (--table)."),
    click.option("--lock", "lock_path", type=click.Path(path_type=Path, dir_okay=False), default=Path(LOCK),
                 metavar="FILE", help="Where the inputs' digests are kept [audit.lock]."),
    click.option("--no-lock", is_flag=True, help="Keep no lock."),
    click.option("--fail-on", type=click.Choice(("findings", "never")), default="findings",
                 help="When to exit with 1 [findings]."),
)  # fmt: skip


def _output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OUTPUT):
        command = option(command)
    return command


@click.group("audit")
def audit_command() -> None:
    """Recount published results, or your own, from their files."""


@audit_command.command("bfcl")
@click.argument("inputs", nargs=-1, required=True, metavar="DIR|URL...")
@click.option("--category", "categories", multiple=True, metavar="NAME", help="Only this one; repeatable.")
@click.option("--model", "models", multiple=True, metavar="NAME",
              help="Only models whose folder's name contains this; from an address without a listing, the folder to "
                   "fetch. Repeatable.")  # fmt: skip
@click.option("--questions", metavar="DIR",
              help="BFCL's own data folder (functions and answers) [an installed bfcl_eval's].")  # fmt: skip
@click.option("--override", metavar="FILE", help="States given by hand; disagreements are shown.")
@click.option("--table", type=click.Choice(_TABLES), default=None,
              help="The table for --csv [gate; entries with --entries].")  # fmt: skip
@_output_options
def bfcl_command(
    inputs: tuple[str, ...],
    categories: tuple[str, ...],
    models: tuple[str, ...],
    questions: str | None,
    override: str | None,
    table: str | None,
    entries: bool,
    as_json: bool,
    as_csv: bool,
    lock_path: Path,
    no_lock: bool,
    fail_on: str,
) -> int:
    """BFCL results: leaderboard, irrelevance gate and every category.

    DIR is a snapshot with result and score folders and leaderboard tables, any part of one, or an archive of it; URL
    is where one is published. Exit code 1: something was credited or failed for a reason outside the model.
    """
    from truecall.audits import work
    from truecall.audits.bfcl import answer as answers
    from truecall.audits.bfcl import without_entries
    from truecall.cli import audit_rows, audit_screen

    asked = work.Asked(
        kind="bfcl",
        inputs=inputs,
        questions=questions,
        override=override,
        categories=categories,
        models=models,
    )
    target = None if no_lock else lock_path
    report, locked = work.run_bfcl(asked, screen.say, _base(target))
    kept = _keep(locked, target)
    found = answers.findings(report)
    if as_json:
        shown = report if entries else without_entries(report)
        _emit({"answer": locked.answer, "findings": found, **_plain(shown)})
    elif as_csv:
        _csv(audit_rows.rows(report, table or ("entries" if entries else "gate")))
    else:
        audit_screen.show(report, locked.answer, kept, entries=entries)
    if answers.unreadable(report):
        return 2
    return 1 if found and fail_on == "findings" else 0


@audit_command.command("tau-bench", short_help="tau-bench results: errors counted as failures.")
@click.argument("inputs", nargs=-1, required=True, metavar="FILE|DIR...")
@_output_options
def tau_bench_command(inputs: tuple[str, ...], **options: Any) -> int:
    """tau-bench results: exceptions that were counted as the model's failures."""
    return _tau("tau-bench", inputs, **options)


@audit_command.command("tau2", short_help="tau2-bench results: errors left out of the score.")
@click.argument("inputs", nargs=-1, required=True, metavar="FILE|DIR...")
@_output_options
def tau2_command(inputs: tuple[str, ...], **options: Any) -> int:
    """tau2-bench results: infrastructure errors that were left out of the score."""
    return _tau("tau2", inputs, **options)


def _tau(
    kind: Kind,
    inputs: tuple[str, ...],
    *,
    entries: bool,
    as_json: bool,
    as_csv: bool,
    lock_path: Path,
    no_lock: bool,
    fail_on: str,
) -> int:
    import msgspec

    from truecall.audits import work
    from truecall.cli import audit_detail, audit_rows

    target = None if no_lock else lock_path
    report, locked = work.run_tau(work.Asked(kind=kind, inputs=inputs), screen.say, _base(target))
    kept = _keep(locked, target)
    if as_json:
        shown = report if entries else msgspec.structs.replace(report, entries=())
        _emit({"answer": locked.answer, **_plain(shown)})
    elif as_csv:
        _csv(audit_rows.tau_rows(report, entries=entries))
    else:
        audit_detail.show_tau(report, locked.answer, kept, entries=entries)
    if not report.simulations:
        return 2
    return 1 if (report.errors or report.left) and fail_on == "findings" else 0


@audit_command.command("verify", short_help="Repeat an audit by its lock, and compare.")
@click.argument(
    "lock_path", type=click.Path(path_type=Path, dir_okay=False), default=Path(LOCK), metavar="[LOCK]"
)
@click.option(
    "--at", multiple=True, metavar="PATH|URL", help="Where the inputs stand now, in the lock's order."
)
@click.option("--json", "as_json", is_flag=True, help="The differences as JSON.")
def verify_command(lock_path: Path, at: tuple[str, ...], as_json: bool) -> int:
    """Repeat an audit by its lock and compare: exit code 0 identical, 1 different."""
    from truecall.audits import work
    from truecall.cli import audit_detail

    locked, now, differences = work.verify(lock_path, screen.say, at)
    if as_json:
        _emit(
            {
                "schema_version": 1,
                "identical": not differences,
                "differences": [_plain(d) for d in differences],
            }
        )
    else:
        audit_detail.show_verified(locked, now, differences)
    return 1 if differences else 0


@audit_command.command("explain", short_help="One entry: stored text, rule, span.")
@click.argument("words", nargs=-1, required=True, metavar="[MODEL] ENTRY")
@click.option("--in", "inputs", multiple=True, metavar="PATH|URL", help="The results [those of audit.lock].")
@click.option("--lock", "lock_path", type=click.Path(path_type=Path, dir_okay=False), default=Path(LOCK),
              metavar="FILE", help="The lock that names the results [audit.lock].")  # fmt: skip
@click.option("--questions", metavar="DIR", help="BFCL's own data folder.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def explain_command(
    words: tuple[str, ...], inputs: tuple[str, ...], lock_path: Path, questions: str | None, as_json: bool
) -> int:
    """Show one entry: the stored text, the rule that decided, and where the call stands in it."""
    if len(words) > 2:
        raise UsageError("audit explain takes an entry, or a model and an entry")
    from truecall.audits import bfcl, work
    from truecall.audits.explain import explain, to_plain
    from truecall.audits.overrides import read_overrides
    from truecall.cli import audit_detail

    asked = _asked(inputs, lock_path, questions)
    model = words[0] if len(words) == 2 else None
    with work.opened(asked, screen.say) as paths:
        given = bfcl.gather(paths, Path(asked.questions) if asked.questions else None)
        overrides = read_overrides(Path(asked.override) if asked.override else None)
        found = explain(
            given, bfcl.audit(given, overrides, models=[model] if model else None), words[-1], model
        )
    if not found:
        raise UsageError(f"no entry {words[-1]}" + (f" of a model like {model}" if model else ""))
    if as_json:
        _emit({"schema_version": 1, "entries": [to_plain(item) for item in found]})
    else:
        audit_detail.show_explained(found)
    return 0


def _asked(inputs: tuple[str, ...], lock_path: Path, questions: str | None) -> Asked:
    """What to read for an explanation: the paths given, else those of the lock."""
    import msgspec

    from truecall.audits import lock, work

    if inputs:
        return work.Asked(kind="bfcl", inputs=inputs, questions=questions)
    if not lock_path.exists():
        raise UsageError(
            f"no {lock_path} here: name the results with --in, or run `truecall audit bfcl` first"
        )
    locked = lock.read(lock_path)
    if locked.kind != "bfcl":
        raise UsageError(f"{lock_path} is a {locked.kind} audit: only BFCL entries can be explained")
    asked = work.asked_by(locked, lock_path.resolve().parent)
    return msgspec.structs.replace(asked, questions=questions or asked.questions)


def _base(target: Path | None) -> Path:
    return (target or Path(LOCK)).resolve().parent


def _keep(locked: Lock, target: Path | None) -> Path | None:
    """Writes the lock; a place that can't be written is told and costs no answer."""
    from truecall.audits import lock
    from truecall.errors import InputError

    if target is None:
        return None
    try:
        lock.write(locked, target)
    except InputError as error:
        screen.say(f"no lock was kept: {error}")
        return None
    return target


def _plain(value: Any) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(value)
    return plain


def _emit(value: Mapping[str, Any]) -> None:
    """JSON on stdout with the schema version first."""
    from truecall.audits.bfcl import SCHEMA_VERSION

    screen.emit_json({"schema_version": SCHEMA_VERSION, **value})


def _csv(rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows of one table as CSV; cells that a spreadsheet would run as a formula are quoted."""
    writer = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(
                sys.stdout, fieldnames=list(row), lineterminator="\n", extrasaction="ignore"
            )
            writer.writeheader()
        writer.writerow({key: _cell(value) for key, value in row.items()})


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return "" if value is None else value
