"""The parser inside a running server, which is made to parse given texts; see ``protocol``.

For engines whose parser can't be had alone (llama.cpp, Ollama). Runs in truecall's own environment and talks to the
one address that the command line names. How a stack is made to parse a text stands in ``stacks`` (``loopback``). Where
the model is to write it (Ollama: to repeat it), the answer's own evidence has to show that it did.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from protocol import Parsed, Unasked, serve  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from truecall.records import Choice, Response

_SECONDS = 120
_MOST = 32 << 20


class _Served:
    def __init__(self, engine: str, url: str) -> None:
        from truecall import stacks

        self._root = url.rstrip("/").removesuffix("/v1")
        self._stack = stacks.engine(engine)
        self._model = self._first_model()

    def _first_model(self) -> str:
        try:
            listed = json.loads(self._get(f"{self._root}/v1/models"))
            return str(listed["data"][0]["id"])
        except (ValueError, LookupError, TypeError):
            return "default"

    def _get(self, url: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(asked, timeout=_SECONDS) as answer:
            content: bytes = answer.read(_MOST)
            return content

    def whole(self, _: str, text: str, tools: list[Any]) -> Parsed:
        """What the server's parser makes of a text. A 5xx is the parser's; a 4xx comes before any parser."""
        from truecall import wire

        order = self._stack.loopback(text, tools, self._model)
        if order is None:
            raise Unasked(f"no way to make {self._stack.title} parse a given text")
        asked = {**order.body, **self._stack.evidence_fields(order.body)}
        try:
            body = self._get(self._root + order.path, asked)
        except urllib.error.HTTPError as error:
            said = f"HTTP {error.code}: {error.read(2000).decode('utf-8', 'replace')[:200]}"
            raise (Unasked(said) if error.code < 500 else RuntimeError(said)) from None
        api = "ollama.chat" if order.path.startswith("/api/") else "openai.chat"
        response = wire.read(body, api, status=200)
        if not response.choices:
            raise RuntimeError("the server gave no answer")
        choice = response.choices[0]
        if order.way != "prefill" and self._wrote(response, choice).strip() != text.strip():
            raise Unasked(f"the model did not write this text (by {order.way})")
        calls = [
            [c.name, c.arguments if isinstance(c.arguments, str) else json.dumps(c.arguments)]
            for c in choice.tool_calls
        ]
        # A server that keeps a call's text in its reasoning has not erased it.
        return calls, "\n".join(part for part in (choice.reasoning, choice.content) if part)

    def _wrote(self, response: Response, choice: Choice) -> str:
        """What the model wrote, by evidence that no parser touched."""
        from truecall import evidence

        back = self._stack.detokenize(choice.token_ids, self._model) if choice.token_ids else None
        told = None
        if back is not None:
            told = self._stack.read_detokenized(json.loads(self._get(self._root + back.path, back.body)))
        best = evidence.best(response, choice, detokenized=told)
        if best.text is None or best.tier not in evidence.STRONGER:
            raise Unasked("the server does not show what the model wrote")
        return best.text


def load() -> tuple[str, list[str], Any, Any]:
    """Finds the server that the command line names: its engine and its address."""
    served = _Served(sys.argv[1], sys.argv[2])
    return "served", ["served"], served.whole, None


if __name__ == "__main__":
    serve(sys.argv[1], load, network=True)
