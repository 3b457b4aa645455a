"""A sample by strata, its key, and one pack for each annotator."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from truecall import __version__
from truecall.annotate.frame import Found, LeftOut
from truecall.annotate.pack import Pack, item_digest, make_pack
from truecall.annotate.protocol import digest, protocol, sealed
from truecall.annotate.records import STRATA, Item, Key, OfferedTool, PackRef, Population, Text, Toolset
from truecall.detector import VERSION
from truecall.errors import CannotTell, UsageError
from truecall.records import Json
from truecall.schema import compile_tools
from truecall.sources import Bad

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


def checked_names(annotators: Sequence[str], adjudicator: str) -> None:
    """Whether these can be the names of people and files.

    Raises:
        UsageError: fewer than two annotators, a name twice, or one that is no plain word.
    """
    everyone = [*annotators, adjudicator]
    for name in everyone:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r}: a name is made of letters, digits, - and _")
    if len(annotators) < 2:
        raise UsageError("it takes two annotators or more: --annotators a,b")
    twice = [name for name, count in Counter(name.lower() for name in everyone).items() if count > 1]
    if twice:
        raise UsageError(f"{twice[0]} is named twice: annotators and the adjudicator are different people")


class Sample:
    """Turns drawn by strata as they pass, each of a stratum with the same chance (Vitter's algorithm R)."""

    def __init__(self, per_stratum: int, seed: int) -> None:
        self._size = per_stratum
        self._dice = {stratum: random.Random(f"{seed}/{stratum}") for stratum in STRATA}
        self.drawn: dict[str, list[Text]] = {stratum: [] for stratum in STRATA}
        self._seen: Counter[str] = Counter()
        self._groups: dict[str, Counter[str]] = {}
        self._left_out: Counter[str] = Counter()
        self._bad = 0

    def add(self, found: Found) -> None:
        """Takes one turn, or counts why it can't be annotated."""
        if isinstance(found, Bad):
            self._bad += 1
        elif isinstance(found, LeftOut):
            self._left_out[found.reason] += 1
        else:
            self._draw(found)

    def _draw(self, text: Text) -> None:
        kept = self.drawn[text.stratum]
        self._seen[text.stratum] += 1
        self._groups.setdefault(text.group, Counter())[text.stratum] += 1
        if len(kept) < self._size:
            kept.append(text)
        elif (place := self._dice[text.stratum].randrange(self._seen[text.stratum])) < self._size:
            kept[place] = text

    def population(self) -> Population:
        """What was seen so far."""
        groups = {name: dict(strata) for name, strata in sorted(self._groups.items())}
        return Population(groups=groups, left_out=dict(self._left_out.most_common()), bad=self._bad)


def make(
    found: Iterable[Found],
    *,
    sources: Sequence[str],
    annotators: Sequence[str],
    adjudicator: str,
    per_stratum: int,
    seed: int,
) -> tuple[Key, dict[str, Pack]]:
    """The key of a new annotation and its packs by annotator.

    Raises:
        UsageError: names that can't be (`checked_names`).
        CannotTell: there is no text to annotate.
    """
    checked_names(annotators, adjudicator)
    sample = Sample(per_stratum, seed)
    for each in found:
        sample.add(each)
    population = sample.population()
    if not population.turns:
        why = "; ".join(f"{count}: {reason}" for reason, count in population.left_out.items())
        raise CannotTell(f"{', '.join(sources)}: no text to annotate ({why or 'no turn at all'})")
    items, toolsets = _items([text for stratum in STRATA for text in sample.drawn[stratum]])
    agreed = protocol()
    packs = {name: make_pack(name, items, range(len(items)), toolsets, digest(agreed)) for name in annotators}
    key = Key(
        made_at=round(time.time(), 3),
        truecall=__version__,
        detector=VERSION,
        sources=tuple(sources),
        seed=seed,
        per_stratum=per_stratum,
        protocol=agreed,
        protocol_sha256=digest(agreed),
        population=population,
        items=items,
        toolsets=toolsets,
        packs={name: PackRef(sha256=pack.sha256, ids=pack.ids) for name, pack in packs.items()},
        adjudicator=adjudicator,
    )
    return sealed(key), packs


def _items(texts: Sequence[Text]) -> tuple[tuple[Item, ...], tuple[Toolset, ...]]:
    """The sampled texts with their tools apart, each list of tools once."""
    numbers: dict[Toolset, int] = {}
    items = []
    for text in texts:
        tools = offered(text.tools)
        number = numbers.setdefault(tools, len(numbers)) if tools is not None else None
        bare = msgspec.structs.replace(text, tools=None)
        items.append(Item(text=bare, sha256=item_digest(text.passages, tools), toolset=number))
    return tuple(items), tuple(numbers)


def offered(tools: Json) -> Toolset | None:
    """The offered tools as a page shows them; None where none are known."""
    known = compile_tools(tools)
    if not known.names:
        return None
    return tuple(
        OfferedTool(name=tool.name, definition=_definition(tools, tool.name)) for tool in known.tools.values()
    )


def _definition(tools: Json, name: str) -> str:
    """The tool's own entry of the list, as it was sent."""
    entries = tools if isinstance(tools, list) else [tools]
    entry = next((each for each in entries if compile_tools([each]).offered(name)), tools)
    return msgspec.json.format(msgspec.json.encode(entry), indent=2).decode()
