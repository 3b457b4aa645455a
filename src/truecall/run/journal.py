"""A run's log as a study writes it: intents, exchanges, episodes; and what an earlier, killed run left there.

Lines, beside those of `truecall.store`:

``fields``       the fields of request bodies, by digest, with the arm that sends them
``intent``       written before a request is sent: its key (arm, item, seed, sample, turn), attempt, new messages
``exchange``     when it is whole, or has failed
``detokenized``  the text of an answer's token ids
``verdict``      what was concluded of a turn; written again where a turn is replayed
``episode``      an episode that came to its end: `truecall.funnel.Episode` and what else is known of it
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from truecall.funnel import Episode
from truecall.records import Exchange, Json, Record, Verdict
from truecall.store import RunFolder, exchange_of, read_log, summary_verdict, whole
from truecall.store.history import Chain, fields_digest


class Key(NamedTuple):
    """An episode: its arm, task instance and sampling seed."""

    arm: str
    item: str
    seed: int
    sample: int | None


class Loop(Record, frozen=True):
    """A loop that was seen: at which turn, what kind, and the call that went round."""

    turn: int
    kind: str  # "same_call" or "no_progress"
    call: str


class Ended(Record, frozen=True):
    """An episode's line: the numbers' record, the loop if there was one, and what was spent.

    ``marks``: the backend's marks in its exchanges (`truecall.card.fingerprint`, as JSON text), in order, each
    with how often it came in a row. ``confused``: turns with a call that takes a tool for the function that is
    to be written (`truecall.tasks.base.Decoy`); None where the task has none.
    """

    episode: Episode
    loop: Loop | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    confused: int | None = None
    marks: tuple[tuple[str, int], ...] = ()


class Stored(NamedTuple):
    """An exchange of an earlier run, as its line in the log."""

    head: str
    fields: str
    line: dict[str, Any]


class Past:
    """What a run folder holds of a run that is to go on.

    ``done``: episodes that came to their end. ``exchanges`` and ``in_flight`` are those of episodes that did
    not: the answers that came, by turn, and the turns that had an intent and no exchange.
    """

    def __init__(self, path: Path, *, retry_failed: bool = False) -> None:
        self._path = path
        self.retry_failed = retry_failed
        self.done: set[Key] = set()
        self.requests = 0
        self.exchanges: dict[Key, dict[int, list[Stored]]] = {}
        self.in_flight: dict[Key, set[int]] = {}
        self.texts: dict[tuple[Key, int, int], str] = {}
        self.fields: set[tuple[str, str]] = set()
        for line in read_log(path) if (path / "log.jsonl").exists() else ():
            self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        kind = line.get("kind")
        if kind == "fields":
            self.fields.add((line["arm"], line["digest"]))
        elif kind == "intent":
            self.requests += 1
            self.in_flight.setdefault(_key(line), set()).add(line["turn"])
        elif kind == "exchange" and "turn" in line:
            key, ref = _key(line), line["request"].get("body") or {}
            if isinstance(line.get("body"), dict) and "kept" in line["body"]:
                return  # its text was not kept: the turn is sent again, and marked as one in flight
            self.in_flight.get(key, set()).discard(line["turn"])
            stored = Stored(ref.get("head", ""), ref.get("fields", ""), line)
            self.exchanges.setdefault(key, {}).setdefault(line["turn"], []).append(stored)
        elif kind == "detokenized":
            self.texts[(_key(line), line["turn"], line["attempt"])] = line["text"]
        elif kind == "episode":
            key = _key(line)
            if self.retry_failed and line["episode"].get("ended") == "request_failed":
                self.done.discard(key)
            else:
                self.done.add(key)
                self._forget(key)

    def _forget(self, key: Key) -> None:
        self.in_flight.pop(key, None)
        for turn, stored in self.exchanges.pop(key, {}).items():
            for each in stored:
                self.texts.pop((key, turn, each.line.get("attempt", 1)), None)

    def answers(self, key: Key, turn: int) -> list[Stored]:
        """The exchanges of a turn, in the order sent."""
        return self.exchanges.get(key, {}).get(turn, [])

    def text(self, key: Key, turn: int, attempt: int) -> str | None:
        """The text of that answer's token ids, if it was kept."""
        kept = self.texts.get((key, turn, attempt))
        return None if kept is None else str(whole(self._path, kept))

    def exchange(self, stored: Stored) -> Exchange:
        """The exchange of a stored line; its request body is left out (see `truecall.store.history`)."""
        return exchange_of(self._path, stored.line)


class Journal:
    """The writing side, for one run."""

    def __init__(self, folder: RunFolder, past: Past) -> None:
        self.folder = folder
        self._fields = past.fields

    def intent(
        self,
        key: Key,
        turn: int,
        attempt: int,
        chain: Chain,
        messages: Sequence[Json],
        fields: dict[str, Json],
        evidence: dict[str, Json],
        why: str,
    ) -> dict[str, Any]:
        """Logs that a request is about to be sent; returns what its exchange says of the body.

        ``why``: ``""``, ``resent`` (it was in flight when an earlier run ended), ``retry``, ``without_evidence``.
        """
        digest = fields_digest(fields)
        if (key.arm, digest) not in self._fields:
            self._fields.add((key.arm, digest))
            self.folder.append(
                "fields", {"arm": key.arm, "digest": digest, "fields": self.folder.kept(fields)}
            )
        step = chain.step(messages)
        ref = {"head": step.head, "fields": digest, **({"evidence": evidence} if evidence else {})}
        line = {**key._asdict(), "turn": turn, "attempt": attempt, **ref, "prev": step.prev}
        line["messages"] = self.folder.kept(step.messages)
        self.folder.append("intent", {**line, **({"why": why} if why else {})}, plain=True)
        return ref

    def exchange(self, key: Key, turn: int, attempt: int, ref: dict[str, Any], exchange: Exchange) -> None:
        """Logs what came of a request."""
        self.folder.exchange(exchange, request_body=ref, **key._asdict(), turn=turn, attempt=attempt)

    def detokenized(self, key: Key, turn: int, attempt: int, text: str) -> None:
        """Logs the text of an answer's token ids."""
        value = {**key._asdict(), "turn": turn, "attempt": attempt, "text": self.folder.kept(text)}
        self.folder.append("detokenized", value)

    def verdict(self, key: Key, turn: int, verdict: Verdict) -> None:
        """Logs the verdict on a turn, without texts where none are kept."""
        kept = msgspec.to_builtins(verdict) if self.folder.keep == "full" else summary_verdict(verdict)
        self.folder.append("verdict", {**key._asdict(), "turn": turn, "verdicts": [kept]}, plain=True)

    def episode(self, key: Key, ended: Ended) -> None:
        """Logs an episode that came to its end."""
        if ended.loop is not None and self.folder.keep != "full":
            name = ended.loop.call.partition("(")[0]
            ended = msgspec.structs.replace(ended, loop=msgspec.structs.replace(ended.loop, call=name))
        self.folder.append("episode", {**key._asdict(), **msgspec.to_builtins(ended)}, plain=True)


def _key(line: dict[str, Any]) -> Key:
    return Key(line["arm"], line["item"], line["seed"], line.get("sample"))
