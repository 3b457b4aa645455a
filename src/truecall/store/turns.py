"""One turn of a run folder, put together from the lines of its log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from truecall import wire
from truecall.classify import judge_exchange, read_exchange
from truecall.detector import detect
from truecall.errors import InputError
from truecall.evidence import best
from truecall.records import Detection, Evidence, Exchange, Json, Record, Response, Verdict
from truecall.store.history import body_of_ref
from truecall.store.reading import body_of, exchange_of, whole
from truecall.wire.values import decode, obj

Place = tuple[int | None, int | None]
"""Offset and length of a line in the log; None: there is none."""

Part = Callable[[str], tuple[int, int] | None]
"""Where a piece of a study's request bodies stands, by its digest."""


class WholeTurn(Record, frozen=True):
    """What a folder holds of one turn. What is None is not there, not kept, or told of in ``faults``.

    ``line``: the exchange's line as it stands. ``request``: the body that was sent. ``tools``: those that were
    offered in it, in OpenAI chat's shape. ``detokenized``: the text of the answer's token ids. ``detection``
    divides ``evidence.text``. ``sent``: what the client got instead of the answer, where truecall edited it.
    """

    line: dict[str, Json]
    choice: int
    api: str
    exchange: Exchange | None = None
    request: Json = None
    tools: tuple[Json, ...] | None = None
    response: Response | None = None
    detokenized: str | None = None
    evidence: Evidence | None = None
    detection: Detection | None = None
    verdict: Verdict | None = None
    sent: bytes = b""
    faults: tuple[str, ...] = ()

    def judged(self) -> Verdict | None:
        """A new verdict on the exchange; None where its body was not kept or can't be read."""
        kept = self.line.get("body")
        if self.exchange is None or (isinstance(kept, dict) and "kept" in kept):
            return None
        view = wire.read_request(self.request, self.api) if isinstance(self.request, dict) else None
        return judge_exchange(
            self.exchange,
            self.tools,
            api=self.api,
            request=view,
            detokenized=self.detokenized,
            response=self.response,
            choice=self.choice,
        )


def read_turn(
    path: Path, exchange: Place, text: Place, verdict: Place, *, choice: int, part: Part
) -> WholeTurn:
    """The turn whose exchange, text of token ids and verdict stand at these places."""
    faults: list[str] = []

    def tried(what: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (InputError, msgspec.ValidationError) as error:
            faults.append(f"{what}: {error}")
            return None

    line = tried("exchange", lambda: _line(path, exchange)) or {}
    stored = obj(obj(line.get("request")).get("body"))
    request = tried("request", lambda: _request(path, obj(line.get("request")).get("body"), stored, part))
    found: Exchange | None = tried("response", lambda: _exchange(path, line, request))
    known = wire.by_path(str(obj(line.get("request")).get("url")))
    api = known.value if known is not None else "openai.chat"
    detokenized = tried("text of the token ids", lambda: _text(path, _line(path, text), choice))
    judged = tried("verdict", lambda: _verdict(path, _line(path, verdict), choice))
    sent = tried("edited answer", lambda: body_of(path, line.get("sent"))) or b""
    turn = WholeTurn(
        line=line,
        choice=choice,
        api=api,
        exchange=found,
        request=request,
        detokenized=detokenized,
        verdict=judged,
        sent=sent,
        faults=tuple(faults),
    )
    return _read(turn)


def _read(turn: WholeTurn) -> WholeTurn:
    """The turn with its answer read: response, evidence, detection."""
    if turn.exchange is None:
        return turn
    view = wire.read_request(turn.request, turn.api) if isinstance(turn.request, dict) else None
    response = read_exchange(turn.exchange, turn.api)
    choice = response.choices[turn.choice] if turn.choice < len(response.choices) else None
    evidence = best(response, choice, detokenized=turn.detokenized, request=view)
    tools = view.tools if view is not None else None
    detection = detect(evidence.text, tools) if evidence.text is not None else None
    return msgspec.structs.replace(
        turn, response=response, evidence=evidence, tools=tools, detection=detection
    )


def _line(path: Path, place: Place) -> dict[str, Json]:
    at, size = place
    if at is None or size is None:
        return {}
    try:
        with (path / "log.jsonl").open("rb") as file:
            file.seek(at)
            value = msgspec.json.decode(file.read(size))
    except OSError as error:
        raise InputError(f"{path / 'log.jsonl'}: can't be read ({error.strerror})") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError(f"{path / 'log.jsonl'}: the line at byte {at} is damaged") from None
    return obj(value)


def _request(path: Path, stored: Json, named: dict[str, Json], part: Part) -> Json:
    """The body of a request: as it was seen, or put together from the pieces that a study names."""
    if "head" in named and "fields" in named:

        def piece(digest: str) -> dict[str, Json]:
            return _line(path, part(digest) or (None, None))

        kept_none = "kept" in obj(piece(str(named["head"])).get("messages"))
        return None if kept_none else body_of_ref(path, named, piece)
    data = body_of(path, stored)
    value = decode(data) if data else None
    return value if isinstance(value, dict | list) else None


def _exchange(path: Path, line: dict[str, Json], request: Json) -> Exchange:
    if not line:
        raise InputError("the line is not there")
    return exchange_of(path, line, msgspec.json.encode(request) if request is not None else b"")


def _text(path: Path, line: dict[str, Json], choice: int) -> str | None:
    texts = line.get("texts")
    value = texts[choice] if isinstance(texts, list) and choice < len(texts) else line.get("text")
    value = whole(path, value)
    return value if isinstance(value, str) else None


def _verdict(path: Path, line: dict[str, Json], choice: int) -> Verdict | None:
    verdicts = line.get("verdicts")
    if not isinstance(verdicts, list) or choice >= len(verdicts):
        return None
    return msgspec.convert(whole(path, verdicts[choice]), Verdict)
