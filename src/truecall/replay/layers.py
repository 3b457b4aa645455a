"""Where a call was lost between the model's text and the parser's answer: one layer for every lost call.

The layer is found by asking the parser again with one thing changed: other tools, the text around the call away, the
same call in another form. What it then returns is the reason why it did not before.

=================== ==================================================================================
no_envelope         the parser does not look for the form in which the call stands
bad_payload         the form is one that it reads; what stands inside is not
trailing_text       it returns the call when the text around it is taken away
wrong_name_dropped  it returns the call when a tool of that name is offered
schema_dropped      it returns the call when the tool's schema allows everything
erased              it returns nothing of the call, and the call's text is gone from the content too
parser_loss         it reads a simple call in this very form, the payload parses, and yet nothing
stream_loss         whole, it returned the call; streamed, it did not, or not rightly
mangled             it returned the call with another name or other arguments
failed              it raised, crashed or hung on the text
unasked             it could not be given the text: no loss, and nothing known
=================== ==================================================================================

``erased`` stands before the reason for which the call was not read, which is kept beside it as ``because``; a name or
schema rule that drops a call goes before ``erased``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from truecall.engines import Job, Parse
from truecall.records import Call, Json, Record
from truecall.replay.forms import FORMS, squeezed, written
from truecall.replay.matching import arguments_of, holds
from truecall.replay.texts import Material
from truecall.stacks.dialect_parsers import PARSER_DIALECTS

SIMPLE: Final = (("get_weather", {"city": "Oslo"}),)
SIMPLE_TOOLS: Final[list[Json]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]
_WRAPPER: Final = frozenset({"unclosed", "missing_opener", "stripped_tokens", "odd_id", "glued_id", "fenced"})


class Layer(StrEnum):
    """Where a call was lost; ``returned``: it was not."""

    RETURNED = "returned"
    NO_ENVELOPE = "no_envelope"
    BAD_PAYLOAD = "bad_payload"
    TRAILING_TEXT = "trailing_text"
    WRONG_NAME = "wrong_name_dropped"
    SCHEMA = "schema_dropped"
    ERASED = "erased"
    PARSER_LOSS = "parser_loss"
    STREAM_LOSS = "stream_loss"
    MANGLED = "mangled"
    FAILED = "failed"
    UNASKED = "unasked"


class Lost(Record, frozen=True):
    """What became of one emitted call. ``start``, ``end``: the characters that decided."""

    layer: Layer
    start: int
    end: int
    because: Layer | None = None
    reason: str = ""

    @property
    def away(self) -> bool:
        """Whether it is known not to have come out as it was written."""
        return self.layer not in (Layer.RETURNED, Layer.UNASKED)


class Inquiry:
    """The questions about one lost call, and the layer that their answers give."""

    def __init__(self, engine: str, parser: str, material: Material, call: Call, gone: bool) -> None:
        self.parser, self.material, self.call, self.gone = parser, material, call, gone
        self._engine = engine.partition("==")[0]
        span = call.span
        self._own = material.text[span.start : span.end]
        reading = call.reading()
        self._forms = FORMS.get(call.dialect, {})
        as_calls = [(call.name, reading or {})] if call.name is not None else []
        self._rewritten = {
            name: text for name, form in self._forms.items() if as_calls and (text := written(form, as_calls))
        }

    def questions(self) -> dict[str, Job]:
        """What the parser is asked, by name. Questions about a form are the same for every call."""
        text, span, tools = self.material.text, self.call.span, self.material.tools
        asked: dict[str, Job] = {}
        if self.call.offered is False or self.call.violations:
            asked["permissive"] = Job(self.parser, text, permissive(tools, self.call.name))
        if text[span.end :].strip():
            asked["before"] = Job(self.parser, text[: span.end], tools)
        if text[: span.start].strip():
            asked["after"] = Job(self.parser, text[span.start :], tools)
        if len(asked.keys() & {"before", "after"}) == 2:
            asked["alone"] = Job(self.parser, self._own, tools)
        for name, form in self._forms.items():
            asked[f"simple:{name}"] = Job(self.parser, form(SIMPLE), SIMPLE_TOOLS)
        if self.call.well_formed:
            asked |= {f"same:{name}": Job(self.parser, t, tools) for name, t in self._rewritten.items()}
        return asked

    def decide(self, answers: dict[str, Parse]) -> Lost:
        """The layer, from the answers to `questions`."""
        layer, reason = self._why(answers)
        span = self.call.span
        if self.gone and layer not in (Layer.WRONG_NAME, Layer.SCHEMA):
            return Lost(
                layer=Layer.ERASED, start=span.start, end=span.end, because=layer, reason=f"gone; {reason}"
            )
        if layer is Layer.TRAILING_TEXT:
            start, end = self._around(answers)
            return Lost(layer=layer, start=start, end=end, reason=reason)
        return Lost(layer=layer, start=span.start, end=span.end, reason=reason)

    def _why(self, answers: dict[str, Parse]) -> tuple[Layer, str]:
        call = self.call
        reads = {n for n in self._forms if _simple(answers[f"simple:{n}"])}
        returned = {
            key for key, answer in answers.items() if not key.startswith("simple:") and self._back(answer)
        }
        if "permissive" in returned:
            if call.offered is False:
                return Layer.WRONG_NAME, f"returned once a tool {call.name} is offered"
            return Layer.SCHEMA, "returned once the schema allows everything"
        if returned & {"before", "after", "alone"}:
            return Layer.TRAILING_TEXT, "returned without the text around it"
        if not reads and not self._documented():
            return Layer.NO_ENVELOPE, f"reads no form of {call.dialect}"
        if not call.well_formed:
            return Layer.BAD_PAYLOAD, ", ".join(call.defects) or "the payload does not parse"
        return self._form(reads, {key[5:] for key in returned if key.startswith("same:")})

    def _form(self, reads: set[str], returned: set[str]) -> tuple[Layer, str]:
        """A whole payload of a dialect that the parser knows: its form, its payload, or nothing that shows."""
        own = self._own.strip()
        exact = {name for name, text in self._rewritten.items() if text.strip() == own}
        if exact & reads:
            return Layer.PARSER_LOSS, "a simple call in the same form is returned"
        if exact:
            return Layer.NO_ENVELOPE, f"reads another form of {self.call.dialect}"
        if returned:
            near = any(squeezed(self._rewritten[name]) == squeezed(own) for name in returned)
            if near or _WRAPPER & set(self.call.defects):
                return Layer.NO_ENVELOPE, f"returned once written as {min(returned)}"
            return Layer.BAD_PAYLOAD, f"returned once written as {min(returned)}"
        if reads:
            return Layer.PARSER_LOSS, f"reads {self.call.dialect}, and this call in no form"
        return Layer.NO_ENVELOPE, f"no form of {self.call.dialect} was returned"

    def _back(self, answer: Parse) -> bool:
        return answer.state == "parsed" and holds(answer, self.call)

    def _documented(self) -> bool:
        """Whether the parser is said to read the dialect, where no form of it can be written."""
        said = PARSER_DIALECTS.get(self._engine, {}).get(self.parser)
        return not self._forms and said is not None and said in (self.call.dialect, f"{self.call.dialect}2")

    def _around(self, answers: dict[str, Parse]) -> tuple[int, int]:
        """The text whose absence brought the call back."""
        span, size = self.call.span, len(self.material.text)
        if "before" in answers and self._back(answers["before"]):
            return span.end, size
        if "after" in answers and self._back(answers["after"]):
            return 0, span.start
        return 0, size


def _simple(answer: Parse) -> bool:
    return (
        answer.state == "parsed"
        and len(answer.calls) == 1
        and answer.calls[0].name == SIMPLE[0][0]
        and arguments_of(answer.calls[0]) == SIMPLE[0][1]
    )


def permissive(tools: list[Json], name: str | None) -> list[Json]:
    """The tools with schemas that allow everything, and one of this name."""
    names = [tool.get("function", tool).get("name") for tool in tools if isinstance(tool, dict)]
    made = [known for known in names if isinstance(known, str)]
    if name and name not in made:
        made.append(name)
    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    return [
        {"type": "function", "function": {"name": known, "description": "", "parameters": schema}}
        for known in made
    ]
