"""A failing request made smaller: fewer tools, fewer messages, shorter texts, as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from truecall.preflight.session import Answer, Session
from truecall.records import Json

LIMIT: Final = 24  # requests that may be spent on it
_SHORT: Final = 200  # characters of a text that are not worth a request


async def reduced(session: Session, shown: Answer, api: str) -> dict[str, Json]:
    """The smallest body found that still ends as ``shown`` did.

    Each step is kept when one try of it fails in the same way; a request that fails only at times may end early.
    """
    want = _end(shown)
    body, left = dict(shown.body), LIMIT
    for field in ("tools", "messages"):
        body, left = await _shorter(session, body, field, want, api, shown.stream, left)
    for smaller in _shorter_texts(body):
        if left <= 0:
            break
        left -= 1
        candidate = smaller(body)
        if candidate != body and _end(await session.ask(candidate, api=api, stream=shown.stream)) == want:
            body = candidate
    return body


def _end(answer: Answer) -> tuple[object, ...]:
    verdict = answer.verdict
    return verdict.delivery, verdict.cause, verdict.rule


async def _shorter(
    session: Session,
    body: dict[str, Json],
    field: str,
    want: tuple[object, ...],
    api: str,
    stream: bool,
    left: int,
) -> tuple[dict[str, Json], int]:
    """Halves, quarters … of a list are taken away while the request still fails; at least one item stays."""
    items = body.get(field)
    size = len(items) // 2 if isinstance(items, list) else 0
    while size and left > 0:
        smaller = False
        for start in range(0, len(body[field]), size):
            rest = [*body[field][:start], *body[field][start + size :]]
            if not rest or left <= 0 or not _sound(field, rest):
                continue
            left -= 1
            candidate = {**body, field: rest}
            if _end(await session.ask(candidate, api=api, stream=stream)) == want:
                body, smaller = candidate, True
                break
        size = min(size, len(body[field]) // 2) if smaller else size // 2
    return body, left


class _Cut:
    """Cuts the text of one message to its first or last characters."""

    def __init__(self, place: int) -> None:
        self._place = place

    def __call__(self, body: dict[str, Json]) -> dict[str, Json]:
        messages = list(body["messages"])
        message = messages[self._place]
        last = self._place == len(messages) - 1
        text = message["content"][-_SHORT:] if last else message["content"][:_SHORT]
        messages[self._place] = {**message, "content": text}
        return {**body, "messages": messages}


def _shorter_texts(body: dict[str, Json]) -> Iterator[_Cut]:
    """One step for each long message, the longest first."""
    messages = body.get("messages")
    texts = [
        (len(m["content"]), place)
        for place, m in enumerate(messages if isinstance(messages, list) else [])
        if isinstance(m, dict) and isinstance(m.get("content"), str) and len(m["content"]) > _SHORT
    ]
    for _, place in sorted(texts, reverse=True):
        yield _Cut(place)


def _sound(field: str, items: list[Json]) -> bool:
    """Messages must end with the user's or a tool's turn, and no tool result may stand without its call."""
    if field != "messages":
        return True
    if not all(isinstance(message, dict) for message in items):
        return False
    called: set[str] = set()
    calls = 0
    for message in items:
        made = [c for c in message.get("tool_calls") or [] if isinstance(c, dict)]
        called |= {str(c["id"]) for c in made if "id" in c}
        calls += len(made)
        if message.get("role") == "tool":
            calls -= 1
            if calls < 0 or ("tool_call_id" in message and str(message["tool_call_id"]) not in called):
                return False
    return items[-1].get("role") in ("user", "tool")
