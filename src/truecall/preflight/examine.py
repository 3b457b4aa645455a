"""One examination of an endpoint, probe by probe; what was found so far can be reported at any time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import msgspec

from truecall import __version__, probe, stacks, wire
from truecall.client import Client
from truecall.detector import detect
from truecall.errors import UsageError
from truecall.preflight import diagnose, hindrance
from truecall.preflight.material import user
from truecall.preflight.probes import PROBES, Probe
from truecall.preflight.probes.base import Outcome
from truecall.preflight.probes.own import TIMES
from truecall.preflight.probes.own import probe as own_probe
from truecall.preflight.probes.own_prompt import limit_of
from truecall.preflight.probes.reduce import LIMIT as REDUCING
from truecall.preflight.report import Endpoint, ProbeResult, Report, state_of
from truecall.preflight.request_file import OwnRequest
from truecall.preflight.session import Answer, Session
from truecall.records import Finding, Json, Part
from truecall.store import Asked

LONGEST_PAUSE = 10  # seconds between two tries of a warm-up that is answered with 503
WARM_UP_FACTOR = 5  # a cold load may take this many times the timeout of a request,
WARM_UP_SECONDS = 300.0  # but no longer than this, or than the timeout itself
BUSY_TRIES = 4  # that a server without room gets; one that loads its model has as long as a cold load
WARM_UP_BYTES = 1 << 20  # of an answer that should be one token long
Progress = Callable[[str, int, int], None]
"""Called with the probe about to be sent, its place and their number."""


def plan(only: Sequence[str] = (), own: OwnRequest | None = None) -> list[Probe]:
    """The probes that would be sent, in order, with those that the named ones build on.

    Raises:
        UsageError: ``only`` names a probe that does not exist.
    """
    by_name = {p.name: p for p in PROBES}
    for name in only:
        if name == "own" and own is None:
            raise UsageError("--only own: needs --request FILE")
        if name not in by_name and name != "own":
            raise UsageError(f"--only {name}: no such probe; there are {', '.join(by_name)}, own")
    wanted = set(only) or set(by_name)
    for each in reversed(PROBES):  # a probe is needed only by later ones
        if each.name in wanted:
            wanted.update(each.needs)
    chosen = [p for p in PROBES if p.name in wanted]
    if own is not None and (not only or "own" in only):
        limit = limit_of(wire.read_request(own.body, own.api))
        requests = 2 * TIMES + REDUCING + 2
        chosen.append(Probe("own", "your request, repeated", own_probe(own), requests, requests * limit))
    return chosen


class Examination:
    """The state of one preflight. ``run`` fills it, ``report`` may be asked for at any time, once it began."""

    def __init__(
        self,
        client: Client,
        *,
        model: str | None = None,
        only: Sequence[str] = (),
        own: OwnRequest | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._client = client
        self._model = model
        self._probes = plan(only, own)
        self._progress = progress
        self._outcomes: list[Outcome] = []
        self._session: Session | None = None
        self._why = ""
        self._warm: Answer | None = None
        self._left = [p.name for p in self._probes]

    async def run(self) -> None:
        """Send all probes, or as many as the endpoint answers."""
        choice = await probe.choose_model(self._client, self._model)
        self._why = choice.why
        info = stacks.recognise(stacks.Observations(model=choice.model))
        session = self._session = Session(client=self._client, info=info, model=choice.model or "default")
        warm = self._warm = await self._warm_up(session)
        session.notebook.warm_tokens = warm.prompt_tokens
        chat = probe.seen_of(warm.exchange)
        if not warm.ok:  # a server that does not answer is not asked sixteen more questions
            session.info = stacks.recognise(stacks.Observations(chat=chat, model=choice.model))
            self._outcomes.append(hindrance.unusable(session, warm))
            return
        seen = await probe.observe(self._client, choice.model)
        session.info = stacks.recognise(msgspec.structs.replace(seen, chat=chat))
        for place, each in enumerate(self._probes):
            if session.given_up:
                self._outcomes.append(hindrance.gave_up(session, self._left))
                return
            if self._progress is not None:
                self._progress(each.asks, place, len(self._probes))
            session.probe = each.name
            self._outcomes.append(await each.run(session))
            self._left.remove(each.name)

    async def _warm_up(self, session: Session) -> Answer:
        """One token without tools: a model that must be loaded first is no timeout."""
        total = self._client.connection.timeouts.total
        patience = min(WARM_UP_FACTOR * total, max(WARM_UP_SECONDS, total))
        body = session.body(user("Hi"), max_tokens=1)
        deadline = time.monotonic() + patience
        tries = 0
        while True:
            left = max(0.1, deadline - time.monotonic())
            warm = await session.ask(body, evidence=False, timeout=left, max_bytes=WARM_UP_BYTES)
            tries += 1
            pause = float(min(2 ** (tries - 1), LONGEST_PAUSE))
            if not _comes_later(warm, tries) or time.monotonic() + pause >= deadline:
                return warm
            if self._progress is not None:
                self._progress(f"HTTP 503, asked again in {pause:.0f} s", 0, len(self._probes))
            await asyncio.sleep(pause)

    @property
    def begun(self) -> bool:
        """True once something can be reported."""
        return bool(self._outcomes)

    @property
    def asked(self) -> list[Asked]:
        """The requests that were sent so far (see ``Session``)."""
        return self._session.asked if self._session is not None else []

    def report(self, *, interrupted: bool = False) -> Report:
        """What was found so far. ``interrupted``: the user ended it; probes that were not sent are listed."""
        session = self._session
        assert session is not None, "run() comes first"
        outcomes = list(self._outcomes)
        if interrupted and self._left:
            outcomes.append(hindrance.interrupted(self._left))
        if session.odd_usage is not None:
            outcomes.append(hindrance.odd_usage(session, *session.odd_usage))
        results = tuple(_with_ids(outcome) for outcome in outcomes)
        found = [_advised(session, f) for outcome in outcomes for f in outcome.findings]
        findings = diagnose.ordered(_unique(found))
        state = state_of(findings, results)
        report = Report(
            state=state,
            answer=diagnose.sentence(state, findings, session.notebook, results),
            endpoint=self._endpoint(session),
            probes=results,
            findings=findings,
            spent=session.spent.record(),
            created_at=time.time(),
            truecall=__version__,
            detector=detect("").version,
        )
        # An echo of the key that came in pieces is whole only now.
        return msgspec.convert(self._client.redactor.value(msgspec.to_builtins(report)), Report)

    def _endpoint(self, session: Session) -> Endpoint:
        info = session.known()
        facts: dict[str, Json] = {
            name: {"value": fact.value, "origin": fact.origin}
            for name in info.__struct_fields__
            if isinstance(fact := getattr(info, name), stacks.Fact) and fact.origin != "unknown"
            if name != "chat_template"
        }
        if session.notebook.template_dialect:
            facts["template_dialect"] = {"value": session.notebook.template_dialect, "origin": "inferred"}
        if session.notebook.own_dialect:
            facts["model_dialect"] = {"value": session.notebook.own_dialect, "origin": "inferred"}
        if session.evidence_refused:
            facts["evidence_refused"] = {"value": session.evidence_refused, "origin": "probed"}
        warm = self._warm
        return Endpoint(
            base_url=session.client.redactor.url(session.client.connection.api_base()),
            engine=info.engine,
            label=info.label,
            signals=info.signals,
            model=session.model,
            model_origin=self._why,
            facts=facts,
            warm_up_seconds=round(warm.exchange.timing.total or 0.0, 3) if warm and warm.ok else None,
        )


def _comes_later(warm: Answer, tries: int) -> bool:
    """Whether a warm-up's answer is a 503 to wait after: for long while a model loads, else a few times.

    llama.cpp, vLLM and what stands before them answer so at their start. Where Retry-After was given, it has
    been waited for already.
    """
    if warm.exchange.status != 503 or warm.exchange.failure is not None:
        return False
    refusal = warm.refusal()
    loading = refusal is not None and refusal.rule == "server.loading"
    return loading or (tries < BUSY_TRIES and warm.exchange.header("retry-after") is None)


def _advised(session: Session, found: Finding) -> Finding:
    """The finding with its change made exact by what later probes showed: the dialect, and so the parser."""
    note = session.notebook
    info, dialect = session.known(), found.detail.get("dialect")
    if found.part is Part.GATE:
        asked = str(found.detail.get("rule", found.id))
        dialect = note.template_dialect or note.own_dialect
    elif found.part is Part.PARSER and not found.id.startswith("shape-"):
        asked = "parser-mismatch"
    else:
        return found
    if not isinstance(dialect, str):
        return found
    change = session.stack.advice(asked, info, dialect)
    return msgspec.structs.replace(found, change=change) if change else found


def _with_ids(outcome: Outcome) -> ProbeResult:
    """The result, with the ids of its findings: what a later preflight needs to call one fixed."""
    if not outcome.findings:
        return outcome.result
    data = {**outcome.result.data, "findings": [f.id for f in outcome.findings]}
    return msgspec.structs.replace(outcome.result, data=data)


def _unique(findings: list[Finding]) -> list[Finding]:
    """The first finding of each id: one cause may show in several probes."""
    seen: dict[str, Finding] = {}
    for found in findings:
        seen.setdefault(found.id, found)
    return list(seen.values())
