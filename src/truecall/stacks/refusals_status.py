"""What an error means by its status alone, where its text told nothing. Source: RFC 9110, common practice."""

from __future__ import annotations

from truecall.records import Delivery, Part
from truecall.stacks.refusals import Refusal

# rule, part, title, change: refused before the model ran
_REFUSED = {
    401: ("auth.key", Part.HARNESS, "the server wants a key, or another one", "name it with --api-key-env"),
    403: (
        "auth.forbidden",
        Part.HARNESS,
        "this request is forbidden",
        "check the key's rights, and the gateway's rules",
    ),
    404: (
        "request.path_not_found",
        Part.HARNESS,
        "the server has no such route",
        "the base URL usually ends in /v1",
    ),
    405: (
        "request.path_not_found",
        Part.HARNESS,
        "the route takes no POST",
        "the base URL usually ends in /v1",
    ),
    407: ("auth.key", Part.NETWORK, "a proxy wants credentials", "set them in the proxy's URL"),
    413: (
        "gateway.body_too_large",
        Part.GATEWAY,
        "the request's body is too large",
        "raise the limit (nginx: client_max_body_size), or send fewer tools",
    ),
    501: (
        "gate.not_implemented",
        Part.GATE,
        "the server does not implement what the request asks for",
        "leave the feature away, or serve the model on an engine that has it",
    ),
}
# rule, part, delivery, whether the model ran, title, change: may go well later
_LATER = {
    402: (
        "rate.quota",
        Part.SERVER,
        Delivery.RATE_LIMITED,
        False,
        "the account has no credit left",
        "raise the quota",
    ),
    408: (
        "server.timeout",
        Part.SERVER,
        Delivery.TIMEOUT,
        None,
        "the server gave up waiting",
        "send it again",
    ),
    429: (
        "rate.limited",
        Part.SERVER,
        Delivery.RATE_LIMITED,
        False,
        "the request was refused because of its rate",
        "wait as Retry-After says, or send fewer requests at once",
    ),
    502: (
        "gateway.bad_gateway",
        Part.GATEWAY,
        Delivery.SERVER_ERROR,
        None,
        "a gateway got no proper answer from the engine",
        "look whether the engine runs, and what its log says",
    ),
    503: (
        "server.unavailable",
        Part.SERVER,
        Delivery.SERVER_ERROR,
        False,
        "the service is unavailable",
        "wait, or look whether the engine runs",
    ),
    504: (
        "gateway.timeout",
        Part.GATEWAY,
        Delivery.TIMEOUT,
        None,
        "a gateway gave up waiting for the engine",
        "raise the gateway's read timeout (nginx: proxy_read_timeout), or stream",
    ),
    524: (
        "gateway.timeout",
        Part.GATEWAY,
        Delivery.TIMEOUT,
        None,
        "a gateway gave up waiting for the engine",
        "stream, or take a route without this gateway",
    ),
    529: (
        "server.overloaded",
        Part.SERVER,
        Delivery.SERVER_ERROR,
        False,
        "the service is overloaded",
        "send fewer requests at once",
    ),
}

BY_STATUS: dict[int, Refusal] = {
    status: Refusal(rule=rule, part=part, ran=False, delivery=Delivery.REJECTED, title=title, change=change)
    for status, (rule, part, title, change) in _REFUSED.items()
} | {
    status: Refusal(
        rule=rule, part=part, ran=ran, delivery=delivery, title=title, change=change, transient=status != 402
    )
    for status, (rule, part, delivery, ran, title, change) in _LATER.items()
}

CLIENT_ERROR = Refusal(
    rule="request.refused",
    part=Part.UNKNOWN,
    ran=False,
    delivery=Delivery.REJECTED,
    title="the server refused the request, in words that are not known",
)
SERVER_ERROR = Refusal(
    rule="server.error",
    part=Part.SERVER,
    ran=None,
    delivery=Delivery.SERVER_ERROR,
    title="the server failed",
    change="read the server's log",
)
ERROR_EVENT = Refusal(
    rule="server.error_in_answer",
    part=Part.SERVER,
    ran=None,
    delivery=Delivery.SERVER_ERROR,
    title="the answer began as a success and holds an error",
    change="read the server's log",
)
HTML = Refusal(
    rule="gateway.html",
    part=Part.GATEWAY,
    ran=None,
    delivery=Delivery.SERVER_ERROR,
    title="the answer is a web page, not an API's",
    change="check the base URL, and whether a login or proxy page stands before the server",
)
REDIRECT = Refusal(
    rule="gateway.redirect",
    part=Part.GATEWAY,
    ran=False,
    delivery=Delivery.REJECTED,
    title="the server sends the request elsewhere",
    change="use the address in the Location header, if you trust it",
)
