"""Counts over replayed texts: for each archive, parser and way (whole or streamed)."""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal

import msgspec

from truecall.engines import Health
from truecall.records import CallTier, Json, Record
from truecall.replay.layers import Layer
from truecall.replay.replaying import Idle, Replayed

Way = Literal["whole", "streamed"]
_TIERS: Final = (CallTier.TIGHT, CallTier.STRONG, CallTier.WEAK)
_EXCERPT: Final = 200
_MOST_EXAMPLES: Final = 3  # of each parser and layer


class Emitted(Record, frozen=True, omit_defaults=False):
    """Texts with a call, by evidence: ``strong`` counts the tight ones too, ``weak`` all."""

    texts: int = 0
    tight: int = 0
    strong: int = 0
    weak: int = 0
    calls: int = 0


class Row(Record, frozen=True):
    """One parser on one archive, whole or streamed.

    ``parsed``: texts from which every emitted call came out as written; ``any``: at least one did. ``layers`` of all
    emitted calls: with ``returned`` they add up to ``emitted.calls``. ``lost``: texts in which a well-formed call did
    not come out; of all texts, the censored share. ``phantom``: texts from which a call came that nobody wrote.
    """

    group: str
    parser: str
    way: Way
    emitted: Emitted
    parsed: int
    any: int
    returned: int
    layers: dict[str, int]
    because: dict[str, int]
    lost: int
    phantom: int
    split: int | None
    states: dict[str, int]
    seconds: float


class Example(Record, frozen=True):
    """A lost call: where it stands, what was lost, and the span that decided."""

    group: str
    parser: str
    way: Way
    id: str
    layer: str
    reason: str
    start: int
    end: int
    text: str


class Report(Record, frozen=True, omit_defaults=False):
    """All of a replay. ``splits`` says how streams were cut."""

    rows: tuple[Row, ...]
    examples: tuple[Example, ...] = ()
    idle: tuple[Idle, ...] = ()
    splits: str = ""
    texts: int = 0
    raw: int = 0
    skipped: dict[str, int] = msgspec.field(default_factory=dict)
    health: dict[str, int] = msgspec.field(default_factory=dict)
    schema_version: int = 1


class Tally:
    """Adds up replayed texts."""

    def __init__(self) -> None:
        self._emitted: dict[str, Counter[str]] = {}
        self._counts: dict[tuple[str, str, Way], Counter[str]] = {}
        self._seconds: Counter[tuple[str, str, Way]] = Counter()
        self._examples: dict[tuple[str, str, str], list[Example]] = {}
        self._raw = 0

    def text(self, group: str, tiers: list[CallTier], raw: bool) -> None:
        """One text of an archive, once for all parsers."""
        counts = self._emitted.setdefault(group, Counter())
        counts["texts"] += 1
        counts["calls"] += len(tiers)
        self._raw += raw
        best = min((_TIERS.index(tier) for tier in tiers), default=len(_TIERS))
        for tier in _TIERS[best:]:
            counts[tier.value] += 1

    def add(self, label: str, done: Replayed) -> None:
        """One text through one parser of the engine ``label``."""
        parser = f"{label}:{done.parser}" if "==" in label else label
        self._way(parser, "whole", done)
        if done.streamed is not None:
            self._way(parser, "streamed", done)

    def report(self, **about: Json) -> Report:
        """The counts as rows."""
        rows = tuple(self._row(key, counts) for key, counts in self._counts.items())
        examples = tuple(one for some in self._examples.values() for one in some)
        texts = sum(counts["texts"] for counts in self._emitted.values())
        return Report(rows=rows, examples=examples, texts=texts, raw=self._raw, **about)

    def _way(self, parser: str, way: Way, done: Replayed) -> None:
        group = done.material.group
        key = (group, parser, way)
        counts = self._counts.setdefault(key, Counter())
        parse = done.whole if way == "whole" else done.streamed
        assert parse is not None
        self._seconds[key] += parse.seconds  # type: ignore[assignment]
        counts[f"state:{parse.state}"] += 1
        counts["phantom"] += bool(done.phantom)
        counts["split"] += bool(done.split)
        fates = [fate.whole if way == "whole" else (fate.streamed or fate.whole) for fate in done.calls]
        back = 0
        lost = False
        for fate, call in zip(fates, done.material.found.calls, strict=True):
            counts[f"layer:{fate.layer.value}"] += 1
            if fate.because:
                counts[f"because:{fate.because.value}"] += 1
            if fate.layer is Layer.RETURNED:
                back += 1
                continue
            lost = lost or (fate.away and call.well_formed)
            self._example(key, done, fate.layer.value, fate.reason, fate.start, fate.end)
        counts["any"] += back > 0
        counts["parsed"] += 0 < back == len(fates)
        counts["lost"] += lost

    def _example(
        self, key: tuple[str, str, Way], done: Replayed, layer: str, reason: str, start: int, end: int
    ) -> None:
        group, parser, way = key
        kept = self._examples.setdefault((group, f"{parser} {way}", layer), [])
        if len(kept) < _MOST_EXAMPLES:
            text = done.material.text[start : min(end, start + _EXCERPT)]
            kept.append(
                Example(
                    group=group,
                    parser=parser,
                    way=way,
                    id=done.material.id,
                    layer=layer,
                    reason=reason,
                    start=start,
                    end=end,
                    text=text,
                )
            )

    def _row(self, key: tuple[str, str, Way], counts: Counter[str]) -> Row:
        group, parser, way = key
        emitted = self._emitted.get(group, Counter())
        layers = _under(counts, "layer:")
        return Row(
            group=group,
            parser=parser,
            way=way,
            emitted=Emitted(**{f: emitted[f] for f in Emitted.__struct_fields__}),
            parsed=counts["parsed"],
            any=counts["any"],
            returned=layers.pop(Layer.RETURNED.value, 0),
            layers=layers,
            because=_under(counts, "because:"),
            lost=counts["lost"],
            phantom=counts["phantom"],
            split=counts["split"] if way == "streamed" else None,
            states=_under(counts, "state:"),
            seconds=round(float(self._seconds[key]), 6),
        )


def _under(counts: Counter[str], prefix: str) -> dict[str, int]:
    return {key.removeprefix(prefix): n for key, n in counts.most_common() if key.startswith(prefix)}


def health_of(health: Health) -> dict[str, int]:
    """A pool's health as data."""
    return health._asdict()
