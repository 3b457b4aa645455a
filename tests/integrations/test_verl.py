"""The verl adapter, on stand-ins with verl's signatures, and on the real package where it is at hand.

``TRUECALL_VERL_SITE`` names a site-packages folder with verl in it (``pip install --no-deps verl``, beside regex and
pydantic); torch is not needed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.sources.samples import TEXT_CALL, TOOLS
from truecall.integrations.monitor import Monitor
from truecall.integrations.verl import KEY, totals, watch

HERE = Path(__file__).parent


class Tokenizer:
    def decode(self, ids: list[int]) -> str:
        return "".join(map(chr, ids))


def make_classes() -> tuple[Any, Any]:
    """A parser and a loop with the methods of verl 0.9.1 that the adapter touches."""

    class Parser:
        stop_token_ids = (7,)

        def __init__(self, name: str, tokenizer: Tokenizer) -> None:
            self.name, self.tokenizer = name, tokenizer

        async def extract_tool_calls(
            self, responses_ids: list[int], tools: Any = None
        ) -> tuple[str, list[Any]]:
            if self.name == "broken":
                raise ValueError("no")
            text = self.tokenizer.decode(responses_ids)
            found = self.name == "hermes" and "<tool_call>" in text
            return text, [SimpleNamespace(name="get_weather", arguments="{}")] if found else []

        @classmethod
        def get_tool_parser(cls, name: str, tokenizer: Tokenizer) -> Parser:
            return cls(name, tokenizer)

    class Loop:
        def __init__(self, name: str) -> None:
            self.tool_parser = Parser.get_tool_parser(name, Tokenizer())

        async def run(self, sampling_params: dict[str, Any], priority: int = 0, **kwargs: Any) -> Any:
            for text in kwargs["texts"]:
                _, calls = await self.tool_parser.extract_tool_calls([ord(c) for c in text], TOOLS)
                for call in calls:
                    await self._call_tool(call, {}, None)
            return SimpleNamespace(extra_fields={})

        async def _call_tool(self, tool_call: Any, tools_kwargs: dict[str, Any], agent_data: Any) -> Any:
            return SimpleNamespace(text="sunny"), 0.0, {}

    return Parser, Loop


async def test_an_agent_loop_is_watched() -> None:
    parser, loop = make_classes()
    monitor = watch(parser=parser, loop=loop)
    output = await loop("hermes").run({}, texts=[TEXT_CALL, "It is sunny."])
    other = await loop("llama3").run({}, texts=[TEXT_CALL])
    assert monitor.counts["turns"] == 3 and monitor.counts["lost"] == 1
    assert monitor.counts["executed"] == monitor.counts["observed"] == 1
    assert output.extra_fields[KEY]["accepted"] == 1 and other.extra_fields[KEY]["lost"] == 1
    metrics = totals([output.extra_fields[KEY], None, other.extra_fields[KEY]])
    assert metrics["truecall/turns"] == 3.0 and metrics["truecall/accepted_rate"] == 1 / 3


async def test_a_parser_that_raises_still_raises() -> None:
    parser, _ = make_classes()
    monitor = watch(parser=parser)
    watched = parser.get_tool_parser("broken", Tokenizer())
    with pytest.raises(ValueError, match="no"):
        await watched.extract_tool_calls([ord(c) for c in TEXT_CALL], TOOLS)
    assert monitor.counts["lost"] == 1
    assert watched.stop_token_ids == (7,)


async def test_watching_again_changes_the_monitor_only() -> None:
    parser, loop = make_classes()
    first, second = watch(parser=parser, loop=loop), Monitor()
    assert watch(second, parser=parser, loop=loop) is second
    await loop("hermes").run({}, texts=[TEXT_CALL])
    assert first.counts["turns"] == 0 and second.counts["turns"] == 1


async def test_a_tokenizer_that_fails_is_a_counted_fault() -> None:
    parser, _ = make_classes()
    monitor = watch(parser=parser)
    watched = parser.get_tool_parser("none", SimpleNamespace(decode=None))
    with pytest.raises(TypeError):
        await watched.extract_tool_calls([1], TOOLS)
    assert monitor.counts["faults"] == 1


@pytest.mark.skipif("TRUECALL_VERL_SITE" not in os.environ, reason="needs TRUECALL_VERL_SITE")
def test_the_real_parsers() -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "real_verl.py"), os.environ["TRUECALL_VERL_SITE"]],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "hermes accepted 1 lost 0 other accepted 0 lost 1 signatures ok"
