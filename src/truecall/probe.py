"""Asks a server about itself: which ports answer here, which models it has, which engine it is.

All requests are small, short and bounded; what comes back is data for :mod:`truecall.stacks`, which does the
recognising. No generation is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from truecall import stacks
from truecall.client import Client
from truecall.config import Connection, Timeouts, resolve
from truecall.records import Exchange, Failure, Json, Record
from truecall.stacks import Observations, Probe, Seen, Stack, StackInfo

LOCAL_PORTS: tuple[int, ...] = (11434, 8000, 30000, 8080, 1234, 3000, 8081, 8001, 5000, 4000)
"""Where servers listen by default: Ollama, vLLM, SGLang, llama.cpp, LM Studio, TGI, then second choices."""

_ANSWER = 4 << 20  # bytes of one probe's answer; a tokenizer's description is the largest
_TEXT = 20_000  # characters kept of an answer that is no JSON
_QUICK = Timeouts(connect=0.5, first_byte=0.8, between=0.5, total=0.9)
_SHORT = Timeouts(connect=5.0, first_byte=5.0, between=5.0, total=8.0)


def _short(client: Client) -> Timeouts:
    """The limits of a question about the server itself: never above what the user allows for an answer."""
    total = min(_SHORT.total, client.connection.timeouts.total)
    return Timeouts(
        connect=min(_SHORT.connect, total),
        first_byte=min(_SHORT.first_byte, total),
        between=total,
        total=total,
    )


class Found(Record, frozen=True):
    """A server on this machine that lists models; ``models`` is empty where it wants a key first."""

    base_url: str
    models: tuple[str, ...] = ()
    needs_key: bool = False


class ModelChoice(Record, frozen=True):
    """The model to ask for and why it was taken. ``model`` None: none was named, ``why`` says what came."""

    model: str | None
    why: str
    models: tuple[str, ...] = ()
    failure: Failure | None = None


# --------------------------------------------------------------------------- ports of this machine


async def find_local(ports: Sequence[int] = LOCAL_PORTS) -> list[Found]:
    """The servers on 127.0.0.1 that list models on one of ``ports``, in that order. Takes under a second.

    No key is sent: who listens there is not known yet.
    """
    found = await asyncio.gather(*(_try_port(port) for port in ports))
    return [server for server in found if server is not None]


async def _try_port(port: int) -> Found | None:
    url = f"http://127.0.0.1:{port}/v1"
    async with Client(resolve(url, environ={})) as client:
        exchange = await client.send("GET", "models", timeout=_QUICK, max_bytes=1 << 20)
    if exchange.status in {401, 403} and isinstance(_json(exchange), dict):
        return Found(base_url=url, needs_key=True)
    names = _names(_json(exchange)) if exchange.status == 200 else None
    return Found(base_url=url, models=tuple(names)) if names is not None else None


# --------------------------------------------------------------------------- models


async def models(client: Client) -> list[str]:
    """The names that ``/v1/models`` (or Ollama's ``/api/tags``) lists; empty where neither does."""
    return list((await _listing(client))[0])


async def choose_model(client: Client, wanted: str | None = None) -> ModelChoice:
    """The model to ask for: the one wanted, the only one, the one that is loaded, or the first that chats."""
    names, exchange = await _listing(client)
    if wanted:
        known = not names or wanted in names
        why = "named by you" if known else "named by you; the server does not list it"
        return ModelChoice(model=wanted, why=why, models=names, failure=exchange.failure)
    if not names:
        return ModelChoice(model=None, why=_no_models(exchange), failure=exchange.failure)
    if len(names) == 1:
        return ModelChoice(model=names[0], why="the only one on the server", models=names)
    loaded = [name for name in await _loaded(client, exchange) if name in names]
    if loaded:
        return ModelChoice(model=loaded[0], why=f"loaded now, of {len(names)} on the server", models=names)
    chatting = [name for name in names if "embed" not in name.lower() and "rerank" not in name.lower()]
    return ModelChoice(
        model=(chatting or list(names))[0], why=f"the first of {len(names)} on the server", models=names
    )


async def settle(connection: Connection) -> Connection:
    """The connection with the base URL under which models are listed, ``/v1`` added where only that answers.

    A base URL with a path of its own (``http://host/prefix``) is taken as OpenAI clients take it first.
    """
    base = connection.base_url
    if base is None or connection.root() != base or connection.api_base() != base:
        return connection  # it has a version, or no path at all
    for candidate in (connection, msgspec.structs.replace(connection, base_url=base.rstrip("/") + "/v1")):
        async with Client(candidate) as client:
            exchange = await client.send("GET", "models", timeout=_short(client), max_bytes=_ANSWER)
        if exchange.status in {401, 403, 429} or (
            exchange.status == 200 and _names(_json(exchange)) is not None
        ):
            return candidate
    return connection


async def _listing(client: Client) -> tuple[tuple[str, ...], Exchange]:
    exchange = await client.send("GET", "models", timeout=_short(client), max_bytes=_ANSWER)
    names = _names(_json(exchange)) if exchange.status == 200 else None
    if names is None and exchange.status is not None and exchange.status not in {401, 403, 429}:
        other = await client.send("GET", "/api/tags", timeout=_short(client), max_bytes=_ANSWER)
        tags = _names(_json(other)) if other.status == 200 else None
        if tags is not None:
            return tuple(tags), other
    return tuple(names or ()), exchange


async def _loaded(client: Client, listing: Exchange) -> list[str]:
    """The models that are in memory, as llama.cpp's router, Ollama and LM Studio tell it."""
    body = _json(listing)
    entries = body.get("data") if isinstance(body, dict) else None
    names = [str(e.get("id")) for e in _objects(entries) if _status(e) == "loaded"]
    for path in () if names else ("/api/ps", "/api/v0/models"):
        exchange = await client.send("GET", path, timeout=_short(client), max_bytes=_ANSWER)
        body = _json(exchange) if exchange.status == 200 else None
        if not isinstance(body, dict):
            continue
        running = _objects(body.get("models")) if path == "/api/ps" else []
        chat = [
            e for e in _objects(body.get("data")) if e.get("type") != "embeddings" and _status(e) == "loaded"
        ]
        names += [str(e.get("name") or e.get("model") or e.get("id")) for e in (*running, *chat)]
    return names


# --------------------------------------------------------------------------- the engine


async def observe(client: Client, model: str | None = None) -> Observations:
    """Sends every probe of :mod:`truecall.stacks` at once and keeps what came, by probe path."""
    probes = [probe for probe in stacks.PROBES if model or not probe.model]
    seen = await asyncio.gather(*(_see(client, probe, model) for probe in probes))
    return Observations(seen={p.path: s for p, s in zip(probes, seen, strict=True)}, model=model)


async def identify(client: Client, model: str | None = None) -> tuple[StackInfo, Observations]:
    """The stack behind ``client`` and what it was recognised by."""
    seen = await observe(client, model)
    return stacks.recognise(seen), seen


async def detokenize(
    client: Client, stack: Stack, ids: Sequence[int], model: str | None = None
) -> str | None:
    """The text of token ids, special tokens kept, by the server's own route; None where that can't be had."""
    request = stack.detokenize(ids, model)
    if request is None:
        return None
    exchange = await client.send("POST", request.path, json=request.body, timeout=_short(client))
    return stack.read_detokenized(_json(exchange)) if exchange.status == 200 else None


def seen_of(exchange: Exchange) -> Seen:
    """An exchange as :class:`truecall.stacks.Seen`: JSON decoded, other text cut, nothing where none came."""
    body = _json(exchange)
    if body is None and exchange.body:
        body = exchange.body[: 4 * _TEXT].decode("utf-8", "replace")[:_TEXT]
    return Seen(status=exchange.status, headers=exchange.headers, body=body)


async def _see(client: Client, probe: Probe, model: str | None) -> Seen:
    body = {"model": model} if probe.model else None
    return seen_of(
        await client.send(probe.method, probe.path, json=body, timeout=_short(client), max_bytes=_ANSWER)
    )


# --------------------------------------------------------------------------- reading


def _json(exchange: Exchange) -> Json:
    """The body as JSON, or None."""
    try:
        return msgspec.json.decode(exchange.body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _status(entry: dict[str, Any]) -> Any:
    """``loaded`` in LM Studio's ``state`` or llama.cpp's ``status.value``."""
    status = entry.get("status")
    return entry.get("state") or (status.get("value") if isinstance(status, dict) else status)


def _names(body: Json) -> list[str] | None:
    """Model names of an OpenAI list, a bare list or Ollama's ``models``; None for any other body."""
    entries = body
    if isinstance(body, dict):
        entries = next((body[key] for key in ("data", "models") if isinstance(body.get(key), list)), None)
    if not isinstance(entries, list):
        return None
    named = [entry.get("id") or entry.get("name") or entry.get("model") for entry in _objects(entries)]
    return list(dict.fromkeys(name for name in named if isinstance(name, str)))


def _no_models(exchange: Exchange) -> str:
    if exchange.failure is not None:
        return exchange.failure.detail
    return f"the server lists no models (HTTP {exchange.status})"
