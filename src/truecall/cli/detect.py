"""``truecall detect``: the calls that a model wrote in a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truecall.cli import screen
from truecall.cli.files import read_bytes, read_tools
from truecall.cli.screen import visible

if TYPE_CHECKING:
    from truecall.records import Call, Detection


@click.command("detect")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE|-")
@click.option("--tools", "tools_file", type=click.Path(path_type=Path), metavar="FILE",
              help="The offered tools as a JSON list, or a request body that holds one.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The whole detection as JSON.")
def detect_command(file: Path, tools_file: Path | None, as_json: bool) -> int:
    """List the calls that a model wrote in a text, whatever its syntax.

    FILE holds the text as the model wrote it. Exit code 0, whether or not there is a call.
    """
    from truecall.detector import detect

    text = read_bytes(file).decode("utf-8-sig", errors="replace")
    tools = read_tools(tools_file) if tools_file else None
    found = detect(text, tools)
    if as_json:
        import msgspec

        screen.emit_json({"schema_version": 1, "emitted": found.emitted, **msgspec.to_builtins(found)})
    else:
        _show(text, found)
    return 0


def _show(text: str, found: Detection) -> None:
    if not found.calls:
        screen.out("No call in this text.")
    else:
        count = len(found.calls)
        screen.out("One call." if count == 1 else f"{count} calls.")
    line, at = 1, 0
    for index, call in enumerate(found.calls, 1):
        line, at = line + text.count("\n", at, call.span.start), call.span.start
        screen.out()
        _show_call(call, index, line)
    if found.notes:
        screen.out()
        screen.out("Notes: " + ", ".join(found.notes))


def _show_call(call: Call, index: int, line: int) -> None:
    name = visible(call.name) if call.name is not None else "(no name)"
    form = "well formed" if call.well_formed else "malformed"
    screen.out(f"{index}. {name}  {call.dialect}, {form}, {call.tier}, line {line}")
    reading = call.reading()
    if reading is not None:
        label = "arguments" if call.arguments is not None else "recovered"
        screen.out(f"   {label}: {visible(json.dumps(reading, ensure_ascii=False))}")
    else:
        screen.out("   arguments: can't be read")
    if call.offered is False:
        screen.out("   no offered tool has this name")
    if call.in_reasoning:
        screen.out("   written inside reasoning")
    if call.defects:
        screen.out("   defects: " + ", ".join(call.defects))
    for violation in call.violations or ():
        screen.out(f"   schema: {violation.kind} at {violation.path or '/'}: {visible(violation.detail)}")
