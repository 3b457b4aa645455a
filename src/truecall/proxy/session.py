"""One recorded run from start to end: the folder, the recorder, the proxy, the command."""

from __future__ import annotations

import asyncio
import os
import secrets as random
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from truecall import __version__
from truecall.client import Client
from truecall.config import Connection, is_loopback
from truecall.errors import UsageError
from truecall.funnel import ArmNumbers
from truecall.probe import identify
from truecall.proxy import command as command_room
from truecall.proxy.follow import last_number
from truecall.proxy.hub import Hub
from truecall.proxy.pen import Orders, Pen
from truecall.proxy.settings import Settings, Swap
from truecall.records import Json, Record
from truecall.redact import Redactor
from truecall.stacks import StackInfo
from truecall.store import private_dir, write_private


class Plan(Record, frozen=True):
    """What is to be recorded, and how."""

    upstream: Connection
    folder: str
    host: str = "127.0.0.1"
    port: int = 0
    command: tuple[str, ...] = ()
    env_names: tuple[str, ...] = ()
    swap: Swap = "none"
    evidence: bool = False
    tools: tuple[Json, ...] | None = None
    simulators: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    keep: str = "full"
    strict: bool = False
    patience: float | None = None  # seconds for judging at the end


class Talk(Record, frozen=True):
    """Whom to tell what. ``ready`` gets the variables that point at the proxy."""

    ready: Callable[[dict[str, str], StackInfo | None], None]
    alert: Callable[[str], None]
    news: Callable[[dict[str, Any]], None]


class Outcome(Record, frozen=True, omit_defaults=False):
    """How a recorded run ended; what ``--json`` prints.

    ``code``: the command's exit code, None without a command. ``numbers``: the rates of all agent turns in the
    folder, conversations taken for episodes; None where there was none.
    """

    folder: str
    tally: dict[str, Json]
    exchanges: int
    numbers: ArmNumbers | None = None
    code: int | None = None
    refusals: dict[str, int] = msgspec.field(default_factory=dict)
    troubles: tuple[str, ...] = ()
    broken: str = ""
    lost: int = 0
    schema_version: int = 1

    @property
    def went_past(self) -> bool:
        """A command ran and nothing came through the proxy."""
        return self.code is not None and self.exchanges == 0


async def record(plan: Plan, talk: Talk, environ: Mapping[str, str] = os.environ) -> Outcome:
    """Runs the proxy until the command has ended, or until Ctrl-C or SIGTERM.

    Raises:
        UsageError: something of the plan can't be.
    """
    wide = not is_loopback(plan.host)
    token = random.token_urlsafe(16) if wide else None
    info = await _identified(plan.upstream) if plan.evidence or plan.swap != "none" else None
    settings = Settings(
        upstream=plan.upstream,
        hosts=plan.hosts,
        token=token,
        swap=plan.swap,
        evidence=plan.evidence or plan.swap != "none",
        engine=info.engine if info is not None else "openai_compatible",
        tools=plan.tools,
        strict=plan.strict,
    )
    folder = Path(plan.folder)
    private_dir(folder)
    hidden = [*plan.upstream.secrets(), *command_room.secrets_of_environment(environ)]
    hidden += [token] if token else []
    _write_card(folder, plan, settings, info, Redactor(hidden))
    hub: Hub

    def alert(text: str) -> None:
        if plan.strict and text.startswith("NOT RECORDED"):
            hub.stopped = text
        talk.alert(text)

    orders = _orders(plan, settings, hidden)
    pen = Pen(orders, alert=alert, news=talk.news)
    hub = Hub(settings, pen.put)
    await pen.start()
    try:
        await pen.up()
        hub.count_from(last_number(folder))
        code = await _served(plan, talk, hub, pen, token, info, environ)
    finally:
        await pen.finish(patience=plan.patience)
    return Outcome(
        folder=plan.folder,
        tally=pen.latest,
        exchanges=hub.exchanges,
        numbers=msgspec.convert(pen.numbers, ArmNumbers) if pen.numbers is not None else None,
        code=code,
        refusals=dict(hub.refusals),
        troubles=tuple(dict.fromkeys(hub.troubles)),
        broken=pen.broken,
        lost=pen.lost + int(pen.latest.get("lost", 0)),
    )


async def _served(
    plan: Plan,
    talk: Talk,
    hub: Hub,
    pen: Pen,
    token: str | None,
    info: StackInfo | None,
    environ: Mapping[str, str],
) -> int | None:
    refilling = asyncio.get_running_loop().create_task(_refill(pen))
    try:
        async with hub.serving(plan.host, plan.port) as port:
            host = plan.host if plan.host not in ("0.0.0.0", "::") else "127.0.0.1"
            pointing = command_room.variables(
                host, port, hub.address.api_path, token=token, names=plan.env_names
            )
            if not plan.command:
                with _stopping() as stopped:  # before anybody can know that it is time to stop
                    talk.ready(pointing, info)
                    await stopped.wait()
                return None
            talk.ready(pointing, info)
            return await command_room.run(plan.command, command_room.environment(environ, pointing))
    finally:
        refilling.cancel()


async def _refill(pen: Pen) -> None:
    while True:
        await asyncio.sleep(0.05)
        pen.refill()


@contextmanager
def _stopping() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C and SIGTERM set."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    try:
        yield stopped
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def _identified(connection: Connection) -> StackInfo:
    """The stack behind the upstream. A key goes along only where the user named one."""
    async with Client(connection) as client:
        info, _ = await identify(client, connection.model)
    return info


def _orders(plan: Plan, settings: Settings, hidden: list[str]) -> Orders:
    return Orders(
        folder=plan.folder,
        secrets=tuple(hidden),
        keep=plan.keep,
        tools=plan.tools,
        simulator_models=plan.simulators,
        base_url=plan.upstream.root(),
        swap=plan.swap,
        evidence=settings.evidence,
        engine=settings.engine,
    )


def _write_card(
    folder: Path, plan: Plan, settings: Settings, info: StackInfo | None, redactor: Redactor
) -> None:
    """What is recorded, as far as it is known before the first exchange."""
    card: dict[str, Any] = {
        "schema_version": 1,
        "truecall": __version__,
        "upstream": plan.upstream.base_url,
        "swap": plan.swap,
        "evidence": settings.evidence,
        "keep": plan.keep,
        "command": list(plan.command),
        "stack": msgspec.to_builtins(info) if info is not None else None,
    }
    clean = redactor.value(card)
    clean["upstream"] = redactor.url(str(card["upstream"]))
    try:
        write_private(folder / "card.json", msgspec.json.format(msgspec.json.encode(clean), indent=1) + b"\n")
    except OSError as error:
        raise UsageError(f"{folder}: can't be written ({error.strerror})") from None
