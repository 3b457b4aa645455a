"""Texts through parsers, whole and streamed, and for every lost call the questions that find its layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice, zip_longest
from typing import Any, Final, NamedTuple

from truecall.engines import NOT_ASKED, Health, Hello, Job, Parse, Pool, Spec
from truecall.engines.worker import TEXT_SECONDS
from truecall.errors import UsageError
from truecall.records import Record, ToolCall
from truecall.replay.cuts import Cutter
from truecall.replay.layers import SIMPLE_TOOLS, Inquiry, Layer, Lost
from truecall.replay.matching import LOST, MANGLED, RETURNED, Match, match, readable
from truecall.replay.texts import Material

CHUNK: Final = 512  # texts that are in hand at a time
_ANSWERS: Final = 4096  # that are kept of questions which many calls share
_PLAIN: Final = "Hello."


class Fate(Record, frozen=True):
    """What became of one emitted call, whole and streamed. ``streamed`` None: it was not streamed."""

    whole: Lost
    streamed: Lost | None = None


class Replayed(NamedTuple):
    """One text through one parser. ``split``: whole and streamed gave different calls (None: not streamed)."""

    material: Material
    parser: str
    whole: Parse
    streamed: Parse | None
    calls: tuple[Fate, ...]
    phantom: int = 0
    split: bool | None = None

    @property
    def lost(self) -> bool:
        """Whether a well-formed call did not come out as it was written."""
        return any(
            fate.whole.away and call.well_formed
            for fate, call in zip(self.calls, self.material.found.calls, strict=True)
        )


class Idle(Record, frozen=True):
    """A parser that does not work at all here, and why."""

    parser: str
    reason: str


class Engine:
    """One engine's chosen parsers, ready for texts. Use as a context manager.

    Args:
        streams: whether texts are streamed too.

    Raises (on entry):
        CannotTell: its worker does not start.
        UsageError: it has no parser of the name asked for.
    """

    def __init__(
        self,
        spec: Spec,
        *,
        workers: int = 1,
        streams: bool = True,
        cutter: Cutter | None = None,
        text_seconds: float = TEXT_SECONDS,
    ) -> None:
        self.spec = spec
        self._streams = streams
        self._cutter = cutter or Cutter()
        self._pool = Pool(spec.launch, workers, text_seconds=text_seconds)
        self._answers: dict[tuple[str, str], Parse] = {}
        self.idle: list[Idle] = []
        self.parsers: tuple[str, ...] = ()

    def __enter__(self) -> Engine:
        try:
            self.hello = self._pool.hello()
            self._choose(self.hello)
        except BaseException:
            self._pool.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    @property
    def label(self) -> str:
        """``vllm==0.32.0``, or the user's own parser's name."""
        if self.hello.version in ("own", "served"):
            return self.spec.launch.engine
        return f"{self.hello.engine}=={self.hello.version}"

    @property
    def health(self) -> Health:
        """What became of its workers so far."""
        return self._pool.health

    @property
    def pids(self) -> list[int]:
        """Its worker processes."""
        return self._pool.pids

    def parse(self, jobs: Iterable[Job]) -> Iterator[Parse]:
        """The results of jobs, in order."""
        return self._pool.run(jobs)

    def replay(self, materials: Iterable[Material]) -> Iterator[Replayed]:
        """Every text through every parser; of a chunk of texts, parser by parser."""
        rest = iter(materials)
        while chunk := list(islice(rest, CHUNK)):
            cuts = [self._cutter.cuts(m.text) for m in chunk] if self._streams else []
            for parser in self.parsers:
                yield from self._chunk(parser, chunk, cuts)

    # ----------------------------------------------------------------------- one chunk, one parser

    def _chunk(
        self, parser: str, chunk: Sequence[Material], cuts: Sequence[tuple[int, ...]]
    ) -> Iterator[Replayed]:
        jobs = [Job(parser, m.text, m.tools) for m in chunk]
        jobs += [Job(parser, m.text, m.tools, c) for m, c in zip(chunk, cuts, strict=False)]
        results = list(self._pool.run(jobs))
        wholes: list[Parse] = results[: len(chunk)]
        streams: list[Parse | None] = [
            None if parse.state == "no_stream" else parse for parse in results[len(chunk) :]
        ] or [None] * len(chunk)
        matches = [match(m, whole) for m, whole in zip(chunk, wholes, strict=True)]
        layers = self._layers(parser, chunk, wholes, matches)
        for material, whole, streamed, met, found in zip(
            chunk, wholes, streams, matches, layers, strict=True
        ):
            yield _replayed(material, parser, whole, streamed, met, found)

    def _layers(
        self, parser: str, chunk: Sequence[Material], wholes: Sequence[Parse], matches: Sequence[Match]
    ) -> list[list[Lost]]:
        """For each text the layer of each of its calls; lost ones are asked about."""
        inquiries: list[tuple[int, int, Inquiry]] = []
        layers: list[list[Lost]] = []
        for at, (material, whole, met) in enumerate(zip(chunk, wholes, matches, strict=True)):
            found: list[Lost] = []
            for number, (call, state) in enumerate(zip(material.found.calls, met.calls, strict=True)):
                layer, reason = Layer.RETURNED, ""
                if state == MANGLED:
                    layer, reason = Layer.MANGLED, f"returned as {_shown(met.became[number])}"
                elif state == LOST and whole.state != "parsed":
                    layer, reason = _unparsed(whole)
                elif state == LOST:
                    inquiry = Inquiry(self.hello.engine, parser, material, call, met.gone[number])
                    inquiries.append((at, number, inquiry))
                found.append(Lost(layer=layer, start=call.span.start, end=call.span.end, reason=reason))
            layers.append(found)
        for (at, number, inquiry), answers in zip(inquiries, self._asked(inquiries), strict=True):
            layers[at][number] = inquiry.decide(answers)
        return layers

    def _asked(self, inquiries: Sequence[tuple[int, int, Inquiry]]) -> list[dict[str, Parse]]:
        """The answers to all questions; what was asked before in the same words is not asked again."""
        wanted = [inquiry.questions() for _, _, inquiry in inquiries]
        fresh: dict[Any, Job] = {}
        for questions in wanted:
            for job in questions.values():
                key = _key(job)
                if key not in self._answers:
                    fresh.setdefault(key, job)
        got = dict(zip(fresh, self._pool.run(fresh.values()), strict=True))
        known = {**self._answers, **got}
        out = [{name: known[_key(job)] for name, job in questions.items()} for questions in wanted]
        shared = {key: answer for key, answer in got.items() if fresh[key].tools is SIMPLE_TOOLS}
        if len(self._answers) + len(shared) <= _ANSWERS:
            self._answers.update(shared)
        return out

    def _choose(self, hello: Hello) -> None:
        """The parsers that were asked for and work: one that can't take a plain text is idle."""
        names = self.spec.parsers or hello.parsers
        unknown = [name for name in names if name not in hello.parsers]
        if unknown:
            raise UsageError(
                f"{self.label} has no parser {', '.join(unknown)}; it has {', '.join(hello.parsers)}"
            )
        tried = self._pool.run([Job(name, _PLAIN, SIMPLE_TOOLS) for name in names])
        works = []
        for name, parse in zip(names, tried, strict=True):
            if parse.state == "parsed":
                works.append(name)
            else:
                self.idle.append(Idle(parser=name, reason=f"{parse.state}: {parse.detail}"))
        self.parsers = tuple(works)


def _key(job: Job) -> Any:
    # Tool lists are told apart by identity: those of a chunk live while it is at hand.
    return (job.parser, job.text, id(job.tools) if job.tools is SIMPLE_TOOLS else repr(job.tools))


def _replayed(
    material: Material, parser: str, whole: Parse, streamed: Parse | None, met: Match, found: list[Lost]
) -> Replayed:
    if streamed is None:
        fates = tuple(Fate(whole=lost) for lost in found)
        return Replayed(material, parser, whole, None, fates, met.phantom)
    split = whole.state != streamed.state or readable(whole) != readable(streamed)
    second = match(material, streamed) if split else met
    fates = tuple(
        Fate(whole=lost, streamed=_in_stream(lost, state, became, streamed))
        for lost, state, became in zip_longest(found, second.calls, second.became)
    )
    return Replayed(material, parser, whole, streamed, fates, max(met.phantom, second.phantom), split)


def _in_stream(lost: Lost, state: str, became: ToolCall | None, streamed: Parse) -> Lost:
    """What became of a call while streaming, beside what became of it whole."""
    how = "nothing" if state == LOST else _shown(became)
    if state == RETURNED:
        layer, reason = Layer.RETURNED, ""
    elif streamed.state != "parsed":
        layer, reason = _unparsed(streamed)
    elif lost.layer is Layer.RETURNED or (lost.layer is Layer.MANGLED and state == LOST):
        layer, reason = Layer.STREAM_LOSS, f"streamed, it gave {how}"
    elif state == MANGLED:
        layer, reason = Layer.MANGLED, f"streamed, it gave {how}"
    else:
        return lost
    return Lost(layer=layer, start=lost.start, end=lost.end, reason=reason)


def _unparsed(parse: Parse) -> tuple[Layer, str]:
    """The layer of calls in a text of which the parser gave no result."""
    layer = Layer.UNASKED if parse.state in NOT_ASKED else Layer.FAILED
    return layer, f"{parse.state}: {parse.detail}"


def _shown(call: ToolCall | None) -> str:
    """A returned call in a few characters."""
    if call is None:
        return "another call"
    arguments = call.arguments if isinstance(call.arguments, str) else repr(call.arguments)
    return f"{(call.name or '')[:60]}({arguments[:80]})"


def opened(
    specs: Sequence[Spec],
    stack: ExitStack,
    *,
    workers: int,
    streams: bool,
    cutter: Cutter,
    text_seconds: float,
) -> list[Engine]:
    """All engines of ``specs``, started; ``stack`` ends them."""
    return [
        stack.enter_context(
            Engine(spec, workers=workers, streams=streams, cutter=cutter, text_seconds=text_seconds)
        )
        for spec in specs
    ]
