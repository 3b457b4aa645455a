"""``truecall record``: watch any harness through a proxy, and swap the interface under it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecall.cli import screen
from truecall.cli.files import read_tools
from truecall.errors import UsageError

if TYPE_CHECKING:
    from truecall.proxy.session import Outcome, Plan
    from truecall.stacks import StackInfo

_SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command("record", context_settings=_SETTINGS)
@click.option("--upstream", metavar="URL", help="The server to pass requests on to [OPENAI_BASE_URL].")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on. Default: a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on. Beyond loopback the "
              "URL holds a token.")  # fmt: skip
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="A further Host name that clients use."
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="The run folder. Default: a new one."
)
@click.option(
    "--evidence", is_flag=True, help="Ask the upstream for what the model wrote, and hide it again."
)
@click.option("--surface", is_flag=True, help="Deliver calls that the stack leaked or erased as tool_calls.")
@click.option(
    "--hide", is_flag=True, help="Turn tool_calls back into text, as a stack without a parser gives it."
)
@click.option("--tools", "tools_file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="The tools of a harness that puts them into the prompt (a JSON list).")  # fmt: skip
@click.option("--simulator", "simulators", multiple=True, metavar="MODEL",
              help="A model that plays the user; it never counts as the agent.")  # fmt: skip
@click.option(
    "--env", "env_names", multiple=True, metavar="NAME", help="A further variable for the base URL."
)
@click.option("--keep", type=click.Choice(["full", "shape", "none"]), default="full", show_default=True,
              help="What is kept of texts.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Stop passing requests on when they can't be recorded.")
@click.option("--fail-on", type=click.Choice(["never", "lost", "unknown"]), default="never", show_default=True,
              help="Without a command: exit 1 when calls were lost, or when that can't be told.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The summary as JSON on stdout, after all else.")
@click.option("--api-key-env", metavar="VAR", help="A variable whose key replaces the harness's own.")
@click.option(
    "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="A header for the upstream."
)
@click.option("--ca-bundle", metavar="FILE", help="Certificates to trust, in PEM form.")
@click.option("--insecure", is_flag=True, help="Do not check the upstream's certificate.")
@click.option("--key-over-http", is_flag=True, help="Let a key of yours travel over plain http.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def record_command(
    upstream: str | None,
    port: int,
    host: str,
    hosts: tuple[str, ...],
    out: Path | None,
    evidence: bool,
    surface: bool,
    hide: bool,
    tools_file: Path | None,
    simulators: tuple[str, ...],
    env_names: tuple[str, ...],
    keep: str,
    strict: bool,
    fail_on: str,
    as_json: bool,
    api_key_env: str | None,
    headers: tuple[str, ...],
    ca_bundle: str | None,
    insecure: bool,
    key_over_http: bool,
    command: tuple[str, ...],
) -> int:
    """Pass a harness's requests on to its server, and record and judge every exchange.

    With a COMMAND (after --) it runs with OPENAI_BASE_URL and the like set to the proxy, and its exit code is
    passed on. Without one the proxy runs until Ctrl-C.
    """
    from truecall.config import resolve
    from truecall.proxy.session import Plan
    from truecall.store import Place, new_place

    if surface and hide:
        raise UsageError("--surface and --hide are opposites: give one")
    connection = resolve(
        upstream,
        api_key_env=api_key_env,
        headers=headers,
        ca_bundle=ca_bundle,
        insecure=insecure,
        key_over_http=key_over_http,
    )
    if connection.base_url is None:
        raise UsageError("no upstream: give --upstream URL or set OPENAI_BASE_URL")
    folder = (out or new_place(Place.RECORD)).resolve()
    plan = Plan(
        upstream=connection,
        folder=str(folder),
        host=host,
        port=port,
        command=command,
        env_names=env_names,
        swap="surface" if surface else "hide" if hide else "none",
        evidence=evidence,
        tools=tuple(read_tools(tools_file)) if tools_file else None,
        simulators=simulators,
        hosts=hosts,
        keep=keep,
        strict=strict,
    )
    outcome = _run(plan)
    if as_json:
        import msgspec

        screen.emit_json(msgspec.to_builtins(outcome))
    else:
        _print_summary(outcome, to_stderr=bool(command))
    return _exit_code(outcome, fail_on)


def _run(plan: Plan) -> Outcome:
    import uvloop

    from truecall.proxy.session import Talk, record

    live = _Live(bool(plan.command))
    if plan.swap == "surface":
        screen.say(
            "warning: --surface turns text into action. A call that a document merely quotes can be run by your "
            "harness; use it with tools that may run by mistake."
        )
    if plan.swap != "none":
        screen.say(
            f"--{plan.swap} works on OpenAI chat and responses, Anthropic messages and Ollama chat. Other APIs pass "
            "unchanged (text completions have no place for a call); the summary counts them."
        )

    def ready(pointing: dict[str, str], info: StackInfo | None) -> None:
        stack = f" ({info.label})" if info is not None else ""
        screen.say(f"recording {pointing['OPENAI_BASE_URL']} -> {plan.upstream.base_url}{stack}")
        screen.say(f"kept in {plan.folder}")
        if not plan.command:
            screen.say("point your harness at it, e.g. export OPENAI_BASE_URL=" + pointing["OPENAI_BASE_URL"])
            screen.say("Ctrl-C ends the recording")

    talk = Talk(ready=ready, alert=live.alert, news=live.news)
    with live:
        return uvloop.run(record(plan, talk, os.environ))


class _Live:
    """The funnel on one line of stderr, where somebody watches and no command writes there, too."""

    def __init__(self, quiet: bool) -> None:
        self._shown = not quiet and screen.is_tty(sys.stderr) and os.environ.get("TERM") != "dumb"
        self._length = 0

    def __enter__(self) -> _Live:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def alert(self, text: str) -> None:
        self._clear()
        screen.say(f"truecall record: {text}")

    def news(self, tally: dict[str, Any]) -> None:
        if not self._shown:
            return
        from truecall.proxy.summary import live_line

        line = screen.plain(live_line(tally), sys.stderr)[: screen.width() - 1]
        sys.stderr.write("\r" + line.ljust(self._length))
        sys.stderr.flush()
        self._length = len(line)

    def _clear(self) -> None:
        if self._length:
            sys.stderr.write("\r" + " " * self._length + "\r")
            self._length = 0


def _print_summary(outcome: Outcome, *, to_stderr: bool) -> None:
    from truecall.proxy.summary import summary_lines

    stream = sys.stderr if to_stderr else sys.stdout
    write = screen.say if to_stderr else screen.out
    for line in summary_lines(outcome, _rate_lines(outcome)):
        write(screen.plain(screen.visible(line), stream))


def _rate_lines(outcome: Outcome) -> list[str]:
    """The rates with their intervals, over conversations."""
    numbers = outcome.numbers
    if numbers is None:
        return []
    from truecall.cli.run_screen import SHOWN, rates

    lines = [f"  {label:9} {rates(numbers[name], 'conversation')}" for label, name in SHOWN]
    averages = (rate for _, name in SHOWN for rate in (numbers[name].per_seed, numbers[name].pooled))
    methods = dict.fromkeys(rate.interval.method for rate in averages if rate.interval is not None)
    if methods:
        lines.append(f"  intervals: 95 %, {'; '.join(methods)} (an episode is a conversation)")
    return [*lines, *(f"  warning: {', '.join(each.numbers)}: {each.text}" for each in numbers.warnings)]


def _exit_code(outcome: Outcome, fail_on: str) -> int:
    """The command's code; 2 where it succeeded past the proxy; by ``--fail-on`` without a command."""
    if outcome.code is not None:
        return 2 if outcome.went_past and outcome.code == 0 else outcome.code
    steps = outcome.tally.get("steps") or {}
    if fail_on != "never" and steps.get("lost", 0):
        return 1
    if fail_on == "unknown" and steps.get("unknown", 0):
        return 1
    return 0
