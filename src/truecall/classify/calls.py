"""Emitted calls held against surfaced ones: what became of each."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from msgspec import structs

from truecall.classify.pool import Pool, frozen
from truecall.classify.rules import BY_ID
from truecall.classify.surfaced import Surfaced
from truecall.classify.tools import emission_of
from truecall.records import Call, CallVerdict, Delivery, Emission, Part, Record
from truecall.schema import Toolset

REPAIRED: Final = "repaired_by_stack"
"""Defect of a call whose payload does not parse as written, and came out of the interface valid."""


_WORD: Final = re.compile(r"[\w.-]+")
_MOST_WORDS: Final = 16


class Setting(Record, frozen=True):
    """What is known of the turn around its calls. ``cut``: ``budget``, ``stream``, ``filter`` or None.

    ``forced``: a constraint shaped the text, so that a surfaced call need not be found in it as a call.
    """

    tools: Toolset
    cut: str | None = None
    stream: bool = False
    choice_none: bool = False
    forced: bool = False
    one_call: bool = False  # parallel_tool_calls was false
    in_error: bool = False  # the emitted text stands in an error
    silent: bool = False  # the emitted text is empty


def from_content(
    left: Sequence[Call], surfaced: Sequence[Surfaced], setting: Setting
) -> tuple[list[CallVerdict], list[str]]:
    """Content and the interface are all there is: surfaced calls first, then those left in the text.

    A call that stands in both counts once; where the surfaced one is damaged, the text says what was meant.
    """
    spare = Pool(surfaced, _keys)
    twins: dict[int, Call] = {}
    rest: list[Call] = []
    for call in left:
        twin = _same(call, spare) or spare.take(("marked", call.name))
        if twin is None:
            rest.append(call)
        else:
            twins[id(twin)] = call
    out = [_beside(s, twins.get(id(s)), setting) for s in surfaced]
    return out + [_left(call, setting) for call in rest], ["duplicated_in_content"] if twins else []


def from_evidence(
    emitted: Sequence[Call], left: Sequence[Call], surfaced: Sequence[Surfaced], setting: Setting
) -> list[CallVerdict]:
    """The model's own text is known: each emitted call is looked for in the interface, then in the content."""
    spare = Pool(surfaced, _keys)
    remaining = Pool(left, lambda call: [(call.name, frozen(call.reading()))])
    exact = [_same(call, spare) for call in emitted]
    out: list[CallVerdict] = []
    for call, twin in zip(emitted, exact, strict=True):
        if twin is not None:
            out.append(_surfaced(twin, setting, call))
        elif (kept := remaining.take((call.name, frozen(call.reading())))) is not None:
            out.append(_left(call, setting, in_reasoning=kept.in_reasoning))
        elif (other := _damaged(call, spare, setting)) is not None:
            out.append(_changed(call, other, setting))
        else:
            out.append(_gone(call, setting, surfaced=bool(surfaced)))
    if setting.in_error:  # an error quotes what it stumbled over; the rest came as usual
        out.extend(_left(call, setting) for call in remaining)
    # A constraint may leave only the arguments in the text; a cut stream or an error holds a part of it.
    believed = setting.forced or setting.cut == "stream" or setting.in_error
    out.extend(_surfaced(s, setting) if believed else _phantom(s, setting) for s in spare)
    return out


def refused(surfaced: Sequence[Surfaced]) -> list[CallVerdict]:
    """Structured calls in the body of an error: no client gets them."""
    return [_given(s, s.emission, Delivery.ERASED, "call.erased.error_body") for s in surfaced]


# --------------------------------------------------------------------------- matching


def _keys(s: Surfaced) -> Iterator[Hashable]:
    """What a surfaced call is found by: name and arguments, or one of them, or the name inside its name."""
    yield "both", s.name, frozen(s.arguments)
    yield "name", s.name
    if s.arguments:
        yield "arguments", frozen(s.arguments)
    if s.mark:
        yield "marked", s.name
    if s.call.name and s.call.name != s.name:
        yield from (("word", word) for word in _WORD.findall(s.call.name)[:_MOST_WORDS])


def _same(call: Call, spare: Pool[Surfaced]) -> Surfaced | None:
    """The surfaced call with this name and these arguments; a repaired payload counts as its reading."""
    arguments = call.reading() if not call.well_formed else call.arguments
    if arguments is None and call.well_formed:
        return None
    return spare.take(("both", call.name, frozen(arguments)))


def _damaged(call: Call, spare: Pool[Surfaced], setting: Setting) -> Surfaced | None:
    """The surfaced call that this one became: the same name, the same arguments, or the name inside the name.

    An error quotes only a part of what was written: there a surfaced call that is whole is another one.
    """
    if setting.in_error:
        return spare.take(("marked", call.name))
    found = spare.take(("name", call.name))
    if found is None and call.reading():
        found = spare.take(("arguments", frozen(call.reading())))
    return found or (spare.take(("word", call.name)) if call.name else None)


# --------------------------------------------------------------------------- verdicts


def _given(
    s: Surfaced,
    emission: Emission,
    delivery: Delivery,
    rule: str,
    *,
    emitted: Call | None = None,
    cause: Part | None = None,
) -> CallVerdict:
    """A verdict told from the surfaced call."""
    return CallVerdict(
        emission=emission,
        delivery=delivery,
        rule=rule,
        cause=BY_ID[rule].cause if cause is None else cause,
        name=s.name,
        arguments=s.arguments,
        dialect=emitted.dialect if emitted else None,
        emitted=emitted,
        surfaced=s.call,
        violations=s.violations,
        defects=s.defects,
    )


def _written(
    call: Call, setting: Setting, delivery: Delivery, rule: str, other: Surfaced | None = None
) -> CallVerdict:
    """A verdict told from the call as it was written; ``other``: what was surfaced of it."""
    emission, violations = emission_of(setting.tools, call)
    defects = call.defects if other is None else tuple(dict.fromkeys((*call.defects, *other.defects)))
    refused_text = emission is Emission.MALFORMED and delivery in (Delivery.LEAKED, Delivery.ERASED)
    return CallVerdict(
        emission=emission,
        delivery=delivery,
        rule=rule,
        cause=Part.MODEL if refused_text else BY_ID[rule].cause,  # a strict parser could not read it
        name=call.name,
        arguments=call.arguments,
        dialect=call.dialect,
        emitted=call,
        surfaced=other.call if other else None,
        violations=violations,
        defects=defects,
    )


def _beside(s: Surfaced, call: Call | None, setting: Setting) -> CallVerdict:
    return _changed(call, s, setting) if call is not None and s.mark else _surfaced(s, setting, call)


def _surfaced(s: Surfaced, setting: Setting, emitted: Call | None = None) -> CallVerdict:
    rule = s.mark or "call.surfaced"
    if rule.startswith("call.cut_off"):
        return _given(s, Emission.MALFORMED, Delivery.CUT_OFF, rule, emitted=emitted)
    if s.mark:
        cut_whole = rule == "call.mangled.cut" and not setting.stream
        cause = Part.PARSER if cut_whole else BY_ID[rule].cause
        return _given(s, s.emission, Delivery.MANGLED, rule, emitted=emitted, cause=cause)
    if emitted is not None and not emitted.well_formed and s.emission is Emission.VALID:
        verdict = _given(s, Emission.MALFORMED, Delivery.SURFACED, rule, emitted=emitted, cause=Part.MODEL)
        return structs.replace(verdict, defects=(*emitted.defects, REPAIRED))
    cause = Part.NONE if s.emission is Emission.VALID else Part.MODEL
    return _given(s, s.emission, Delivery.SURFACED, rule, emitted=emitted, cause=cause)


def _changed(call: Call, other: Surfaced, setting: Setting) -> CallVerdict:
    rule = other.mark or "call.mangled.changed"
    if not rule.startswith("call.cut_off"):
        return _written(call, setting, Delivery.MANGLED, rule, other)
    if call.well_formed:  # written whole, surfaced in part
        return _written(call, setting, Delivery.MANGLED, "call.mangled.cut", other)
    return _written(call, setting, Delivery.CUT_OFF, rule, other)


def _left(call: Call, setting: Setting, *, in_reasoning: bool = False) -> CallVerdict:
    if setting.choice_none:
        return _written(call, setting, Delivery.NOTHING, "call.asked_as_text")
    if _was_cut(call, setting):
        return _written(call, setting, Delivery.CUT_OFF, f"call.cut_off.{setting.cut}")
    place = "reasoning" if in_reasoning or call.in_reasoning else "content"
    return _written(call, setting, Delivery.LEAKED, f"call.leaked.{place}")


def _gone(call: Call, setting: Setting, *, surfaced: bool) -> CallVerdict:
    if _was_cut(call, setting):
        return _written(call, setting, Delivery.CUT_OFF, f"call.cut_off.{setting.cut}")
    place = "error_body" if setting.in_error else "parallel" if setting.one_call and surfaced else "evidence"
    return _written(call, setting, Delivery.ERASED, f"call.erased.{place}")


def _was_cut(call: Call, setting: Setting) -> bool:
    """Whether the end of the answer, which came early, lies inside this call's payload."""
    return bool(setting.cut) and not call.well_formed and not _OPEN.isdisjoint(call.defects)


_OPEN: Final = frozenset({"unclosed", "truncated", "cut_json"})


def _phantom(s: Surfaced, setting: Setting) -> CallVerdict:
    """Surfaced, and the model's own text does not hold it."""
    emission = Emission.NO_CALL
    if setting.silent:
        emission = Emission.EMPTY
    elif setting.cut is not None:
        emission = Emission.TRUNCATED
    return _given(s, emission, Delivery.PHANTOM, "call.phantom")
