"""One entry in full: what is stored, what was read in it, and the rule that decided."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import msgspec

from truecall.audits import gate
from truecall.audits.bfcl import Inputs, Report
from truecall.audits.bfcl.categories import Judged
from truecall.audits.bfcl.gated import GatedEntry
from truecall.audits.bfcl.load import Questions, load_run
from truecall.detector import detect
from truecall.records import Detection, Json, Record
from truecall.sources.bfcl import Entry


class Explained(Record, frozen=True):
    """An entry with its audit line. ``raw`` is the stored result as text, ``is_text`` whether it was text.

    ``rule_says`` spells the rule out; ``detection`` has the spans of a text; ``functions`` are the offered names,
    None where they are not at hand.
    """

    model: str
    root: str
    category: str
    id: str
    file: str
    line: int | None
    raw: str
    is_text: bool
    gated: GatedEntry | None
    judged: Judged | None
    rule_says: str
    detection: Detection | None
    functions: tuple[str, ...] | None
    scorer: str
    traceback: str | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None


def explain(inputs: Inputs, report: Report, entry_id: str, model: str | None) -> list[Explained]:
    """Every entry of that id, of the models whose name contains ``model`` (None: any). Empty where none fits."""
    return list(_explain(inputs, report, entry_id, model))


def _explain(inputs: Inputs, report: Report, entry_id: str, model: str | None) -> Iterator[Explained]:
    questions = Questions(inputs.folder)
    gates = {(e.model, e.file, e.id): e for run in report.runs for found in run.gated for e in found.entries}
    others = {
        (e.model, e.file, e.id): e for run in report.runs for found in run.categories for e in found.listed
    }
    for run in inputs.folder.runs:
        if model is not None and model.lower() not in run.model.lower():
            continue
        for category in load_run(run, None, inputs.shown)[0]:
            entry = category.entries.get(entry_id)
            if entry is None:
                continue
            tools = questions.tools(category, entry_id)
            key = (run.model, entry.place.file, entry_id)
            found = gates.get(key)
            wrong = category.wrong.get(entry_id)
            decided = category.decided(entry_id)
            scorer = "not known: no whole score file" if decided is None else "right" if decided else "wrong"
            if wrong is not None and (wrong.error_type or wrong.error):
                scorer += f" ({wrong.error_type}: {wrong.error})"
            text = entry.result if isinstance(entry.result, str) else None
            yield Explained(
                model=run.model,
                root=inputs.roots[run.root],
                category=category.name,
                id=entry_id,
                file=entry.place.file,
                line=entry.place.line,
                raw=text if text is not None else _dump(entry),
                is_text=text is not None,
                gated=found,
                judged=others.get(key),
                rule_says=gate.RULES.get(found.rule, "") if found else "",
                detection=detect(text, tools) if text else None,
                functions=_names(tools),
                scorer=scorer,
                traceback=entry.traceback,
                input_tokens=entry.input_tokens,
                output_tokens=entry.output_tokens,
            )


def _dump(entry: Entry) -> str:
    return (
        json.dumps(entry.result, ensure_ascii=False, indent=1) if entry.has_result else "(no result stored)"
    )


def _names(tools: Sequence[Json] | None) -> tuple[str, ...] | None:
    if tools is None:
        return None
    return tuple(str(tool.get("name")) for tool in tools if isinstance(tool, dict))


def marked(text: str, found: Detection) -> list[tuple[str, str]]:
    """The text in stretches, each with the kind of its span."""
    return [(str(span.kind), text[span.start : span.end]) for span in found.spans]


def to_plain(item: Explained) -> dict[str, Json]:
    """For JSON output."""
    plain: dict[str, Json] = msgspec.to_builtins(item)
    return plain
