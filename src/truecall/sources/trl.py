"""TRL completion tables (``log_completions``): rows with ``step``, ``prompt``, ``completion``, rewards, advantage.

Source: TRL 1.16.0 (`trainer/grpo_trainer.py`, ``completions/completions_<step>.parquet``). ``completion`` is text
decoded with special tokens skipped, or messages: with a parser they hold structured calls and the tools' results,
without one the content is the whole decoded text and structured calls are unknown. The tool list is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from truecall.records import Json
from truecall.sources.base import Bad, Head, Item, Line, Options, Place, Turn, wanted
from truecall.sources.files import TOO_LONG
from truecall.sources.messages import conversation
from truecall.sources.verl import model_texts
from truecall.wire.values import decode, integer, text

NAME: Final = "trl"


class TrlSource:
    """See the module; tables as JSON lines (parquet: `truecall.sources.parquet`)."""

    name = NAME
    lines = True

    def sniff(self, head: Head) -> bool:
        """Whether the first line is a row."""
        return is_completion(head.first)

    def read(self, data: Iterable[Line], file: str, options: Options) -> Iterator[Item]:
        """The model's turns of all rows."""
        for line in data:
            place = Place(file=file, line=line.number, offset=line.offset)
            entry = decode(line.data) if line.data != TOO_LONG else None
            if not isinstance(entry, dict):
                yield Bad(place=place, reason="is no JSON object")
            else:
                yield from completion_turns(entry, place, options)


def is_completion(entry: Json) -> bool:
    """Whether a row has the columns of a completion table."""
    if not isinstance(entry, dict) or "prompt" not in entry or "completion" not in entry:
        return False
    return "advantage" in entry or "step" in entry or any("reward" in str(key) for key in entry)


def completion_turns(entry: dict[str, Json], place: Place, options: Options) -> Iterator[Item]:
    """The turns of one row."""
    completion = entry.get("completion")
    step = integer(entry.get("step"))
    fields = wanted(entry, options)
    if isinstance(completion, str):
        for position, (wrote, observed) in enumerate(model_texts(completion)):
            yield Turn(
                place=place,
                text=text(wrote),
                raw=True,
                tools=options.tools,
                executed=observed,
                observed=observed,
                step=step,
                position=position,
                stripped=True,
                fields=fields,
            )
    elif isinstance(completion, list):
        for turn in conversation(completion, place=place, tools=options.tools, step=step, fields=fields):
            if turn.surfaced is None:  # nothing was parsed: the content is the whole decoded text
                turn = msgspec.structs.replace(turn, raw=True, stripped=True)
            yield turn
    else:
        yield Bad(place=place, reason="completion is neither text nor messages")
