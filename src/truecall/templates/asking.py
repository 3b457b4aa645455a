"""Which dialect does a chat template ask the model for?

Two answers, both from rendering: what the template writes for a call of an earlier turn (the model is to write the
same again), and which dialect's marks stand in what it adds to the prompt when tools are given.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from truecall.detector import detect
from truecall.evidence import without_end
from truecall.records import Json, Record
from truecall.templates.rendering import SECONDS
from truecall.templates.sources import Template

Written = tuple[tuple[str, dict[str, Json]], ...]

_USER: Final = {"role": "user", "content": "Please do it."}
_WORKER: Final = Path(__file__).with_name("rendering.py")


class Asked(Record, frozen=True, omit_defaults=False):
    """What a template asks for. ``dialect`` None: nothing that is known; ``fault`` says why it does not render.

    ``tools``: whether the tools' names stand in the prompt. ``writes``: what it writes for each of the calls given, as
    text (None: it can't). ``instructs``: dialects whose marks stand in what tools add to the prompt.
    """

    template: str
    dialect: str | None
    tools: bool | None
    writes: tuple[str | None, ...] = ()
    instructs: tuple[str, ...] = ()
    fault: str = ""


def render(source: str, orders: Sequence[dict[str, Json]]) -> list[dict[str, str]]:
    """Renders in a process of its own, with limits of time and memory. Never raises on what a template does."""
    job = msgspec.json.encode({"template": source, "orders": orders})
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(_WORKER)],
            input=job,
            capture_output=True,
            timeout=2 * SECONDS,
            check=False,
            env={"LANG": "C.UTF-8"},
        )
        answer = msgspec.json.decode(done.stdout, type=list[dict[str, str]])
    except subprocess.TimeoutExpired:
        return [{"error": f"did not end in {2 * SECONDS} s"}] * len(orders)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return [{"error": "took too much time or memory and was ended"}] * len(orders)
    return answer if len(answer) == len(orders) else [{"error": "gave no answer"}] * len(orders)


def asks(
    template: Template, tools: list[Json], cases: Sequence[Written], marks: Sequence[tuple[str, str]] = ()
) -> Asked:
    """What a template asks for, given the tools and calls of them.

    ``marks``: dialects with a text each that begins one of their calls (white space away), for reading instructions.
    """
    orders: list[dict[str, Json]] = [
        _order([_USER], None, True),
        _order([_USER], tools, True),
        _order([_USER], tools, False),
    ]
    for calls in cases:
        orders += [_order([_USER, _said(calls, as_text)], tools, False) for as_text in (False, True)]
    plain, prompted, bare, *rest = render(template.source, orders)
    fault = prompted.get("error", "")
    if fault:
        return Asked(template=template.name, dialect=None, tools=None, fault=fault)
    names = [tool["function"]["name"] for tool in tools]
    shown = all(name in prompted["text"] for name in names)
    writes = tuple(
        _written(calls, rest[2 * i : 2 * i + 2], prompted["text"], bare.get("text", ""))
        for i, calls in enumerate(cases)
    )
    instructs = _instructed(plain.get("text", ""), prompted["text"], marks) if shown else ()
    written = _dialect(writes, tools)
    return Asked(
        template=template.name,
        dialect=written or (instructs[0] if instructs else None),
        tools=shown,
        writes=writes,
        instructs=instructs,
    )


def _order(messages: list[Json], tools: list[Json] | None, prompt: bool) -> dict[str, Json]:
    return {
        "messages": messages,
        "tools": tools,
        "functions": json.dumps(tools)
        if tools
        else None,  # older templates take the list by this name, as text
        "add_generation_prompt": prompt,
        "datetime": "2026-03-09",
    }


def _said(calls: Written, as_text: bool) -> Json:
    """An assistant's message with calls; arguments as an object or as JSON text, whichever the template wants."""
    made = [
        {
            "type": "function",
            "id": f"call{number:05d}",
            "function": {"name": name, "arguments": json.dumps(arguments) if as_text else arguments},
        }
        for number, (name, arguments) in enumerate(calls, 1)
    ]
    return {"role": "assistant", "content": "", "tool_calls": made}


def _written(calls: Written, answers: Sequence[dict[str, str]], prompted: str, bare: str) -> str | None:
    """What the template adds for the calls, without the end of the turn; None where it does not write them."""
    for answer in answers:
        text = answer.get("text")
        if text is None:
            continue
        start = prompted if text.startswith(prompted) else bare
        if not text.startswith(start):
            start = start[: _shared(start, text)]
        added = without_end(text[len(start) :])
        keys = [key for _, arguments in calls for key in arguments]
        if any(word not in added for word in [name for name, _ in calls] + keys):
            continue
        # A dict's repr, or arguments encoded twice: the template wants the other form.
        if any(f'\\"{key}\\"' in added or f"{{'{key}':" in added for key in keys):
            continue
        return re.sub(r"\A(?:<\|im_start\|>)?assistant\n", "", added).strip("\n")
    return None


def _shared(one: str, other: str) -> int:
    at = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    opened = one.rfind("<", 0, at)
    return opened if opened > one.rfind(">", 0, at) else at


def _dialect(writes: Sequence[str | None], tools: list[Json]) -> str | None:
    """The dialect in which most of the written calls stand."""
    found = [calls[0].dialect for text in writes if text and (calls := detect(text, tools).calls)]
    return max(dict.fromkeys(found), key=found.count) if found else None


def _instructed(plain: str, prompted: str, marks: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Dialects whose marks the tools bring into the prompt, the most telling mark first."""
    before, after = "".join(plain.split()), "".join(prompted.split())
    found = [(len(mark), name) for name, mark in marks if mark in after and mark not in before]
    return tuple(dict.fromkeys(name for _, name in sorted(found, key=lambda one: -one[0])))
