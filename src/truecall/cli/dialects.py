"""``truecall dialects``: the call syntaxes that the detector knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from truecall.cli import screen
from truecall.records import Record

if TYPE_CHECKING:
    from truecall.dialects.base import Dialect


class Described(Record, frozen=True, omit_defaults=False):
    """A call syntax. ``source``: who writes it; ``openers``: the markers that can start it."""

    name: str
    aliases: tuple[str, ...]
    source: str
    openers: tuple[str, ...]
    example: str


class DialectsOutput(Record, frozen=True, omit_defaults=False):
    """``truecall dialects --json``."""

    dialects: tuple[Described, ...]
    schema_version: int = 1


@click.command("dialects")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON, one object per dialect.")
def dialects_command(name: str | None, as_json: bool) -> int:
    """List the call syntaxes that are known, or show NAME (an alias will do) with an example."""
    from truecall.dialects.registry import DIALECTS, by_name
    from truecall.errors import UsageError

    chosen = list({dialect.name: dialect for dialect in reversed(DIALECTS)}.values())[::-1]
    if name is not None:
        found = by_name().get(name)
        if found is None:
            raise UsageError(f"no dialect {name!r}; `truecall dialects` lists all of them")
        chosen = [found]
    if as_json:
        screen.emit_json(DialectsOutput(dialects=tuple(map(_described, chosen))))
        return 0
    if name is not None:
        (dialect,) = chosen
        screen.out(f"{dialect.name}  {dialect.source}")
        if dialect.aliases:
            screen.out(f"also called {', '.join(dialect.aliases)}")
        screen.out()
        screen.out(dialect.example)
        return 0
    screen.out(f"{len(chosen)} dialects are known.")
    width = max(len(d.name) for d in chosen)
    for dialect in chosen:
        screen.out(f"  {dialect.name:<{width}}  {dialect.source}")
    screen.say("`truecall dialects NAME` shows an example.")
    return 0


def _described(dialect: Dialect) -> Described:
    return Described(**{field: getattr(dialect, field) for field in Described.__struct_fields__})
