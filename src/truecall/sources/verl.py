"""verl rollout dumps (``trainer.rollout_data_dir``): JSON lines ``{input, output, gts, score, step, …}``.

Source: verl 0.9.1 (`trainer/ppo/ray_trainer.py`, `_write_generations`). Prompt and response are decoded with special
tokens skipped; the tool list and the parsed calls are not in the file, and the tools' results stand in ``output``
between the model's own words. A result behind a role's name was executed and came back; where none stands, what
became of a call is unknown. Tools are read from the prompt where its template renders a ``<tools>`` list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from truecall.records import Json
from truecall.sources.base import Bad, Head, Item, Line, Options, Place, Turn, wanted
from truecall.sources.files import TOO_LONG
from truecall.wire.values import decode, integer

NAME: Final = "verl"

_SPECIAL: Final = re.compile(
    r"<\|(?:im_start|im_end|eot_id|start_header_id|end|user|assistant)\|>|</s>|<end_of_turn>"
)
_OPEN, _CLOSE = "<tool_response>", "</tool_response>"
_HEADER: Final = re.compile(r"(?:<\|im_end\|>)?\s*(?:<\|im_start\|>)?(?<![^\s>])(?:user|tool)\s*\n\s*\Z")
_NEXT: Final = re.compile(r"\s*(?:<\|im_end\|>)?\s*(?:<\|im_start\|>)?assistant\s*(?:\n|\Z)")
_IPYTHON: Final = re.compile(
    r"(?:<\|eot_id\|>)?(?:<\|start_header_id\|>)?ipython(?:<\|end_header_id\|>)?\n\n"
)
_AGAIN: Final = re.compile(
    r"(?:<\|eot_id\|>)?(?:<\|start_header_id\|>)?assistant(?:<\|end_header_id\|>)?\n\n"
)
_TOOLS: Final = re.compile(r"<tools>(.*?)</tools>", re.DOTALL)
_LONGEST_HEADER: Final = 80


class VerlSource:
    """See the module."""

    name = NAME
    lines = True

    def sniff(self, head: Head) -> bool:
        """Whether the first line is an entry of a dump."""
        return is_rollout(head.first)

    def read(self, data: Iterable[Line], file: str, options: Options) -> Iterator[Item]:
        """The model's turns of all rollouts."""
        known: dict[str, Json] = {}
        for line in data:
            place = Place(file=file, line=line.number, offset=line.offset)
            entry = decode(line.data) if line.data != TOO_LONG else None
            if not isinstance(entry, dict):
                yield Bad(place=place, reason="is no JSON object")
            else:
                yield from rollout_turns(entry, place, options, known)


def is_rollout(entry: Json) -> bool:
    """Whether an entry has the keys of a dump."""
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("input"), str)
        and isinstance(entry.get("output"), str)
        and ("score" in entry or "gts" in entry or "step" in entry)
    )


def rollout_turns(
    entry: dict[str, Json], place: Place, options: Options, known: dict[str, Json] | None = None
) -> Iterator[Item]:
    """The turns of one rollout. ``known``: keeps tool lists that come again from entry to entry."""
    prompt, output = entry.get("input"), entry.get("output")
    if not isinstance(output, str):
        yield Bad(place=place, reason="output is no text")
        return
    prompt = prompt if isinstance(prompt, str) else ""
    tools = rendered_tools(prompt, {} if known is None else known)
    stripped = not (_SPECIAL.search(prompt) or _SPECIAL.search(output))
    episode = next((str(entry[key]) for key in ("request_id", "uid") if entry.get(key) is not None), None)
    for position, (text, observed) in enumerate(model_texts(output)):
        yield Turn(
            place=place,
            text=text,
            raw=True,
            tools=options.tools if tools is None else tools,
            executed=observed,
            observed=observed,
            step=integer(entry.get("step")),
            episode=episode,
            position=position,
            stripped=stripped,
            fields=wanted(entry, options),
        )


def rendered_tools(prompt: str, known: dict[str, Json]) -> Json:
    """The tools that a prompt shows as JSON lines in ``<tools>``; None where it shows none."""
    for match in _TOOLS.finditer(prompt):
        block = match[1].strip()
        if block in known:
            return known[block]
        found = [value for line in block.splitlines() if isinstance(value := decode(line), dict)]
        whole = decode(block)
        tools: Json = whole if isinstance(whole, list) else found
        if tools and all(isinstance(tool, dict) and ("function" in tool or "name" in tool) for tool in tools):
            if len(known) >= 64:
                known.clear()
            known[block] = tools
            return tools
    return None


def model_texts(output: str) -> Iterator[tuple[str, bool | None]]:
    """(what the model wrote, whether a tool's result followed or None) for each turn in a decoded response."""
    at = 0
    while True:
        found = _result(output, at)
        if found is None:
            if output[at:].strip() or at == 0:
                yield output[at:], None
            return
        end, following = found
        yield output[at:end], True
        at = following


def _result(output: str, at: int) -> tuple[int, int] | None:
    """(end of the model's words, start of its next ones) around the next result behind ``at``."""
    begin = output.find(_OPEN, at)
    while begin >= 0:
        head = _HEADER.search(output, max(at, begin - _LONGEST_HEADER), begin)
        if head is not None:
            return head.start(), _behind(output, begin)
        begin = output.find(_OPEN, begin + 1)  # no role before it: the model's own words
    head = _IPYTHON.search(output, at)
    if head is None:
        return None
    again = _AGAIN.search(output, head.end())
    return head.start(), again.end() if again else len(output)


def _behind(output: str, begin: int) -> int:
    """Behind all results that stand one after another, and the role's name that follows them."""
    while True:
        close = output.find(_CLOSE, begin)
        if close < 0:
            return len(output)
        end = close + len(_CLOSE)
        following = _NEXT.match(output, end)
        if following:
            return following.end()
        begin = output.find(_OPEN, end)
        if begin < 0 or output[end:begin].strip(" \n") not in ("", "user", "tool"):
            return end
