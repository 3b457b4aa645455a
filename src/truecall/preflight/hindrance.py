"""What keeps a preflight from saying anything of tools: an endpoint that does not answer, limits, lies, its user."""

from __future__ import annotations

from typing import Final

from truecall import stacks
from truecall.classify.turns import failed as judged
from truecall.preflight.answer import Answer, failed
from truecall.preflight.probes.base import Outcome, finding
from truecall.preflight.report import ProbeResult
from truecall.preflight.session import Session
from truecall.records import FailureKind, Part

_TITLES: Final = {
    FailureKind.TOO_LARGE: "The answer to a request for one token is larger than 1 MB: it may never end",
    FailureKind.TIMEOUT_TOTAL: "The answer to a request for one token began and did not end in time",
    FailureKind.TIMEOUT_BETWEEN_BYTES: "The answer began and then stood still",
    FailureKind.TIMEOUT_FIRST_BYTE: "The server takes the request and does not answer",
    FailureKind.TIMEOUT_CONNECT: "No connection could be made in time",
    FailureKind.CLOSED_MID_STREAM: "The connection was closed in the middle of the answer",
    FailureKind.CLOSED_BEFORE_RESPONSE: "The server closed the connection without an answer",
    FailureKind.NOT_HTTP: "What answers is not an HTTP server, or a broken one",
    FailureKind.BAD_ENCODING: "The answer's content-encoding can't be undone",
    FailureKind.REFUSED: "Nothing listens at this address",
    FailureKind.DNS: "The host's name does not resolve",
    FailureKind.TLS: "The TLS handshake failed",
    FailureKind.UNREACHABLE: "The host can't be reached",
}
_SERVER: Final = frozenset({FailureKind.TOO_LARGE, FailureKind.TIMEOUT_TOTAL, FailureKind.BAD_ENCODING})


def unusable(session: Session, warm: Answer) -> Outcome:
    """The endpoint does not even answer a plain chat request."""
    refusal, failure = warm.refusal(), warm.exchange.failure
    if warm.exchange.status == 429:
        return _limited(session, warm, [])
    if failure is not None:
        # By the failure alone: what came before the connection broke may hold a call, which says nothing of it.
        part = Part.SERVER if failure.kind in _SERVER else judged(failure, produced=False).cause
        title = _TITLES[failure.kind]
        change = _check_failure(warm)
    elif refusal is not None:
        title, part = f"A plain chat request is not answered: {_named(session, refusal)}", refusal.part
        change = refusal.change
    else:
        title, part = "What comes back is no answer of a chat API", Part.GATEWAY
        change = "check that the base URL is that of an OpenAI-compatible API (it usually ends in /v1)"
    found = finding(
        session,
        "no-answer",
        part,
        "broken",
        title,
        warm,
        change=change,
        rule=warm.verdict.rule,
    )
    said = f"not answered: {warm.came(200)}"
    return Outcome(ProbeResult(name="warm-up", kind="contract", state="unknown", said=said), [found])


def _named(session: Session, refusal: stacks.Refusal) -> str:
    """The refusal's title with the gateway that stands there in the place of "a gateway"."""
    known = " and ".join(g.name for g in session.info.gateways)
    return refusal.title.replace("a gateway", known, 1) if known else refusal.title


def _check_failure(warm: Answer) -> str:
    failure = warm.exchange.failure
    assert failure is not None
    url = warm.exchange.request.url
    if failure.kind is FailureKind.TLS:
        return f"name the authority's certificates with --ca-bundle ({failure.detail})"
    if failure.kind in (FailureKind.REFUSED, FailureKind.DNS, FailureKind.UNREACHABLE):
        return f"check the address and port, and that the server runs: curl -sS {url}"
    if failure.kind in (FailureKind.TIMEOUT_FIRST_BYTE, FailureKind.TIMEOUT_CONNECT):
        return "read the server's log: it may hang, or load its model; a longer --timeout waits longer"
    return "read the logs of the server and of what stands before it"


def gave_up(session: Session, left: list[str]) -> Outcome:
    """The endpoint stopped answering half-way: what was found so far stands, the rest is unknown."""
    last = session.last_failed
    if last is not None and last.exchange.status == 429:
        return _limited(session, last, left)
    how = f" ({failed(last.exchange.failure)})" if last is not None and last.exchange.failure else ""
    found = finding(
        session,
        "stopped-answering",
        Part.SERVER,
        "broken",
        f"The endpoint stopped answering in mid-run{how}",
        last,
        change="read the server's log: it may have crashed or hang; then run this again",
        left=list(left),
    )
    said = f"not sent: {', '.join(left)}"
    return Outcome(ProbeResult(name="stopped", kind="contract", state="unknown", said=said), [found])


def _limited(session: Session, answer: Answer, left: list[str]) -> Outcome:
    """429 and no end of it: a cause of its own, which says nothing of tools."""
    wait = answer.exchange.header("retry-after")
    told = f"; it says to come back in {wait} s" if wait and wait.isdigit() else ""
    found = finding(
        session,
        "rate-limited",
        Part.SERVER,
        "note",
        f"The server refuses requests because of their rate (HTTP 429){told}",
        answer,
        change="wait and run this again, or take a key with a higher limit",
        rule="rate.limited",
        left=list(left),
    )
    said = f"rate limited; not sent: {', '.join(left)}" if left else f"rate limited: {answer.came(120)}"
    name = "stopped" if left else "warm-up"
    return Outcome(ProbeResult(name=name, kind="contract", state="unknown", said=said), [found])


def interrupted(left: list[str]) -> Outcome:
    """The user ended the run."""
    said = f"interrupted; not sent or not finished: {', '.join(left)}"
    return Outcome(ProbeResult(name="stopped", kind="contract", state="unknown", said=said))


def odd_usage(session: Session, answer: Answer, why: str) -> Outcome:
    """Token counts that can't be true: what rests on them is not to be trusted."""
    found = finding(
        session,
        "usage-wrong",
        Part.SERVER,
        "degraded",
        f"The usage that the server states can't be true: {why}",
        answer,
        change="do not bill or judge truncation by this server's usage; look for a gateway that rewrites it",
    )
    return Outcome(ProbeResult(name="usage", kind="contract", state="finding", said=why), [found])
