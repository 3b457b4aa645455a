"""One request of a preflight with all that is known of its answer, and how both are told to a person. Pure."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import Final

from truecall import stacks
from truecall.config import Connection
from truecall.records import Evidence, Exchange, Failure, Json, Response, Verdict

PATHS: Final = {"openai.chat": "/v1/chat/completions", "ollama.chat": "/api/chat"}


@dataclass(frozen=True)
class Answer:
    """One request and all that is known of its answer. ``body`` is what the user would send: without our
    evidence fields."""

    body: dict[str, Json]
    stream: bool
    exchange: Exchange
    response: Response
    verdict: Verdict
    evidence: Evidence
    path: str = PATHS["openai.chat"]

    @property
    def ok(self) -> bool:
        """A 2xx answer that came whole and states no error."""
        status = self.exchange.status
        return (
            self.exchange.failure is None
            and status is not None
            and 200 <= status < 300
            and self.response.error is None
            and bool(self.response.choices)
        )

    @property
    def prompt_tokens(self) -> int | None:
        return self.response.usage.prompt_tokens if self.response.usage else None

    @property
    def completion_tokens(self) -> int | None:
        return self.response.usage.completion_tokens if self.response.usage else None

    @property
    def content(self) -> str:
        return (self.response.choices[0].content or "") if self.response.choices else ""

    @property
    def reasoning(self) -> str:
        return (self.response.choices[0].reasoning or "") if self.response.choices else ""

    @property
    def finish_reason(self) -> str | None:
        return self.response.choices[0].finish_reason if self.response.choices else None

    def refusal(self) -> stacks.Refusal | None:
        """What the error answer means; None for an answer that is no error."""
        if self.exchange.failure is not None and self.exchange.status is None:
            return None
        text = self.exchange.body[:65536].decode("utf-8", "replace")
        return stacks.refusal(self.exchange.status, self.response.error, text)

    def came(self, limit: int = 300) -> str:
        """What the client got, cut for reading."""
        if self.exchange.failure is not None:
            return cut(failed(self.exchange.failure), limit)
        if not self.ok:
            text = (
                self.response.error.message
                if self.response.error
                else self.exchange.body[: 4 * limit].decode("utf-8", "replace")
            )
            where = self.exchange.header("location")
            text = text if where is None else f"to {where} {text}"
            return cut(f"HTTP {self.exchange.status}: {' '.join(text.split())}", limit)
        choice = self.response.choices[0]
        calls = [f"{c.name}({_short(c.arguments)})" for c in choice.tool_calls]
        parts = ["content null" if choice.content is None else f"content {_quoted(choice.content)}"]
        if choice.reasoning:
            parts.append(f"reasoning {_quoted(choice.reasoning)}")
        parts.append(f"tool_calls [{', '.join(calls)}]")
        parts.append(f"finish_reason {choice.finish_reason}")
        return cut(", ".join(parts), limit)

    def sent(self) -> str:
        """What was asked, in a few words."""
        tools = self.body.get("tools")
        count = len(tools) if isinstance(tools, list) else 0
        parts = [f"{count} tool{'s' * (count != 1)}"]
        if "tool_choice" in self.body:
            choice = self.body["tool_choice"]
            parts.append(f"tool_choice {choice if isinstance(choice, str) else 'a named tool'}")
        if "max_tokens" in self.body:
            parts.append(f"max_tokens {self.body['max_tokens']}")
        if self.stream:
            parts.append("streaming")
        return ", ".join(parts)


def failed(failure: Failure) -> str:
    """A transport failure in words."""
    kind = str(failure.kind).replace("_", " ")
    return f"{kind}: {failure.detail}" if failure.detail else kind


def cut(text: str, limit: int) -> str:
    """``text``, at most ``limit`` characters of it, the cut marked."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def curl(url: str, body: dict[str, Json], connection: Connection) -> str:
    """A line that repeats a request, with the key (and own headers) as variables; the body is its last word."""
    parts = ["curl", "-sS", shlex.quote(url), "-H", "'content-type: application/json'"]
    if connection.insecure:
        parts.append("-k")
    if connection.ca_bundle:
        parts += ["--cacert", shlex.quote(connection.ca_bundle)]
    own = [name for name, _ in connection.headers]
    if connection.key_env and "authorization" not in map(str.lower, own):
        parts += ["-H", f'"authorization: Bearer ${connection.key_env}"']
    for name in own:  # their values may be secret
        parts += ["-H", f'"{name}: ${re.sub(r"[^A-Z0-9]", "_", name.upper())}"']
    parts += ["-d", shlex.quote(json.dumps(body, ensure_ascii=False))]
    return " ".join(parts)


def _short(value: Json) -> str:
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 120)


def _quoted(text: str) -> str:
    return json.dumps(_short(text), ensure_ascii=False)
