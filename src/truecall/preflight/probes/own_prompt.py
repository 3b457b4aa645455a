"""What of the user's own request reaches the prompt: its tools by name, its messages, its tokens."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from truecall import wire
from truecall.preflight.session import Answer, Session
from truecall.records import Json
from truecall.wire import RequestView
from truecall.wire.request import content_text

_PIECE: Final = 60  # characters of a message's start and end that are looked up


@dataclass(frozen=True)
class InPrompt:
    """How much of the request the prompt holds; None: can't be told on this stack.

    ``names``, ``messages``: how many of ``tools`` and ``said_messages`` stand in the prompt. ``rendered``: whether
    any tool does. ``tokens`` of ``context``: the prompt's size and the longest that the server takes.
    """

    tools: int
    said_messages: int
    tokens: int | None
    context: int | None
    names: int | None = None
    messages: int | None = None
    rendered: bool | None = None

    @property
    def cut(self) -> str:
        """What is missing, in words; "" where nothing is known to be."""
        missing = []
        if self.names is not None and self.names < self.tools:
            missing.append(f"{self.tools - self.names} of {self.tools} tools")
        if self.messages is not None and self.messages < self.said_messages:
            missing.append(f"{self.said_messages - self.messages} of {self.said_messages} messages")
        return " and ".join(missing) + " missing" if missing else ""

    def said(self) -> list[str]:
        """For the table: ``rendered 38/38 tool names · 6,214 of 32,768 tokens: nothing cut``."""
        parts = []
        if self.names is not None and self.tools:
            parts.append(f"rendered {self.names}/{self.tools} tool names")
        elif self.rendered is not None:
            parts.append("tools rendered" if self.rendered else "tools NOT rendered")
        if self.tokens is not None:
            of = f" of {self.context:,}" if self.context else ""
            whole = ": nothing cut" if self.messages is not None and not self.cut else ""
            parts.append(f"{self.tokens:,}{of} prompt tokens{whole}")
        return parts


async def in_prompt(session: Session, body: dict[str, Json], api: str, answers: list[Answer]) -> InPrompt:
    """Looks the request up in its rendered prompt, or compares token counts with and without its tools."""
    view = wire.read_request(body, api)
    names = [str(t["function"].get("name")) for t in view.tools or () if isinstance(t.get("function"), dict)]
    texts = [text for m in view.messages if (text := content_text(m.get("content")))]
    known = next((a for a in answers if a.ok), None)
    context = session.info.context_length.value
    found = InPrompt(
        tools=len(names),
        said_messages=len(texts),
        tokens=known.prompt_tokens if known else None,
        context=context if isinstance(context, int) else None,
    )
    if known is None:
        return found
    prompt = await _prompt(session, body, api, known)
    if prompt is not None:
        flat = _flat(prompt)
        beside = _without(flat, texts)
        past = Counter(
            str(call["function"].get("name"))
            for m in view.messages
            for call in m.get("tool_calls") or ()
            if isinstance(call, dict) and isinstance(call.get("function"), dict)
        )
        held = sum(beside.count(name) > past[name] for name in names)
        told = sum(_holds(flat, text) for text in texts)
        return replace(found, names=held, messages=told, rendered=bool(held) if names else None)
    if names and found.tokens is not None:
        return replace(found, rendered=await _grows(session, body, api, found.tokens))
    return found


async def _prompt(session: Session, body: dict[str, Json], api: str, known: Answer) -> str | None:
    """The rendered prompt: beside the answer, or from Ollama, which renders without generating when asked to."""
    prompt = await session.prompt_text(known)
    if prompt is not None or session.info.engine != "ollama" or api != "ollama.chat":
        return prompt
    answer = await session.ask({**body, "_debug_render_only": True}, api=api, evidence=False)
    return answer.response.prompt_text


async def _grows(session: Session, body: dict[str, Json], api: str, tokens: int) -> bool | None:
    """Whether the tools add prompt tokens."""
    bare = {k: v for k, v in body.items() if k not in ("tools", "tool_choice", "parallel_tool_calls")}
    answer = await session.ask(bare, api=api)
    return None if answer.prompt_tokens is None else tokens > answer.prompt_tokens


def _holds(prompt: str, text: str) -> bool:
    """Whether a message stands in the prompt: its start and its end do (templates may trim and escape)."""
    flat = _flat(text)
    return all(
        piece in prompt or json.dumps(piece)[1:-1] in prompt for piece in (flat[:_PIECE], flat[-_PIECE:])
    )


def _without(prompt: str, texts: list[str]) -> str:
    """The prompt without the messages' own words: a tool's name in a question shows no tool."""
    for text in sorted(map(_flat, texts), key=len, reverse=True):
        for form in (text, json.dumps(text)[1:-1]):
            prompt = prompt.replace(form, " ")
    return prompt


def _flat(text: str) -> str:
    return " ".join(text.split())


def limit_of(view: RequestView) -> int:
    """Completion tokens that one try of the request may take, for the ceiling."""
    return view.max_tokens if view.max_tokens is not None else 1024
