"""The verdict on one turn: what the model did, what the stack did with it, and the rule that decided (DESIGN §2).

``judge`` is the public door. Nothing here raises on what a model or server wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from truecall import wire
from truecall.classify import turns
from truecall.classify.answers import NOTHING_DETECTED, Turn, judge_answer, judge_error, produced
from truecall.classify.rules import LEGAL, RULES, SEVERITY
from truecall.classify.summary import noted
from truecall.records import Choice, Exchange, Failure, Json, Response, Verdict

__all__ = ["LEGAL", "RULES", "SEVERITY", "judge", "judge_exchange", "judge_response", "read_exchange"]


def judge(
    status: int | None,
    body: bytes | str | dict[str, Json] | list[Any] | float | None,
    tools: Sequence[Json] | None,
    *,
    api: str = "openai.chat",
    request: Mapping[str, Json] | None = None,
    choice: int = 0,
) -> Verdict:
    """Judge one response. Never raises, whatever the body holds.

    ``status``: the HTTP status; None where it is not known. ``body``: bytes, text, decoded JSON, or the list
    of a stream's payloads. ``tools``: the tool list that was offered, or None where it is not known (then
    ``request`` is asked). ``api``: how the body is read, unless it is plainly of another API. ``request``: the
    request body, where known; tool_choice and max_tokens are read from it. ``choice``: which of several sampled
    answers, by position; each can be judged, none speaks for the others.

    Source: DESIGN §2; the rules stand in docs/verdicts.md.
    """
    if isinstance(body, (int, float)):
        body = str(body)
    response = wire.read(body, api, status=status)
    if not response.choices and response.error is None and (found := wire.sniff(body)) not in (None, api):
        response = wire.read(body, found or api, status=status)  # the body is of another API than was said
    view = wire.read_request(dict(request), api) if request is not None else None
    if tools is None and view is not None:
        tools = view.tools
    return judge_response(response, tools, status=status, request=view, choice=choice)


def judge_exchange(
    exchange: Exchange,
    tools: Sequence[Json] | None,
    *,
    api: str = "openai.chat",
    request: wire.RequestView | None = None,
    detokenized: str | None = None,
    response: Response | None = None,
    choice: int = 0,
) -> Verdict:
    """Judge an exchange, transport failures included. ``detokenized``: see ``evidence.best``.

    ``response``: the exchange as ``read_exchange`` reads it, where the caller has it already.
    """
    if response is None:
        response = read_exchange(exchange, api)
    failure = exchange.failure
    answer = response.choices[choice] if choice < len(response.choices) else None
    wrote = produced(answer)
    told = response.error is not None and exchange.status is not None and exchange.status >= 400
    if failure is not None and not wrote and not told:
        return _failed(failure, response, wrote=False)
    verdict = judge_response(
        response, tools, status=exchange.status, request=request, detokenized=detokenized, choice=choice
    )
    if failure is None or verdict.calls or told:
        return verdict
    return _failed(failure, response, wrote=True)


def _failed(failure: Failure, response: Response, *, wrote: bool) -> Verdict:
    return noted(turns.failed(failure, produced=wrote), response.defects, NOTHING_DETECTED.version)


def read_exchange(exchange: Exchange, api: str) -> Response:
    """The response record of an exchange; a broken transport makes it incomplete."""
    response = wire.read(
        exchange.body, api, status=exchange.status, content_type=exchange.header("content-type")
    )
    if exchange.failure is not None:
        return msgspec.structs.replace(response, complete=False)
    return response


def judge_response(
    response: Response,
    tools: Sequence[Json] | None,
    *,
    status: int | None = 200,
    request: wire.RequestView | None = None,
    detokenized: str | None = None,
    choice: int = 0,
) -> Verdict:
    """Judge a response already read. Parameters as in ``judge`` and ``evidence.best``."""
    answer = response.choices[choice] if choice < len(response.choices) else None
    failed = status is not None and status >= 300
    signed = response.usage is not None or response.id or response.model  # by the API, with no choice in it
    wordless = response.stream or (signed and not response.choices)
    if answer is None and wordless and response.error is None and not failed:
        answer = Choice()  # a stream that ended without a word, an answer without a choice
    turn = Turn(response, answer, tools, request, detokenized)
    if answer is None or failed:
        return judge_error(turn, status)
    return judge_answer(turn, answer, status)
