"""JSON lines between truecall and an engine's own parsers. Runs in the engine's environment: standard library only.

In comes one order a line, out go lines on what was stdout when the worker began (anything that the engine prints
goes nowhere). The first line out is ``{"hello": 1, "engine", "version", "parsers", "network"}``, or
``{"failed": reason}``. Then come orders

    {"tools": {id: list}, "forget": [id], "items": [...], "each": bool, "cpu": bool}

with items ``[parser, text, tools id, cuts]``, and for each item one line, in order:

    [seconds, calls, content]          calls: [[name, arguments as the engine would send them], ...]
    [seconds, null, "Type: message"]   the parser raised: a result like any other
    [0, null, ""]                      this parser has no way of streaming
    [seconds, null, ["reason"]]        the parser never saw this text (`Unasked`)

``cuts`` null: the text is parsed whole; else it is streamed in the pieces between these places. ``seconds`` is the
parser's own time, on the wall or (``cpu``) of the processor. Lines leave a few milliseconds' worth at a time, with
``each`` one by one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import metadata
from typing import Any

Parsed = tuple[list[list[Any]], Any]
"""Calls as [name, arguments], and the text that is left."""

Whole = Callable[[str, str, list[Any]], Parsed]
Streamed = Callable[[str, Sequence[str], list[Any]], Parsed]

_HOLD = 0.004  # seconds that an answer may wait for others
_HOLD_BYTES = 1 << 16
_BLOCKED = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.sendmsg", "socket.gethostbyname")


class Unasked(Exception):
    """The parser could not be made to read this text: nothing is known of it."""


def _own_channel() -> int:
    """The way out, kept from the engine: file descriptor 1 and ``sys.stdout`` lead nowhere from here on."""
    channel = os.dup(1)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)
    return channel


def cut_network() -> str:
    """``cut`` where the kernel took the network away, else ``refused``: Python's sockets are."""

    def refuse(event: str, _: Any) -> None:
        if event in _BLOCKED:
            raise PermissionError("an engine's parser may not use the network")

    how = "refused"
    with suppress(Exception):
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        new_net, new_user = 0x40000000, 0x10000000
        # A user namespace makes it possible without rights; root can do without one.
        if libc.unshare(new_net) == 0 or libc.unshare(new_net | new_user) == 0:
            how = "cut"
    sys.addaudithook(refuse)
    return how


def version_of(packages: Iterable[str]) -> str:
    """The version of the first of these packages that is installed."""
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(package)
    return "unknown"


class Joined:
    """Collects what comes while streaming, as a client that assembles deltas would."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self._calls: dict[Any, list[str]] = {}

    def call(self, index: Any, name: str | None, arguments: str | None) -> None:
        """A piece of the call at ``index``."""
        held = self._calls.setdefault(index, ["", ""])
        held[0] += name or ""
        held[1] += arguments or ""

    def parsed(self) -> Parsed:
        """The calls in the order of their indices, and the text."""
        return [list(self._calls[index]) for index in sorted(self._calls)], "".join(self.text)


def _pieces(text: str, cuts: list[int]) -> list[str]:
    ends = [*cuts, len(text)]
    return [text[start:end] for start, end in zip([0, *cuts], ends, strict=True) if end > start]


# ASCII keeps lone surrogates, which a model's text may hold, in one piece.
_encode = json.JSONEncoder(separators=(",", ":"), default=repr).encode


class _Server:
    def __init__(self, out: int, whole: Whole, streamed: Streamed | None) -> None:
        self._out = out
        self._whole, self._streamed = whole, streamed
        self._tools: dict[str, list[Any]] = {}
        self._clock = time.perf_counter

    def say(self, lines: Sequence[str]) -> None:
        data = memoryview("".join(lines).encode())
        while data:
            data = data[os.write(self._out, data) :]

    def order(self, order: dict[str, Any]) -> None:
        for name in order.get("forget", ()):
            self._tools.pop(name, None)
        self._tools.update(order.get("tools", {}))
        each = order.get("each", False)
        self._clock = time.process_time if order.get("cpu") else time.perf_counter
        held: list[str] = []
        size, since = 0, time.perf_counter()
        for parser, text, tools, cuts in order["items"]:
            line = _encode(self._item(parser, text, self._tools[tools], cuts)) + "\n"
            held.append(line)
            size += len(line)
            if each or size > _HOLD_BYTES or time.perf_counter() - since > _HOLD:
                self.say(held)
                held = []
                size, since = 0, time.perf_counter()
        self.say(held)

    def _item(self, parser: str, text: str, tools: list[Any], cuts: list[int] | None) -> list[Any]:
        if cuts is not None and self._streamed is None:
            return [0, None, ""]
        started = self._clock()
        try:
            if cuts is None or self._streamed is None:
                calls, content = self._whole(parser, text, tools)
            else:
                calls, content = self._streamed(parser, _pieces(text, cuts), tools)
        except Unasked as error:
            return [self._clock() - started, None, [str(error)]]
        except Exception as error:
            said = f"{type(error).__name__}: {error}".split("\n")[0][:300]
            return [self._clock() - started, None, said or type(error).__name__]
        return [self._clock() - started, calls, content]


def serve(
    engine: str,
    load: Callable[[], tuple[str, list[str], Whole, Streamed | None]],
    *,
    network: bool = False,
) -> None:
    """Answer orders until stdin ends. ``load`` imports the engine: its version, its parsers, and how to ask them.

    ``network``: it is let through, for a worker that asks a server.
    """
    out = _own_channel()
    how = "open" if network else cut_network()
    try:
        version, parsers, whole, streamed = load()
    except BaseException as error:
        failed = _encode({"failed": f"{type(error).__name__}: {error}".split("\n")[0][:300]})
        _Server(out, lambda *_: ([], None), None).say([failed, "\n"])
        return
    server = _Server(out, whole, streamed)
    hello = {"hello": 1, "engine": engine, "version": version, "parsers": parsers, "network": how}
    server.say([_encode(hello), "\n"])
    for line in sys.stdin.buffer:
        server.order(json.loads(line))
