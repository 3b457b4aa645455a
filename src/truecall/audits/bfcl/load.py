"""Reads the files of BFCL runs into categories: entries by id, the score beside them, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from truecall.records import Json
from truecall.sources.base import Bad, Place
from truecall.sources.bfcl import Entry, ScoreFile, Wrong, read_bytes, read_results, read_scores, values
from truecall.sources.bfcl_folder import Folder, Run

SIZES: Final[dict[str, int]] = {
    "simple_python": 400, "simple_java": 100, "simple_javascript": 50, "multiple": 200, "parallel": 200,
    "parallel_multiple": 200, "irrelevance": 240, "live_simple": 258, "live_multiple": 1053, "live_parallel": 16,
    "live_parallel_multiple": 24, "live_irrelevance": 884, "live_relevance": 16, "multi_turn_base": 200,
    "multi_turn_miss_func": 200, "multi_turn_miss_param": 200, "multi_turn_long_context": 200, "memory_kv": 155,
    "memory_vector": 155, "memory_rec_sum": 155, "web_search_base": 100, "web_search_no_snippet": 100,
}  # fmt: skip
"""Entries of each scored category of V4."""

IRRELEVANCE: Final = ("irrelevance", "live_irrelevance")


class Category(msgspec.Struct):
    """One category of one run. ``entries``: the last line of each id. ``score`` None: there is no score file."""

    run: Run
    name: str
    entries: dict[str, Entry]
    score: ScoreFile | None
    wrong: dict[str, Wrong]
    doubled: int = 0
    torn: bool = False

    def decided(self, entry_id: str) -> bool | None:
        """Whether the scorer marked the entry right; None where no whole score file tells."""
        if entry_id in self.wrong:
            return False
        return None if self.score is None or self.torn else True


class Questions:
    """Function lists and answers by entry, from question files; each file is read when it is first asked for."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._tools: dict[str, dict[str, Json]] = {}
        self._answers: dict[str, dict[str, Json]] = {}
        self.bad: list[Bad] = []

    def tools(self, category: Category, entry_id: str) -> list[Json] | None:
        """The functions that an entry offers: from its score line, else from the question file; else None."""
        wrong = category.wrong.get(entry_id)
        if wrong is not None and isinstance(wrong.tools, list):
            return wrong.tools
        found = self._table(self._tools, self._folder.questions, category.name, "function").get(entry_id)
        return found if isinstance(found, list) else None

    def answer(self, category: Category, entry_id: str) -> Json:
        """The possible answer of an entry; None where it is not at hand."""
        wrong = category.wrong.get(entry_id)
        if wrong is not None and wrong.answer is not None:
            return wrong.answer
        return self._table(self._answers, self._folder.answers, category.name, "ground_truth").get(entry_id)

    def _table(
        self, cache: dict[str, dict[str, Json]], files: dict[str, Path], category: str, key: str
    ) -> dict[str, Json]:
        if category not in cache:
            cache[category] = {}
            path = files.get(category)
            if path is not None:
                cache[category] = self._read(path, key)
        return cache[category]

    def _read(self, path: Path, key: str) -> dict[str, Json]:
        found: dict[str, Json] = {}
        try:
            raw = read_bytes(path)
        except ValueError as error:
            self.bad.append(Bad(place=Place(file=str(path)), reason=str(error)))
            return found
        for item in values(raw, str(path)):
            if isinstance(item, Bad):
                self.bad.append(item)
            elif isinstance(item[1], dict) and "id" in item[1]:
                found[str(item[1]["id"])] = item[1].get(key)
        return found


def load_run(
    run: Run, wanted: Iterable[str] | None, shown: dict[Path, str]
) -> tuple[list[Category], list[Bad]]:
    """The categories of a run that are ``wanted`` (None: all). ``shown``: how a file is named to the user."""
    out: list[Category] = []
    bad: list[Bad] = []
    keep = None if wanted is None else set(wanted)
    for name in run.categories():
        if keep is not None and name not in keep:
            continue
        entries: dict[str, Entry] = {}
        doubled, torn = 0, False
        score = None
        if path := run.results.get(name):
            for item in read_results(path, run.model, name, shown.get(path, str(path))):
                if isinstance(item, Bad):
                    bad.append(item)
                    continue
                doubled += item.id in entries
                entries[item.id] = item
        if path := run.scores.get(name):
            score, faults = read_scores(path, shown.get(path, str(path)))
            bad += faults
            if score.correct is None and not score.wrong:
                score = None  # nothing could be read: that must not credit every entry
            torn = score is not None and _is_torn(score, bool(faults))
        wrong = {_entry_id(line, name, entries): line for line in score.wrong} if score else {}
        out.append(
            Category(
                run=run, name=name, entries=entries, score=score, wrong=wrong, doubled=doubled, torn=torn
            )
        )
    return out, bad


def _entry_id(line: Wrong, category: str, entries: dict[str, Entry]) -> str:
    """The id of a wrong entry. V1 and V2 give its place in the result file instead, from 1."""
    if line.id in entries or not line.id.isdecimal() or len(line.id) > 6:
        return line.id
    place = int(line.id) - 1
    guess = line.prompt_id or f"{category}_{place}"
    if guess in entries:
        return guess
    known = list(entries)
    return known[place] if 0 <= place < len(known) else guess


def _is_torn(score: ScoreFile, faults: bool) -> bool:
    """Whether lines of wrong entries are missing, so that an unlisted entry need not have been credited."""
    if score.total is None or score.correct is None:
        return faults
    return len(score.wrong) < score.total - score.correct


def is_irrelevance(category: str) -> bool:
    """Whether no call is right; V1 and V2 named this category ``relevance``."""
    return "irrelevance" in category or category == "relevance"


def is_relevance(category: str) -> bool:
    """Whether any call is right."""
    return "relevance" in category and not is_irrelevance(category)


def problems(category: Category) -> list[str]:
    """Where the files of a category contradict each other, or the size that V4 gives it."""
    found = []
    score, count = category.score, len(category.entries)
    expected = SIZES.get(category.name)
    if category.doubled:
        found.append(f"{category.doubled} ids stand twice in the result file; the last line counts")
    if count and expected is not None and count != expected:
        found.append(f"{count} result entries where V4 has {expected}")
    if score is not None and score.total is not None:
        if count and score.total != count:
            found.append(f"the score file counts {score.total} entries, the result file has {count}")
        if score.correct is not None and score.total - score.correct != len(category.wrong):
            found.append(
                f"the score file says {score.total - score.correct} wrong and lists {len(category.wrong)}"
            )
    if score is None and category.name in category.run.scores:
        found.append("the score file has no header and no entry: it is taken as missing")
    strangers = [entry for entry in category.wrong if category.entries and entry not in category.entries]
    if strangers:
        found.append(f"{len(strangers)} entries marked wrong have no result line")
    return found
