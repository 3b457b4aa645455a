"""Every category of a run: what stands behind a score, above all behind one near 0.

Each entry has one outcome. The score if every emitted call had been delivered and every name and literal repaired
is an upper bound, by BFCL's own rules (`truecall.bfcl_rules`); it is no score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

from truecall import bfcl_rules
from truecall.audits import gate
from truecall.audits.bfcl.load import Category, Questions, problems
from truecall.audits.failures import cause_of
from truecall.audits.gate import GateState
from truecall.bfcl_rules import NamedCall, Uncheckable, undictify
from truecall.records import Json, Record
from truecall.schema import compile_tools
from truecall.sources.bfcl import Entry, Wrong, calls_of
from truecall.stats import Interval, wilson


class Outcome(StrEnum):
    """What became of an entry."""

    RIGHT = "right"
    REQUEST_FAILED = "request_failed"
    IN_TEXT = "in_text"  # emitted, and left in the text: no parser made a call of it
    REJECTED = "rejected"  # structured calls that the scorer marked wrong
    SURFACED = "surfaced"  # structured calls, no score known
    NO_CALL = "no_call"
    EMPTY = "empty"


class Judged(Record, frozen=True):
    """One entry. ``valid``: an offered name with arguments that fit the schema. ``reason``: as in `CategoryAudit`.

    ``delivered_right``: right by BFCL's rules once delivered and repaired; None where that can't be checked.
    """

    id: str
    model: str
    category: str
    file: str
    line: int | None
    outcome: Outcome
    valid: bool | None = None
    calls: int = 0
    reason: str = ""
    delivered_right: bool | None = None
    output_tokens: float | None = None


class CategoryAudit(Record, frozen=True):
    """A category's outcomes. ``reasons``: by outcome, why requests failed, texts are not valid, calls were rejected.

    ``score``: (right, entries) by the score file. ``emitted``: entries with a call among those produced (requests
    that failed and empty results are out). ``emitted_valid``: those with an offered name and fitting arguments, with
    Wilson's interval; None where no function lists are at hand. ``if_delivered``: bounds of entries right; equal
    where every entry can be checked, None where the rules do not cover the category.
    """

    model: str
    category: str
    entries: int
    score: tuple[int, int] | None
    outcomes: dict[str, int]
    valid: dict[str, int]
    reasons: dict[str, dict[str, int]]
    most_calls: int
    want_several: int | None
    emitted: tuple[int, int]
    emitted_valid: tuple[int, int] | None
    interval: Interval | None
    if_delivered: tuple[int, int] | None
    notes: tuple[str, ...] = ()
    listed: tuple[Judged, ...] = ()


def audit_category(category: Category, questions: Questions) -> CategoryAudit:
    """The outcomes of a category whose entries should call."""
    judged = [_judge(entry, category, questions) for entry in category.entries.values()]
    outcomes = Counter(item.outcome for item in judged)
    produced = len(judged) - outcomes[Outcome.REQUEST_FAILED] - outcomes[Outcome.EMPTY]
    calling = sum(item.calls > 0 for item in judged)
    fit = sum(bool(item.valid) or item.outcome is Outcome.RIGHT for item in judged)
    told = all(item.valid is not None or item.outcome is Outcome.RIGHT for item in judged if item.calls)
    notes = list(problems(category))
    if category.score is None:
        notes.append("no score file: which entries the scorer read is not known")
    if _is_conversation(category.name):
        notes.append("calls were run against the benchmark's own tools: not scored again here")
    several = _want_several(category, questions)
    most = max((item.calls for item in judged), default=0)
    if several and most == 1:
        notes.append(f"no entry holds more than one call; {several} entries want several")
    return CategoryAudit(
        model=category.run.model,
        category=category.name,
        entries=len(judged),
        score=_score(category),
        outcomes={str(name): outcomes[name] for name in Outcome if outcomes[name]},
        valid=dict(Counter(str(item.outcome) for item in judged if item.valid)),
        reasons=_reasons(judged),
        most_calls=most,
        want_several=several,
        emitted=(calling, produced),
        emitted_valid=(fit, produced) if told and calling else None,
        interval=wilson(fit, produced) if told and calling else None,
        if_delivered=_bounds(judged, category.name),
        notes=tuple(notes),
        listed=tuple(judged),
    )


def _reasons(judged: Sequence[Judged]) -> dict[str, dict[str, int]]:
    """Outcome -> reason -> entries."""
    out = {}
    for name in Outcome:
        counts = Counter(item.reason for item in judged if item.reason and item.outcome is name)
        if counts:
            out[str(name)] = dict(counts.most_common())
    return out


def _score(category: Category) -> tuple[int, int] | None:
    score = category.score
    if score is None:
        return None
    total = score.total if score.total is not None else len(category.entries)
    return (score.correct if score.correct is not None else total - len(score.wrong)), total


def _is_conversation(name: str) -> bool:
    return name.startswith(("multi_turn", "memory", "web_search"))


def _want_several(category: Category, questions: Questions) -> int | None:
    """How many entries have an answer of several calls; None where no answers are at hand."""
    if "parallel" not in category.name:
        return None
    answers = [questions.answer(category, entry) for entry in category.entries]
    known = [answer for answer in answers if isinstance(answer, list)]
    return sum(len(answer) > 1 for answer in known) if known else None


def _bounds(judged: Sequence[Judged], name: str) -> tuple[int, int] | None:
    if _is_conversation(name) or not judged:
        return None
    open_ones = [item for item in judged if item.delivered_right is None and item.calls]
    if len(open_ones) == len([item for item in judged if item.calls]) and open_ones:
        return None
    sure = sum(item.delivered_right is True for item in judged)
    return sure, sure + len(open_ones)


# --------------------------------------------------------------------------- one entry


def _judge(entry: Entry, category: Category, questions: Questions) -> Judged:
    tools = questions.tools(category, entry.id)
    decided = category.decided(entry.id)
    reading = gate.read(entry.result, tools=_both_spellings(tools), failed=entry.traceback is not None)
    wrong = category.wrong.get(entry.id)
    base: dict[str, Any] = {
        "id": entry.id, "model": entry.model, "category": category.name, "file": entry.place.file,
        "line": entry.place.line, "output_tokens": entry.output_tokens,
    }  # fmt: skip
    if reading.state is GateState.SERVING_ERROR:
        told = entry.result if isinstance(entry.result, str) else ""
        cause = cause_of(told, entry.traceback or "")
        return Judged(**base, outcome=Outcome.REQUEST_FAILED, reason=cause)
    if _is_conversation(category.name):
        return _conversation(entry, decided, wrong, reading, base)
    calls, in_text = _calls(entry.result, reading, wrong)
    valid = _valid(calls, tools)
    if decided:
        return Judged(
            **base, outcome=Outcome.RIGHT, valid=valid, calls=max(len(calls), 1), delivered_right=True
        )
    if reading.state is GateState.EMPTY:
        return Judged(**base, outcome=Outcome.EMPTY)
    if not calls and reading.state is GateState.ABSTAINED:
        return Judged(**base, outcome=Outcome.NO_CALL)
    right = _right(tools, calls, questions.answer(category, entry.id), category.name)
    count = max(len(calls), 1)
    if in_text:
        return Judged(
            **base, outcome=Outcome.IN_TEXT, valid=valid, calls=count, delivered_right=right[0],
            reason="" if valid else _text_reason(calls, tools),
        )  # fmt: skip
    if decided is None:
        found = Outcome.RIGHT if right[1] == "" else Outcome.SURFACED
        return Judged(**base, outcome=found, valid=valid, calls=count, delivered_right=right[0])
    reason = _reason(calls, tools, right, wrong)
    return Judged(
        **base, outcome=Outcome.REJECTED, valid=valid, calls=count, reason=reason, delivered_right=right[0]
    )


def _both_spellings(tools: list[Json] | None) -> list[Json] | None:
    """The functions, and again with their dots as underscores, as APIs that allow no dots were given them."""
    if tools is None:
        return None
    dotted = [tool for tool in tools if isinstance(tool, dict) and "." in str(tool.get("name"))]
    return [*tools, *({**tool, "name": str(tool["name"]).replace(".", "_")} for tool in dotted)]


def _calls(result: Json, reading: gate.Reading, wrong: Wrong | None) -> tuple[list[NamedCall | None], bool]:
    """The calls (None for one that can't be read), and whether they stood in text that the scorer did not read."""
    stored = calls_of(result)
    if stored is None:
        decoded = calls_of(wrong.decoded) if wrong is not None and _was_read(wrong) else None
        if decoded:
            stored = decoded
    if stored is not None:
        named = [(call.name or "", gate.arguments_of(call)) for call in stored]
        return [None if arguments is None else (name, arguments) for name, arguments in named], False
    found: list[NamedCall | None] = []
    for call in reading.calls:
        arguments = call.arguments
        found.append((call.name, arguments) if call.name and arguments is not None else None)
    return found, bool(found) or reading.state is GateState.MALFORMED


def _was_read(wrong: Wrong) -> bool:
    """Whether the scorer decoded the result, and found fault only then."""
    return not wrong.error_type.startswith("ast_decoder") and not wrong.error.startswith("Invalid syntax")


def _valid(calls: Sequence[NamedCall | None], tools: list[Json] | None) -> bool | None:
    """Whether every call names an offered function with arguments that fit; None without tools or calls."""
    if tools is None or not calls:
        return None
    compiled = compile_tools(_both_spellings(tools))
    for call in calls:
        tool = compiled.get(call[0]) if call else None
        if call is None or tool is None or tool.check(call[1]):
            return False
    return True


def _right(
    tools: list[Json] | None, calls: Sequence[NamedCall | None], answer: Json, name: str
) -> tuple[bool | None, str | None]:
    """Whether the calls are right once repaired, and the fault as they stand ("" none, None not checkable)."""
    whole = [call for call in calls if call is not None]
    if len(whole) < len(calls) or not whole:
        return False, "arguments_unread"
    if tools is None:
        return None, None
    try:
        fault = bfcl_rules.check(tools, whole, answer, name)
        repaired = [undictify(tools, call, name) for call in whole]
        return bfcl_rules.check(tools, repaired, answer, name) == "" or fault == "", fault
    except Uncheckable:
        return None, None


def _reason(
    calls: Sequence[NamedCall | None],
    tools: list[Json] | None,
    right: tuple[bool | None, str | None],
    wrong: Wrong | None,
) -> str:
    """Why a call that came out was marked wrong: ``name_dots`` and ``dict_type`` are the harness's own doing."""
    names = {str(tool.get("name")) for tool in tools or () if isinstance(tool, dict)}
    dotted = {name.replace(".", "_") for name in names if "." in name}
    respelled = any(call is not None and call[0] in dotted - names for call in calls)
    said = wrong.error_type if wrong is not None else ""
    if respelled and (right[0] or "wrong_func_name" in said or "cannot_find_match" in said):
        return "name_dots"
    if right[0] and right[1] != "":
        return "dict_type"
    if right[1] == "arguments_unread":
        return "arguments_unread"
    return said.rpartition(":")[2] or right[1] or "not told"


def _text_reason(calls: Sequence[NamedCall | None], tools: list[Json] | None) -> str:
    if not calls or any(call is None for call in calls):
        return "payload does not parse"
    return "name or arguments" if tools is not None else ""


def _conversation(
    entry: Entry, decided: bool | None, wrong: Wrong | None, reading: gate.Reading, base: dict[str, Any]
) -> Judged:
    """Turns of steps: calls anywhere, else calls left in text, else none."""
    steps = list(_steps(entry.result))
    structured = sum(len(calls_of(step) or ()) for step in steps)
    if decided:
        return Judged(**base, outcome=Outcome.RIGHT, calls=max(structured, 1))
    if structured:
        found = Outcome.REJECTED if decided is False else Outcome.SURFACED
        reason = wrong.error_type.rpartition(":")[2] if wrong is not None else ""
        return Judged(**base, outcome=found, calls=structured, reason=reason)
    if reading.state in (GateState.CALLED, GateState.MALFORMED):
        return Judged(**base, outcome=Outcome.IN_TEXT, calls=max(len(reading.calls), 1))
    empty = reading.state is GateState.EMPTY
    return Judged(**base, outcome=Outcome.EMPTY if empty else Outcome.NO_CALL)


def _steps(result: Json, depth: int = 0) -> list[Json]:
    """The steps of stored turns, flat: texts and lists of calls."""
    if not isinstance(result, list) or calls_of(result) or depth > 6:
        return [result]
    return [step for part in result for step in _steps(part, depth + 1)]


def as_row(item: Judged) -> dict[str, Any]:
    """An entry as a flat row for tables."""
    row: dict[str, Any] = msgspec.to_builtins(item)
    return {name: row.get(name) for name in Judged.__struct_fields__}
