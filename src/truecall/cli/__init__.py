"""The command ``truecall``: a table of verbs, each imported only when it is chosen.

A verb is a click command in a module of its own. Its callback returns the exit code (None is 0), or
ends with ``ctx.exit``. Exit codes of every verb: 0 nothing found, 1 findings, 2 could not or cannot tell.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NamedTuple, TextIO

import click

from truecall import __version__
from truecall.errors import TruecallError

EXIT_CANNOT = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


class Verb(NamedTuple):
    """Where a verb's click command lives ("module:attribute"), and its line in ``--help``."""

    target: str
    summary: str


VERBS: dict[str, Verb] = {
    "preflight": Verb(
        "truecall.cli.preflight:preflight_command",
        "Find what a live endpoint does with tool calls.",
    ),
    "run": Verb("truecall.cli.run:run_command", "Run a study: tasks, conditions and seeds on endpoints."),
    "compare": Verb("truecall.cli.compare:compare_command", "Compare arms of runs, paired on items."),
    "card": Verb("truecall.cli.card:card_command", "Print a run's reporting checklist, filled in."),
    "judge": Verb("truecall.cli.judge:judge_command", "Judge a saved response, HAR entry or stream."),
    "scan": Verb("truecall.cli.scan:scan_command", "Count emitted and lost calls in other people's logs."),
    "merge": Verb("truecall.cli.merge:merge_command", "Add up the shards of a scan."),
    "detect": Verb("truecall.cli.detect:detect_command", "List the calls that a model wrote in a text."),
    "dialects": Verb("truecall.cli.dialects:dialects_command", "List the call syntaxes that are known."),
    "audit": Verb("truecall.cli.audit:audit_command", "Recount published results from their files."),
    "annotate": Verb(
        "truecall.cli.annotate:annotate_command",
        "Let people validate the detector, blind.",
    ),
    "replay": Verb(
        "truecall.cli.replay:replay_command",
        "Put archived turns through the engines' own parsers.",
    ),
    "matrix": Verb(
        "truecall.cli.matrix:matrix_command",
        "Which dialects, and which templates, does each parser take?",
    ),
    "engines": Verb("truecall.cli.engines:engines_command", "Add, list and remove the engines' parsers."),
    "record": Verb("truecall.cli.record:record_command", "Watch any harness; swap the interface under it."),
    "report": Verb("truecall.cli.report:report_command", "Make one page of results, to read or to share."),
    "view": Verb("truecall.cli.view:view_command", "Look through the turns of runs in a browser."),
    "local": Verb("truecall.cli.local:local_command", "Run the embedded engine with its small model."),
}


class _ReaderGone(Exception):
    """A broken pipe on its way through click, which would make it exit 1: here that means "findings"."""


class VerbGroup(click.Group):
    """A group that lists its verbs from the table and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        module, _, attribute = verb.target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as exc:
            raise _ReaderGone from exc

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.summary) for name, verb in VERBS.items()])


@click.group(
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    subcommand_metavar="VERB [ARGS]...",
    epilog="Exit codes: 0 nothing found, 1 findings, 2 could not or cannot tell.",
)
@click.version_option(__version__, prog_name="truecall", message="%(prog)s %(version)s")
def cli() -> None:
    """Say which of model, serving stack and harness lost a tool call."""


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit; never returns. ``argv`` is ``sys.argv[1:]`` by default."""
    _make_streams_safe()
    sys.exit(execute(argv))


def execute(argv: list[str] | None = None) -> int:
    """Run one verb and return its exit code. Every way in which it can end is told in one line."""
    try:
        result: Any = cli.main(args=argv, prog_name="truecall", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()  # a closed pipe shows here, not in the interpreter's last breath
    except (BrokenPipeError, _ReaderGone):
        _discard(sys.stdout)
        return EXIT_BROKEN_PIPE
    except (KeyboardInterrupt, click.exceptions.Abort):  # which of them depends on click's version
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except click.ClickException as exc:
        exc.show()
        return EXIT_CANNOT
    except TruecallError as exc:
        from truecall.cli.screen import visible

        click.echo(f"truecall: {visible(str(exc))}", err=True)
        return EXIT_CANNOT
    except OSError as exc:
        if os.environ.get("TRUECALL_DEBUG"):
            raise
        where = f"{exc.filename}: " if exc.filename else "writing: "
        click.echo(f"truecall: {where}{exc.strerror or exc}", err=True)
        _discard(sys.stdout)
        return EXIT_CANNOT
    except Exception as exc:  # a fault of ours: it must not look like "findings" (exit 1)
        if os.environ.get("TRUECALL_DEBUG"):
            raise
        text = " ".join(str(exc).split())
        click.echo(
            f"truecall: internal error: {type(exc).__name__}: {text} (TRUECALL_DEBUG=1 shows where)", err=True
        )
        return EXIT_CANNOT
    return result if isinstance(result, int) else 0


def _make_streams_safe() -> None:
    """A model's text may hold lone surrogates, or what the terminal can't encode: show it escaped."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _discard(stream: TextIO | None) -> None:
    """Point a stream that can't be written any more at nothing, so that the exit stays quiet."""
    if stream is None:
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)
