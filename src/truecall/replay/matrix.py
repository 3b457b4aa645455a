"""Which parser takes which text: dialect × parser, version against version, template × parser."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from truecall.engines import NOT_ASKED, Job, Parse, Spec
from truecall.records import Record
from truecall.replay.matching import MANGLED, RETURNED, match
from truecall.replay.replaying import Engine, Idle
from truecall.replay.samples import CASES, TOOLS, Sample, marks
from truecall.replay.texts import Material, material
from truecall.stacks.dialect_parsers import parsers_for
from truecall.templates import Asked, Template, asks

TAKEN, UNASKED = "taken", "unasked"


class Cell(Record, frozen=True, omit_defaults=False):
    """What a parser made of a text: ``taken``, ``text``, ``erased``, ``mangled``, ``phantom`` or ``failed``.

    ``unasked``: it could not be given the text.
    """

    parser: str
    dialect: str
    form: str
    case: str
    fault: str
    outcome: str
    detail: str = ""


class Ran(Record, frozen=True, omit_defaults=False):
    """One engine's column of the matrix."""

    engine: str
    parsers: tuple[str, ...]
    cells: tuple[Cell, ...]
    idle: tuple[Idle, ...] = ()


class Change(Record, frozen=True):
    """A text that two versions of a parser treat differently. ``regression``: the older one took it."""

    parser: str
    dialect: str
    form: str
    case: str
    fault: str
    before: str
    after: str
    regression: bool

    @property
    def id(self) -> str:
        """``hermes/hermes/typed/not closed``: the text."""
        return "/".join(part for part in (self.dialect, self.form, self.case, self.fault) if part)


class MatrixOutput(Record, frozen=True, omit_defaults=False):
    """``truecall matrix --json``. ``texts``: how many each parser got; ``against``: the older version's name."""

    texts: int
    engines: tuple[Ran, ...]
    against: str | None
    changes: tuple[Change, ...]
    schema_version: int = 1


def run(spec: Spec, samples: Sequence[Sample], *, workers: int = 2) -> Ran:
    """Every sample through every parser of an engine, whole. Raises CannotTell where it does not start."""
    with Engine(spec, workers=workers, streams=False) as engine:
        pairs = [(parser, sample) for parser in engine.parsers for sample in samples]
        jobs = (Job(parser, sample.material.text, sample.material.tools) for parser, sample in pairs)
        cells = []
        for (parser, sample), parse in zip(pairs, engine.parse(jobs), strict=True):
            about = {f: getattr(sample, f) for f in ("dialect", "form", "case", "fault")}
            outcome = outcome_of(sample.material, parse)
            cells.append(Cell(parser=parser, outcome=outcome, detail=parse.detail, **about))
        return Ran(engine=engine.label, parsers=engine.parsers, cells=tuple(cells), idle=tuple(engine.idle))


def outcome_of(text: Material, parse: Parse) -> str:
    """A text's outcome in a word; see `Cell`."""
    if parse.state != "parsed":
        return UNASKED if parse.state in NOT_ASKED else "failed"
    met = match(text, parse)
    if met.calls and set(met.calls) == {RETURNED}:
        return TAKEN
    if MANGLED in met.calls or (RETURNED in met.calls):
        return "mangled"
    if met.phantom:
        return "phantom"
    if not met.calls:
        return "text"
    return "erased" if any(met.gone) else "text"


def changes(now: Ran, before: Ran) -> list[Change]:
    """What became different between two versions, regressions first; parsers that both have."""
    names = ("parser", "dialect", "form", "case", "fault")
    older = {tuple(getattr(cell, name) for name in names): cell.outcome for cell in before.cells}
    found = []
    for cell in now.cells:
        about = {name: getattr(cell, name) for name in names}
        was = older.get(tuple(about.values()))
        if was is not None and was != cell.outcome and UNASKED not in (was, cell.outcome):
            found.append(Change(**about, before=was, after=cell.outcome, regression=was == TAKEN))
    return sorted(found, key=lambda change: not change.regression)


# --------------------------------------------------------------------------- templates


class Meeting(Record, frozen=True, omit_defaults=False):
    """A template met with a parser: ``taken`` of ``written`` calls' texts that it was given, and their outcomes."""

    template: str
    dialect: str | None
    parser: str
    taken: int
    written: int
    outcomes: dict[str, str]
    advice: str = ""


class Interaction(Record, frozen=True):
    """Two templates × two parsers, in shares of texts taken: both main effects and the interaction.

    Per text y11 − y10 − y01 + y00, averaged. ``main_*`` compare the averages of the two rows and columns.
    """

    templates: tuple[str, str]
    parsers: tuple[str, str]
    shares: tuple[tuple[float, float], tuple[float, float]]
    main_template: float
    main_parser: float
    interaction: float


class TemplatesOutput(Record, frozen=True, omit_defaults=False):
    """``truecall matrix --template --json``."""

    templates: tuple[Asked, ...]
    meetings: tuple[Meeting, ...]
    interactions: tuple[Interaction, ...]
    schema_version: int = 1


def asked(templates: Iterable[Template]) -> list[Asked]:
    """What each template asks for."""
    known = marks()
    return [asks(template, TOOLS, tuple(CASES.values()), known) for template in templates]


def meet(found: Sequence[Asked], spec: Spec, *, workers: int = 1) -> list[Meeting]:
    """Each template's own texts through each parser of an engine."""
    out = []
    with Engine(spec, workers=workers, streams=False) as engine:
        for one in found:
            named = {c: t for c, t in zip(CASES, one.writes, strict=False) if t is not None}
            texts = {case: material(text, TOOLS, case) for case, text in named.items()}
            for parser in engine.parsers:
                parses = engine.parse([Job(parser, m.text, TOOLS) for m in texts.values()])
                came = {
                    case: outcome_of(m, parse) for (case, m), parse in zip(texts.items(), parses, strict=True)
                }
                outcomes = {case: outcome for case, outcome in came.items() if outcome != UNASKED}
                taken = sum(outcome == TAKEN for outcome in outcomes.values())
                out.append(
                    Meeting(
                        template=one.template,
                        dialect=one.dialect,
                        parser=f"{engine.label}:{parser}",
                        taken=taken,
                        written=len(outcomes),
                        outcomes=outcomes,
                        advice=_advice(one, spec.engine, parser, taken, len(outcomes)),
                    )
                )
    return out


def _advice(one: Asked, engine: str, parser: str, taken: int, written: int) -> str:
    """The mismatch in words, and the repair; "" where there is none."""
    if one.fault:
        return f"the template does not render: {one.fault}"
    if one.tools is False:
        return "the template does not show the tools to the model"
    if not written or taken:
        return ""
    better = [name for name in parsers_for(engine, one.dialect or "") if name != parser]
    fix = f"; {engine}:{better[0]} reads it" if better else f"; no parser of {engine} is known to read it"
    return f"the template asks for {one.dialect}, which {parser} does not read{fix}"


def interactions(meetings: Sequence[Meeting]) -> list[Interaction]:
    """The 2 × 2 of every two templates and every two parsers that met both."""
    by: Mapping[tuple[str, str], Meeting] = {(m.template, m.parser): m for m in meetings}
    templates = [t for t in dict.fromkeys(m.template for m in meetings) if _writes(t, meetings)]
    parsers = list(dict.fromkeys(m.parser for m in meetings))
    out = []
    for one, two in combinations(templates, 2):
        for first, second in combinations(parsers, 2):
            cells = [[by[t, p].outcomes for p in (first, second)] for t in (one, two)]
            cases = [c for c in cells[0][0] if all(c in cell for row in cells for cell in row)]
            if not cases:
                continue
            y = [[[cell[c] == TAKEN for c in cases] for cell in row] for row in cells]
            (a, b), (c, d) = ([sum(cell) / len(cases) for cell in row] for row in y)
            out.append(
                Interaction(
                    templates=(one, two),
                    parsers=(first, second),
                    shares=((a, b), (c, d)),
                    main_template=(c + d - a - b) / 2,
                    main_parser=(b + d - a - c) / 2,
                    interaction=a - b - c + d,
                )
            )
    return out


def _writes(template: str, meetings: Sequence[Meeting]) -> bool:
    return any(m.written for m in meetings if m.template == template)
