"""The records of an annotation: texts, answers, the key, and what goes into a pack."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from truecall.records import Json, Record

FORMAT: Final = 1
"""Version of the key, of packs and of answer files."""

STRATA: Final = ("tight", "well_formed", "malformed", "none")
"""What the sample is drawn by: the best call that the detector read in a turn. Docs: docs/annotate.md."""

OTHER_TOOL: Final = "other"
UNREADABLE: Final = "unreadable"

Word = Literal["yes", "no", "unclear"]


class Passage(Record, frozen=True):
    """A stretch of what the model wrote. ``kind``: ``text`` (all of it as written), ``reasoning``, ``content``."""

    kind: str
    text: str


class Answer(Record, frozen=True):
    """What somebody, or the detector, says of one text.

    ``call``: the model made a call in it. ``well_formed``: one of its calls can be read as it stands; None where
    ``call`` is not yes. ``tool``: the name that the first call gives, ``other`` (not offered) or ``unreadable``;
    None where ``call`` is not yes or no tools are known. An offered tool has ``offered:`` before its name.
    """

    call: Word
    well_formed: Word | None = None
    tool: str | None = None


class Text(Record, frozen=True):
    """One turn's text, in the order in which the model wrote it, and what the detector says of it.

    ``group``: the arm, or the model. ``tools``: those that were offered, None where the log does not say.
    ``cut``: the log itself stored a part only.
    """

    place: str
    group: str
    passages: tuple[Passage, ...]
    stratum: str
    detector: Answer
    verdict: tuple[str, str, str]  # emission, delivery, rule
    evidence: str
    tools: Json = None
    cut: bool = False


class Item(Record, frozen=True):
    """A text in the key. ``sha256``: of its passages and tools, as the page shows them. ``toolset``: an index."""

    text: Text
    sha256: str
    toolset: int | None = None


class OfferedTool(Record, frozen=True):
    """One offered tool: its name, and its definition as indented JSON."""

    name: str
    definition: str


Toolset = tuple[OfferedTool, ...]


class PackRef(Record, frozen=True):
    """A pack as the key knows it. ``sha256``: of the data in the page. ``ids``: its random ids, to item numbers."""

    sha256: str
    ids: dict[str, int]


class Population(Record, frozen=True):
    """What the sample was drawn from: turns by group and stratum, and those left out by reason."""

    groups: dict[str, dict[str, int]]
    left_out: dict[str, int]
    bad: int = 0

    def size(self, stratum: str) -> int:
        """The turns of a stratum over all groups."""
        return sum(strata.get(stratum, 0) for strata in self.groups.values())

    @property
    def turns(self) -> int:
        """The turns of all strata."""
        return sum(sum(strata.values()) for strata in self.groups.values())


class Key(Record, frozen=True):
    """``key.json``: what the maker keeps and no annotator sees. It is written once and never changed.

    ``protocol_sha256`` is that of the questions and of the rule of adjudication; every pack carries it.
    ``sha256``: of all else in it (`truecall.annotate.protocol.sealed`).
    """

    made_at: float
    truecall: str
    detector: str
    sources: tuple[str, ...]
    seed: int
    per_stratum: int
    protocol: dict[str, Json]
    protocol_sha256: str
    population: Population
    items: tuple[Item, ...]
    toolsets: tuple[Toolset, ...]
    packs: dict[str, PackRef]
    adjudicator: str
    format: int = FORMAT
    sha256: str = ""


class Adjudication(Record, frozen=True):
    """``adjudication.json``: the pack that was made of the disputed items and of undisputed ones beside them.

    ``answers``: digests of the answer files that it followed from. ``sha256``: as that of the key.
    """

    pack: PackRef
    disputed: tuple[int, ...]
    controls: tuple[int, ...]
    answers: dict[str, str]
    protocol_sha256: str
    format: int = FORMAT
    sha256: str = ""


class GivenAnswer(Record, frozen=True):
    """One answer as the page writes it. ``tool``: the number of an offered tool, ``other`` or ``unreadable``."""

    id: str
    sha256: str
    call: Word
    well_formed: Word | None = None
    tool: int | str | None = None


class AnswerFile(Record, frozen=True):
    """The file that the page saves. ``pack``: the digest of the data that the page itself read.

    ``sha256``: of the answers' lines (`truecall.annotate.folder.checksum`), to see that nothing was changed.
    """

    format: str
    version: int
    pack: str
    annotator: str
    answers: tuple[GivenAnswer, ...]
    sha256: str = msgspec.field(default="")
