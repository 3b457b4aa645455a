"""Which dialects does this live server's parser read? Given texts are put through it (DESIGN §5)."""

from __future__ import annotations

from typing import Final

from truecall import classify, wire
from truecall.canonical import WRITERS, write
from truecall.detector import detect
from truecall.preflight.material import WEATHER
from truecall.preflight.probes.base import Outcome, decided, finding, skipped, unknown, words
from truecall.preflight.report import ProbeResult
from truecall.preflight.session import Answer, Session
from truecall.records import Delivery, Finding, Json, Part, Verdict
from truecall.stacks import LoopbackRequest
from truecall.stacks.base import Way

CITY: Final = "Kyzyl"  # a word that no model says by itself
CALLS: Final = (("get_weather", {"city": CITY}),)
DIALECTS: Final = (
    "hermes",
    "bare_json",
    "fenced_json",
    "llama3_json",
    "pythonic",
    "mistral",
    "qwen3_coder",
    "glm",
    "functionary",
    "phi4_functools",
)
"""The dialects that are always tried; the template's and the model's own are added."""
ECHOED: Final = ("hermes", "bare_json", "qwen3_coder")  # an echo costs a whole generation each
MARKS: Final = {
    "surfaced": "surfaced",
    "leaked": "leaked",
    "erased": "ERASED",
    "mangled": "MANGLED",
    "cut_off": "cut off",
}
WAYS: Final = {"guided": "by guided decoding", "prefill": "by prefill", "echo": "by echo"}
DERIVED: Final = "derived from the chat template"  # what llama.cpp says of its parser
_DERIVED: Final = "this engine derives its parser from the template, which has no tools"


async def put_through(
    session: Session,
    dialect: str,
    text: str,
    tools: list[Json] | None = None,
    *,
    stream: bool = False,
    only_way: Way | None = None,
    more: dict[str, Json] | None = None,
) -> tuple[str, Answer | None, Verdict | None, str]:
    """Have the stack parse ``text``: (outcome, answer, verdict, way). ``more``: fields for the request.

    The outcome is a delivery word, or ``not reproduced`` (the text could not be made to pass), ``refused`` or
    ``failed``, or ``no way``.
    """
    tools = tools or [WEATHER]
    for way in session.stack.ways if only_way is None else (only_way,):
        if way == "oracle":
            continue  # asks the parser alone, not the whole path of an answer
        request = session.stack.loopback(text, tools, session.model, way)
        if request is None or (stream and not request.stream):
            continue
        answer = await session.ask({**request.body, **(more or {})}, stream=stream, path=request.path)
        if answer.exchange.status in (400, 404, 422) and answer.refusal():
            continue  # this server does not know the way; the next weaker one is tried
        return *_outcome(answer, text, request, tools), way
    return "no way", None, None, "none"


def _outcome(
    answer: Answer, text: str, request: LoopbackRequest, tools: list[Json]
) -> tuple[str, Answer | None, Verdict | None]:
    if not answer.ok:
        refusal = answer.refusal()
        if refusal is not None and (refusal.ran or refusal.attempted):
            return "erased", answer, answer.verdict
        return ("refused" if refusal and refusal.ran is False else "failed"), answer, answer.verdict
    known = answer.evidence.text if request.way != "prefill" else None
    if request.way == "guided" and known is not None and text.strip() not in known:
        return "not reproduced", answer, None
    if request.way == "echo":
        came = answer.content + "".join(str(c.arguments) for c in answer.response.choices[0].tool_calls)
        if CITY not in (known or came):
            return "not reproduced", answer, None
    wrote = text if request.way != "echo" else (known if known is not None else None)
    view = wire.read_request(answer.body, "openai.chat")
    verdict = classify.judge_response(answer.response, tools, request=view, detokenized=wrote)
    if not verdict.calls:
        return "not reproduced", answer, verdict
    return str(verdict.delivery), answer, verdict


async def run(session: Session) -> Outcome:
    """The acceptance table of the live parser."""
    note = session.notebook
    if note.gate is not None:
        return skipped("loopback", "the gate refuses tools")
    ways = [way for way in session.stack.ways if way != "oracle"]
    if not ways:
        return skipped("loopback", f"no way to make {session.info.title} parse a given text")
    names = list(DIALECTS if ways[0] != "echo" else ECHOED)
    names += [d for d in (note.template_dialect, note.own_dialect) if d and d not in names and d in WRITERS]
    lost: dict[str, tuple[Answer, Verdict]] = {}
    for name in names:
        outcome, answer, verdict, way = await put_through(session, name, write(name, CALLS))
        note.way = way if way != "none" else note.way
        note.table[name] = outcome
        if answer is not None and verdict is not None and outcome in MARKS and outcome != "surfaced":
            lost[name] = (answer, verdict)
        if session.given_up:
            break
    return _conclude(session, lost)


def _conclude(session: Session, lost: dict[str, tuple[Answer, Verdict]]) -> Outcome:
    note = session.notebook
    known = {name: outcome for name, outcome in note.table.items() if outcome in MARKS}
    surfaced = [name for name, outcome in known.items() if outcome == "surfaced"]
    data: dict[str, Json] = {"way": note.way, "table": dict(note.table)}
    if not known:
        reasons = sorted(set(note.table.values())) or ["nothing could be sent"]
        return unknown("loopback", f"no text could be put through: {', '.join(reasons)}")
    said = f"{_grouped(known)} ({WAYS.get(note.way or '', note.way)})"
    findings: list[Finding] = []
    wanted = note.template_dialect or note.own_dialect
    if not surfaced and note.rendered is False and session.info.tool_parser.value == DERIVED:
        # No second cause: the parser comes with the template that has no tools.
        result = ProbeResult(
            name="loopback", kind="contract", state="ok", said=f"{said}: {_DERIVED}", data=data
        )
        return Outcome(result)
    if wanted in lost:
        findings.append(_mismatch(session, wanted, *lost[wanted]))
    elif not note.accepted:
        worst = next(iter(lost))
        findings.append(
            finding(
                session,
                "no-parser",
                Part.PARSER,
                "broken",
                f"No dialect that was tried comes out as a call; {worst} text is {words(known[worst])}",
                lost[worst][0],
                dialect=worst,
            )
        )
    state = decided(findings)
    return Outcome(
        ProbeResult(name="loopback", kind="contract", state=state, said=said, data=data),
        findings,
    )


def _grouped(known: dict[str, str]) -> str:
    """``hermes surfaced · qwen3_coder ERASED · bare_json, glm leaked``."""
    groups = {o: [name for name, outcome in known.items() if outcome == o] for o in MARKS}
    if len(known) > 2 and any(len(names) == len(known) for names in groups.values()):
        return f"all {len(known)} dialects {MARKS[next(iter(known.values()))]}"
    return " · ".join(f"{', '.join(names)} {MARKS[o]}" for o, names in groups.items() if names)


def _mismatch(session: Session, dialect: str, answer: Answer, verdict: Verdict) -> Finding:
    """The dialect that the template asks for does not get through this parser."""
    did = {
        Delivery.LEAKED: "leaves them in the text",
        Delivery.ERASED: "erases them",
        Delivery.MANGLED: "changes them",
    }.get(verdict.delivery, "loses them")
    return finding(
        session,
        "parser-mismatch",
        Part.PARSER,
        "broken",
        f"The template asks for {dialect} calls; this server's parser {did}",
        answer,
        dialect=dialect,
        dialects=dict(session.notebook.table),
    )


def dialect_of(text: str, tools: list[Json]) -> str | None:
    """The dialect of the call in ``text``, or None."""
    found = detect(text, tools)
    return found.calls[-1].dialect if found.calls else None
