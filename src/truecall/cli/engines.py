"""``truecall engines``: environments with the engines' own parsers, apart from truecall's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from truecall.cli import screen
from truecall.cli.screen import visible
from truecall.errors import UsageError

if TYPE_CHECKING:
    from truecall.engines import Engine
    from truecall.engines.registry import Listed

_NAMED = re.compile(r"([a-z][a-z0-9_-]*)(?:==([0-9][0-9A-Za-z.+-]*))?")


@click.group("engines")
def engines_command() -> None:
    """Add, list and remove the engines whose parsers `truecall replay` runs."""


@engines_command.command("add")
@click.argument("names", nargs=-1, required=True, metavar="ENGINE[==VERSION]...")
@click.option(
    "--python", metavar="PATH", help="An interpreter that has the engine already: nothing is installed."
)
def add_command(names: tuple[str, ...], python: str | None) -> int:
    """Make an environment for vllm, sglang or verl; the same command goes on where it was stopped."""
    from truecall.engines import installing, registry
    from truecall.engines.recipes import recipe_for

    wanted = [_named(name) for name in names]
    if python and len(wanted) != 1:
        raise UsageError("--python goes with one engine")
    for name, version in wanted:
        recipe = recipe_for(name)
        if python:
            engine = installing.add_existing(recipe, python, screen.say)
        else:
            screen.say(
                f"{recipe.engine}=={version or recipe.version}: about {recipe.megabytes:,} MB and "
                f"{recipe.seconds:,} s (measured once, for {recipe.version}); it goes into "
                f"{registry.home()}"
            )
            engine = installing.add(recipe, version or recipe.version, screen.say)
        size = f", {engine.megabytes:,.0f} MB" if engine.megabytes else ""
        screen.out(f"{engine.label}: {len(engine.parsers)} parsers{size}")
        screen.say(f"next: truecall replay SOURCE --parser {engine.name}:all")
    return 0


@engines_command.command("list")
@click.option("--check", is_flag=True, help="Start every parser, and say of each that does not work why.")
@click.option("--json", "as_json", is_flag=True, help="The list as JSON.")
def list_command(check: bool, as_json: bool) -> int:
    """The engines at hand. Exit code 1: with --check, an engine does not start."""
    from truecall.engines import engines, registry
    from truecall.engines.recipes import none_here

    rows = [_listed(engine, check and engine.ready) for engine in engines()]
    if as_json:
        screen.emit_json(registry.EnginesOutput(folder=str(registry.home()), engines=tuple(rows)))
    elif not rows:
        screen.out(none_here())
    for row in [] if as_json else rows:
        _show(row)
    return int(any(row.fault is not None for row in rows))


@engines_command.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="ENGINE[==VERSION]...")
def remove_command(names: tuple[str, ...]) -> int:
    """Remove environments; of an interpreter of yours only the note."""
    from truecall.engines import engines, registry

    for text in names:
        name, version = _named(text)
        fits = [e for e in engines() if e.name == name and e.folder and version in (None, e.version)]
        if not fits:
            raise UsageError(f"{text} is not here")
        if len(fits) > 1:
            raise UsageError(
                f"{text} is here in several versions: {', '.join(e.label for e in fits)}; name one"
            )
        registry.remove(fits[0])
        kept = "" if fits[0].own else f" ({fits[0].python} itself stays)"
        screen.out(f"removed {fits[0].label}{kept}")
    return 0


def _listed(engine: Engine, check: bool) -> Listed:
    """An engine's line; with ``check`` every parser of it gets a plain text."""
    from msgspec.structs import replace

    from truecall import replay
    from truecall.engines import Spec
    from truecall.engines.registry import Listed
    from truecall.errors import CannotTell

    row = Listed(
        engine=engine.label,
        ready=engine.ready,
        own=engine.own,
        parsers=len(engine.parsers) or None,
        megabytes=engine.megabytes,
        python=engine.python,
    )
    if not check:
        return row
    try:
        with replay.Engine(Spec(engine=engine.name, launch=engine.launch())) as opened:
            return replace(
                row,
                parsers=len(opened.parsers) + len(opened.idle),
                working=len(opened.parsers),
                network=opened.hello.network,
                version=opened.hello.version,
                idle={one.parser: one.reason for one in opened.idle},
            )
    except CannotTell as error:
        return replace(row, fault=str(error))


def _show(row: Listed) -> None:
    count = f"{row.parsers} parsers" if row.parsers else "parsers not counted yet"
    if not row.ready:
        count = f"not whole: `truecall engines add {row.engine}` goes on"
    size = f", {row.megabytes:,.0f} MB" if row.megabytes is not None else ""
    whose = "" if row.own else ", yours"
    screen.out(visible(f"{row.engine}: {count}{size}{whose}  {row.python}"))
    if row.working is not None:
        screen.out(f"    {row.working} work; network {row.network}")
    for name, reason in (row.idle or {}).items():
        screen.out(visible(f"    {name}: {reason}", 300))
    if row.fault is not None:
        screen.out(visible(f"    does not start: {row.fault}", 300))


def _named(text: str) -> tuple[str, str | None]:
    found = _NAMED.fullmatch(text.lower())
    if not found:
        raise UsageError(f"{text}: is no ENGINE or ENGINE==VERSION, such as vllm==0.32.0")
    return found[1], found[2]
