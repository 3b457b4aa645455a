"""Endpoints made ready for a study: opened, recognised, asked whether their template shows tools."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import msgspec

from truecall import probe, stacks
from truecall.client import Client
from truecall.config import Connection, resolve
from truecall.preflight.material import user
from truecall.preflight.probes import rendered as rendered_probe
from truecall.preflight.session import Session
from truecall.records import Json, Record
from truecall.redact import Redactor
from truecall.run.study import Endpoint
from truecall.stacks import Fact, StackInfo

PROBES = 6
"""Requests that ``prepare`` sends at most beside what asks a server for its version, models and template."""


class Known(Record, frozen=True):
    """What was probed of an endpoint. ``rendered``: a template that shows tools; None: could not be told."""

    name: str
    label: str
    model: str
    info: StackInfo
    base_url: str = ""
    rendered: bool | None = None
    rendered_said: str = ""
    gate: str = ""  # what the server said to a request with tools, where it refused that


@dataclass(frozen=True)
class Stage:
    """An endpoint that is ready. ``url``: where its chat requests go."""

    endpoint: Endpoint
    client: Client
    known: Known
    url: str

    @property
    def stack(self) -> stacks.Stack:
        return stacks.engine(self.known.info.engine)


def connection_of(endpoint: Endpoint, given: Connection) -> Connection:
    """The connection of an endpoint: its own address and key, everything else as ``given``.

    Raises:
        UsageError: the variable of its key is not set.
    """
    if endpoint.base_url is None:
        own = given
    else:
        found = resolve(endpoint.base_url, api_key_env=endpoint.api_key_env, environ=None)
        own = given.at(endpoint.base_url)
        if endpoint.api_key_env:
            own = msgspec.structs.replace(own, key=found.key, key_env=found.key_env, key_asked=True)
    return msgspec.structs.replace(own, model=endpoint.model or own.model)


async def prepare(
    endpoint: Endpoint,
    given: Connection,
    redactor: Redactor,
    stack: AsyncExitStack,
    *,
    before: Known | None = None,
) -> Stage:
    """Opens the endpoint for as long as ``stack`` is open, and asks it about itself.

    ``before``: what an earlier part of the same run had learnt; it is not asked again. An endpoint that does not
    answer is staged all the same: its failures are the data of its arms.
    """
    connection = await probe.settle(connection_of(endpoint, given))
    client = await stack.enter_async_context(Client(connection, redactor=redactor, keep_alive=True))
    url = connection.url("/api/chat" if endpoint.api == "ollama.chat" else "chat/completions")
    if before is not None:
        return Stage(endpoint, client, before, url)
    choice = await probe.choose_model(client, connection.model)
    model = choice.model or "default"
    info, seen = await probe.identify(client, choice.model)
    session = Session(client=client, info=info, model=model)
    warm = await session.ask(session.body(user("Hi"), max_tokens=1), evidence=False, patient=False)
    if warm.exchange.status is not None:
        session.info = stacks.recognise(msgspec.structs.replace(seen, chat=probe.seen_of(warm.exchange)))
    said: dict[str, Any] = {}
    if warm.ok:
        outcome = await rendered_probe.run(session)
        gate = session.notebook.gate
        said = {
            "rendered": session.notebook.rendered,
            "rendered_said": outcome.result.said,
            "gate": gate.came() if gate is not None else "",
        }
    else:
        said = {"rendered_said": f"not asked: {warm.came(160)}"}
    known = Known(
        name=endpoint.name,
        label=session.info.label,
        model=model,
        info=session.info,
        base_url=redactor.url(connection.api_base()),
        **said,
    )
    return Stage(endpoint, client, known, url)


def facts(known: Known, endpoint: Endpoint) -> list[dict[str, Fact]]:
    """What is on the card of an endpoint's arms: probed first, then declared."""
    from truecall.card import declared, from_stack

    named = {"model": Fact(value=known.model, origin="declared")}
    own: dict[str, Json] = {**endpoint.labels, **endpoint.declared}
    aliases = {"template": "chat_template", "parser": "tool_parser"}
    stated = {aliases.get(name, name): declared(value) for name, value in own.items()}
    return [from_stack(known.info), named, stated]
