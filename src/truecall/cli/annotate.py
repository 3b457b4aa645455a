"""``truecall annotate``: people read what the detector read, and the numbers of their agreement."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truecall.cli import screen
from truecall.errors import UsageError

if TYPE_CHECKING:
    from truecall.annotate.frame import Found

_DIR = click.Path(path_type=Path, file_okay=False)


@click.group("annotate")
def annotate_command() -> None:
    """Validate the detector by blind human annotation.

    make draws texts and writes a page for each annotator; add takes their files in; adjudicate writes the page of
    the disputed texts; status says what is missing; export gives the numbers.
    """


@annotate_command.command("make")
@click.argument("paths", nargs=-1, required=True, metavar="RUN…")
@click.option("-o", "--output", "folder", type=_DIR, required=True, metavar="DIR",
              help="A new folder for key, packs and answers.")  # fmt: skip
@click.option("--annotators", default="a,b", show_default=True, metavar="NAMES", help="Two or more.")
@click.option("--adjudicator", default="adjudicator", show_default=True, metavar="NAME",
              help="Who decides disputed texts; no annotator.")  # fmt: skip
@click.option("--per-stratum", type=click.IntRange(1), default=40, show_default=True,
              help="Texts drawn from each stratum.")  # fmt: skip
@click.option("--seed", type=int, default=0, help="Which sample.")
@click.option("--tools", "tools_file", type=click.Path(path_type=Path), metavar="FILE",
              help="The tools of turns whose log holds none, as a JSON list.")  # fmt: skip
def make_command(
    paths: tuple[str, ...],
    folder: Path,
    annotators: str,
    adjudicator: str,
    per_stratum: int,
    seed: int,
    tools_file: Path | None,
) -> int:
    """Draw texts from runs (ids or folders) and logs, and write a page for each annotator.

    Every log that `truecall scan` reads will do. The pages hold no verdict; key.json stays with you.
    """
    from truecall.annotate import folder as folders
    from truecall.annotate.frame import texts
    from truecall.annotate.making import checked_names, make
    from truecall.cli import annotate_screen
    from truecall.cli.files import read_tools

    names = [name.strip() for name in annotators.split(",")]
    checked_names(names, adjudicator)
    folders.checked_new(folder)
    tools = read_tools(tools_file) if tools_file else None
    with screen.progress("turns", None) as bar:
        key, packs = make(
            _told(texts(paths, tools), bar),
            sources=paths,
            annotators=names,
            adjudicator=adjudicator,
            per_stratum=per_stratum,
            seed=seed,
        )
    written = folders.create(folder, key, packs)
    annotate_screen.made(key)
    for path in written:
        screen.out(str(path))
    screen.say(f"Keep {folder / folders.KEY} to yourself: it says what the detector said of each text.")
    screen.say(f"next: truecall annotate add {shlex.quote(str(folder))} FILE…   (what the pages save)")
    return 0


def _told(found: Iterable[Found], bar: screen.Progress) -> Iterator[Found]:
    for each in found:
        bar.update(1)
        yield each


@annotate_command.command("add")
@click.argument("folder", type=_DIR, metavar="DIR")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
def add_command(folder: Path, files: tuple[Path, ...]) -> int:
    """Take in answers that came back, all files or none."""
    from truecall.annotate.folder import add, load
    from truecall.annotate.report import next_step

    for name, count in add(folder, files).items():
        screen.out(f"{name}: {count} texts answered")
    screen.say(f"next: {next_step(load(folder))}")
    return 0


@annotate_command.command("status")
@click.argument("folder", type=_DIR, metavar="DIR")
def status_command(folder: Path) -> int:
    """Say what has come back and what is missing."""
    from truecall.annotate.folder import load
    from truecall.annotate.report import next_step
    from truecall.cli import annotate_screen

    annotation = load(folder)
    annotate_screen.status(annotation)
    screen.say(f"next: {next_step(annotation)}")
    return 0


@annotate_command.command("adjudicate")
@click.argument("folder", type=_DIR, metavar="DIR")
def adjudicate_command(folder: Path) -> int:
    """Write the page of all disputed texts for the adjudicator, undisputed ones among them."""
    from truecall.annotate.disputes import adjudicate
    from truecall.annotate.folder import load, save_adjudication
    from truecall.annotate.report import next_step

    annotation = load(folder)
    found = adjudicate(annotation)
    if found is None:
        screen.out("No text is disputed: there is nothing to adjudicate.")
    else:
        made, pack = found
        screen.out(str(save_adjudication(folder, made, pack, annotation.key.adjudicator)))
        screen.say(f"{len(made.disputed)} disputed texts among {len(made.controls)} others")
    screen.say(f"next: {next_step(load(folder))}")
    return 0


@annotate_command.command("export")
@click.argument("folder", type=_DIR, metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="The numbers as JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Every text with all answers and its weight, as CSV.")
def export_command(folder: Path, as_json: bool, as_csv: bool) -> int:
    """Print agreement, kappa, precision and recall weighted back to the population, and calibrated counts.

    Exit code 2: answers are missing, so that not all of it can be told.
    """
    from truecall.annotate.folder import load
    from truecall.annotate.report import next_step, output, rows
    from truecall.cli import annotate_screen

    if as_json and as_csv:
        raise UsageError("--json or --csv: one of them")
    annotation = load(folder)
    found = output(annotation)
    if as_csv:
        annotate_screen.csv_rows(rows(annotation))
    elif as_json:
        import msgspec

        screen.emit_json({"schema_version": found.schema_version, **msgspec.to_builtins(found)})
    else:
        annotate_screen.show(found)
    if found.waiting or found.pending:
        screen.say(f"next: {next_step(annotation)}")
        return 2
    return 0
