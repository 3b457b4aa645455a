"""tau2-bench results: ``{timestamp, info, tasks, simulations}``, or a folder with a file for each simulation.

Source: tau2-bench a2c0247 (`data_model/simulation.py`, `data_model/message.py`). An assistant message keeps the whole
response in ``raw_data``: it is asked first. An empty message ends a simulation as ``infrastructure_error`` without
messages: a failed request, not a turn. The user simulator's turns are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from truecall import wire
from truecall.records import Json
from truecall.sources.base import Bad, Head, Item, Options, Place, Turn, wanted
from truecall.sources.files import elements, fields, plain, read_whole
from truecall.sources.messages import calls_of, uptake
from truecall.wire.values import decode, obj, objects, text, word

NAME: Final = "tau2"


class Tau2Source:
    """See the module."""

    name = NAME
    lines = False

    def sniff(self, head: Head) -> bool:
        """Whether the file begins as results of tau2 or as one simulation."""
        data = head.data
        if data.lstrip()[:1] != b"{":
            return False
        if b'"agent_info"' in data and b'"environment_info"' in data:
            return True
        return b'"task_id"' in data and b'"termination_reason"' in data

    def read(self, data: Any, file: str, options: Options) -> Iterator[Item]:
        """The agent's turns of all simulations."""
        whole = read_whole(str(data))
        value = fields(whole)
        if not value:
            yield Bad(place=Place(file=file), reason="is no JSON object: cut off or damaged")
            return
        info = obj(plain(value.get("info")))
        tools = obj(info.get("environment_info")).get("tool_defs")
        about = {
            "tools": tools if isinstance(tools, list) else options.tools,
            "model": word(obj(info.get("agent_info")).get("llm")),
        }
        runs = value.get("simulations")
        for number, run in enumerate([decode(whole)] if runs is None else elements(runs)):
            place = Place(file=file, entry=f"simulation {number}")
            if not isinstance(run, dict):
                yield Bad(place=place, reason="is no JSON object")
            else:
                yield from _simulation(run, place, about, options)


def _simulation(
    run: dict[str, Json], place: Place, about: dict[str, Any], options: Options
) -> Iterator[Item]:
    reward = obj(run.get("reward_info")).get("reward")
    about = {
        **about,
        "episode": f"{run.get('task_id')}/{run.get('trial', 0)}",
        "solved": reward == 1 if isinstance(reward, (int, float)) else None,
        "fields": wanted(run, options),
    }
    messages = list(objects(run.get("messages")))
    if not messages:
        reason = word(run.get("termination_reason")) or "a simulation without messages"
        yield Turn(place=place, error=reason, **about)
        return
    position = 0
    for index, message in enumerate(messages):
        if message.get("role") == "assistant":
            yield _turn(messages, index, place, position, about)
            position += 1


def _turn(
    messages: list[dict[str, Json]], index: int, place: Place, position: int, about: dict[str, Any]
) -> Turn:
    message = messages[index]
    calls = calls_of(message.get("tool_calls"))
    executed, observed = uptake(messages, index, bool(calls))
    raw = message.get("raw_data")
    body = raw if isinstance(raw, dict) and wire.sniff(raw) is not None else None
    return Turn(
        place=place,
        text=text(message.get("content")),
        surfaced=calls,
        body=body,
        api=wire.sniff(body) if body is not None else None,
        executed=executed,
        observed=observed,
        position=position,
        **{**about, "model": about["model"] or word(obj(body).get("model"))},
    )
