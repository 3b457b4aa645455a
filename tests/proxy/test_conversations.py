"""Turns are gathered into conversations, and the numbers are taken over those."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp

from tests.proxy.conftest import recording
from tests.proxy.test_recording import ASK, KEPT, RESULT, post
from tests.proxy.upstream import CALL, LEAK, WEATHER, Request, Writer, completion, say, whole
from truecall.funnel import Turn
from truecall.proxy.conversations import Conversations
from truecall.proxy.uptake import Uptakes, prefixes
from truecall.records import Delivery, Emission, ToolCall, Uptake
from truecall.store.index import open_index
from truecall.wire import read_request

SURFACED = Turn(emission=Emission.VALID, delivery=Delivery.SURFACED)
LEAKED = Turn(emission=Emission.VALID, delivery=Delivery.LEAKED)


def shapes(found: Conversations) -> list[int]:
    return sorted(len(episode.turns) for episode in found.episodes())


def chain(text: str) -> list[bytes]:
    """The digests of a conversation's beginnings, a letter a message."""
    return [text[:size].encode() for size in range(len(text) + 1)]


def test_a_request_goes_on_with_what_it_repeats() -> None:
    found = Conversations()
    for number, text in enumerate(["a", "abc", "b", "abcde", "a", "bx"], 1):
        found.add(number, chain(text), SURFACED, after=None, instead_of=None)
    assert shapes(found) == [1, 2, 3]
    assert len({episode.item for episode in found.episodes()}) == 3


def test_results_lead_where_the_messages_were_rewritten() -> None:
    found = Conversations()
    found.add(1, chain("ab"), SURFACED, after=None, instead_of=None)
    found.observed(1, True)
    found.add(2, chain("xyz"), LEAKED, after=1, instead_of=None)
    (episode,) = found.episodes()
    assert [turn.observed for turn in episode.turns] == [True, None]


def test_a_retry_stands_for_the_failed_turn() -> None:
    found = Conversations()
    found.add(1, chain("a"), SURFACED, after=None, instead_of=None)
    found.add(2, chain("abc"), LEAKED, after=None, instead_of=None)
    found.add(3, chain("abc"), SURFACED, after=None, instead_of=2)
    (episode,) = found.episodes()
    assert [turn.delivery for turn in episode.turns] == [Delivery.SURFACED, Delivery.SURFACED]


def test_a_retry_that_the_client_left_is_in_no_number() -> None:
    found = Conversations()
    found.add(1, chain("a"), LEAKED, after=None, instead_of=None)
    found.left(2, instead_of=1)
    assert found.episodes() == []
    assert found.add(3, chain("a"), SURFACED, after=None, instead_of=2) == (1, 1)
    assert found.add(4, chain("abc"), LEAKED, after=None, instead_of=None) == (1, 2)
    found.left(5, instead_of=4)
    assert found.add(6, chain("abcde"), SURFACED, after=None, instead_of=None) == (1, 2)
    assert shapes(found) == [2]


def test_old_conversations_are_closed_and_still_counted() -> None:
    found = Conversations()
    for number in range(1, 25_001):
        found.add(number, chain(str(number)), SURFACED, after=None, instead_of=None)
    assert len(found.episodes()) <= 25_000 and sum(shapes(found)) == 25_000
    assert len(found._closed) < 50  # by their shape


def test_further_answers_stand_alone() -> None:
    found = Conversations()
    found.add(1, chain("a"), SURFACED, after=None, instead_of=None)
    found.alone(LEAKED)
    found.add(2, chain("abc"), SURFACED, after=None, instead_of=None)
    assert shapes(found) == [1, 2]


async def test_the_report_has_rates_with_intervals(tmp_path: Path) -> None:
    async def answer(request: Request, writer: Writer) -> None:
        first = len(request.json["messages"]) == 1
        said = completion(None, [CALL]) if first else completion(LEAK)
        await say(writer, whole(json.dumps(said).encode()))

    async with recording(tmp_path, answer) as proxied:
        for item in range(4):
            messages: list[Any] = [{"role": "user", "content": f"question {item}"}]
            for _ in range(1 + item % 2):
                _, body = await post(proxied, {**ASK, "messages": messages})
                message = json.loads(body)["choices"][0]["message"]
                result = {"role": "tool", "tool_call_id": "call_abc123", "content": "rain"}
                messages = [*messages, message, result]
    numbers = json.loads((tmp_path / "report.json").read_text())["numbers"]
    observed = next(number for number in numbers["numbers"] if number["name"] == "observed_fidelity")
    assert (numbers["episodes"], observed["yes"], observed["n"]) == (4, 4, 6)
    assert observed["per_seed"]["low"] == 0.75 and observed["per_seed"]["n"] == 4
    assert observed["per_seed"]["interval"]["method"].startswith("percentile bootstrap")
    steps = {step["name"]: (step["k"], step["n"]) for step in numbers["steps"]}
    assert steps["sent"] == (6, 6) and steps["surfaced"] == (4, 6) and steps["observed"] == (2, 6)


def test_answers_that_nobody_comes_back_to_are_forgotten() -> None:
    waiting = Uptakes()
    view = read_request({"messages": [{"role": "user", "content": "q"}, KEPT, RESULT]}, "openai.chat")
    call = ToolCall(name="get_weather", arguments='{"city": "Oslo"}')  # no id: told by the messages alone
    same = prefixes(view.messages[:1])
    for number in range(1, 20_101):
        waiting.answered(number, same, (call,))
    ((number, uptakes),) = waiting.asked(view, prefixes(view.messages))
    assert number == 101 and uptakes == [Uptake.OBSERVED]  # the oldest that is remembered


async def test_the_index_has_the_same_conversations(tmp_path: Path) -> None:
    """Gone on with by words alone, retried at the start, asked twice, and answered more than once."""

    async def answer(request: Request, writer: Writer) -> None:
        body = completion("Which day?")
        body["choices"] = [
            {**body["choices"][0], "index": place} for place in range(request.json.get("n", 1))
        ]
        busy = request.json.get("busy") and len(upstream) == 0
        upstream.append(request)
        await say(writer, whole(json.dumps(body).encode(), status="503 Busy" if busy else "200 OK"))

    upstream: list[Request] = []
    user, said, more = (
        {"role": role, "content": text} for role, text in (("user", "q"), ("assistant", "a"), ("user", "r"))
    )
    asked: list[dict[str, Any]] = [
        {"messages": [user], "busy": 1},
        {"messages": [user], "busy": 1},
        {"messages": [user, said, more]},
        {"messages": [more]},
        {"messages": [user, said, more, said, more], "n": 2},
    ]
    async with recording(tmp_path, answer) as proxied, aiohttp.ClientSession() as session:
        for body in asked:
            whole_body = {"model": "m", "tools": [WEATHER], **body}
            async with session.post(f"{proxied.url}/v1/chat/completions", json=whole_body) as response:
                await response.read()
    numbers = json.loads((tmp_path / "report.json").read_text())["numbers"]
    with open_index(tmp_path) as index:
        found = {row.key: (row.episode, row.position, row.attempts) for row in index.page()}
        assert numbers["episodes"] == len(index.values("episode")) == 3
    assert found == {
        "2": ("1", 1, 2),
        "3": ("1", 2, 1),
        "4": ("4", 1, 1),
        "5": ("1", 3, 1),
        "5.1": ("5.1", 1, 1),
    }
