"""One endpoint under examination: asks with evidence, counts what is spent, keeps the fault of our fields apart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from truecall import classify, probe, stacks, wire
from truecall.client import Client, send_patiently
from truecall.client.patience import ATTEMPTS, LONGEST_WAIT
from truecall.evidence import best
from truecall.preflight.answer import PATHS, Answer, curl
from truecall.preflight.report import Spent
from truecall.preflight.usage import impossible
from truecall.records import EvidenceTier, Json, Response
from truecall.stacks.dialect_parsers import parsers_for
from truecall.store import Asked

__all__ = ["BUDGET", "THINKING_BUDGET", "Answer", "Notebook", "Session"]

BUDGET: Final = 150  # completion tokens in which a model that calls has called,
THINKING_BUDGET: Final = 1024  # and one that thinks first
MAX_BYTES: Final = 16 << 20
_OUR_STATUSES: Final = frozenset({401, 403, 404, 429})  # 4xx that no field of ours brings about
KEPT_BYTES: Final = 48 << 20  # of answers that are held until they are saved; what comes after is not kept
_GIVE_UP_AFTER: Final = 3  # failed exchanges in a row, after which no further probe is sent


@dataclass
class Notebook:
    """What one probe leaves for the next.

    ``gate``: the answer that refused tools, if any. ``template_dialect``: the dialect in which the chat
    template writes an assistant's call. ``rendered`` None: not known. ``cut``: the prompt is cut before the
    model sees it. ``table``: dialect -> what the parser did with it. ``own_dialect``: what the model itself
    emitted. ``enforced``: whether ``required`` gave a call. ``thinks``: the model reasons before it answers.
    ``warm_tokens``: the prompt tokens of the warm-up, the shortest prompt of all.
    """

    gate: Answer | None = None
    rendered: bool | None = None
    cut: bool = False
    template_dialect: str | None = None
    own_dialect: str | None = None
    enforced: bool | None = None
    thinks: bool = False
    warm_tokens: int | None = None
    way: str | None = None
    table: dict[str, str] = field(default_factory=dict)

    def counts_follow(self, prompt_tokens: int | None) -> bool:
        """False where a far longer prompt than the warm-up's is said to have as many tokens: a made-up usage."""
        return prompt_tokens is None or self.warm_tokens is None or prompt_tokens != self.warm_tokens

    @property
    def budget(self) -> int:
        """Completion tokens for an answer in which a call may come."""
        return THINKING_BUDGET if self.thinks else BUDGET

    @property
    def accepted(self) -> str | None:
        """A dialect that the parser surfaces, the template's own where it does."""
        surfaced = [name for name, outcome in self.table.items() if outcome == "surfaced"]
        if self.template_dialect in surfaced:
            return self.template_dialect
        return surfaced[0] if surfaced else None


@dataclass
class Session:
    """The examined endpoint. ``temperature`` 0 unless a probe says otherwise.

    ``asked``: what was sent so far, the last attempt of each request, as far as ``KEPT_BYTES`` allow.
    ``probe``: the one under way.
    """

    client: Client
    info: stacks.StackInfo
    model: str
    spent: _Meter = field(default_factory=lambda: _Meter())
    evidence_refused: str | None = None
    odd_usage: tuple[Answer, str] | None = None  # an answer whose usage can't be true, and why
    last_failed: Answer | None = None
    failures_in_a_row: int = 0
    notebook: Notebook = field(default_factory=Notebook)
    probe: str = "warm-up"
    asked: list[Asked] = field(default_factory=list)
    _room: int = KEPT_BYTES

    @property
    def stack(self) -> stacks.Stack:
        return stacks.engine(self.info.engine)

    @property
    def given_up(self) -> bool:
        """True when the endpoint has stopped answering, or only says to come back later."""
        return self.failures_in_a_row >= _GIVE_UP_AFTER

    def known(self) -> stacks.StackInfo:
        """What is known of the stack, the parser that its behaviour shows included."""
        parser = self.inferred_parser()
        if parser is None:
            return self.info
        return msgspec.structs.replace(self.info, tool_parser=stacks.Fact(value=parser, origin="inferred"))

    def inferred_parser(self) -> str | None:
        """The parser that reads what this server's does, where the server does not name it itself."""
        accepted = self.notebook.accepted
        if self.info.tool_parser.value is not None or accepted is None:
            return None
        names = parsers_for(self.info.engine, accepted)
        surfaced = [d for d, outcome in self.notebook.table.items() if outcome == "surfaced"]
        others = [set(parsers_for(self.info.engine, dialect)) for dialect in surfaced]
        return next((n for n in names if all(n in o for o in others)), names[0] if names else None)

    def url(self, path: str) -> str:
        """The URL of an engine path: ``/v1/…`` hangs on the API base, everything else on the root."""
        return self.client.connection.url(path.removeprefix("/v1/"))

    def body(
        self, messages: Sequence[Json], tools: Sequence[Json] | None = None, **more: Json
    ) -> dict[str, Json]:
        """A chat request at temperature 0; ``more`` is added as it stands."""
        body: dict[str, Json] = {"model": self.model, "messages": list(messages), "temperature": 0}
        if tools is not None:
            body["tools"] = list(tools)
        return {**body, **more}

    async def ask(
        self,
        body: dict[str, Json],
        *,
        stream: bool = False,
        evidence: bool = True,
        path: str | None = None,
        api: str = "openai.chat",
        timeout: float | None = None,  # noqa: ASYNC109 - handed to the client
        patient: bool = True,
        max_bytes: int = MAX_BYTES,
    ) -> Answer:
        """Send one chat request and judge its answer.

        Evidence fields are ours: when the answer is a 4xx that goes away without them, they are left out from
        then on and the tier is lower (DESIGN §2). ``patient``: wait and try again where the server says so.
        """

        async def send(extra: dict[str, Json]) -> Answer:
            return await self._ask(body, extra, stream, path or PATHS[api], api, timeout, patient, max_bytes)

        wanted = evidence and self.evidence_refused is None
        takes_ours = api == "openai.chat" or (api == "ollama.chat" and self.info.engine == "ollama")
        extra = self.stack.evidence_fields(body) if wanted and takes_ours else {}
        answer = await send(extra)
        status = answer.exchange.status
        if not extra or status is None or not 400 <= status < 500 or status in _OUR_STATUSES:
            return answer
        plain = await send({})
        if plain.ok:
            self.evidence_refused = answer.came()
        return plain

    async def _ask(
        self,
        body: dict[str, Json],
        extra: dict[str, Json],
        stream: bool,
        path: str,
        api: str,
        timeout: float | None,  # noqa: ASYNC109
        patient: bool,
        max_bytes: int,
    ) -> Answer:
        sent: dict[str, Json] = {**body, **extra, "stream": stream}
        if stream and api == "openai.chat":
            sent["stream_options"] = {"include_usage": True}
        attempts = await send_patiently(
            lambda: self.client.send(
                "POST", self.url(path), json=sent, timeout=timeout, stream=stream, max_bytes=max_bytes
            ),
            attempts=ATTEMPTS if patient else 1,
            longest=min(LONGEST_WAIT, self.client.connection.timeouts.total),
        )
        exchange = attempts[-1]
        self.spent.requests += len(attempts)
        response = classify.read_exchange(exchange, api)
        detokenized = await self._detokenize(response)
        view = wire.read_request(body, api)
        verdict = classify.judge_exchange(
            exchange, view.tools, api=api, request=view, detokenized=detokenized, response=response
        )
        choice = response.choices[0] if response.choices else None
        answer = Answer(
            body=body,
            stream=stream,
            exchange=exchange,
            response=response,
            verdict=verdict,
            evidence=best(response, choice, detokenized=detokenized),
            path=path,
        )
        self._count(answer, view.max_tokens)
        self._keep(answer)
        return answer

    def _keep(self, answer: Answer) -> None:
        exchange = answer.exchange
        self._room -= len(exchange.request.body) + len(exchange.body)
        if self._room >= 0:
            known = answer.evidence.tier is EvidenceTier.TOKEN_IDS
            text = answer.evidence.text if known else None
            self.asked.append(Asked(probe=self.probe, exchange=exchange, verdict=answer.verdict, text=text))

    async def _detokenize(self, response: Response) -> str | None:
        """The text of the answer's token ids, where the stack can give it."""
        ids = response.choices[0].token_ids if response.choices else None
        if ids is None or (response.choices[0].raw_text is not None):
            return None
        return await self._text_of(ids) if ids else ""

    async def _text_of(self, ids: Sequence[int]) -> str | None:
        return await probe.detokenize(self.client, self.stack, ids, self.model)

    async def prompt_text(self, answer: Answer) -> str | None:
        """The rendered prompt of an answer, as text; None where this stack shows neither text nor ids of it."""
        response = answer.response
        if response.prompt_text is not None or not response.prompt_token_ids:
            return response.prompt_text
        return await self._text_of(response.prompt_token_ids)

    def _count(self, answer: Answer, limit: int | None) -> None:
        why = impossible(answer, limit) if answer.ok else None
        if why is not None:
            self.odd_usage = self.odd_usage or (answer, why)
        else:
            self.spent.prompt += answer.prompt_tokens or 0
            self.spent.completion += answer.completion_tokens or 0
        silent = answer.exchange.failure is not None or answer.exchange.status == 429
        self.failures_in_a_row = self.failures_in_a_row + 1 if silent else 0
        self.last_failed = answer if silent else self.last_failed

    def curl(self, answer: Answer) -> str:
        """A line that repeats the request, with the key as a variable."""
        return curl(self.url(answer.path), repeated_body(answer), self.client.connection)


def repeated_body(answer: Answer) -> dict[str, Json]:
    """The request as its user would send it again; Ollama streams unless told not to."""
    if answer.stream or answer.path == PATHS["ollama.chat"]:
        return {**answer.body, "stream": answer.stream}
    return answer.body


@dataclass
class _Meter:
    """What has been spent so far."""

    requests: int = 0
    prompt: int = 0
    completion: int = 0
    began: float = field(default_factory=time.monotonic)

    def record(self) -> Spent:
        """The sums; None for tokens where no answer stated them."""
        silent = not (self.prompt or self.completion)
        return Spent(
            requests=self.requests,
            prompt_tokens=None if silent else self.prompt,
            completion_tokens=None if silent else self.completion,
            seconds=round(time.monotonic() - self.began, 3),
        )
