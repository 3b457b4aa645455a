"""BFCL result and score files (Berkeley Function-Calling Leaderboard, V3 and V4), line by line.

Records: `Entry` is one line of a result file, `ScoreFile` and its `Wrong` lines are a score file. `read_results`
and `read_scores` give them from a path; which file is what is told by `truecall.sources.bfcl_folder`. `BfclSource`
gives the result files' turns to a scan. Formats as written by the bfcl-eval 2026.3.23 wheel. Plain, gzip and zstd
files, a byte-order mark, a file that is one JSON list, and torn lines are read; what can't be is a `Bad`.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from truecall.records import Json, Record, ToolCall, Usage
from truecall.sources.base import Bad, Head, Item, Line, Options, Place, Turn, wanted
from truecall.wire.values import plain

MAX_FILE = 1 << 30
"""Bytes of one file after decompression; a larger one is not read."""


class Entry(Record, frozen=True):
    """One line of a result file. ``result`` is as stored: text, calls, or turns of steps.

    Token counts and latency (seconds) are None where the line has none, and summed where it has lists of them.
    ``has_result`` is False where the line lacks the key: unlike null, that is no stored answer.
    """

    id: str
    model: str
    category: str
    place: Place
    result: Json = None
    has_result: bool = True
    input_tokens: float | None = None
    output_tokens: float | None = None
    latency: float | None = None
    reasoning: str | None = None
    traceback: str | None = None


class Wrong(Record, frozen=True):
    """One entry that the scorer marked wrong, with the question and answer that it repeats.

    ``tools``: the question's function list; ``answer``: ``possible_answer``; ``decoded``: what the scorer read.
    None where the line has it not.
    """

    id: str
    place: Place
    error_type: str = ""
    error: str = ""
    tools: Json = None
    answer: Json = None
    decoded: Json = None
    stored: Json = None
    prompt_id: str = ""


class ScoreFile(Record, frozen=True):
    """A score file: its header (None where missing), and the entries marked wrong. The rest was credited."""

    file: str
    accuracy: float | None = None
    correct: int | None = None
    total: int | None = None
    wrong: tuple[Wrong, ...] = ()


def read_bytes(path: Path) -> bytes:
    """The whole content, decompressed by its magic number.

    Raises ValueError with the reason where it can't be read, or is larger than `MAX_FILE`.
    """
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.open(path) as stream:
                raw = stream.read(MAX_FILE + 1)
        elif raw[:4] == b"\x28\xb5\x2f\xfd":
            with zstandard.ZstdDecompressor().stream_reader(raw) as reader:
                raw = reader.read(MAX_FILE + 1)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise ValueError(f"can't be read: {error}") from None
    if len(raw) > MAX_FILE:
        raise ValueError("larger than 1 GB: not read")
    return raw


def text_of(raw: bytes) -> tuple[str, bool]:
    """The text, and whether it was whole: bytes that are no UTF-8 (or UTF-16 after its mark) are replaced."""
    codec = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return raw.decode(codec), True
    except UnicodeDecodeError:
        return raw.decode(codec, errors="replace"), False


def values(raw: bytes, file: str) -> Iterator[tuple[Place, Any] | Bad]:
    """The JSON values of a file of lines (or of one JSON list), each with its line; else why not."""
    text, whole = text_of(raw)
    if not whole:
        yield Bad(place=Place(file=file), reason="not UTF-8: read with replacement characters")
    if text.lstrip()[:1] == "[":
        try:
            listed = plain(json.loads(text))
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list):
            for index, value in enumerate(listed, 1):
                yield Place(file=file, line=index), value
            return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = Place(file=file, line=number)
            value, reason = _value(line)
            yield Bad(place=place, reason=reason) if reason else (place, value)


def _value(line: str | bytes) -> tuple[Any, str]:
    try:
        return msgspec.json.decode(line), ""
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        pass
    try:
        return plain(json.loads(line)), ""  # NaN, Infinity and lone surrogates, which Python's json writes
    except (ValueError, RecursionError) as error:
        return None, f"no JSON: {str(error).splitlines()[0][:120]}"


def read_results(path: Path, model: str, category: str, file: str = "") -> Iterator[Entry | Bad]:
    """The entries of a result file. ``file`` is the name shown for it; by default its path."""
    file = file or str(path)
    try:
        raw = read_bytes(path)
    except ValueError as error:
        yield Bad(place=Place(file=file), reason=str(error))
        return
    for item in values(raw, file):
        yield item if isinstance(item, Bad) else _entry(item[1], item[0], model, category)


def _entry(value: Any, place: Place, model: str, category: str) -> Entry | Bad:
    if not isinstance(value, dict):
        return Bad(place=place, reason=f"a result line is a JSON object, not {type(value).__name__}")
    ident = value.get("id")
    if not _is_id(ident) and _is_id(value.get("idx")):
        ident = f"{category}_{value['idx']}"  # V1
    if not _is_id(ident):
        return Bad(place=place, reason="a result line without an id")
    return Entry(
        id=str(ident),
        model=model,
        category=category,
        place=place,
        result=value.get("result"),
        has_result="result" in value,
        input_tokens=_total(value.get("input_token_count")),
        output_tokens=_total(value.get("output_token_count")),
        latency=_total(value.get("latency")),
        reasoning=_text(value.get("reasoning_content")),
        traceback=_text(value.get("traceback")),
    )


def _is_id(value: Any) -> bool:
    return (isinstance(value, str) and value != "") or (
        isinstance(value, int) and not isinstance(value, bool)
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _total(value: Any) -> float | None:
    """A number, or the sum of the numbers in (lists of) lists; None where there is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        parts = [part for part in map(_total, value) if part is not None]
        return sum(parts) if parts else None
    return None


def read_scores(path: Path, file: str = "") -> tuple[ScoreFile, list[Bad]]:
    """A score file: the first line without an id that has an accuracy is the header. Bad lines beside it."""
    file = file or str(path)
    bad: list[Bad] = []
    wrong: list[Wrong] = []
    header: dict[str, Any] = {}
    try:
        raw = read_bytes(path)
    except ValueError as error:
        return ScoreFile(file=file), [Bad(place=Place(file=file), reason=str(error))]
    for item in values(raw, file):
        if isinstance(item, Bad):
            bad.append(item)
            continue
        place, value = item
        if not isinstance(value, dict):
            bad.append(Bad(place=place, reason="a score line is a JSON object"))
        elif "accuracy" in value and not _is_id(value.get("id")):
            header = header or value
        elif not _is_id(value.get("id")):
            bad.append(Bad(place=place, reason="a score line without an id"))
        elif value.get("valid") is not True:
            wrong.append(_wrong(value, place))
    return (
        ScoreFile(
            file=file,
            accuracy=_total(header.get("accuracy")),
            correct=_count(header.get("correct_count")),
            total=_count(header.get("total_count")),
            wrong=tuple(wrong),
        ),
        bad,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _wrong(value: dict[str, Any], place: Place) -> Wrong:
    error, prompt = value.get("error"), value.get("prompt")
    kind = value.get("error_type")
    if isinstance(error, dict):  # multi-turn and agentic entries
        kind = kind or error.get("error_type")
        error = error.get("error_message", error)
    if isinstance(error, list):
        error = "; ".join(part if isinstance(part, str) else json.dumps(part) for part in error)
    return Wrong(
        id=str(value["id"]),
        place=place,
        error_type=str(kind or ""),
        error=str(error or ""),
        tools=_functions(prompt),
        prompt_id=str(prompt.get("id") or "") if isinstance(prompt, dict) else "",
        answer=value.get("possible_answer"),
        decoded=value.get("model_result_decoded", value.get("decoded_result")),
        stored=value.get("model_result_raw", value.get("model_result")),
    )


def _functions(prompt: Json) -> Json:
    """A question's function list; V1 and V2 have a single function there."""
    found = prompt.get("function") if isinstance(prompt, dict) else None
    return [found] if isinstance(found, dict) else found


# --------------------------------------------------------------------------- stored results


def calls_of(result: Json) -> tuple[ToolCall, ...] | None:
    """The calls of a stored result that is a list of calls, arguments as stored; else None.

    A call is ``{name: arguments}``, as BFCL stores it, or an object with a name and arguments, as APIs give it.
    """
    if not isinstance(result, list):
        return None
    found = [call_of(item) for item in result]
    return None if any(call is None for call in found) else tuple(call for call in found if call)


def call_of(item: Json) -> ToolCall | None:
    """One stored call; None where it has no such form."""
    if not isinstance(item, dict):
        return None
    inner = item.get("function")
    if isinstance(inner, dict) and isinstance(inner.get("name"), str):
        return ToolCall(name=inner["name"], arguments=inner.get("arguments"))
    if isinstance(item.get("name"), str) and ("arguments" in item or "input" in item):
        return ToolCall(name=item["name"], arguments=item.get("arguments", item.get("input")))
    if len(item) != 1:
        return None
    name, arguments = next(iter(item.items()))
    return ToolCall(name=name, arguments=arguments)


class BfclSource:
    """Result files as a scan's source. A text is what the handler kept; a list of calls is what was surfaced."""

    name = "bfcl"
    lines = True

    def sniff(self, head: Head) -> bool:
        first = head.first
        if not (isinstance(first, dict) and ("id" in first or "idx" in first) and "result" in first):
            return False
        return "_result." in head.name or "output_token_count" in first or "traceback" in first

    def read(self, data: Iterable[Line], file: str, options: Options) -> Iterator[Item]:
        for line in data:
            place = Place(file=file, line=line.number, offset=line.offset)
            value, reason = _value(line.data.removeprefix(b"\xef\xbb\xbf"))
            entry = _entry(value, place, "", "") if not reason else Bad(place=place, reason=reason)
            if isinstance(entry, Bad):
                yield entry
            else:
                yield from _turns(entry, msgspec.structs.replace(place, entry=entry.id), options, value)


def _turns(entry: Entry, place: Place, options: Options, value: Any) -> Iterator[Turn]:
    """The turns of an entry: one, or each step of a conversation."""
    result = entry.result
    steps = [result]
    if isinstance(result, list) and any(isinstance(part, list) for part in result):
        steps = [step for turn in result for step in (turn if isinstance(turn, list) else [turn])]
    output = None if entry.output_tokens is None else int(entry.output_tokens)
    usage = Usage(completion_tokens=output) if output is not None and len(steps) == 1 else None
    for position, step in enumerate(steps):
        text = step if isinstance(step, str) else None
        failed = entry.traceback is not None or (
            text is not None and text.startswith("Error during inference:")
        )
        yield Turn(
            place=place,
            text=None if failed else text,
            reasoning=entry.reasoning,
            tools=options.tools,
            surfaced=calls_of(step),
            usage=usage,
            error=(text or entry.traceback) if failed else None,
            episode=entry.id,
            position=position,
            fields=wanted(value, options),
        )
