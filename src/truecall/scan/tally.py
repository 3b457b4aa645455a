"""What a scan counts: outcomes by group. Tallies of workers, shards and machines add up to the same numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from truecall.records import Delivery, Emission, Record, Verdict
from truecall.scan.kernel import Kernel
from truecall.scan.outcome import Outcome
from truecall.sources import Bad, Item, Place, Turn

MAX_GROUPS: Final = 20_000
"""Groups that are kept apart; what comes after them is counted as ``(other)``."""

KEPT: Final = 5
"""Examples kept of each kind."""

MAX_BAD: Final = 50
"""Bad entries that are named; all are counted."""

_EXCERPT: Final = 800
OTHER: Final = "(other)"
UNKNOWN: Final = "(unknown)"

Group = tuple[str, ...]

_SHOWN: Final = {
    **{kind.value: rank for rank, kind in enumerate((
        *(Delivery.ERASED, Delivery.MANGLED, Delivery.LEAKED, Delivery.PHANTOM, Delivery.CUT_OFF),
        *(Delivery.SERVER_ERROR, Delivery.REJECTED, Delivery.TIMEOUT, Delivery.UNREACHABLE, Delivery.UNKNOWN),
    ))},
}  # fmt: skip
"""Deliveries of which examples are kept, the worst first."""


class Example(Record, frozen=True):
    """A turn to look at. ``text`` is an excerpt of what the model wrote, around the call where there is one."""

    place: Place
    emission: str
    delivery: str
    cause: str
    rule: str
    tier: str
    text: str
    model: str | None = None
    name: str | None = None
    surfaced: int | None = None
    detail: str = ""


class Tally:
    """Counts of one piece of work; ``add`` takes items, ``merge`` another tally."""

    def __init__(self, by: tuple[str, ...] = ()) -> None:
        self.by = by
        self.groups: dict[Group, Counter[Outcome]] = {}
        self.episodes: dict[Group, Counter[tuple[int, int, int]]] = {}
        self.examples: dict[str, list[tuple[tuple[Any, ...], Example]]] = {}
        self.bad: list[Bad] = []
        self.bad_files: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.skipped: list[str] = []
        self.longest = (0, 0)  # characters of the longest text, and how many texts are as long
        self.bytes = 0

    # ------------------------------------------------------------------- counting

    def add(self, items: Iterable[Item], kernel: Kernel, entries: list[bytes] | None = None) -> None:
        """Counts turns and bad entries. ``entries``: gets a JSON line for every turn."""
        episode: Place | None = None
        name: str | None = None
        open_groups: dict[Group, list[int]] = {}
        for item in items:
            if isinstance(item, Bad):
                self.add_bad(item)
                continue
            group = self._group(item)
            outcome = self.judged(item, kernel, group)
            self.files[item.place.file] += 1
            if item.place is not episode and (item.place != episode or item.episode != name):
                self._close(open_groups)
                episode, name = item.place, item.episode
            if outcome.produced:
                one = open_groups.setdefault(group, [0, 0, 0])
                one[0] += outcome.valid is True
                one[1] += 1
                one[2] += outcome.valid is None
            if entries is not None:
                entries.append(_entry(item, outcome))
        self._close(open_groups)

    def judged(self, turn: Turn, kernel: Kernel, group: Group) -> Outcome:
        """Counts one turn in a group, and keeps it as an example where it is one."""
        outcome, verdict = kernel.outcome(turn)
        self.count(group, outcome, 1)
        self.note_length(len(turn.text or ""), 1)
        if verdict is not None and outcome.delivery in _SHOWN:
            self._example(turn, outcome, verdict)
        return outcome

    def count(self, group: Group, outcome: Outcome, n: int) -> None:
        """Adds ``n`` turns of one outcome."""
        counts = self.groups.get(group)
        if counts is None:
            _, counts = self._new_group(group)
        counts[outcome] += n

    def episode(self, group: Group, valid: int, produced: int, unknown: int, n: int = 1) -> None:
        """Adds ``n`` episodes with so many produced turns in a group."""
        counts = self.episodes.get(group)
        if counts is None:
            counts = self.episodes[group] = Counter()
        counts[valid, produced, unknown] += n

    def note_length(self, size: int, n: int) -> None:
        """Takes note of ``n`` texts of ``size`` characters."""
        if n and size >= self.longest[0]:
            self.longest = _longer(self.longest, (size, n))

    def add_bad(self, bad: Bad) -> None:
        """Counts something that could not be read."""
        self.bad_files[bad.place.file] += 1
        if len(self.bad) < MAX_BAD:
            self.bad.append(bad)

    def _group(self, turn: Turn) -> Group:
        return tuple(_value(turn, field) for field in self.by)

    def _new_group(self, group: Group) -> tuple[Group, Counter[Outcome]]:
        if len(self.groups) >= MAX_GROUPS:
            group = (OTHER,) * len(self.by)
        return group, self.groups.setdefault(group, Counter())

    def _close(self, open_groups: dict[Group, list[int]]) -> None:
        for group, (valid, produced, unknown) in open_groups.items():
            self.episode(group, valid, produced, unknown)
        open_groups.clear()

    def _example(self, turn: Turn, outcome: Outcome, verdict: Verdict) -> None:
        kept = self.examples.setdefault(outcome.delivery, [])
        tight = 0 if outcome.tier == "tight" else 1 if outcome.tier == "strong" else 2
        rank = (tight, turn.place.file, turn.place.offset or 0, turn.place.entry, turn.position or 0)
        if len(kept) >= KEPT and rank >= kept[-1][0]:
            return
        kept.append((rank, _example(turn, outcome, verdict)))
        kept.sort(key=lambda pair: pair[0])
        del kept[KEPT:]

    # ------------------------------------------------------------------- adding up

    def merge(self, other: Tally) -> None:
        """Adds another tally's counts; the order of merging does not change the numbers."""
        for group, counts in other.groups.items():
            mine = self.groups.get(group)
            if mine is None:
                _, mine = self._new_group(group)
            mine.update(counts)
        for group, episodes in other.episodes.items():
            key = group if group in self.groups else (OTHER,) * len(self.by)
            self.episodes.setdefault(key, Counter()).update(episodes)
        for kind, kept in other.examples.items():
            both = sorted([*self.examples.get(kind, []), *kept], key=lambda pair: pair[0])
            self.examples[kind] = both[:KEPT]
        self.bad = sorted([*self.bad, *other.bad], key=_bad_key)[:MAX_BAD]
        self.bad_files.update(other.bad_files)
        self.files.update(other.files)
        self.sources.update(other.sources)
        self.skipped += other.skipped
        self.bytes += other.bytes
        self.longest = _longer(self.longest, other.longest)

    def shift_lines(self, lines: int) -> None:
        """Makes line numbers those of the file, where ``lines`` stand before this tally's block."""
        if lines:
            self._renumber(lambda line: None if line is None else line + lines)

    def forget_lines(self) -> None:
        """Line numbers that count from a block's start mean nothing where the blocks before it are not known."""
        self._renumber(lambda _: None)

    def _renumber(self, number: Any) -> None:
        def moved(place: Place) -> Place:
            return msgspec.structs.replace(place, line=number(place.line))

        self.bad = [msgspec.structs.replace(bad, place=moved(bad.place)) for bad in self.bad]
        for kind, kept in self.examples.items():
            self.examples[kind] = [
                (rank, msgspec.structs.replace(example, place=moved(example.place))) for rank, example in kept
            ]

    @property
    def turns(self) -> int:
        """All turns that were counted."""
        return sum(counts.total() for counts in self.groups.values())

    # ------------------------------------------------------------------- to data and back

    def plain(self) -> dict[str, Any]:
        """The tally as plain data that JSON can hold."""
        return {
            "by": list(self.by),
            "groups": [[list(g), [[list(o), n] for o, n in c.items()]] for g, c in self.groups.items()],
            "episodes": [[list(g), [[list(k), n] for k, n in c.items()]] for g, c in self.episodes.items()],
            "examples": [
                [list(rank), msgspec.to_builtins(example)]
                for kept in self.examples.values()
                for rank, example in kept
            ],
            "bad": [msgspec.to_builtins(bad) for bad in self.bad],
            "bad_files": dict(self.bad_files),
            "files": dict(self.files),
            "sources": dict(self.sources),
            "skipped": self.skipped,
            "bytes": self.bytes,
            "longest": list(self.longest),
        }

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> Tally:
        """The tally of `plain`'s data. Raises ValueError, KeyError or TypeError where it is none."""
        tally = cls(tuple(data["by"]))
        for group, counts in data["groups"]:
            tally.groups[tuple(group)] = Counter({Outcome(*outcome): n for outcome, n in counts})
        for group, episodes in data["episodes"]:
            tally.episodes[tuple(group)] = Counter({(k[0], k[1], k[2]): n for k, n in episodes})
        for rank, value in data["examples"]:
            example = msgspec.convert(value, Example)
            tally.examples.setdefault(example.delivery, []).append((tuple(rank), example))
        tally.bad = [msgspec.convert(bad, Bad) for bad in data["bad"]]
        for name in ("bad_files", "files", "sources"):
            getattr(tally, name).update(data[name])
        tally.skipped = list(data["skipped"])
        tally.bytes, tally.longest = data["bytes"], (data["longest"][0], data["longest"][1])
        return tally


def _longer(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return (one[0], one[1] + other[1]) if one[0] == other[0] else max(one, other)


def _bad_key(bad: Bad) -> tuple[str, int, str]:
    return bad.place.file, bad.place.offset or 0, bad.place.entry


def _value(turn: Turn, field: str) -> str:
    value: Any
    if field == "file":
        value = turn.place.file
    elif field in turn.fields:
        value = turn.fields[field]
    else:
        value = getattr(turn, field, None) if field in _OWN else None
    if value is None:
        return UNKNOWN
    return (value if isinstance(value, str) else str(value))[:200]


_OWN: Final = frozenset({"model", "step", "episode", "position", "role", "finish_reason", "status", "solved"})


def _example(turn: Turn, outcome: Outcome, verdict: Verdict) -> Example:
    shown = next((v for v in verdict.calls if v.delivery.value == outcome.delivery), None)
    text = turn.text or turn.error or ""
    if not text and turn.body is not None:
        text = _body_text(turn)
    span = shown.emitted.span if shown is not None and shown.emitted is not None else None
    at = max(0, span.start - 80) if span is not None and span.end <= len(text) else 0
    surfaced = None if turn.surfaced is None else len(turn.surfaced)
    return Example(
        place=turn.place if turn.position is None else _with_position(turn),
        emission=(shown.emission if shown else Emission(outcome.emission)).value,
        delivery=outcome.delivery,
        cause=outcome.cause,
        rule=outcome.rule,
        tier=outcome.tier,
        text=text[at : at + _EXCERPT].encode("utf-8", "replace").decode(),
        model=turn.model,
        name=shown.name if shown else None,
        surfaced=surfaced,
        detail=verdict.detail[:400],
    )


def _with_position(turn: Turn) -> Place:
    entry = f"{turn.place.entry} " if turn.place.entry else ""
    return msgspec.structs.replace(turn.place, entry=f"{entry}turn {turn.position}")


def _body_text(turn: Turn) -> str:
    from truecall import wire

    choices = wire.read(turn.body, turn.api or "openai.chat", status=turn.status).choices
    return (choices[0].raw_text or choices[0].content or "") if choices else ""


def _entry(turn: Turn, outcome: Outcome) -> bytes:
    """A line of the list of entries: where the turn stands and what was counted of it."""
    place = msgspec.to_builtins(turn.place)
    about = {"model": turn.model, "step": turn.step, "episode": turn.episode, "position": turn.position}
    return msgspec.json.encode({**place, **about, **turn.fields, **outcome._asdict()})
