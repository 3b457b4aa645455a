"""The probes, in the order in which they are sent: later ones use what earlier ones found."""

from __future__ import annotations

from typing import Final

from truecall.preflight.probes import choice, limits, load, loopback, model, rendered, shapes, stream
from truecall.preflight.probes.base import Outcome, Probe
from truecall.preflight.session import BUDGET, THINKING_BUDGET

__all__ = ["PROBES", "Outcome", "Probe"]

_TEXT = 200  # completion tokens that a loopback may take for one text, at the most: its bytes and some room

PROBES: Final[tuple[Probe, ...]] = (
    Probe("rendered", "do the tools reach the prompt?", rendered.run, 6, 6),
    Probe(
        "auto",
        "what becomes of calls that the model writes?",
        model.auto,
        model.TRIES + 1,
        model.TRIES * BUDGET,
        BUDGET + model.TRIES * THINKING_BUDGET,
        ("rendered",),
    ),
    Probe("loopback", "which dialects does the parser read?", loopback.run, 24, 12 * _TEXT, 0, ("rendered",)),
    Probe("required", "does tool_choice required give a call?", choice.required, 1, BUDGET, THINKING_BUDGET),
    Probe("named", "does a named tool give a call of that name?", choice.named, 1, BUDGET, THINKING_BUDGET),
    Probe(
        "none",
        "does tool_choice none surface nothing?",
        choice.none,
        2,
        _TEXT + BUDGET,
        _TEXT + THINKING_BUDGET,
    ),
    Probe("strict", "do arguments fit a strict schema?", choice.strict, 1, BUDGET, THINKING_BUDGET),
    Probe(
        "shapes",
        "do two, nested, unicode, empty calls and a tag inside get through?",
        shapes.run,
        10,
        5 * (_TEXT + 100),
        0,
        ("loopback",),
    ),
    Probe("stream", "is a streamed call the same call?", stream.run, 4, 4 * _TEXT, 0, ("loopback",)),
    Probe("result", "do tool results reach the prompt?", limits.result, 2, 17, 0, ("rendered",)),
    Probe(
        "abstain",
        "does a call come where none is wanted?",
        model.abstain,
        3,
        3 * model.SHORT,
        3 * THINKING_BUDGET,
        ("rendered",),
    ),
    Probe("budget", "is a cut answer told as such?", limits.budget, 2, 24, 0, ("loopback",)),
    Probe("schema", "is a bad schema refused or tolerated?", limits.schema, 1, 8, 0, ("rendered",)),
    Probe(
        "load",
        "is 16 at once like one at a time?",
        load.run,
        1 + load.AT_ONCE,
        (1 + load.AT_ONCE) * _TEXT,
        0,
        ("loopback",),
    ),
)
"""``requests`` and ``tokens`` are ceilings for one run of the probe; a refused evidence field adds one request."""
