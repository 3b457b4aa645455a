"""What the detector is timed against. Each peer reads a whole corpus once and tells the CPU seconds it took.

CPU time, not time on the wall: all readers are single-threaded and do no I/O, and a busy machine's other work
is not theirs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ahocorasick_rs import AhoCorasick

from corpora import Corpus
from truecall import detect

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts" / "engine_workers"))

from client import Engine

Json = Any
MARKS = (
    "<tool_call>",
    "<function",
    "<|",
    "<｜",
    "[TOOL",
    "```",
    "{",
    "Action:",
    "<think>",
    "functools",
    ">>>",
)


class Peer(Protocol):
    """A reader under its name in the table."""

    name: str

    def read(self, corpus: Corpus) -> tuple[float, int]:
        """CPU seconds for one pass over ``corpus``, and the calls found in it."""


class Inside:
    """A peer in this process: ``read_one`` takes a text and its tools and gives the number of calls."""

    def __init__(self, name: str, read_one: Callable[[str, Json], int]) -> None:
        self.name = name
        self._read_one = read_one

    def read(self, corpus: Corpus) -> tuple[float, int]:
        read_one, pairs, count = self._read_one, list(zip(corpus.texts, corpus.tools, strict=True)), 0
        started = time.process_time()
        for text, tools in pairs:
            count += read_one(text, tools)
        return time.process_time() - started, count


class Outside:
    """An engine's parser in its own environment, timed there; one order for each tool list of a corpus."""

    def __init__(self, engine: str, python: str, parser: str) -> None:
        self.name = f"{engine} {parser}"
        self._parser = parser
        self._engine = Engine(engine, python)

    def read(self, corpus: Corpus) -> tuple[float, int]:
        groups: dict[int, tuple[Json, list[str]]] = {}
        for text, tools in zip(corpus.texts, corpus.tools, strict=True):
            groups.setdefault(id(tools), (tools, []))[1].append(text)
        seconds, count = 0.0, 0
        for tools, texts in groups.values():
            answer = self._engine.ask(do="time", parser=self._parser, texts=texts, tools=tools or [])
            if "error" in answer:
                raise RuntimeError(f"{self.name}: {answer['error']}")
            seconds += answer["seconds"]
            count += answer["calls"]
        return seconds, count

    def close(self) -> None:
        """End the worker."""
        self._engine.close()


def _floor(text: str, _tools: Json) -> int:
    """The least that a reader of one dialect can do: find the tag, decode what stands in it."""
    count, at = 0, text.find("<tool_call>")
    while at >= 0:
        end = text.find("</tool_call>", at)
        if end < 0:
            break
        try:
            json.loads(text[at + 11 : end])
            count += 1
        except ValueError:  # another dialect's body under the same tag
            pass
        at = text.find("<tool_call>", end)
    return count


def rust_reader() -> Callable[[str], list[Any]] | None:
    """agent-tool-parser's reader of all calls, from its Rust extension; None where it is not installed."""
    try:
        import agent_tool_parser  # type: ignore[import-not-found]
    except ImportError:
        return None
    if not agent_tool_parser.ACCELERATED:
        raise SystemExit("agent-tool-parser came without its Rust extension: nothing to compare with")
    every: Callable[[str], list[Any]] = agent_tool_parser.try_parse_tool_calls
    return every


def without_panics(corpus: Corpus) -> tuple[Corpus, int]:
    """The texts that agent-tool-parser can read at all, and the number of the others.

    Its extension panics where a cut falls inside a character, which ends a pass over the corpus.
    """
    every = rust_reader()
    if every is None:
        return corpus, 0
    kept = []
    for text, tools in zip(corpus.texts, corpus.tools, strict=True):
        try:
            every(text)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic is no Exception
            continue
        kept.append((text, tools))
    texts, lists = [text for text, _ in kept], [tools for _, tools in kept]
    return Corpus(corpus.name, texts, lists), len(corpus.texts) - len(kept)


def inside() -> list[Inside]:
    """The peers that run in this process; agent-tool-parser where it is installed."""
    scan = AhoCorasick(MARKS)
    peers = [Inside("truecall", lambda text, tools: len(detect(text, tools).calls))]
    every = rust_reader()
    if every is not None:
        peers.append(Inside("agent-tool-parser", lambda text, _tools: len(every(text))))
        peers.append(
            Inside(
                "agent-tool-parser, arguments read", lambda text, _tools: len([c.args for c in every(text)])
            )
        )
    peers.append(Inside("floor: find, json.loads", _floor))
    peers.append(
        Inside("floor: aho-corasick", lambda text, _tools: bool(scan.find_matches_as_indexes(text)) * 0)
    )
    return peers
