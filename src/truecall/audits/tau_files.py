"""tau-bench and tau2-bench result files to simulations, whole or cut off.

tau-bench (59a200c): one JSON list a run. tau2-bench (a2c0247): one JSON object, or a folder with ``results.json``
and ``simulations/<id>.json``. A file that ends inside gives what stands before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import msgspec

from truecall.errors import InputError
from truecall.records import Json, Record
from truecall.sources.base import Bad, Place
from truecall.sources.bfcl import read_bytes, text_of
from truecall.wire.values import plain as sound

Kind = Literal["tau-bench", "tau2"]


class Simulation(Record, frozen=True):
    """One episode. ``reward`` None: none was stored. ``error``: the exception's text, or the termination that stands
    for one. ``dropped``: the harness leaves it out of its own metrics. ``replies``: the agent's texts without a call.
    """

    file: str
    index: int
    task: str
    trial: str
    reward: float | None
    error: str | None = None
    traceback: str = ""
    dropped: bool = False
    messages: int = 0
    replies: tuple[str, ...] = ()


def simulations(path: Path, kind: Kind, shown: str) -> tuple[list[Simulation], list[Bad]]:
    """The simulations of a file; what can't be read is Bad. Nothing where the file is of another kind."""
    bad: list[Bad] = []
    try:
        text, _ = text_of(read_bytes(path))
    except ValueError as error:
        return [], [Bad(place=Place(file=shown), reason=str(error))]
    out: list[Simulation] = []
    read = _tau if kind == "tau-bench" else _tau2
    for index, item in enumerate(_items(text, kind, shown, bad)):
        found = read(item, shown, index) if isinstance(item, dict) else None
        if found is None:
            place = Place(file=shown, entry=str(index))
            bad.append(Bad(place=place, reason=f"no {kind} simulation (task_id and reward or reward_info)"))
        else:
            out.append(found)
    return out, bad


def _items(text: str, kind: Kind, shown: str, bad: list[Bad]) -> Iterator[Json]:
    """The simulations' JSON, one by one, so that a torn end costs the last one only."""
    text = text.lstrip()
    if kind == "tau2" and text.startswith("{"):
        match = re.search(r'"simulations"\s*:\s*\[', text)
        if match is None:
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:
                bad.append(Bad(place=Place(file=shown), reason=f"no JSON: {error}"))
                return
            if "messages" in value and "task_id" in value:  # simulations/<id>.json
                yield sound(value)
            return
        at = match.end()
    elif kind == "tau-bench" and text.startswith("["):
        at = 1
    else:
        form = "an object with simulations" if kind == "tau2" else "a list"
        bad.append(Bad(place=Place(file=shown), reason=f"a {kind} file is {form} in JSON"))
        return
    decoder = json.JSONDecoder()
    separator = re.compile(r"[\s,]*")
    while True:
        match = separator.match(text, at)
        at = match.end() if match else at
        if at >= len(text):
            bad.append(Bad(place=Place(file=shown), reason="cut off: the list has no end"))
            return
        if text[at] == "]":
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            bad.append(
                Bad(place=Place(file=shown, offset=at), reason=f"torn: {str(error).splitlines()[0][:120]}")
            )
            return
        yield sound(value)


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _tau(item: dict[str, Any], shown: str, index: int) -> Simulation | None:
    if "task_id" not in item or "reward" not in item:
        return None
    info = item.get("info")
    info = info if isinstance(info, dict) else {}
    messages = item.get("traj")
    messages = messages if isinstance(messages, list) else []
    error = info.get("error")
    return Simulation(
        file=shown,
        index=index,
        task=str(item["task_id"]),
        trial=str(item.get("trial", 0)),
        reward=_number(item["reward"]),
        error=str(error) if error is not None else None,
        traceback=str(info.get("traceback") or ""),
        messages=len(messages),
        replies=tuple(_replies(messages)),
    )


def _tau2(item: dict[str, Any], shown: str, index: int) -> Simulation | None:
    if "task_id" not in item or not ("reward_info" in item or "termination_reason" in item):
        return None
    reward = item.get("reward_info")
    messages = item.get("messages")
    messages = messages if isinstance(messages, list) else []
    reason = str(item.get("termination_reason") or "")
    infrastructure = reason.rpartition(".")[2].lower() == "infrastructure_error"
    info = item.get("info")
    told = info.get("error") if isinstance(info, dict) else None
    return Simulation(
        file=shown,
        index=index,
        task=str(item["task_id"]),
        trial=str(item.get("trial", 0)),
        reward=_number(reward.get("reward")) if isinstance(reward, dict) else None,
        error=(str(told) if told else reason) if infrastructure else None,
        dropped=infrastructure,
        messages=len(messages),
        replies=tuple(_replies(messages)),
    )


_TEXT_RESULT = "API output:"  # how tau-bench's text agents are given the result of a call that they wrote


def _replies(messages: list[Json]) -> Iterator[str]:
    """The agent's texts that came without a structured call; the raw response's text where it was kept.

    A text agent's calls that were run are none of them.
    """
    for message, after in zip_longest(messages, messages[1:]):
        if not isinstance(message, dict) or message.get("role") != "assistant" or message.get("tool_calls"):
            continue
        answered = after.get("content") if isinstance(after, dict) else None
        if isinstance(answered, str) and answered.startswith(_TEXT_RESULT):
            continue
        text = _raw_text(message.get("raw_data"))
        text = text if text is not None else message.get("content")
        if isinstance(text, str) and text:
            yield text


def _raw_text(raw: Json) -> str | None:
    """The content of a stored chat response; None where it was not kept."""
    choices = raw.get("choices") if isinstance(raw, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    inner = first.get("message") if isinstance(first, dict) else None
    text = inner.get("content") if isinstance(inner, dict) else None
    return text if isinstance(text, str) else None


def find(paths: list[Path], kind: Kind) -> list[tuple[Path, str]]:
    """The result files under ``paths``, each with the name to show. Raises InputError where there is none."""
    out: list[tuple[Path, str]] = []
    for path in paths:
        if path.is_file():
            out.append((path, path.name))
        elif path.is_dir():
            found = sorted(
                p for p in path.rglob("*") if re.search(r"\.json(?:\.gz|\.zst)?\Z", p.name) and p.is_file()
            )
            out += [(p, p.relative_to(path).as_posix()) for p in found if _looks(p, kind)]
        else:
            raise InputError(f"{path}: no such file or folder")
    if not out:
        raise InputError(f"{', '.join(map(str, paths))}: no {kind} result files")
    return out


def _looks(path: Path, kind: Kind) -> bool:
    """Whether a file of a folder begins like a result file."""
    try:
        raw = read_bytes(path) if path.suffix in (".gz", ".zst") else _head(path)
    except (ValueError, OSError):
        return False
    head = text_of(raw[: 1 << 16])[0].lstrip()
    if kind == "tau-bench":
        return head.startswith("[") and '"task_id"' in head
    return head.startswith("{") and ('"simulations"' in head or '"task_id"' in head or '"tasks"' in head)


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(1 << 16)


def plain(item: Simulation) -> dict[str, Any]:
    """A simulation without its texts, for tables."""
    row: dict[str, Any] = msgspec.to_builtins(item)
    row.pop("replies", None)
    row.pop("traceback", None)
    return row
