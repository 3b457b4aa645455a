"""The commonest texts by the shortest way: prose, code blocks and plain hermes calls.

A short sweep over nothing but ``<`` and fences, with the dialects' own reader and the judge's own rules; None
where the text holds anything else that could start a call. The tests hold it to the full sweep.
"""

from __future__ import annotations

import re

from truecall.dialects.bare import NAME_WORDS
from truecall.dialects.base import most
from truecall.dialects.hermes import CLOSER, plain
from truecall.dialects.judge import WINDOW, act_by_words
from truecall.dialects.results import weigh
from truecall.records import Call, Span, SpanKind
from truecall.schema import Toolset

_CONTENT, _CALL, _FENCE = SpanKind.CONTENT, SpanKind.CALL, SpanKind.FENCE
_OPEN = "<tool_call>\n"
_LONG = 100_000  # characters; a shorter text has no room for more calls than are read
_FEW = most(0)
_COMPARED = frozenset((" ", "\n", "\t", "=", *"0123456789", "'", '"', ")", ""))
"""What follows "<" where it only compares."""
_BLOCK = re.compile(
    r"(?m:^)```(?!(?i:tool)\b)[A-Za-z0-9]*+[ \t]*\n"
    r"(?:(?=\s*+(\{))|(?=((?:def|class|import|from|for|if|while|with|return) \w)))?"
)
"""The first line of a code block, and how its body begins: (1) an object, (2) a statement that calls nothing."""


def quick(text: str, tools: Toolset) -> tuple[tuple[Span, ...], tuple[Call, ...]] | None:
    """Spans and calls of a text that holds nothing but prose, code blocks and plain calls."""
    if _marked(text):
        return None
    size, pos, read = len(text), 0, 0
    if size > _LONG and text.count(_OPEN) > most(size):
        return None
    spans: list[Span] = []
    calls: list[Call] = []
    done = 0  # where the spans so far end
    start = _opener(text, 0)
    while start >= 0:
        if start > pos:
            done = _between(text, pos, start, done, tools, spans)
            if done < 0:
                return None
        if start == size:
            if size > done:
                spans.append(Span(_CONTENT, done, size))
            if read + len(spans) > _FEW and read + sum(s.kind is _FENCE for s in spans) > most(size):
                return None
            return tuple(spans), tuple(calls)
        shut = text.find(CLOSER, start)
        found = plain(text, start + len(_OPEN), shut, tools) if shut >= 0 else None
        if found is None:
            return None
        name, arguments = found
        end = shut + len(CLOSER)
        after = _opener(text, end)
        lead = text[pos if pos > start - WINDOW else start - WINDOW : start]
        tail = text[end : after if after < end + WINDOW else end + WINDOW]
        if act_by_words(lead, tail):
            if start > done:
                spans.append(Span(_CONTENT, done, start))
            span = Span(_CALL, start, end)
            spans.append(span)
            done = end
            tier, violations = weigh(arguments, tools.tools[name])
            calls.append(Call(name, arguments, "hermes", True, tier, span, False, True, (), violations, None))
        pos, start, read = end, after, read + 1
    return None


def _marked(text: str) -> bool:
    """Whether a text holds a marker that none of the readers here knows."""
    at = text.find("ction")  # an action, or a channel's recipient
    if at >= 0 and (text.find("ction:", at) >= 0 or "to=functions" in text):
        return True
    return "✿" in text or ("~" in text and "~~~" in text)


def _opener(text: str, at: int) -> int:
    """The next plain call at or after ``at``, else the text's end; -1: a tag that may be anything else."""
    at = text.find("<", at)
    while at >= 0:
        if text.startswith(_OPEN, at):
            return at
        if text[at + 1 : at + 2] not in _COMPARED:
            return -1
        at = text.find("<", at + 1)
    return len(text)


def _between(text: str, pos: int, stop: int, done: int, tools: Toolset, spans: list[Span]) -> int:
    """Take a stretch without calls: prose and closed code blocks. Where the spans end, or -1: it may be more."""
    find, names = text.find, tools.names
    tick = find("`", pos, stop)  # one character is found far faster than three
    if tick >= 0:
        tick = find("```", tick, stop)
    if tick < 0:
        return done if _prose(text[pos:stop], tools) else -1
    outside: list[str] = []
    while tick >= 0:
        block = _BLOCK.match(text, tick)
        if block is None:
            return -1
        body = block.end()
        shut = find("\n```", body - 1, stop)
        end = shut + 4
        if shut < body or text[end : end + 1] == "`":
            return -1
        begins = block.lastindex
        if begins == 1 and text[tick - 160 if tick > 160 else 0 : tick].rstrip().endswith(names):
            return -1
        if begins != 2:
            for name in names or NAME_WORDS:
                if find(name, body, shut) >= 0:
                    return -1
        if find("T", body, shut) >= 0 and (
            find("[TOOL_", body, shut) >= 0 or find("THINK]", body, shut) >= 0
        ):
            return -1
        outside.append(text[pos:tick])
        if tick > done:
            spans.append(Span(_CONTENT, done, tick))
        spans.append(Span(_FENCE, tick, end))
        if len(spans) > _FEW and len(spans) > 2 * most(len(text)):  # content stands between
            return -1
        pos = done = end
        tick = find("```", pos, stop)
    outside.append(text[pos:stop])
    return done if _prose("".join(outside), tools) else -1


def _prose(part: str, tools: Toolset) -> bool:
    """Whether text outside of code blocks holds neither JSON nor a call of an offered tool."""
    if "{" in part or "[" in part:
        return False
    if "(" in part:
        names = tools.names if "_" in part else tools.bare
        if names:
            for piece in part.split("("):
                if piece.endswith(names):
                    return False
    return True
