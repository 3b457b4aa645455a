"""Renders a chat template. Run as a program it answers one order on stdin; that process can be killed.

The sandbox is jinja2's immutable one, with the helpers that engines give to chat templates. A template that changes
its own lists is refused there, as it is by transformers and the engines.
"""

from __future__ import annotations

import json
import resource
import sys
from datetime import datetime
from typing import Any, Final

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

Json = Any

SECONDS: Final = 10
MEMORY: Final = 1 << 30
MOST: Final = 1 << 20  # characters of a rendered text that are kept


class _Generation(Extension):
    """``{% generation %}`` marks the assistant's tokens; its body is kept as it is."""

    tags = {"generation"}  # noqa: RUF012 - jinja2's own declaration

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _fail(message: str) -> None:
    raise jinja2.TemplateError(message)


def _tojson(value: Json, ensure_ascii: bool = False, indent: int | None = None, **more: Json) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)


def environment() -> ImmutableSandboxedEnvironment:
    """The environment that chat templates are written for (transformers' ``chat_template_utils``)."""
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
    )
    env.filters["tojson"] = _tojson
    env.globals["raise_exception"] = _fail
    # A fixed day: a rendered text must not change from one run to the next.
    env.globals["strftime_now"] = lambda form: datetime(2026, 3, 9, 12).strftime(form)
    return env


def render_all(source: str, orders: list[dict[str, Json]]) -> list[dict[str, str]]:
    """For each order (the variables of the template) ``{"text"}``, or ``{"error"}``."""
    try:
        template = environment().from_string(source)
    except (jinja2.TemplateError, RecursionError, ValueError) as error:
        return [{"error": f"does not compile: {_said(error)}"}] * len(orders)
    out = []
    for order in orders:
        try:
            variables = {"bos_token": "", "eos_token": "", **order}
            out.append({"text": template.render(**variables)[:MOST]})
        except Exception as error:  # a foreign template may raise anything
            out.append({"error": _said(error)})
    return out


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0][:200]


def main() -> None:
    """Answers ``{"template", "orders"}`` on stdin with the list of `render_all` on stdout."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    job = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(render_all(job["template"], job["orders"])))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
