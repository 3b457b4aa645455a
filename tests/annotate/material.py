"""Annotations in tests: made by hand from labels, or from a small log of texts whose reading is plain."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from truecall.annotate.folder import Annotation, Answers, checksum
from truecall.annotate.pack import item_digest
from truecall.annotate.protocol import digest, protocol
from truecall.annotate.records import Answer, GivenAnswer, Item, Key, PackRef, Passage, Population, Text

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"The tool {name}.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
    for name in ("get_weather", "book_flight")
]

YES = Answer(call="yes", well_formed="yes")
BROKEN = Answer(call="yes", well_formed="no")
NO = Answer(call="no")
UNCLEAR = Answer(call="unclear")

DETECTOR = {"tight": YES, "well_formed": YES, "malformed": BROKEN, "none": NO}


def annotation(
    strata: Sequence[str],
    answers: dict[str, Sequence[Answer]],
    sizes: dict[str, int] | None = None,
    groups: dict[str, dict[str, int]] | None = None,
) -> Annotation:
    """An annotation of texts of these strata with these answers; ``sizes``: the population's strata."""
    items = []
    for number, stratum in enumerate(strata):
        passages = (Passage(kind="text", text=f"text {number}"),)
        text = Text(
            place=f"log:{number}",
            group="m",
            passages=passages,
            stratum=stratum,
            detector=DETECTOR[stratum],
            verdict=("no_call", "nothing", "turn.no_call"),
            evidence="raw_text",
        )
        items.append(Item(text=text, sha256=item_digest(passages, None)))
    sizes = sizes or {name: list(strata).count(name) for name in dict.fromkeys(strata)}
    agreed = protocol()
    ids = {f"id{number}": number for number in range(len(items))}
    key = Key(
        made_at=0.0,
        truecall="0",
        detector="1",
        sources=("log",),
        seed=0,
        per_stratum=40,
        protocol=agreed,
        protocol_sha256=digest(agreed),
        population=Population(groups=groups or {"m": sizes}, left_out={}),
        items=tuple(items),
        toolsets=(),
        packs={name: PackRef(sha256=name, ids=ids) for name in answers},
        adjudicator="judge",
    )
    given: dict[str, Answers] = {name: dict(enumerate(each)) for name, each in answers.items() if each}
    return Annotation(Path("folder"), key, given, None, None)


# --------------------------------------------------------------------------- a log, and files that pages save

CALL = '<tool_call>\n{{"name": "get_weather", "arguments": {{"city": "Oslo {0}"}}}}\n</tool_call>'
TEXTS = {
    "tight": "I will look it up.\n" + CALL,
    "well_formed": '<tool_call>\n{{"name": "no_such_tool", "arguments": {{"x": {0}}}}}\n</tool_call>',
    "malformed": '<tool_call>\n{{"name": "get_weather", "arguments": {{"city": "Bern {0}"}}\n</tool_call>',
    "none": "It is a fine day in Rome, number {0}.",
}


def write_log(path: Path, counts: dict[str, int], *, extra: Sequence[str] = (), tools: Any = TOOLS) -> Path:
    """A chat log with so many texts of each stratum, and further texts."""
    texts = [TEXTS[name].format(n) for name, count in counts.items() for n in range(count)]
    with path.open("w", encoding="utf-8") as file:
        for text in (*texts, *extra):
            said = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": text}]
            file.write(json.dumps({"messages": said, "tools": tools, "model": "m"}) + "\n")
    return path


def saved(key: Key, name: str, answer: Any, pack: PackRef | None = None) -> dict[str, Any]:
    """The file that NAME's page would save; ``answer``: item -> (call, well_formed, tool)."""
    ref = pack or key.packs[name]
    given = []
    for ident, number in ref.ids.items():
        call, well_formed, tool = answer(key.items[number])
        given.append(GivenAnswer(ident, key.items[number].sha256, call, well_formed, tool))
    return {
        "format": "truecall-answers",
        "version": 1,
        "pack": ref.sha256,
        "annotator": name,
        "answers": [{f: getattr(g, f) for f in g.__struct_fields__} for g in given],
        "sha256": checksum(given),
    }


def as_detector(item: Item) -> tuple[str, str | None, int | str | None]:
    """The detector's own answer, in the page's words (the log's first tool is 0)."""
    said = item.text.detector
    tool: int | str | None = said.tool
    if said.tool == "offered:get_weather":
        tool = 0
    return said.call, said.well_formed, tool
