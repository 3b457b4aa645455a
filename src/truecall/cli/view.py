"""``truecall view``: look through the turns of runs in a browser."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import click

from truecall.cli import screen

if TYPE_CHECKING:
    from truecall.view import Shelf


@click.command("view")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1. Default: a free one."
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser; print the address only.")
def view_command(runs: tuple[str, ...], port: int, no_browser: bool) -> None:
    """Look through the turns of each RUN (an id such as run/0007, or a folder) on a local page.

    Runs of run, record and preflight. The page is served on this machine alone until Ctrl-C; its address holds a
    token that lets its reader in.
    """
    from truecall.view import Shelf

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends like Ctrl-C, tidily
    began = time.monotonic()
    with screen.progress("reading", None, as_bytes=True) as bar:
        shelf = Shelf(runs, bar.update)
    with shelf:
        turns = sum(run.index.count() for run in shelf.runs.values())
        screen.say(f"{turns:,} turn{'s' * (turns != 1)} in {time.monotonic() - began:.1f} s")
        try:
            asyncio.run(_serve(shelf, port, browser=not no_browser))
        except KeyboardInterrupt:  # asked to stop: the normal end
            return


async def _serve(shelf: Shelf, port: int, *, browser: bool) -> None:
    from truecall.view import serving

    async with serving(shelf, port) as door:
        screen.out(door.address())
        screen.say("only this machine can open it; Ctrl-C stops it")
        if browser and not await asyncio.to_thread(_opened, door.ticket()):
            screen.say("no browser was found: open the address yourself")
        await asyncio.Event().wait()


def _opened(address: str) -> bool:
    """Whether a browser with a window took the address; one in this terminal would take the terminal."""
    import webbrowser

    if sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        return False
    return webbrowser.open(address)
