"""``truecall preflight``: what does this endpoint do with a tool call?"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecall.cli import EXIT_INTERRUPTED, screen
from truecall.cli.options import connection_options
from truecall.errors import CannotTell, UsageError

if TYPE_CHECKING:
    from truecall.config import Connection
    from truecall.preflight.probes import Probe
    from truecall.preflight.report import Report
    from truecall.preflight.request_file import OwnRequest
    from truecall.store import Asked

_FAIL_ON = {"broken": {"BROKEN"}, "degraded": {"BROKEN", "DEGRADED"}, "never": set[str]()}


@click.command("preflight")
@connection_options
@click.option("--local", "use_local", is_flag=True, help="Examine the embedded engine and its small model.")
@click.option(
    "--chat-template",
    metavar="FILE|hermes|own",
    help="With --local: the template that it is started with (default: the model's own).",
)
@click.option("--only", metavar="PROBE[,PROBE…]", default="", help="Send only these probes (see --plan).")
@click.option("--plan", "plan_only", is_flag=True, help="Print what would be sent, and send nothing.")
@click.option(
    "--request",
    "request_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Your failing request: a JSON body, a curl line or a HAR entry; repeated, judged and reduced.",
)
@click.option(
    "--beside",
    multiple=True,
    metavar="URL",
    help="Examine this endpoint too, and print both side by side with the part that differs; repeatable.",
)
@click.option("--again", metavar="ID", help="Repeat an earlier preflight and say what changed.")
@click.option("--baseline", metavar="FILE", help="Compare with a saved report (an id, a folder or JSON).")
@click.option(
    "--fail-on",
    type=click.Choice(list(_FAIL_ON)),
    default="broken",
    show_default=True,
    help="What ends with exit code 1.",
)
@click.option("--json", "as_json", is_flag=True, help="The whole report as JSON on stdout.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Also write JUnit XML.")
@click.option("--no-save", is_flag=True, help="Keep no copy of the report.")
def preflight_command(
    connection: Connection,
    use_local: bool,
    chat_template: str | None,
    only: str,
    plan_only: bool,
    request_file: Path | None,
    beside: tuple[str, ...],
    again: str | None,
    baseline: str | None,
    fail_on: str,
    as_json: bool,
    junit: Path | None,
    no_save: bool,
) -> int:
    """Find what a live endpoint does with tool calls, and which part loses them.

    Without --base-url the usual local ports are tried. The answer comes first, then a table, then each
    finding with its evidence and the change to make.
    """
    from truecall import preflight
    from truecall.cli.preflight_store import Earlier, embedded_in, saved
    from truecall.preflight.request_file import load

    _check_combinations(use_local, chat_template, again, baseline, beside, junit)
    earlier = Earlier.load(again, baseline)
    own = load(request_file) if request_file is not None else earlier.request if again else None
    names = tuple(name.strip() for name in only.split(",") if name.strip())
    names = names or (earlier.probes(own) if again else ())
    probes = preflight.plan(names, own)
    if plan_only:
        from truecall.cli.preflight_screen import show_plan

        show_plan(probes)
        return 0
    if again and not use_local:
        connection = earlier.connection(connection, named=_address_given())
    _say_needs(names, probes)
    chat_template = (chat_template or (earlier.template if again else None) or "own") if use_local else None
    with _sigterm_as_ctrl_c(), _endpoint(connection, chat_template) as target:
        report, asked, interrupted = asyncio.run(_run(target, names, own))
        report = embedded_in(report, chat_template)
        others = [] if interrupted else [asyncio.run(_run(connection.at(url), names, own)) for url in beside]
    if beside and not interrupted:
        return _side_by_side([report, *(r for r, *_ in others)], as_json, fail_on)
    report = earlier.compared(report)
    folder = None
    if not no_save:
        try:
            report, folder = saved(report, asked, own, connection)
        except OSError as error:  # what was found is not lost with the disk
            screen.say(
                f"not saved: {error.filename or 'the state folder'}: {error.strerror} (set TRUECALL_HOME)"
            )
    _write(report, as_json, junit, folder)
    return EXIT_INTERRUPTED if interrupted else _exit_code(report, fail_on)


def _check_combinations(
    use_local: bool,
    chat_template: str | None,
    again: str | None,
    baseline: str | None,
    beside: tuple[str, ...],
    junit: Path | None,
) -> None:
    """Options that contradict each other are told before anything is sent."""
    if again and baseline:
        raise UsageError("--again and --baseline both name what to compare with: give one")
    if use_local and _address_given():
        raise UsageError(
            "--local and --base-url name two endpoints: give one, or add the other with --beside"
        )
    if chat_template is not None and not use_local:
        raise UsageError("--chat-template: goes with --local; a server of yours keeps its own")
    if beside and (again or baseline or junit):
        raise UsageError("--beside: the table of several endpoints can't be compared or written as JUnit")


def _address_given() -> bool:
    """Whether --base-url itself was given, and not the environment's variable."""
    return click.get_current_context().params.get("base_url") is not None


def _say_needs(names: tuple[str, ...], probes: list[Probe]) -> None:
    """Which probes are sent beside those that were named, because these build on them."""
    added = [p.name for p in probes if names and p.name not in names]
    if added:
        screen.say(f"also sent, as {', '.join(names)} builds on it: {', '.join(added)}")


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """SIGTERM (a CI's time limit, systemd) ends a run as Ctrl-C does: the report so far, no engine left behind."""
    if threading.current_thread() is not threading.main_thread():  # only there can a signal be handled
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _endpoint(connection: Connection, template: str | None) -> Iterator[Connection]:
    """The endpoint to examine: the named one, the embedded engine with ``template``, or what a local port has."""
    if template is not None:
        from truecall.cli.local import download_bar
        from truecall.local import embedded

        screen.say("starting the embedded engine (llama.cpp, SmolLM2-135M-Instruct)…")
        with embedded(chat_template=template, progress=download_bar) as engine:
            yield connection.at(engine.base_url)
        return
    if connection.base_url is not None:
        yield connection
        return
    yield asyncio.run(_find(connection))


async def _find(connection: Connection) -> Connection:
    from truecall import probe

    found = await probe.find_local()
    if not found:
        ports = ", ".join(str(port) for port in probe.LOCAL_PORTS)
        raise CannotTell(
            f"no server answers on the usual local ports ({ports}): give --base-url, or try --local"
        )
    first = found[0]
    others = f" (also found: {', '.join(f.base_url for f in found[1:])})" if found[1:] else ""
    screen.say(f"no --base-url: taking {first.base_url}{others}")
    return connection.at(first.base_url)


async def _run(
    connection: Connection, only: tuple[str, ...], own: OwnRequest | None
) -> tuple[Report, list[Asked], bool]:
    """The report, what was asked, and whether the user ended the run: then they hold what there was until then."""
    from truecall import preflight, probe
    from truecall.cli.preflight_screen import spending
    from truecall.client import Client
    from truecall.redact import clean_url

    connection = await probe.settle(connection)
    screen.say(f"{spending(preflight.plan(only, own))}, to {clean_url(connection.api_base())}")
    steps = _Steps()
    async with Client(connection) as client:
        examination = preflight.Examination(
            client, model=connection.model, only=only, own=own, progress=steps.update
        )
        try:
            await examination.run()
        except asyncio.CancelledError:  # Ctrl-C: asyncio.run cancels its task
            if not examination.begun:
                raise
            screen.say("interrupted: this is what was found so far")
            return examination.report(interrupted=True), examination.asked, True
        finally:
            steps.end()
        return examination.report(), examination.asked, False


class _Steps:
    """The probe under way, as one line on a terminal's stderr; nothing elsewhere."""

    def __init__(self) -> None:
        import sys

        self._shown = screen.is_tty(sys.stderr)
        self._began = time.monotonic()

    def update(self, asks: str, place: int, number: int) -> None:
        if self._shown:
            seconds = time.monotonic() - self._began
            click.echo(f"\r\x1b[K[{place + 1}/{number}, {seconds:.0f} s] {asks}", nl=False, err=True)

    def end(self) -> None:
        """The line is taken away again."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)


# --------------------------------------------------------------------------- output


def _write(report: Report, as_json: bool, junit: Path | None, folder: Path | None) -> None:
    if junit is not None:
        from truecall.preflight.junit import junit as to_junit

        try:
            junit.write_bytes(to_junit(report))
        except OSError as error:
            raise UsageError(f"--junit {junit}: {error.strerror}") from None
    if as_json:
        screen.emit_json(_whole(report))
        return
    from truecall.cli.preflight_screen import show

    show(report, folder)


def _whole(report: Report) -> Any:
    """The report with its version always written (defaults are left out of records otherwise)."""
    import msgspec

    return {"schema_version": report.schema_version, **msgspec.to_builtins(report)}


def _side_by_side(reports: list[Report], as_json: bool, fail_on: str) -> int:
    """Several endpoints in one table; nothing is saved or compared with earlier ones."""
    from truecall.preflight.beside import Beside, table

    rows = table(reports)
    if as_json:
        import msgspec

        both = Beside(reports=tuple(reports), table=tuple(rows))
        whole = msgspec.to_builtins(both) | {"reports": [_whole(report) for report in reports]}
        screen.emit_json({"schema_version": both.schema_version, **whole})
    else:
        from truecall.cli.preflight_screen import show_beside

        show_beside(reports, rows)
    return max(_exit_code(report, fail_on) for report in reports)


def _exit_code(report: Report, fail_on: str) -> int:
    if report.state in _FAIL_ON[fail_on]:
        return 1
    return 2 if report.state == "CANNOT TELL" else 0
