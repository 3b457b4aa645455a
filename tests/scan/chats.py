"""A mixed chat file, made from a seed: every kind of turn that the scan tells apart."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.sources.samples import TEXT_CALL, TOOLS, USER, assistant, call, result
from truecall.scan import Tally

WORDS = [
    "the",
    "weather",
    "in",
    "Oslo",
    "is",
    "cold",
    "(see",
    "above)",
    "and",
    "[later]",
    "warm;",
    "5",
    "<",
    "6,",
    "`x`",
    "{y}",
    "name:",
    "function",
    "tool",
    "to=be",
    "~",
    "ok",
]


def prose(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randrange(1, 60)))


def turn(rng: random.Random, number: int) -> list[Any]:
    """The messages of one of the model's turns and what follows it."""
    ident = f"c{number}"
    kinds: list[list[Any]] = [
        [assistant(prose(rng))],
        [assistant(None, call(ident)), result(ident)],
        [assistant(prose(rng), call(ident)), USER],
        [assistant(TEXT_CALL)],
        [assistant(None, call(ident, '{"town": 3}')), result(ident)],
        [assistant(None, call(ident, '{"city": "Os'))],
        [assistant("")],
        [assistant(None)],
        [assistant("Error code: 500 - boom")],
        [assistant(TEXT_CALL, call(ident)), result(ident)],
        [assistant(None, {"id": ident, "function": {"name": "no_such", "arguments": "{}"}})],
        [assistant("x" * 1000)],
        [{**assistant("cut"), "finish_reason": "length"}],
        [{**assistant("a <b> c"), "reasoning_content": "hm"}],
        [assistant(TEXT_CALL), {"role": "user", "content": "Observation: sunny"}],
        [assistant("日本語のテキスト『関数』(メモ)")],
        [assistant('{"name": "get_weather", "arguments": {"city": "Oslo"}}')],
        [{**assistant(None, call(ident)), "function_call": None, "refusal": None}, result(ident)],
        [assistant("get_weather(city='Oslo')")],
        [assistant("I call get_weather (twice) and `get_weather`.")],
    ]
    return rng.choice(kinds)


def entry(rng: random.Random, number: int) -> dict[str, Any]:
    messages: list[Any] = [USER]
    for position in range(rng.randrange(1, 5)):
        messages += turn(rng, position)
    made: dict[str, Any] = {"id": number, "messages": messages, "model": rng.choice(("a", "b", None))}
    if rng.random() < 0.8:
        made["tools"] = rng.choice((TOOLS, TOOLS, []))
    if rng.random() < 0.1:
        made["tool_choice"] = rng.choice(("none", "auto", "required"))
    if rng.random() < 0.3:
        made["step"] = rng.randrange(3)
    return made


def lines(n: int, seed: int = 0) -> bytes:
    """``n`` lines, some of them blank or broken."""
    rng = random.Random(seed)
    out = []
    for number in range(n):
        line = json.dumps(entry(rng, number), ensure_ascii=rng.random() < 0.5)
        if rng.random() < 0.02:
            line = rng.choice(("", "   ", line[: len(line) // 2], "[]", "nothing"))
        out.append(line)
    return "\n".join(out).encode() + b"\n"


def plain(tally: Tally) -> dict[str, Any]:
    """A tally as data, without the order in which groups and outcomes were first met."""
    data = tally.plain()
    for name in ("groups", "episodes"):
        data[name] = sorted(((g, sorted(c, key=json.dumps)) for g, c in data[name]), key=json.dumps)
    data["examples"] = sorted(data["examples"], key=json.dumps)
    return data
