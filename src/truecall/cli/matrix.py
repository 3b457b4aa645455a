"""``truecall matrix``: dialect × parser, version against version, template × parser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from truecall.cli import screen
from truecall.errors import UsageError

if TYPE_CHECKING:
    from truecall.engines import Spec


@click.command("matrix")
@click.option("--parser", "parsers", multiple=True, required=True, metavar="ENGINE:NAME",
              help="As for `truecall replay`. Repeatable.")  # fmt: skip
@click.option("--texts", "texts_file", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help='More texts: JSON lines of {"text", "tools"}.')  # fmt: skip
@click.option("--against", metavar="ENGINE==VERSION", help="An older version of the engine: what changed?")
@click.option("--template", "templates", multiple=True, type=click.Path(exists=True, path_type=Path),
              metavar="FILE", help="A chat template (Jinja, tokenizer_config.json, GGUF): which dialect does it "
              "ask for, and which parser reads that? Repeatable.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="For each engine.")
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Every text and parser, one line each.")
@click.option("--fail-on", type=click.Choice(("findings", "never")), default="findings", show_default=True,
              help="What exit code 1 stands for.")  # fmt: skip
def matrix_command(
    parsers: tuple[str, ...],
    texts_file: Path | None,
    against: str | None,
    templates: tuple[Path, ...],
    workers: int,
    as_json: bool,
    as_csv: bool,
    fail_on: str,
) -> int:
    """Which texts does a parser take: every dialect, as it should be and as it often is not.

    Exit code 1: with --against a text is no longer taken; with --template no parser reads what a template asks for.
    """
    from truecall.engines import resolve

    specs = resolve(parsers)
    if templates:
        if against or texts_file or as_csv:
            raise UsageError("--template goes with neither --against, --texts nor --csv")
        found = _templates(templates, specs, workers, as_json)
    else:
        found = _matrix(specs, texts_file, against, workers, as_json, as_csv)
    return int(found and fail_on == "findings")


def _matrix(
    specs: list[Spec], texts_file: Path | None, against: str | None, workers: int, as_json: bool, as_csv: bool
) -> bool:
    from truecall.cli import matrix_screen
    from truecall.replay import matrix, samples

    texts = list(samples.samples())
    if texts_file:
        texts += samples.read(texts_file)
    older = _older(specs, against) if against else None
    with screen.progress("parsing", len(specs) + bool(older)) as bar:
        ran = []
        for spec in specs:
            ran.append(matrix.run(spec, texts, workers=workers))
            bar.update(1)
        before = matrix.run(older, texts, workers=workers) if older else None
    name = older.engine if older else ""
    now = next((one for one in ran if one.engine.startswith(f"{name}==")), None)
    changed = matrix.changes(now, before) if now and before else []
    if as_json:
        screen.emit_json(
            matrix.MatrixOutput(
                texts=len(texts),
                engines=tuple(ran),
                against=before.engine if before else None,
                changes=tuple(changed),
            )
        )
    elif as_csv:
        matrix_screen.show_csv(ran)
    else:
        matrix_screen.show(ran, texts)
        if before and now:
            matrix_screen.show_changes(now, before, changed)
    return any(change.regression for change in changed)


def _older(specs: list[Spec], against: str) -> Spec:
    """The same parsers of another version."""
    from truecall.engines import Spec, resolve

    name, _, version = against.partition("==")
    mine = next((spec for spec in specs if spec.engine == name), None)
    if not version or mine is None:
        raise UsageError(f"--against {against}: is no ENGINE==VERSION of an engine that --parser names")
    other = resolve([f"{against}:all"])[0]
    if other.launch == mine.launch:
        raise UsageError(f"--against {against}: is the version that --parser names")
    return Spec(engine=name, launch=other.launch, parsers=mine.parsers)


def _templates(paths: tuple[Path, ...], specs: list[Spec], workers: int, as_json: bool) -> bool:
    from truecall.cli import matrix_screen
    from truecall.replay import matrix
    from truecall.templates import load

    asked = matrix.asked(template for path in paths for template in load(path))
    meetings = [one for spec in specs for one in matrix.meet(asked, spec, workers=workers)]
    contrasts = matrix.interactions(meetings)
    if as_json:
        screen.emit_json(
            matrix.TemplatesOutput(
                templates=tuple(asked), meetings=tuple(meetings), interactions=tuple(contrasts)
            )
        )
    else:
        matrix_screen.show_templates(asked, meetings, contrasts)
    read = {one.template for one in meetings if one.taken}
    return any(one.template not in read for one in asked)
