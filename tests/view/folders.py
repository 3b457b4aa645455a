"""Run folders for the viewer, written by the real writers: studies of any length, and hostile turns."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from truecall import classify, wire
from truecall.funnel import Episode, turn_of
from truecall.records import Chunk, Exchange, Failure, FailureKind, Request, Timing
from truecall.replay.forms import FORMS
from truecall.run.cards import CARD, first_card
from truecall.run.journal import Ended, Journal, Key, Past
from truecall.run.study import arms_of, checked
from truecall.store import RunFolder
from truecall.store.history import Chain

STARTED = 1_760_000_000.0
WORDS = (
    "harbour",
    "lantern",
    "copper",
    "meadow",
    "violet",
    "anchor",
    "timber",
    "saffron",
    "granite",
    "ember",
)
TOOL = {
    "type": "function",
    "function": {
        "name": "open_box",
        "description": "Opens a box and tells what is inside.",
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "gently": {"type": "boolean"}},
            "required": ["code"],
            "additionalProperties": False,
        },
    },
}


class Answer(NamedTuple):
    """What a server gives: status None is a failure to connect."""

    status: int | None
    body: bytes
    chunks: tuple[Chunk, ...] = ()
    failure: Failure | None = None
    kind: str = "application/json"


def completion(
    content: str | None, calls: Sequence[dict[str, Any]] = (), *, finish: str = "stop", **message: Any
) -> Answer:
    """A chat completion with this message."""
    said: dict[str, Any] = {"role": "assistant", "content": content, **message}
    if calls:
        said["tool_calls"] = list(calls)
        finish = "tool_calls"
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "player",
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320},
    }
    data = json.dumps(body).encode("utf-8", "surrogatepass")
    return Answer(200, data, (Chunk(0.4, len(data)),))


def stream(text: str, *, size: int = 6, ended: bool = True) -> Answer:
    """The same as a stream of chunks with uneven gaps; ``ended`` False: the connection breaks off in it."""
    events, places, at = [], [], 0.2
    for start in range(0, len(text), size):
        delta = {"content": text[start : start + size]}
        value = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
        events.append(b"data: " + json.dumps(value).encode() + b"\n\n")
        at += 0.9 if start == 3 * size else 0.02
        places.append(Chunk(round(at, 3), len(events[-1])))
    if ended:
        last = {
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        }
        events.append(b"data: " + json.dumps(last).encode() + b"\n\ndata: [DONE]\n\n")
        places.append(Chunk(round(at + 0.02, 3), len(events[-1])))
    failure = None if ended else Failure(kind=FailureKind.CLOSED_MID_STREAM, detail="reset by peer")
    return Answer(200, b"".join(events), tuple(places), failure, "text/event-stream")


def surfaced(arguments: str, name: str = "open_box") -> dict[str, Any]:
    """A structured call."""
    return {"id": "call00000", "type": "function", "function": {"name": name, "arguments": arguments}}


def varied(seed: int) -> Iterator[Answer]:
    """Answers of all kinds without end, the same for the same seed; one in a thousand says ``lighthouse``."""
    rng = random.Random(seed)
    writers = [writer for name in sorted(FORMS) for writer in FORMS[name].values()]
    number = 0
    while True:
        number += 1
        code = f"A-{rng.randrange(1000)}"
        prose = " ".join(rng.choices(WORDS, k=rng.randrange(6, 40)))
        if number % 1000 == 0:
            prose += " lighthouse"
        draw = rng.random()
        if draw < 0.5:
            yield completion(prose if draw < 0.1 else None, [surfaced(json.dumps({"code": code}))])
        elif draw < 0.55:
            yield completion(None, [surfaced(json.dumps({"kode": code}))])
        elif draw < 0.8:
            written = rng.choice(writers)([("open_box", {"code": code})])
            yield stream(f"{prose}\n{written}") if draw < 0.6 else completion(f"{prose}\n{written}")
        elif draw < 0.93:
            yield completion(prose)
        elif draw < 0.95:
            yield completion(f'{prose} <tool_call>{{"name": "open_box", "argum', finish="length")
        elif draw < 0.97:
            error = {"error": {"message": '"auto" tool choice requires --enable-auto-tool-choice'}}
            yield Answer(400, json.dumps(error).encode())
        elif draw < 0.985:
            yield stream(prose, ended=False)
        else:
            yield Answer(None, b"", failure=Failure(kind=FailureKind.REFUSED, detail="connection refused"))


def study_folder(
    path: Path, turns: int, *, answers: Iterator[Answer] | None = None, per_episode: int = 10, seed: int = 0
) -> Path:
    """A run folder with so many turns, in episodes that alternate between two arms."""
    study = checked({"tasks": ["chain"], "conditions": ["native", "native_hint"], "seeds": 8}, "test")
    arms = arms_of(study)
    answers = answers if answers is not None else varied(seed)
    with RunFolder(path) as folder:
        folder.write(CARD, first_card(study, STARTED))
        journal = Journal(folder, Past(path))
        for number in range(0, turns, per_episode):
            episode = number // per_episode
            key = Key(arms[episode % len(arms)].name, "chain", episode // len(arms), None)
            _episode(journal, key, min(per_episode, turns - number), answers, STARTED + number)
    return path


def _episode(journal: Journal, key: Key, turns: int, answers: Iterator[Answer], at: float) -> None:
    """One episode: each turn's answer is followed by a tool's result."""
    fields = {"model": "player", "tools": [TOOL], "temperature": 1.0, "max_tokens": 512}
    messages: list[Any] = [
        {"role": "system", "content": "You open boxes. Use the tools."},
        {"role": "user", "content": f"Follow the boxes of instance {key.seed} and submit the word."},
    ]
    chain, judged = Chain(), []
    for turn in range(1, turns + 1):
        answer = next(answers)
        ref = journal.intent(key, turn, 1, chain, messages, fields, {}, "")
        exchange = _exchange(answer, at + turn)
        journal.exchange(key, turn, 1, ref, exchange)
        view = wire.read_request({**fields, "messages": messages[-1:]}, "openai.chat")
        verdict = classify.judge_exchange(exchange, [TOOL], request=view)
        journal.verdict(key, turn, verdict)
        judged.append(turn_of(verdict))
        messages = [
            *messages,
            {"role": "assistant", "content": f"(turn {turn})"},
            {"role": "user", "content": f"Box {turn} holds the next code."},
        ]
    ended = Episode(
        arm=key.arm, item=key.item, seed=key.seed, turns=tuple(judged), ended="turn_cap", solved=False
    )
    journal.episode(key, Ended(episode=ended))


def _exchange(answer: Answer, at: float) -> Exchange:
    last = answer.chunks[-1].at if answer.chunks else None
    return Exchange(
        request=Request(method="POST", url="http://127.0.0.1:8000/v1/chat/completions"),
        timing=Timing(
            started_at=at, first_byte=answer.chunks[0].at if answer.chunks else None, total=last or 0.01
        ),
        status=answer.status,
        headers=() if answer.status is None else (("content-type", answer.kind),),
        body=answer.body,
        received=len(answer.body),
        chunks=answer.chunks,
        failure=answer.failure,
    )


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The log's lines, decoded."""
    return [msgspec.json.decode(line) for line in (path / "log.jsonl").read_bytes().splitlines()]
