"""What verbs print with: data on stdout, talk on stderr, and only what the terminal can show.

rich is imported when a table or a progress bar is wanted, and msgspec when JSON is.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TextIO

if TYPE_CHECKING:
    from rich.console import Console


class Glyphs(NamedTuple):
    """The few signs beyond ASCII that screens use, each with a plain stand-in."""

    dot: str
    ellipsis: str
    arrow: str
    ok: str
    bad: str
    dash: str
    unicode: bool


RICH_GLYPHS = Glyphs(dot="·", ellipsis="…", arrow="→", ok="✓", bad="✗", dash="–", unicode=True)
PLAIN_GLYPHS = Glyphs(dot="-", ellipsis="...", arrow="->", ok="ok", bad="x", dash="-", unicode=False)

MIN_WIDTH, MAX_WIDTH, PIPE_WIDTH = 40, 140, 100


def out(text: str = "") -> None:
    """One line of data on stdout, at once."""
    print(text, flush=True)  # click.echo would turn an ASCII stdout into UTF-8


def say(text: str = "") -> None:
    """One line of talk on stderr, at once."""
    print(text, file=sys.stderr, flush=True)


def emit_json(value: Any) -> None:
    """A record or plain data as indented JSON on stdout; a lone surrogate of a model's is written escaped."""
    import msgspec

    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except UnicodeEncodeError:
        import json

        text = json.dumps(msgspec.to_builtins(value), indent=2)
    out(text)


def is_tty(stream: TextIO) -> bool:
    """True when a person watches the stream; a closed stream has no watcher."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def glyphs(stream: TextIO | None = None) -> Glyphs:
    """The glyphs that ``stream`` (stdout by default) can show.

    Plain ones when its encoding lacks them, when the terminal is dumb, or when the locale is C or POSIX.
    """
    stream = stream or sys.stdout
    if os.environ.get("TERM") == "dumb" or _locale_name() in ("C", "POSIX"):
        return PLAIN_GLYPHS
    try:
        "".join(RICH_GLYPHS[:-1]).encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN_GLYPHS
    return RICH_GLYPHS


def _locale_name() -> str:
    """The locale that decides about characters, by POSIX's order; "" when none is set."""
    names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return next((name for name in names if name), "")


def plain(text: str, stream: TextIO | None = None) -> str:
    """Our own text with its glyphs replaced where ``stream`` can't show them."""
    if glyphs(stream).unicode:
        return text
    for rich, ascii_form in zip(RICH_GLYPHS[:-1], PLAIN_GLYPHS[:-1], strict=True):
        text = text.replace(rich, ascii_form)
    return text


def width() -> int:
    """Columns to print in, from 40 to 140: COLUMNS, the terminal's, or 100 where there is none."""
    return max(MIN_WIDTH, min(MAX_WIDTH, shutil.get_terminal_size((PIPE_WIDTH, 24)).columns))


# C0 and C1 controls, bidirectional overrides, line separators, lone surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, limit: int | None = None) -> str:
    """Foreign text on one line: what could steer a terminal is escaped, and it is cut to ``limit`` columns.

    Model and server text goes through here before it is printed.
    """
    ellipsis = glyphs().ellipsis
    if limit is not None and len(text) > limit:
        text = text[: max(0, limit - len(ellipsis))] + ellipsis
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    short = _SHORT_ESCAPES.get(char)
    if short:
        return short
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"


def console(*, err: bool = False) -> Console:
    """A rich console on stdout or stderr; honours NO_COLOR, and shows no markup of foreign text."""
    from rich.console import Console

    return Console(
        stderr=err, width=width(), markup=False, highlight=False, emoji=False, safe_box=not glyphs().unicode
    )


class Progress(Protocol):
    """A context manager that a long job reports to; pypi-simple's ``ProgressTracker`` has this form."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, increment: int) -> None: ...


class _Silent:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, increment: int) -> None:
        pass


class _Bar:
    def __init__(self, label: str, total: int | None, as_bytes: bool) -> None:
        from rich import progress as bars

        self._bar = bars.Progress(
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(),
            bars.DownloadColumn() if as_bytes else bars.MofNCompleteColumn(),
            console=console(err=True),
            transient=True,
        )
        self._task = self._bar.add_task(label, total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, increment: int) -> None:
        self._bar.advance(self._task, increment)


def progress(label: str, total: int | None, *, as_bytes: bool = False) -> Progress:
    """A progress bar on stderr that leaves nothing behind; silent where nobody watches stderr."""
    if not is_tty(sys.stderr) or os.environ.get("TERM") == "dumb":
        return _Silent()
    return _Bar(label, total, as_bytes)
