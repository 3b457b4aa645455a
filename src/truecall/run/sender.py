"""Sends the requests of one endpoint's episodes: intent, exchange, evidence, waits, retries.

What an earlier run of the same folder got an answer to is taken from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from truecall import classify, probe, stacks, wire
from truecall.client import Client, send_patiently
from truecall.records import Exchange, FailureKind, Json, Response
from truecall.run.journal import Journal, Key, Past
from truecall.run.study import Endpoint, Sampling
from truecall.store.history import Chain, fields_digest

MAX_BYTES = 16 << 20
_OUR_STATUSES = frozenset({401, 403, 404, 429})  # 4xx that no field of ours brings about


class OutOfBudget(Exception):
    """The run's budget of requests is spent. The episode stays open and goes on when the run does."""


@dataclass
class Budget:
    """Requests that a run may send; ``limit`` None: any number."""

    limit: int | None
    sent: int = 0

    def take(self) -> None:
        """Counts a request that is about to be sent.

        Raises:
            OutOfBudget: there is none left.
        """
        if self.limit is not None and self.sent >= self.limit:
            raise OutOfBudget
        self.sent += 1


@dataclass(frozen=True)
class Sent:
    """A turn's last exchange, and how many requests of the turn failed (the last included)."""

    exchange: Exchange
    response: Response
    detokenized: str | None
    failed: int


@dataclass
class Sender:
    """One endpoint. ``url`` is where its chat requests go; ``evidence`` False once the server refused our fields."""

    endpoint: Endpoint
    client: Client
    stack: stacks.Stack
    model: str
    url: str
    sampling: Sampling
    retries: int
    budget: Budget
    journal: Journal
    past: Past
    evidence: bool = True
    refused: str = ""  # what the server said to our evidence fields
    resent: int = field(default=0)

    def fields(self, own: dict[str, Json], sample: int | None) -> dict[str, Json]:
        """A request body without its messages. ``own``: the condition's fields."""
        extra = {**self.sampling.extra, **{k: v for k, v in own.items() if k not in ("tools", "tool_choice")}}
        body = wire.build(
            self.model,
            [],
            api=self.endpoint.api,
            tools=own.get("tools"),
            tool_choice=own.get("tool_choice"),
            max_tokens=self.sampling.max_tokens,
            temperature=self.sampling.temperature,
            seed=sample if self.sampling.seed is not None else None,
            extra=extra,
        )
        del body["messages"]
        return body

    async def ask(
        self, key: Key, turn: int, messages: Sequence[dict[str, Json]], fields: dict[str, Json], chain: Chain
    ) -> Sent:
        """The answer to one turn: from the log where an earlier run got it, else sent.

        Raises:
            OutOfBudget: no request is left; what was in the log stands.
        """
        told = wire.build(None, list(messages), api=self.endpoint.api)["messages"]
        failed, attempt, why, last, ours = 0, 0, "", None, False
        before = self.past.answers(key, turn)
        head, digest = (chain.head(told), fields_digest(fields)) if before else ("", "")
        for stored in before:
            attempt = max(attempt, stored.line.get("attempt", 1))
            if (stored.head, stored.fields) != (head, digest):
                continue  # a history that this one does not follow
            last = self.past.exchange(stored)
            ours = _blames_evidence(last, stored.line["request"]["body"].get("evidence"))
            failed += request_failed(last) and not ours
        settled = failed > self.retries and not ours and not self.past.retry_failed
        if last is not None and (settled or not request_failed(last)):
            return await self._read(key, turn, attempt, last, failed)
        if turn in self.past.in_flight.get(key, ()):
            why = "resent"
            self.resent += 1
        elif last is not None:
            why = "retry"
        return await self._attempts(key, turn, attempt, told, fields, chain, failed, why)

    async def _attempts(
        self,
        key: Key,
        turn: int,
        attempt: int,
        messages: Sequence[Json],
        fields: dict[str, Json],
        chain: Chain,
        failed: int,
        why: str,
    ) -> Sent:
        async def send(extra: dict[str, Json]) -> Exchange:
            nonlocal attempt, why
            attempt += 1
            self.budget.take()
            ref = self.journal.intent(key, turn, attempt, chain, messages, fields, extra, why)
            body = {**fields, "messages": messages, **extra}
            exchange = await self.client.send("POST", self.url, json=body, max_bytes=MAX_BYTES)
            self.journal.exchange(key, turn, attempt, ref, exchange)
            why = "retry"
            return exchange

        for left in range(self.retries, -1, -1):
            extra = self.stack.evidence_fields({**fields, "messages": messages}) if self.evidence else {}
            tries = await send_patiently(lambda extra=extra: send(extra))  # type: ignore[misc]
            exchange = tries[-1]
            if _blames_evidence(exchange, extra):
                why = "without_evidence"
                plain = await send({})
                if not request_failed(plain):
                    self.evidence = False
                    self.refused = exchange.body[:300].decode("utf-8", "replace")
                else:
                    failed += 1
                return await self._read(key, turn, attempt, plain, failed + len(tries) - 1)
            failed += sum(request_failed(each) for each in tries)
            if not (left and _may_pass(exchange)):
                break
        return await self._read(key, turn, attempt, exchange, failed)

    async def _read(self, key: Key, turn: int, attempt: int, exchange: Exchange, failed: int) -> Sent:
        response = classify.read_exchange(exchange, self.endpoint.api)
        choice = response.choices[0] if response.choices else None
        text = self.past.text(key, turn, attempt)
        if text is None and choice is not None and choice.token_ids is not None and choice.raw_text is None:
            ids = choice.token_ids
            text = await probe.detokenize(self.client, self.stack, ids, self.model) if ids else ""
            if text is not None:
                self.journal.detokenized(key, turn, attempt, text)
        return Sent(exchange, response, text, failed)


def request_failed(exchange: Exchange) -> bool:
    """No answer with a 2xx status came whole: a request error, whatever the model did."""
    return exchange.failure is not None or exchange.status is None or not 200 <= exchange.status < 300


def _blames_evidence(exchange: Exchange, evidence: dict[str, Json] | None) -> bool:
    """A 4xx that the fields which we added may have brought about: the request is repeated without them."""
    status = exchange.status
    return bool(evidence) and status is not None and 400 <= status < 500 and status not in _OUR_STATUSES


_PASSING = frozenset(
    {FailureKind.TIMEOUT_CONNECT, FailureKind.CLOSED_BEFORE_RESPONSE, FailureKind.CLOSED_MID_STREAM}
    | {FailureKind.REFUSED, FailureKind.UNREACHABLE, FailureKind.TIMEOUT_FIRST_BYTE}
    | {FailureKind.TIMEOUT_BETWEEN_BYTES}
)


def _may_pass(exchange: Exchange) -> bool:
    """A failure that another attempt may not meet: a refusal of the request is none."""
    if exchange.failure is not None:
        return exchange.failure.kind in _PASSING
    return exchange.status is not None and exchange.status >= 500
