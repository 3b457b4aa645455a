"""inspect_ai logs: ``.eval`` archives and JSON files, of format 2 and before.

Source: inspect_ai's log format (`inspect_ai.log`, 0.3.285). The turns are the model events, which keep the tools
that were offered and, with ``log_model_api``, the API's own request and response; a sample without events gives
its messages. A call is executed when a tool event has its id, observed when a tool message has. Repeated texts stand
in ``attachments``, repeated messages in ``events_data``; both are put back where they are needed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from truecall import wire
from truecall.errors import InputError
from truecall.records import Json, Usage
from truecall.sources.base import Bad, Head, Item, Options, Place, Turn, wanted
from truecall.sources.files import elements, fields, plain, read_whole
from truecall.sources.messages import calls_of, conversation, text_of
from truecall.sources.zips import member
from truecall.wire.values import count, decode, integer, obj, objects, word

NAME: Final = "inspect_ai"
_ATTACHED: Final = "attachment://"


class InspectSource:
    """See the module."""

    name = NAME
    lines = False

    def sniff(self, head: Head) -> bool:
        """Whether the file is a zip archive of an eval's samples, or begins as a JSON log."""
        data = head.data
        if data.startswith(b"PK\x03\x04"):
            return b"_journal/" in data or b"header.json" in data or b"samples/" in data
        return (
            data.lstrip()[:1] == b"{" and b'"eval"' in data and (b'"eval_id"' in data or b'"run_id"' in data)
        )

    def read(self, data: Any, file: str, options: Options) -> Iterator[Item]:
        """The turns of all samples."""
        path = str(data)
        if _begins_as_zip(path):
            yield from _archive(path, file, options)
            return
        value = fields(read_whole(path))
        if not value:
            yield Bad(place=Place(file=file), reason="is no JSON object: cut off or damaged")
            return
        model = word(plain(fields(value.get("eval")).get("model")))
        for number, sample in enumerate(elements(value.get("samples"))):
            place = Place(file=file, entry=f"sample {number}")
            yield from _sample(sample, place, model, options)


def _begins_as_zip(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _archive(path: str, file: str, options: Options) -> Iterator[Item]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        yield Bad(place=Place(file=file), reason=f"is no whole zip archive: {error}")
        return
    with archive:
        model = _model(archive)
        for info in archive.infolist():
            if not (info.filename.startswith("samples/") and info.filename.endswith(".json")):
                continue
            place = Place(file=file, entry=info.filename)
            try:
                sample = decode(member(archive, info))
            except InputError as error:
                yield Bad(place=place, reason=str(error))
                continue
            yield from _sample(sample, place, model, options)


def _model(archive: zipfile.ZipFile) -> str | None:
    for name in ("header.json", "_journal/start.json"):  # a run that was cut off has no header yet
        try:
            header = obj(decode(member(archive, archive.getinfo(name))))
        except (KeyError, InputError):
            continue
        found = word(obj(header.get("eval")).get("model"))
        if found:
            return found
    return None


def _sample(sample: Json, place: Place, model: str | None, options: Options) -> Iterator[Item]:
    if not isinstance(sample, dict):
        yield Bad(place=place, reason="is no JSON object")
        return
    about = {
        "episode": f"{sample.get('id')}/{sample.get('epoch', 1)}",
        "solved": _solved(sample),
        "fields": wanted(sample, options),
    }
    attached = {key: value for key, value in obj(sample.get("attachments")).items() if isinstance(value, str)}
    events = list(objects(sample.get("events")))
    calls = [event for event in events if event.get("event") == "model"]
    if not calls:
        messages = [_restored(message, attached) for message in objects(sample.get("messages"))]
        flat = [{**message, "tool_calls": _openai(message)} for message in messages]
        yield from conversation(flat, place=place, tools=options.tools, known=True, model=model, **about)
        return
    run = frozenset(str(event.get("id")) for event in events if event.get("event") == "tool" and _ran(event))
    seen = frozenset(
        str(message.get("tool_call_id"))
        for message in [
            *objects(sample.get("messages")),
            *objects(obj(sample.get("events_data")).get("messages")),
        ]
        if message.get("role") == "tool"
    )
    for position, event in enumerate(calls):
        yield _turn(event, place, position, model, attached, run, seen, options, about)


def _ran(event: dict[str, Json]) -> bool:
    """Whether a tool event is that of a tool that ran: one whose arguments did not fit was refused before."""
    return obj(event.get("error")).get("type") != "parsing"


def _turn(
    event: dict[str, Json],
    place: Place,
    position: int,
    model: str | None,
    attached: dict[str, str],
    run: frozenset[str],
    seen: frozenset[str],
    options: Options,
    about: dict[str, Any],
) -> Turn:
    output = obj(event.get("output"))
    choice = next(objects(output.get("choices")), {})
    message = _restored(obj(choice.get("message")), attached)
    calls = calls_of(message.get("tool_calls"))
    ids = {call.id for call in calls if call.id}
    raw = _restored(obj(obj(event.get("call")).get("response")), attached)
    api = wire.sniff(raw) if raw else None
    usage = obj(output.get("usage"))
    error = word(event.get("error")) or word(output.get("error"))
    tools = event.get("tools")
    return Turn(
        place=place,
        text=text_of(message.get("content")),
        reasoning=_reasoning(message.get("content")),
        tools=tools if isinstance(tools, list) else options.tools,
        tool_choice=_choice(event.get("tool_choice")),
        surfaced=calls if choice else None,
        finish_reason=_FINISH.get(str(choice.get("stop_reason")), word(choice.get("stop_reason"))),
        usage=Usage(
            prompt_tokens=count(usage.get("input_tokens")),
            completion_tokens=count(usage.get("output_tokens")),
            reasoning_tokens=count(usage.get("reasoning_tokens")),
        )
        if usage
        else None,
        error=error,
        body=raw if api is not None and error is None else None,
        api=api,
        executed=bool(ids & run) if choice else None,
        observed=bool(ids & seen) if choice else None,
        model=word(output.get("model")) or word(event.get("model")) or model,
        position=position,
        role="judge" if event.get("role") in ("grader", "judge") else "agent",
        **about,
    )


_FINISH: Final = {"max_tokens": "length", "model_length": "length"}


def _choice(value: Json) -> Json:
    """inspect's tool_choice in OpenAI's words: ``any`` is ``required``, ``{"name": …}`` a named tool."""
    if value == "any":
        return "required"
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return {"type": "function", "function": {"name": value["name"]}}
    return value


def _reasoning(content: Json) -> str | None:
    parts = [part["reasoning"] for part in objects(content) if isinstance(part.get("reasoning"), str)]
    return "".join(parts) or None


def _openai(message: dict[str, Json]) -> list[Json] | None:
    calls = calls_of(message.get("tool_calls"))
    return [{"id": c.id, "function": {"name": c.name, "arguments": c.arguments}} for c in calls] or None


def _restored(value: dict[str, Json], attached: dict[str, str]) -> dict[str, Json]:
    """A value with the texts that stand in the sample's attachments put back."""
    if not attached:
        return value
    found = _put_back(value, attached, 0)
    return found if isinstance(found, dict) else value


def _put_back(value: Json, attached: dict[str, str], depth: int) -> Json:
    if isinstance(value, str):
        return attached.get(value[len(_ATTACHED) :], value) if value.startswith(_ATTACHED) else value
    if depth > 40:
        return value
    if isinstance(value, list):
        return [_put_back(item, attached, depth + 1) for item in value]
    if isinstance(value, dict):
        return {key: _put_back(item, attached, depth + 1) for key, item in value.items()}
    return value


def _solved(sample: dict[str, Json]) -> bool | None:
    """Whether the only score says right or wrong; several scores, or others than C, I, 1 and 0, say nothing."""
    scores = list(obj(sample.get("scores")).values())
    value = scores[0].get("value") if len(scores) == 1 and isinstance(scores[0], dict) else None
    if value in ("C", True) or integer(value) == 1:
        return True
    return False if value in ("I", False) or integer(value) == 0 else None
