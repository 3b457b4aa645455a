"""Exchanges to turns with verdicts, in the order in which they ended: roles, retries, uptake."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from truecall import wire
from truecall.classify import judge_exchange, read_exchange
from truecall.funnel import turn_of
from truecall.proxy.conversations import Conversations
from truecall.proxy.forms import FORMS
from truecall.proxy.prompt_tools import tools_in_prompt
from truecall.proxy.tally import Tally, Turn
from truecall.proxy.uptake import Uptakes, prefixes
from truecall.records import Api, Delivery, Exchange, Json, Record, Response, ToolCall, Uptake, Verdict
from truecall.wire import RequestView
from truecall.wire.values import decode

_RETRIED_WITHIN: Final = 900.0  # seconds between two attempts of one turn
_FAILED: Final = 2_000  # failed turns whose retry may come
_FAILURES: Final = frozenset(
    {Delivery.RATE_LIMITED, Delivery.SERVER_ERROR, Delivery.TIMEOUT, Delivery.UNREACHABLE}
)
_RETRY_COUNT: Final = "x-stainless-retry-count"  # the OpenAI and Anthropic SDKs say so


class Judged(Record, frozen=True):
    """What was concluded of one exchange. ``uptakes``: what its request told of earlier turns.

    ``conversation`` and ``position``: the exchange that opened the conversation, and the turn's place there from 1
    on; None where the turn is in no number.
    """

    n: int
    role: str
    verdicts: tuple[Verdict, ...] = ()
    conversation: int | None = None
    position: int | None = None
    retry_of: int | None = None
    tools_from: str | None = None
    uptakes: tuple[dict[str, Json], ...] = ()


class Judging:
    """Reads exchanges and keeps the tally.

    Args:
        tools: those of a harness whose tools stand in the prompt; None: they are read from it.
        simulators: models that play the user.
        swap: whether the interface is swapped: then it is counted where it could not be.
    """

    def __init__(
        self, tools: tuple[Json, ...] | None = None, simulators: tuple[str, ...] = (), *, swap: bool = False
    ) -> None:
        self.tally = Tally()
        self.conversations = Conversations()
        self._swap = swap
        self._tools = tools
        self._simulators = frozenset(simulators)
        self._failed: OrderedDict[bytes, Turn] = OrderedDict()
        self._uptakes = Uptakes()

    def take(self, exchange: Exchange, about: dict[str, Any], sent: bytes | None = None) -> Judged:
        """Judges an exchange. ``about``: what the log has beside it; ``sent``: what the client got instead."""
        number = int(about.get("n", 0))
        self.tally.exchanges += 1
        api = wire.by_path(exchange.request.url)
        body = decode(exchange.request.body) if api is not None and exchange.request.body else None
        if api is None or not isinstance(body, dict):
            self.tally.unjudged += 1
            return Judged(n=number, role="other")
        view = wire.read_request(body, api.value)
        tools, source = self._offered(view)
        role = self._role(view, tools, source, about.get("role"))
        chain = prefixes(view.messages)
        uptakes = self._told(view, chain) if role == "agent" else ()
        response = read_exchange(exchange, api.value)
        texts = about.get("texts") or []
        verdicts = tuple(
            judge_exchange(
                exchange,
                tools,
                api=api.value,
                request=view,
                detokenized=texts[choice] if choice < len(texts) else None,
                response=response,
                choice=choice,
            )
            for choice in range(max(1, len(response.choices)))
        )
        turn = Turn(
            number=number,
            role=role,
            verdicts=verdicts,
            at=exchange.timing.started_at,
            delivered=int(about.get("delivered", 0)),
            client_gone=bool(about.get("client_gone")),
        )
        turn.failed = turn.client_gone or all(verdict.delivery in _FAILURES for verdict in verdicts)
        if about.get("superseded"):  # refused only because of a field of ours; the same request follows
            self.tally.retries += 1
            return Judged(n=number, role="superseded", verdicts=verdicts)
        earlier = self._count(turn, exchange)
        conversation = position = None
        if role == "agent" and turn.client_gone:
            self.conversations.left(number, instead_of=earlier)
        elif role == "agent":
            after = next((told["n"] for told in uptakes), None)
            first, *further = (turn_of(verdict, failed_attempts=turn.attempts - 1) for verdict in verdicts)
            conversation, position = self.conversations.add(
                number, chain, first, after=after, instead_of=earlier
            )
            for each in further:
                self.conversations.alone(each)
        if role == "agent" and not turn.failed:
            self._uptakes.answered(number, chain, _given(response, sent, api, exchange))
        if self._swap and role in ("agent", "prompt") and (why := about.get("unswapped") or _placeless(api)):
            self.tally.unswapped[str(why)] += 1
        return Judged(
            n=number,
            role=role,
            verdicts=verdicts,
            conversation=conversation,
            position=position,
            retry_of=earlier,
            tools_from=source,
            uptakes=uptakes,
        )

    # ------------------------------------------------------------- parts

    def _offered(self, view: RequestView) -> tuple[tuple[Json, ...] | None, str | None]:
        """The tools that the model was offered, and where they stood."""
        if view.tools:
            return view.tools, "request"
        if self._tools is not None:
            return self._tools, "file"
        found = tools_in_prompt(view)
        return (found, "prompt") if found else (view.tools, None)

    def _role(self, view: RequestView, tools: Any, source: str | None, said: Any) -> str:
        if said in ("simulator", "judge"):
            return str(said)
        if view.model in self._simulators:
            return "simulator"
        if not tools:
            return "no_tools"
        if view.tool_choice == "none":
            return "tools_forbidden"
        return "agent" if source == "request" else "prompt"

    def _count(self, turn: Turn, exchange: Exchange) -> int | None:
        """Enters the turn into the tally; the exchange that it is a retry of, where it is one."""
        digest = hashlib.blake2b(exchange.request.url.encode() + b"\n" + exchange.request.body).digest()
        earlier = self._failed.pop(digest, None)
        claims = any(n.lower() == _RETRY_COUNT and v not in ("", "0") for n, v in exchange.request.headers)
        if earlier is not None and (claims or turn.at - earlier.at <= _RETRIED_WITHIN):
            self.tally.add(earlier, -1)
            self.tally.retries += 1
            turn.attempts = earlier.attempts + 1
        else:
            earlier = None
        self.tally.add(turn)
        if turn.failed:
            self._failed[digest] = turn
            while len(self._failed) > _FAILED:
                self._failed.popitem(last=False)
        return earlier.number if earlier is not None else None

    def _told(self, view: RequestView, chain: Sequence[bytes]) -> tuple[dict[str, Json], ...]:
        out: list[dict[str, Json]] = []
        for number, values in self._uptakes.asked(view, chain):
            names = [str(value) for value in values]
            self.tally.uptake(names)
            self.conversations.observed(number, Uptake.OBSERVED in values)
            out.append({"n": number, "calls": names})
        return tuple(out)


def _given(response: Response, sent: bytes | None, api: Api, exchange: Exchange) -> tuple[ToolCall, ...]:
    """The calls that the client got: those of the answer, or of the one that truecall gave instead."""
    if sent is not None:
        response = wire.read(sent, api.value, status=exchange.status)
    return response.choices[0].tool_calls if response.choices else ()


def _placeless(api: Api) -> str:
    return "" if api in FORMS else f"{api} has no place for a call"


def concluded(judged: Judged) -> dict[str, Any]:
    """A conclusion as the log has it."""
    return dict(msgspec.to_builtins(judged))
