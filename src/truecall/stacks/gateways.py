"""What stands between client and engine, by its marks in headers and bodies.

Sources: the gateways' documentation of the headers that they set. One mark of a gateway's own suffices, since
a gateway is named beside the engine, not instead of it.
"""

from __future__ import annotations

import re

from truecall.records import Record
from truecall.stacks.base import Gateway, Observations, Seen


class _Marks(Record, frozen=True):
    """``server``: start of the Server header; ``headers``: names (a last * stands for any ending);
    ``body``: a regular expression over a body that is text or an error's text."""

    name: str
    server: str = ""
    headers: tuple[str, ...] = ()
    via: str = ""
    body: str = ""


_KNOWN = (
    _Marks(
        name="Cloudflare",
        server="cloudflare",
        headers=("cf-ray",),
        body=r"error code: 5\d\d|cloudflare ray id",
    ),
    _Marks(name="CloudFront", headers=("x-amz-cf-id",), via="cloudfront"),
    _Marks(name="AWS load balancer", server="awselb", headers=("x-amzn-trace-id",)),
    _Marks(
        name="OpenRouter",
        headers=("x-openrouter-*",),
        body=r"no endpoints? found that support|openrouter\.ai/docs|\"provider_name\"",
    ),
    _Marks(
        name="LiteLLM",
        headers=("x-litellm-*", "llm_provider-*"),
        body=r"litellm\.\w*(error|exception|timeout)",
    ),
    _Marks(name="Kong", server="kong", headers=("x-kong-*",), via="kong"),
    _Marks(name="Azure API Management", headers=("apim-request-id", "ocp-apim-*")),
    _Marks(name="Portkey", headers=("x-portkey-*",)),
    _Marks(
        name="Envoy", server="envoy", headers=("x-envoy-*",), body=r"upstream connect error or disconnect"
    ),
    _Marks(name="Traefik", server="traefik", headers=("x-traefik-*",)),
    _Marks(name="Caddy", server="caddy", via="caddy"),
    _Marks(name="HAProxy", headers=("x-haproxy-*",), body=r"no server is available to handle this request"),
    _Marks(name="OpenResty", server="openresty", body=r"<center>openresty"),
    _Marks(name="nginx", server="nginx", body=r"<center>nginx"),
    _Marks(name="Varnish", headers=("x-varnish",), via="varnish"),
    _Marks(name="Squid", via="squid", server="squid"),
    _Marks(name="llama-swap", body=r"llama-swap"),
)


def gateways(seen: Observations) -> tuple[Gateway, ...]:
    """Every gateway with a mark in any answer, in the order of the table (outermost kinds first)."""
    found = []
    for marks in _KNOWN:
        signals = dict.fromkeys(s for answer in seen.every() for s in _signals(marks, answer))
        if signals:
            found.append(Gateway(name=marks.name, signals=tuple(signals)))
    return tuple(found)


def _signals(marks: _Marks, answer: Seen) -> list[str]:
    found = []
    server = answer.header("server")
    if marks.server and server.startswith(marks.server):
        found.append(f"server {server}")
    via = answer.header("via")
    if marks.via and marks.via in via:
        found.append(f"via {via}")
    names = {name.lower() for name, _ in answer.headers}
    found += [f"header {wanted}" for wanted in marks.headers if _present(wanted, names)]
    if marks.body and not answer.ok and re.search(marks.body, _text(answer)[:4096].lower()):
        found.append("its error text")
    return found


def _present(wanted: str, names: set[str]) -> bool:
    if wanted.endswith("*"):
        return any(n.startswith(wanted[:-1]) for n in names)
    return wanted in names


def _text(answer: Seen) -> str:
    body = answer.body
    if isinstance(body, dict):
        error = body.get("error", body)
        return str(error.get("message") or error) if isinstance(error, dict) else str(error)
    return body if isinstance(body, str) else ""
