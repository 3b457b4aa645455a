"""lm-eval samples (``--log_samples``): JSON lines with ``doc``, ``arguments``, ``resps`` and ``filtered_resps``.

Source: lm-evaluation-harness 0.4.13 (`loggers/evaluation_tracker.py`). ``resps`` holds what the model wrote for each
request; its chat models read ``message.content`` alone, so that structured calls are unknown, never none. Requests
that ask for log-likelihoods have no text. The model's name is that of the folder, as lm-eval lays it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from truecall.records import Json
from truecall.sources.base import Bad, Head, Item, Line, Options, Place, Turn, wanted
from truecall.sources.files import TOO_LONG
from truecall.wire.values import decode, items, obj

NAME: Final = "lm-eval"


class LmEvalSource:
    """See the module."""

    name = NAME
    lines = True

    def sniff(self, head: Head) -> bool:
        """Whether the first line is a sample."""
        return is_sample(head.first)

    def read(self, data: Iterable[Line], file: str, options: Options) -> Iterator[Item]:
        """The generated texts, in the order of the requests."""
        model = Path(file).parent.name if Path(file).name.startswith("samples_") else None
        for line in data:
            place = Place(file=file, line=line.number, offset=line.offset)
            entry = decode(line.data) if line.data != TOO_LONG else None
            if not isinstance(entry, dict):
                yield Bad(place=place, reason="is no JSON object")
            else:
                yield from sample_turns(entry, place, options, model or None)


def is_sample(entry: Json) -> bool:
    """Whether an entry has the keys of a sample."""
    return isinstance(entry, dict) and "doc" in entry and "resps" in entry


def sample_turns(
    entry: dict[str, Json], place: Place, options: Options, model: str | None = None
) -> Iterator[Item]:
    """The turns of one sample."""
    texts = [one for request in items(entry.get("resps")) for one in items(request) if isinstance(one, str)]
    if not texts:
        yield Bad(place=place, reason="holds no generated text (log-likelihoods, or nothing)")
        return
    tools = obj(entry.get("doc")).get("tools")
    for text in texts:
        yield Turn(
            place=place,
            text=text,
            tools=tools if isinstance(tools, list) else options.tools,
            model=model,
            episode=str(entry.get("doc_id")),
            position=0,
            fields=wanted(entry, options),
        )
