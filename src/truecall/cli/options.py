"""The connection options, the same for every verb that talks to an endpoint."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--base-url", metavar="URL", help="The endpoint, e.g. http://localhost:8000/v1 [OPENAI_BASE_URL]."
    ),
    click.option("--model", metavar="NAME", help="The model to ask for; by default what the server offers."),
    click.option(
        "--api-key-env", metavar="VAR", help="The variable that holds the API key [OPENAI_API_KEY, if set]."
    ),
    click.option(
        "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="A header to add; repeatable."
    ),
    click.option(
        "--ca-bundle",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Certificates to trust, in PEM form.",
    ),
    click.option("--insecure", is_flag=True, help="Do not check the server's certificate."),
    click.option(
        "--key-over-http", is_flag=True, help="Let a key travel over plain http to another machine."
    ),
    click.option(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="For one whole answer; by default 300, 120 to its start.",
    ),
)


def connection_options(command: Command) -> Command:
    """Adds the connection options to a click command.

    The command gets them resolved, as the keyword argument ``connection`` (a truecall.config.Connection).
    Proxies come from the environment. A bad option raises UsageError before the command begins.
    """

    @functools.wraps(command)
    def wrapped(
        *args: Any,
        base_url: str | None,
        model: str | None,
        api_key_env: str | None,
        headers: tuple[str, ...],
        ca_bundle: str | None,
        insecure: bool,
        key_over_http: bool,
        timeout: float | None,
        **rest: Any,
    ) -> Any:
        from truecall.config import resolve

        connection = resolve(
            base_url,
            model=model,
            api_key_env=api_key_env,
            headers=headers,
            ca_bundle=ca_bundle,
            insecure=insecure,
            key_over_http=key_over_http,
            timeout=timeout,
        )
        return command(*args, connection=connection, **rest)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]
