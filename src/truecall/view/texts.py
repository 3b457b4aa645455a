"""The texts of a turn by their names, and pieces of them: no page holds more than a browser shows at once."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from markupsafe import Markup

from truecall import wire
from truecall.pages import Mark, marked, marks_of
from truecall.records import Choice, Json
from truecall.store.turns import WholeTurn
from truecall.view.query import number
from truecall.wire.request import content_text

PART: Final = 50_000
"""Characters of a text on a page of its own."""


class Text(NamedTuple):
    """A text of a turn: its name in addresses, what it is, and the stretches that are marked in it."""

    what: str
    title: str
    text: str
    marks: tuple[Mark, ...] = ()

    @property
    def parts(self) -> int:
        """The pages that it takes."""
        return max(1, -(-len(self.text) // PART))

    def part(self, number: int) -> Markup:
        """Part ``number``, from 1, as HTML."""
        start = (number - 1) * PART
        return marked(self.text, self.marks, start, start + PART)


class Piece(NamedTuple):
    """The beginning of a text, as HTML, with how much of it that is."""

    text: Text
    html: Markup
    shown: int

    @property
    def whole(self) -> bool:
        return self.shown >= len(self.text.text)


def piece(text: Text, limit: int) -> Piece:
    """The first ``limit`` characters."""
    return Piece(text, marked(text.text, text.marks, 0, limit), min(limit, len(text.text)))


def choice_of(turn: WholeTurn) -> Choice | None:
    """The sampled answer that the turn is about."""
    choices = turn.response.choices if turn.response is not None else ()
    return choices[turn.choice] if turn.choice < len(choices) else None


def messages_of(turn: WholeTurn) -> tuple[dict[str, Json], ...]:
    """The request's messages in the shape of OpenAI chat."""
    if not isinstance(turn.request, dict):
        return ()
    return wire.read_request(turn.request, turn.api).messages


def text_of(turn: WholeTurn, what: str) -> Text | None:
    """The text of this name; None where the turn has none.

    Names: ``raw`` (what the model wrote), ``content``, ``reasoning``, ``call-N`` (a surfaced call's arguments),
    ``error``, ``body``, ``sent``, ``request``, ``message-N``, ``tools``, ``prompt``, ``line``.
    """
    kind, _, rest = what.partition("-")
    if rest:
        return _numbered(turn, kind, number(rest) or 0)
    choice, exchange, response = choice_of(turn), turn.exchange, turn.response
    if kind == "raw" and turn.evidence is not None and turn.evidence.text is not None:
        marks = marks_of(turn.detection) if turn.detection is not None else ()
        return Text(what, "What the model wrote", turn.evidence.text, tuple(marks))
    if kind == "content" and choice is not None and choice.content is not None:
        return Text(what, "Content", choice.content)
    if kind == "reasoning" and choice is not None and choice.reasoning is not None:
        return Text(what, "Reasoning", choice.reasoning)
    if kind == "error" and response is not None and response.error is not None:
        return Text(what, "Error", response.error.message)
    if kind == "body" and exchange is not None and exchange.body:
        return Text(what, "The answer's body, as received", exchange.body.decode("utf-8", "replace"))
    if kind == "sent" and turn.sent:
        return Text(what, "What the client got instead", turn.sent.decode("utf-8", "replace"))
    if kind == "request" and turn.request is not None:
        return Text(what, "The request's body", pretty(turn.request))
    if kind == "tools" and turn.tools:
        return Text(what, "The tools that were offered", pretty(turn.tools))
    if kind == "prompt" and response is not None and response.prompt_text is not None:
        return Text(what, "The prompt as rendered", response.prompt_text)
    if kind == "line":
        return Text(what, "The exchange's line in the log", pretty(turn.line))
    return None


def _numbered(turn: WholeTurn, kind: str, place: int) -> Text | None:
    choice = choice_of(turn)
    if kind == "call" and choice is not None and 0 < place <= len(choice.tool_calls):
        arguments = choice.tool_calls[place - 1].arguments
        text = arguments if isinstance(arguments, str) else pretty(arguments)
        return Text(f"call-{place}", f"Arguments of call {place}, as the interface gave them", text)
    messages = messages_of(turn)
    if kind == "message" and 0 < place <= len(messages):
        return message_text(messages[place - 1], place)
    return None


def message_text(message: dict[str, Json], number: int) -> Text:
    """A message's content as text; what is no text of it as JSON."""
    content = message.get("content")
    text = content_text(content)
    if text is None and content is not None:
        text = pretty(content)
    return Text(f"message-{number}", f"Message {number}", text or "")


def file_of(turn: WholeTurn, what: str) -> bytes | None:
    """The whole text as a file: bodies byte for byte, the rest in UTF-8."""
    if what == "body" and turn.exchange is not None and turn.exchange.body:
        return turn.exchange.body
    if what == "sent" and turn.sent:
        return turn.sent
    text = text_of(turn, what)
    return None if text is None else text.text.encode("utf-8", "replace")


def pretty(value: Json) -> str:
    """A JSON value to read, whatever it holds."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return "(nested too deeply to be written out)"
