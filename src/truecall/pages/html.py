"""Templates, the style sheet and the content security policy of a page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from truecall.pages.text import marked, shown

SERVED_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy header of pages that a local server gives: nothing inline, nothing from elsewhere."""


@cache
def asset(package: str, name: str) -> str:
    """A text file beside the modules of ``package``: a style sheet or a script of ours."""
    return files(package).joinpath(name).read_text("utf-8")


@cache
def environment(package: str) -> Environment:
    """The templates in ``package``'s folder ``templates``, and the kit's own (``page.html``, ``parts.html``).

    Every value is escaped, and a name that is not given is an error. ``{{ text|marked(marks) }}`` and
    ``{{ text|shown }}`` are for model and server text.
    """
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("truecall.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(marked=marked, shown=shown)
    made.globals.update(policy="", inline_styles=(), inline_scripts=(), linked_styles=(), linked_scripts=())
    return made


def one_file(
    package: str,
    template: str,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    **values: Any,
) -> str:
    """A page that stands alone: styles and scripts (file names in ``package``) inside it, bound by their digests.

    ``template`` extends ``page.html``. The policy in the page lets nothing else run, and nothing be fetched
    or sent; inline ``style`` attributes and event handlers are refused with the rest.
    """
    sheets = [asset("truecall.pages", "style.css"), *(asset(package, name) for name in styles)]
    programs = [asset(package, name) for name in scripts]
    policy = "; ".join(
        [
            "default-src 'none'",
            "style-src " + " ".join(map(_digest, sheets)),
            "script-src " + (" ".join(map(_digest, programs)) or "'none'"),
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return (
        environment(package)
        .get_template(template)
        .render(
            policy=policy,
            inline_styles=[Markup(sheet) for sheet in sheets],
            inline_scripts=[Markup(program) for program in programs],
            **values,
        )
    )


def _digest(text: str) -> str:
    """The source expression that allows exactly this inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
