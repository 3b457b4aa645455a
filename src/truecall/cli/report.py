"""``truecall report``: results as a page, as Markdown, as CSV, and as figures for a paper."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truecall.cli import screen
from truecall.errors import UsageError

if TYPE_CHECKING:
    from truecall.report.data import ReportData

_PAGE = Path("report.html")
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("report")
@click.argument("results", nargs=-1, required=True, metavar="RUN…")
@click.option("-o", "--output", "page", type=_FILE, metavar="FILE", help="The page [report.html].")
@click.option("--md", type=_FILE, metavar="FILE", help="The same as Markdown.")
@click.option("--csv", "table", type=_FILE, metavar="FILE", help="Every number, one a line.")
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Every figure as SVG and PDF, for a paper.",
)
@click.option(
    "--share", is_flag=True, help="Mask prompts, values, addresses and paths; keep markup and verdicts."
)
def report_command(
    results: tuple[str, ...],
    page: Path | None,
    md: Path | None,
    table: Path | None,
    figures: Path | None,
    share: bool,
) -> int:
    """Make one page of results: runs, recorded runs, preflights, scans, audits, replays, matrices.

    RUN is a run folder or its id (0007, preflight/0007), a scan's saved result, an audit.lock, or what audit, replay,
    matrix or preflight print with --json. Several stand on one page; runs, and preflights, are also held against each
    other. Page and figures need the extra: pip install 'truecall[report]'.
    """
    from truecall.report.reading import load

    if page is None and not (md or table or figures):
        page = _PAGE
    if page or figures:
        _need_charts()
    _check([path for path in (page, md, table) if path is not None], results)
    report = load(results, share=share, say=screen.say)
    written = _write(report, page, md, table, figures)
    for section in report.sections:
        state = f"{section.state.word}: " if section.state else ""
        screen.out(screen.visible(f"{state}{section.answer}"))
    screen.say(f"written: {', '.join(written)}")
    return 0


def _need_charts() -> None:
    """Raises UsageError where the libraries that draw are not installed."""
    from importlib.util import find_spec

    if find_spec("altair") is None or find_spec("vl_convert") is None:
        raise UsageError(
            "the page and its figures need two more packages: pip install 'truecall[report]' (--md and --csv do not)"
        )


def _check(targets: Sequence[Path], results: Sequence[str]) -> None:
    """Raises UsageError, before the work is done, where a file can't be written or should not."""
    taken = {Path(name).resolve() for name in results}
    for path in targets:
        if not path.parent.is_dir():
            raise UsageError(f"{path}: can't be written, there is no folder {path.parent}")
        if path.resolve() in taken:
            raise UsageError(f"{path}: is read or written already; name another file")
        taken.add(path.resolve())


def _write(
    report: ReportData, page: Path | None, md: Path | None, table: Path | None, figures: Path | None
) -> list[str]:
    """All is made before anything is written: a fault on the way leaves nothing behind."""
    drawn: dict[Path, bytes] = {}
    texts: dict[Path, str] = {}
    pictures: dict[int, str] = {}
    if figures is not None:
        from truecall.report.files import drawn_figures

        drawn, places = drawn_figures(report, figures)
        start = (md or Path()).parent
        pictures = {key: Path(os.path.relpath(path, start)).as_posix() for key, path in places.items()}
    if page is not None:
        from truecall.report.html import page as made

        texts[page] = made(report)
    if md is not None:
        from truecall.report.markdown import markdown

        texts[md] = markdown(report, pictures)
    if table is not None:
        from truecall.report.table import table as numbers

        texts[table] = numbers(report)
    written = [_saved(path, text.encode("utf-8", "backslashreplace")) for path, text in texts.items()]
    if figures is not None:
        for path, data in drawn.items():
            _saved(path, data, folder=True)
        told = (
            f"{figures} ({len(pictures)} figures, SVG and PDF)" if drawn else "no figure: there is none here"
        )
        written.append(told)
    return written


def _saved(path: Path, data: bytes, *, folder: bool = False) -> str:
    from truecall.report.words import size
    from truecall.store import private_dir, write_private

    try:
        if folder:
            private_dir(path.parent)
        write_private(path, data)
    except OSError as error:
        raise UsageError(f"{path}: can't be written ({error.strerror})") from None
    return f"{path} ({size(len(data))})"
