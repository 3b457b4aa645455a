"""One turn as its page shows it: what was asked, what the model wrote, what came back, and what was concluded."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from markupsafe import Markup

from truecall import stacks
from truecall.classify import RULES
from truecall.records import CallVerdict, EvidenceTier, Json
from truecall.store.index import TurnRow
from truecall.store.turns import WholeTurn
from truecall.view.runs import Run
from truecall.view.texts import (
    PART,
    Piece,
    Text,
    choice_of,
    message_text,
    messages_of,
    piece,
    pretty,
    text_of,
)
from truecall.view.timing import Timing, picture, timing_of
from truecall.wire.values import obj, objects

INLINE: Final = 20_000  # characters of a text on the turn's own page
MESSAGE: Final = 3_000  # of one message
LATEST: Final = 6  # messages that stand open
MOST_MESSAGES: Final = 200
MOST_CALLS: Final = 200
AROUND: Final = 12  # turns of the episode on either side

TIERS: Final = {
    EvidenceTier.TOKEN_IDS: "the ids of the generated tokens, decoded",
    EvidenceTier.RAW_TEXT: "the text before parsing, given beside the message",
    EvidenceTier.LOGPROB_BYTES: "the bytes of each token in the log probabilities",
    EvidenceTier.ERROR_BODY: "text that the error carries",
    EvidenceTier.CONTENT: "what the parser left in the content",
    EvidenceTier.TOOL_CALLS: "the calls that the interface gave, without the text behind them",
    EvidenceTier.NONE: "nothing is known of the text",
}
"""Where the text comes from (docs/glossary.md)."""

WRITTEN: Final = ("body", "sent", "request", "tools", "prompt", "line")
"""Texts that have pages and files of their own, beside those that the turn's page shows."""


class Message(NamedTuple):
    """One message of the request. ``calls``: those of an assistant, as JSON; ``answers``: the id of a tool's call."""

    number: int
    role: str
    content: Piece
    calls: Piece | None
    answers: str


class Surfaced(NamedTuple):
    """A call as the interface gave it."""

    number: int
    name: str | None
    id: str | None
    arguments: Piece


class Judged(NamedTuple):
    """The verdict on one call; ``part``: where its text stands, by the parts of ``raw``."""

    number: int
    call: CallVerdict
    arguments: Piece
    says: str
    part: int | None


class Shown(NamedTuple):
    """What the template of a turn's page gets beside the turn itself."""

    wrote: Piece | None
    reasoning: Piece | None
    content: Piece | None
    surfaced: tuple[Surfaced, ...]
    error: Piece | None
    finish: str | None
    judged: tuple[Judged, ...]
    more_calls: int
    says: str
    detail: str
    timing: Timing | None
    stream: Markup
    earlier: tuple[Message, ...]
    latest: tuple[Message, ...]
    left_out: int
    parameters: tuple[tuple[str, str], ...]
    tools: Piece | None
    prompt: Piece | None
    files: tuple[tuple[str, str, int], ...]


def shown_of(turn: WholeTurn, row: TurnRow) -> Shown:
    """The page's parts."""
    choice = choice_of(turn)
    messages = messages_of(turn)
    listed = range(max(0, len(messages) - MOST_MESSAGES), len(messages))
    every = tuple(_message(messages[index], index + 1) for index in listed)
    verdict, exchange = turn.verdict, turn.exchange
    calls = verdict.calls if verdict is not None else ()
    rule = verdict.rule if verdict is not None else row.rule
    says = sentence(rule)
    given = choice.tool_calls if choice is not None else ()
    return Shown(
        wrote=_piece(turn, "raw"),
        reasoning=_piece(turn, "reasoning"),
        content=_piece(turn, "content"),
        surfaced=tuple(
            Surfaced(number, call.name, call.id, arguments)
            for number, call in enumerate(given[:MOST_CALLS], 1)
            if (arguments := _piece(turn, f"call-{number}", MESSAGE)) is not None
        ),
        error=_piece(turn, "error"),
        finish=choice.finish_reason if choice is not None else None,
        judged=tuple(_judged(call, number) for number, call in enumerate(calls[:MOST_CALLS], 1)),
        more_calls=max(0, max(len(calls), len(given)) - MOST_CALLS),
        says=says,
        detail=""
        if verdict is None or says.rstrip(".").lower() in verdict.detail.lower()
        else verdict.detail,
        timing=timing_of(exchange) if exchange is not None else None,
        stream=picture(exchange.chunks, exchange.timing.total) if exchange is not None else Markup(""),
        earlier=every[:-LATEST],
        latest=every[-LATEST:],
        left_out=len(messages) - len(every),
        parameters=_parameters(turn.request),
        tools=_piece(turn, "tools"),
        prompt=_piece(turn, "prompt"),
        files=tuple(
            (what, text.title, len(text.text))
            for what in ("raw", *WRITTEN)
            if (text := text_of(turn, what)) is not None
        ),
    )


def episode_around(run: Run, row: TurnRow) -> list[TurnRow]:
    """The turns of the episode about this one, itself among them; none where no episode is known."""
    if row.episode is None:
        return []
    where = {"episode": row.episode}
    before = run.index.page(where, before=row.id, limit=AROUND)
    return [*before, row, *run.index.page(where, after=row.id, limit=AROUND)]


@cache
def _sentences() -> dict[str, str]:
    said = {rule: refusal.title for rule, refusal in stacks.known_refusals().items()}
    return said | {rule.id: rule.says for rule in RULES}


def sentence(rule: str | None) -> str:
    """What the rule says, as docs/verdicts.md has it."""
    text = _sentences().get(rule or "", "")
    return text if not text or text.endswith((".", "!")) else f"{text[0].upper()}{text[1:]}."


def _piece(turn: WholeTurn, what: str, limit: int = INLINE) -> Piece | None:
    text = text_of(turn, what)
    return piece(text, limit) if text is not None else None


def _message(message: dict[str, Json], number: int) -> Message:
    text = message_text(message, number)
    calls = message.get("tool_calls")
    return Message(
        number=number,
        role=str(message.get("role") or "?"),
        content=piece(text, MESSAGE),
        calls=piece(text._replace(text=_called(calls)), MESSAGE) if calls else None,
        answers=str(message.get("tool_call_id") or message.get("name") or ""),
    )


def _called(calls: Json) -> str:
    """An assistant message's calls, one a line: name and arguments."""
    functions = [obj(call.get("function")) for call in objects(calls)]
    if not functions or not all(isinstance(each.get("arguments"), str) for each in functions):
        return pretty(calls)
    return "\n".join(f"{each.get('name')} {each['arguments']}" for each in functions)


def _judged(call: CallVerdict, number: int) -> Judged:
    reading = call.arguments if call.emitted is None else call.emitted.reading()
    text = Text("raw", f"Arguments of call {number}", pretty(call.arguments if reading is None else reading))
    part = None if call.emitted is None else call.emitted.span.start // PART + 1
    return Judged(number, call, piece(text, MESSAGE), sentence(call.rule), part)


def _parameters(request: Json) -> tuple[tuple[str, str], ...]:
    """The request's fields but for those that have a place of their own."""
    if not isinstance(request, dict):
        return ()
    own = ("messages", "tools", "input", "contents", "prompt", "system")
    fields = [(name, value) for name, value in request.items() if name not in own]
    return tuple((name, pretty(value)[:MESSAGE]) for name, value in fields[:100])
