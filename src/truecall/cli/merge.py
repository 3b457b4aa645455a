"""``truecall merge``: the shards of a scan as one result."""

from __future__ import annotations

from pathlib import Path

import click

from truecall.cli.scan import finish, result_options


@click.command("merge")
@click.argument("shards", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@result_options
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
