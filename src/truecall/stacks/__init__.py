"""Engines: how to recognise one, what to ask it, how to read it, what its errors mean. Pure, no I/O.

``recognise`` needs two marks of an engine, from different places, before it names it; one mark or none is
``openai_compatible``. ``refusal`` reads an error answer of any engine, gateway or hosted service.
"""

from __future__ import annotations

import re
from functools import cache

from truecall.records import ErrorBody
from truecall.stacks import refusals_request, refusals_service, refusals_status
from truecall.stacks.base import (
    PROBE_PATHS,
    PROBES,
    EngineRequest,
    Fact,
    Gateway,
    LoopbackRequest,
    Observations,
    Probe,
    Seen,
    Stack,
    StackInfo,
)
from truecall.stacks.dialect_parsers import DIALECT_PARSERS, PARSER_DIALECTS
from truecall.stacks.gateways import gateways
from truecall.stacks.llamacpp import LlamaCpp
from truecall.stacks.lmstudio import LMStudio
from truecall.stacks.ollama import Ollama
from truecall.stacks.openai_compatible import OpenAICompatible
from truecall.stacks.refusals import Pattern, Refusal, blamed_fields, find, texts
from truecall.stacks.sglang import SGLang
from truecall.stacks.tgi import TGI
from truecall.stacks.vllm import VLLM

__all__ = [
    "DIALECT_PARSERS",
    "ENGINES",
    "PARSER_DIALECTS",
    "PROBES",
    "PROBE_PATHS",
    "EngineRequest",
    "Fact",
    "Gateway",
    "LoopbackRequest",
    "Observations",
    "Probe",
    "Refusal",
    "Seen",
    "Stack",
    "StackInfo",
    "blamed_fields",
    "engine",
    "known_refusals",
    "patterns",
    "recognise",
    "refusal",
]

GENERIC = OpenAICompatible()
# The order settles ties: who imitates others' routes (SGLang, LM Studio) stands before whom it imitates.
ENGINES: dict[str, Stack] = {
    stack.name: stack for stack in (VLLM(), SGLang(), LlamaCpp(), LMStudio(), Ollama(), TGI(), GENERIC)
}


def engine(name: str) -> Stack:
    """The engine of this name; ``openai_compatible`` for any name that is not known."""
    return ENGINES.get(name, GENERIC)


def recognise(seen: Observations) -> StackInfo:
    """Name the engine with the most marks (two at least) and read what it tells of itself.

    Gateways are listed beside it. Without two marks the signals are those hints that were there.
    """
    marks = {name: stack.signals(seen) for name, stack in ENGINES.items() if stack is not GENERIC}
    name, signals = max(marks.items(), key=lambda item: len(item[1]))
    if len(signals) < 2:
        hints = tuple(f"{ENGINES[n].title}? {s}" for n, found in marks.items() for s in found)
        return _with(GENERIC.describe(seen), hints, gateways(seen))
    return _with(ENGINES[name].describe(seen), tuple(signals), gateways(seen))


def _with(info: StackInfo, signals: tuple[str, ...], found: tuple[Gateway, ...]) -> StackInfo:
    fields = {f: getattr(info, f) for f in info.__struct_fields__}
    return StackInfo(**{**fields, "signals": signals, "gateways": found})


@cache
def patterns(stack: str | None = None) -> tuple[Pattern, ...]:
    """All known error texts in the order in which they are tried; those of ``stack`` first."""
    own = engine(stack).refusals if stack else ()
    others = [p for s in ENGINES.values() for p in s.refusals if p not in own]
    return (
        *own,
        *others,
        *refusals_request.AFTER_GENERATION,
        *refusals_request.HISTORY,
        *refusals_service.GATE,
        *refusals_request.REQUEST,
        *refusals_service.SERVICE,
    )


@cache
def known_refusals() -> dict[str, Refusal]:
    """One refusal for each rule by which an error is read, as docs/verdicts.md lists them."""
    by_status = [
        *refusals_status.BY_STATUS.values(),
        *(refusals_status.CLIENT_ERROR, refusals_status.SERVER_ERROR, refusals_status.ERROR_EVENT),
        *(refusals_status.HTML, refusals_status.REDIRECT),
    ]
    known: dict[str, Refusal] = {}
    for found in [*(pattern.refusal() for pattern in patterns()), *by_status]:
        known.setdefault(found.rule, found)
    return known


_HTML = re.compile(r"^\s*(?:<!doctype html|<html|<head|<body|<\?xml[^>]*>\s*<!doctype html)", re.IGNORECASE)


def refusal(
    status: int | None, error: ErrorBody | None, body_text: str = "", stack: str | None = None
) -> Refusal | None:
    """What an error answer means; None when the answer is no error.

    ``status`` is the HTTP status (None: none came, then only ``error`` counts), ``error`` the error that the
    body or stream states, ``body_text`` the body as text (at most its first 16 k characters are looked at).
    An answer below 400 is an error only if it states one, is a web page or a redirect.
    """
    page = bool(_HTML.match(body_text[:1000]))
    failed = status is not None and status >= 400
    if status is not None and 300 <= status < 400:
        return refusals_status.REDIRECT
    if not failed and page:
        return refusals_status.HTML
    if not failed and error is None:
        return None
    known = patterns(stack)
    for text in texts(error, "" if page and status in refusals_status.BY_STATUS else body_text):
        pattern = find(known, text, status)
        if pattern is not None:
            return pattern.refusal()
    return _by_status(status, page)


def _by_status(status: int | None, page: bool) -> Refusal:
    if status is None or status < 400:
        return refusals_status.ERROR_EVENT
    if status in refusals_status.BY_STATUS:
        return refusals_status.BY_STATUS[status]
    if page:
        return refusals_status.HTML
    return refusals_status.SERVER_ERROR if status >= 500 else refusals_status.CLIENT_ERROR
