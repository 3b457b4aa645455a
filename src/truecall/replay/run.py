"""A replay from logs to a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice

import msgspec

from truecall.engines import Health, Spec
from truecall.engines.worker import TEXT_SECONDS
from truecall.records import Json, Record
from truecall.replay import texts
from truecall.replay.cuts import Cutter
from truecall.replay.replaying import CHUNK, Engine, Idle, Replayed, opened
from truecall.replay.tally import Report, Tally, health_of
from truecall.replay.texts import Material


class Options(Record, frozen=True):
    """How a replay is done. ``every``: all turns, not the first of an episode alone."""

    streams: bool = True
    workers: int = 2
    text_seconds: float = TEXT_SECONDS
    every: bool = False
    tools: Json = None
    limit: int | None = None


def replay_logs(
    paths: Sequence[str],
    specs: Sequence[Spec],
    options: Options,
    cutter: Cutter,
    told: Callable[[int], None] = lambda _: None,
    kept: Callable[[str, Replayed], None] = lambda *_: None,
) -> Report:
    """Replays the logs' turns through all parsers of ``specs``.

    ``told`` gets the number of texts done; ``kept`` every single result with its engine.

    Raises:
        InputError: a path that names nothing, or a file of no known format.
        CannotTell: an engine's worker does not start.
    """
    skipped: Counter[str] = Counter()
    found = texts.read(paths, skipped, tools=options.tools, every=options.every)
    if options.limit is not None:
        found = islice(found, options.limit)
    report = replay(found, specs, options, cutter, told, kept)
    return msgspec.structs.replace(report, skipped=dict(skipped.most_common()))


def replay(
    materials: Iterable[Material],
    specs: Sequence[Spec],
    options: Options,
    cutter: Cutter,
    told: Callable[[int], None] = lambda _: None,
    kept: Callable[[str, Replayed], None] = lambda *_: None,
) -> Report:
    """As `replay_logs`, of texts at hand."""
    tally = Tally()
    with ExitStack() as stack:
        engines = opened(
            specs,
            stack,
            workers=options.workers,
            streams=options.streams,
            cutter=cutter,
            text_seconds=options.text_seconds,
        )
        for chunk in _chunks(materials):
            for one in chunk:
                tally.text(one.group, [call.tier for call in one.found.calls], one.raw)
            for engine in engines:
                for done in engine.replay(chunk):
                    tally.add(engine.label, done)
                    kept(engine.label, done)
            told(len(chunk))
        health = sum((engine.health for engine in engines), Health())
        idle = tuple(_named(engine, one) for engine in engines for one in engine.idle)
    splits = cutter.how if options.streams else "not streamed"
    return tally.report(idle=idle, splits=splits, health=health_of(health))


def _named(engine: Engine, idle: Idle) -> Idle:
    return Idle(parser=f"{engine.label}:{idle.parser}", reason=idle.reason)


def _chunks(materials: Iterable[Material]) -> Iterator[list[Material]]:
    rest = iter(materials)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk
