"""``truecall dialects``: the call syntaxes that the detector knows."""

from __future__ import annotations

import click

from truecall.cli import screen


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
        screen.emit_json(
            {
                "schema_version": 1,
                "dialects": [
                    {
                        "name": d.name,
                        "aliases": d.aliases,
                        "source": d.source,
                        "openers": d.openers,
                        "example": d.example,
                    }
                    for d in chosen
                ],
            }
        )
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
