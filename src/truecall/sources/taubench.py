"""tau-bench results: one JSON list a run, of ``{task_id, reward, info, traj, trial}``.

Source: tau-bench 59a200c (`run.py`, `types.py`). An exception in a run is stored as reward 0 with ``info.error``
and an empty ``traj``: it is a failed request here, not a turn of the model. Tools are not in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from truecall.records import Json
from truecall.sources.base import Bad, Head, Item, Options, Place, Turn, wanted
from truecall.sources.files import elements, read_whole
from truecall.sources.messages import conversation
from truecall.wire.values import items, obj, word

NAME: Final = "tau-bench"


class TauBenchSource:
    """See the module."""

    name = NAME
    lines = False

    def sniff(self, head: Head) -> bool:
        """Whether the file begins as a list of tau-bench's results."""
        data = head.data
        return (
            data.lstrip()[:1] == b"[" and b'"task_id"' in data and b'"reward"' in data and b'"info"' in data
        )

    def read(self, data: Any, file: str, options: Options) -> Iterator[Item]:
        """The agent's turns of all episodes."""
        number = -1
        for number, entry in enumerate(elements(read_whole(str(data)))):
            place = Place(file=file, entry=f"entry {number}")
            if not isinstance(entry, dict):
                yield Bad(place=place, reason="is no JSON object")
            else:
                yield from _episode(entry, place, options)
        if number < 0:
            yield Bad(place=Place(file=file), reason="is no JSON list of results: empty, cut off or damaged")


def _episode(entry: dict[str, Json], place: Place, options: Options) -> Iterator[Item]:
    info = obj(entry.get("info"))
    episode = f"{entry.get('task_id')}/{entry.get('trial', 0)}"
    trajectory = items(entry.get("traj"))
    reward = entry.get("reward")
    solved = reward == 1 if isinstance(reward, (int, float)) else None
    fields = wanted(entry, options)
    if not trajectory:
        error = word(info.get("error"))
        if error is not None:
            yield Turn(place=place, error=error, tools=options.tools, episode=episode, fields=fields)
        else:
            yield Bad(place=place, reason="an empty trajectory without an error")
        return
    yield from conversation(
        trajectory,
        place=place,
        tools=options.tools,
        known=True,
        episode=episode,
        solved=solved,
        fields=fields,
    )
