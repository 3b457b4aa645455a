"""What a chat template writes for a known call: render without and with it, and take the difference.

Templates come from a folder (``TRUECALL_TEMPLATES``) and from the package's own data; none is stored here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import SandboxedEnvironment

Json = Any
Calls = list[tuple[str, dict[str, Json]]]

OWN = Path(__file__).parents[2] / "src" / "truecall" / "data"


def _tool(name: str, required: list[str], **properties: Json) -> Json:
    parameters: Json = {"type": "object", "properties": properties, "required": required}
    parameters["additionalProperties"] = False
    return {
        "type": "function",
        "function": {"name": name, "description": f"{name}.", "parameters": parameters},
    }


def _typed(kind: str, **more: Json) -> Json:
    return {"type": kind, "description": kind, **more}


TOOLS = [
    _tool(
        "reserve_desk",
        ["room", "seats"],
        room=_typed("string"),
        seats=_typed("integer"),
        quiet=_typed("boolean"),
        price=_typed("number"),
    ),
    _tool("list_rooms", []),
    _tool(
        "write_file",
        ["path"],
        path=_typed("string"),
        body=_typed("string"),
        modes=_typed("array", items={"type": "string"}),
        owner=_typed(
            "object", properties={"team": {"type": "string"}}, additionalProperties={"type": "string"}
        ),
    ),
]

CALLS: dict[str, Calls] = {
    "single": [("reserve_desk", {"room": "Fjord", "seats": 3, "quiet": True, "price": 12.5})],
    "parallel": [
        ("reserve_desk", {"room": "Fjord", "seats": 2}),
        ("write_file", {"path": "notes.txt", "modes": ["r", "w"]}),
    ],
    "noargs": [("list_rooms", {})],
    "nested": [
        (
            "write_file",
            {"path": 'Ærø – 北京 "draft"\nsecond', "modes": ["x"], "owner": {"team": "Ops, Night"}},
        )
    ],
    "code": [
        ("write_file", {"path": "a.py", "body": 'def f(x):\n    return {"k": [x, "]"]} if x < 2 else 0'})
    ],
    "lookalike": [("reserve_desk", {"room": "42", "seats": 1})],
}

SAYS = {"text": "I will look at that now.", "reasoning": "The user wants it, so one call will do."}


class _Generation(Extension):
    """``{% generation %}`` marks the assistant's tokens; here its body is kept as it is."""

    tags = {"generation"}  # noqa: RUF012 - jinja2's own declaration

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _fail(message: str) -> None:
    raise jinja2.TemplateError(message)


def _tojson(value: Json, ensure_ascii: bool = False, indent: int | None = None, **more: Json) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)


def environment() -> SandboxedEnvironment:
    """The environment that chat templates are written for, with the usual helpers.

    Not the immutable one: some published templates append to their own lists.
    """
    env = SandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
    )
    env.filters["tojson"] = _tojson
    env.globals["raise_exception"] = _fail
    # A fixed day: a rendered text must not change from one run to the next.
    env.globals["strftime_now"] = lambda form: datetime(2026, 3, 9, 12).strftime(form)
    return env


class Rendered(NamedTuple):
    """A text that a template writes for ``calls``."""

    template: str
    case: str
    text: str
    calls: Calls


def _messages(calls: Calls, as_text: bool, says: str | None) -> list[Json]:
    user = {"role": "user", "content": "Please do it."}
    made = []
    for number, (name, arguments) in enumerate(calls, 1):
        given: Json = json.dumps(arguments, ensure_ascii=False) if as_text else arguments
        made.append(
            {
                "type": "function",
                "id": f"call{number:05d}",
                "function": {"name": name, "arguments": given},
            }
        )
    said: Json = {"role": "assistant", "content": "", "tool_calls": made}
    if says == "text":
        said["content"] = SAYS["text"]
    elif says == "reasoning":
        said |= {"reasoning_content": SAYS["reasoning"], "reasoning": SAYS["reasoning"]}
    return [user, said]


def _shared(one: str, other: str) -> int:
    """The length of the beginning that two texts share."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _difference(before: str, after: str) -> str:
    """What ``after`` adds to ``before``; where the generation prompt differs, from the last whole tag on."""
    if after.startswith(before):
        return after[len(before) :]
    same = _shared(before, after)
    opened = after.rfind("<", 0, same)
    if opened > max(after.rfind(">", 0, same), after.rfind("\n", 0, same)):
        same = opened
    return after[same:]


def _inserted(before: str, after: str) -> str:
    """What stands in ``after`` between the ends that it shares with ``before``."""
    rest = _difference(before, after)
    return rest[: len(rest) - _shared(before[::-1], rest[::-1])]


def _render(template: jinja2.Template, messages: list[Json], prompt: bool) -> str:
    return template.render(
        messages=messages,
        tools=TOOLS,
        functions=json.dumps(TOOLS),  # older templates take the list under this name, as text
        datetime="2026-03-09",
        add_generation_prompt=prompt,
        bos_token="",
        eos_token="",
    )


def _holds(text: str, calls: Calls) -> bool:
    """True when the text names every call, its arguments neither a dict's repr nor twice encoded."""
    if any(name not in text for name, _ in calls):
        return False
    keys = [key for _, arguments in calls for key in arguments]
    if any(key not in text for key in keys):
        return False
    doubled = any(f'\\"{key}\\"' in text for key in keys)
    repred = any(f"{{'{key}':" in text or f", '{key}':" in text for key in keys)
    return not doubled and not repred


def written(template: jinja2.Template, case: str, says: str | None = None) -> str | None:
    """The text that a template writes for the calls of ``case``, or None when it cannot write them.

    Arguments are given as an object, and as JSON text where the template wants that.
    """
    calls = CALLS[case]
    for as_text in (False, True):
        messages = _messages(calls, as_text, says)
        try:
            after = _render(template, messages, prompt=False)
            prompted = _render(template, messages[:1], prompt=True)
            plain = _render(template, messages[:1], prompt=False)
        except (jinja2.TemplateError, TypeError, ValueError, KeyError, AttributeError):
            continue
        text = _difference(prompted, after)
        if text.endswith(plain[-80:]):  # a template that ends every prompt with an instruction of its own
            text = _inserted(plain, after)
        if _holds(text, calls) and (says != "text" or SAYS["text"] in text):
            return text
    return None


def template_files() -> list[Path]:
    """The package's own templates, and those of the folder named by ``TRUECALL_TEMPLATES``."""
    files = sorted(OWN.glob("*.jinja"))
    folder = os.environ.get("TRUECALL_TEMPLATES")
    return files + (sorted(Path(folder).glob("**/*.jinja")) if folder else [])


def rendered(path: Path) -> Iterator[Rendered]:
    """Every text that the template at ``path`` writes for our conversations; none without tool calls."""
    try:
        template = environment().from_string(path.read_text(encoding="utf-8"))
    except jinja2.TemplateError:
        return
    for case, calls in CALLS.items():
        for says in (None, "text", "reasoning"):
            if says and case not in ("single", "parallel"):
                continue
            text = written(template, case, says)
            if text is not None:
                yield Rendered(path.stem, f"{case}-{says}" if says else case, text, calls)
