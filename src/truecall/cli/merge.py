"""``truecall merge``: the shards of a scan as one result."""

from __future__ import annotations

from pathlib import Path

import click

from truecall.cli.scan import _FAIL, finish


@click.command("merge")
@click.argument("shards", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to save the result."
)
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="One line of numbers for each group, as CSV.")
@click.option(
    "--fail-on",
    type=click.Choice(_FAIL),
    default="lost",
    show_default=True,
    help="What exit code 1 stands for.",
)
def merge_command(
    shards: tuple[Path, ...], output: Path | None, as_json: bool, as_csv: bool, fail_on: str
) -> int:
    """Add up the results of `truecall scan --shard I/N`, made on any machines.

    FILE is a saved result. The numbers are those of one scan over everything.
    """
    from truecall.scan import saved as results

    merged = results.merge([(str(path), results.read(path)) for path in shards])
    target = output or results.new_path()
    results.write(target, merged)
    return finish(merged, target, as_json=as_json, as_csv=as_csv, fail_on=fail_on)
