"""A run folder read back: the episodes of each arm, their numbers, and the arm's card as requests were really sent."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from truecall.card import Card, Drift, Fingerprint, drift, sent_parameters
from truecall.errors import InputError
from truecall.funnel import ArmNumbers, Episode, Settings, measure
from truecall.records import Count, Json
from truecall.run.cards import RunCard, load_card
from truecall.run.journal import Ended, Key
from truecall.run.study import Arm, arms_of
from truecall.store import Place, find_place, read_log, whole

_SEEDS = frozenset({"seed"})  # the sampling seeds have an entry of their own on the card


class ArmResult:
    """One arm of a run. ``numbers`` is None where no episode of it has come to its end."""

    def __init__(self, arm: Arm, card: Card, ended: list[Ended], settings: Settings) -> None:
        self.arm = arm
        self.card = card
        self.ended = ended
        self._settings = settings

    @property
    def name(self) -> str:
        return self.arm.name

    @cached_property
    def episodes(self) -> list[Episode]:
        """The episodes that came to their end, in the order of their instances."""
        return [each.episode for each in self.ended]

    @cached_property
    def numbers(self) -> ArmNumbers | None:
        """All numbers of the arm."""
        return measure(self.episodes, self._settings) if self.ended else None

    @cached_property
    def drift(self) -> Drift:
        """The backend's marks over the arm's exchanges."""
        return drift(_marks(self.ended))

    @property
    def loops(self) -> list[Ended]:
        """Episodes in which a loop was seen."""
        return [each for each in self.ended if each.loop is not None]

    @property
    def confused(self) -> Count | None:
        """Episodes in which a tool was taken for the function to be written; None where tasks have none."""
        known = [each.confused for each in self.ended if each.confused is not None]
        return Count(k=sum(count > 0 for count in known), n=len(known)) if known else None

    @property
    def never_rendered(self) -> bool:
        """No request's prompt showed the model its tools, as far as every one of them is known."""
        turns = [turn for episode in self.episodes for turn in episode.turns]
        return bool(turns) and all(turn.rendered is False for turn in turns)


class RunResult:
    """A run: its card and its arms in the study's order."""

    def __init__(self, path: Path, card: RunCard, arms: list[ArmResult]) -> None:
        self.path = path
        self.card = card
        self.arms = arms

    def arm(self, name: str) -> ArmResult:
        """The arm of this name.

        Raises:
            InputError: there is none.
        """
        for each in self.arms:
            if each.name == name:
                return each
        raise InputError(f"{self.path}: no arm {name!r}; there are {', '.join(a.name for a in self.arms)}")


def find_run(name: str | Path, home: Path | None = None) -> Path:
    """The folder of a run: by its id (``0007``, ``7``, ``run/0007``), or as a path.

    Raises:
        InputError: there is none.
    """
    path = find_place(name, [Place.RUN], home)
    if not (path / "card.json").is_file():
        raise InputError(f"{name}: no run of that id, and no run folder of that name")
    return path


def read(path: Path, settings: Settings | None = None) -> RunResult:
    """Reads a run folder, finished or not.

    Raises:
        InputError: it is none, or a line of it can't be understood.
    """
    card = load_card(path)
    ended: dict[Key, Ended] = {}
    bodies: dict[str, list[dict[str, Json]]] = {}
    for line in read_log(path):
        kind = line.get("kind")
        if kind == "episode":
            key, found = _ended(path, line)
            ended.pop(key, None)  # an episode that was taken up again stands where it ended last
            ended[key] = found
        elif kind == "fields":
            bodies.setdefault(line["arm"], []).append(_flat(whole(path, line["fields"])))
    by_arm: dict[str, list[Ended]] = {}
    for key, each in ended.items():
        by_arm.setdefault(key.arm, []).append(each)
    arms = []
    for arm in arms_of(card.study):
        mine = sorted(by_arm.get(arm.name, []), key=_place)
        made = card.arms.get(arm.name, Card(arm=arm.name))
        arms.append(ArmResult(arm, _as_sent(made, bodies.get(arm.name, [])), mine, settings or Settings()))
    return RunResult(path, card, arms)


def _ended(path: Path, line: dict[str, Any]) -> tuple[Key, Ended]:
    try:
        rest = {name: whole(path, value) for name, value in line.items() if name != "episode"}
        found = msgspec.convert({**line, **rest}, Ended)
    except msgspec.ValidationError as error:
        raise InputError(f"{path / 'log.jsonl'}: an episode can't be read ({error})") from None
    episode = found.episode
    return Key(episode.arm, episode.item, episode.seed, episode.sample), found


def _place(each: Ended) -> tuple[int, str, int]:
    return each.episode.seed, each.episode.item, each.episode.sample or 0


def _flat(fields: dict[str, Json]) -> dict[str, Json]:
    """The request's parameters on one level, without the sampling seed; Ollama nests them in ``options``."""
    options = fields.get("options")
    flat = {**fields, **(options if isinstance(options, dict) else {})}
    return {name: value for name, value in flat.items() if name not in _SEEDS and name != "options"}


def _as_sent(card: Card, bodies: list[dict[str, Json]]) -> Card:
    sent, many = sent_parameters(bodies)
    if "response_format" in many and "response_format" not in card.declared:
        del many["response_format"]  # it holds the tools, which differ from item to item
    return msgspec.structs.replace(card, sent=sent, sent_many=many)


def _marks(ended: list[Ended]) -> Iterator[Fingerprint]:
    for each in ended:
        for text, count in each.marks:
            marks: Fingerprint = msgspec.json.decode(text)
            for _ in range(count):
                yield marks
