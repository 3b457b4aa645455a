"""The card of a run and of each of its arms, written before the first request of an episode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from truecall import __version__, tasks
from truecall.card import ENTRIES, Card, declared, hashed, joined
from truecall.conditions import make, prompts
from truecall.detector import VERSION
from truecall.errors import InputError
from truecall.records import Json, Record
from truecall.run.stage import Known, facts
from truecall.run.study import Arm, Endpoint, Study, arms_of
from truecall.tasks import Task

SCHEMA_VERSION = 1
CARD = "card.json"


class RunCard(Record, frozen=True):
    """``card.json`` of a run folder.

    ``study_sha256`` is that of what may not change when a run goes on; ``predictions_sha256`` was written before
    the first request. ``arms`` lack what only the bodies as sent can tell (see `truecall.run.result`).
    """

    study: Study
    study_sha256: str
    predictions_sha256: str | None
    created_at: float
    truecall: str
    detector: str
    schema_version: int = SCHEMA_VERSION
    known: dict[str, Known] = msgspec.field(default_factory=dict)
    arms: dict[str, Card] = msgspec.field(default_factory=dict)
    quarrels: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)  # probed against declared
    unsafe_sandbox: bool = False


def first_card(study: Study, now: float, *, unsafe_sandbox: bool = False) -> RunCard:
    """The card before anything was asked of any server."""
    predictions = [msgspec.to_builtins(each) for each in study.predictions]
    return RunCard(
        study=study,
        study_sha256=study_digest(study),
        predictions_sha256=hashed(predictions) if predictions else None,
        created_at=now,
        truecall=__version__,
        detector=VERSION,
        unsafe_sandbox=unsafe_sandbox,
    )


def load_card(path: Path) -> RunCard:
    """The card of a run folder. InputError where there is none that can be read."""
    source = path / CARD
    try:
        return msgspec.json.decode(source.read_bytes(), type=RunCard)
    except OSError as error:
        raise InputError(f"{source}: can't be read ({error.strerror}); is it a run folder?") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{source}: is no card of a run ({error})") from None


def study_digest(study: Study) -> str:
    """The digest of a study but for what may change when it goes on: budget and concurrency."""
    limits = msgspec.structs.replace(study.limits, requests=None, concurrency=1)
    endpoints = tuple(msgspec.structs.replace(each, concurrency=None) for each in study.endpoints)
    same = msgspec.structs.replace(study, limits=limits, endpoints=endpoints)
    return hashed(msgspec.to_builtins(same))


def with_arms(card: RunCard, known: dict[str, Known], bank: dict[str, Task]) -> RunCard:
    """The card with what was probed, and one card for each arm."""
    study = card.study
    endpoints = {endpoint.name: endpoint for endpoint in study.endpoints}
    made, quarrels = {}, {}
    for arm in arms_of(study):
        made[arm.name], against = _arm(
            study, arm, endpoints[arm.endpoint], known[arm.endpoint], bank[arm.task]
        )
        if against:
            quarrels[arm.name] = against
    return msgspec.structs.replace(card, known=known, arms=made, quarrels=quarrels)


def _arm(
    study: Study, arm: Arm, endpoint: Endpoint, known: Known, task: Task
) -> tuple[Card, tuple[str, ...]]:
    offered = [task.make(seed).tools(arm.factors.schema) for seed in seeds_of(study, task)]
    distinct = {hashed(tools): tools for tools in offered}
    condition = make(arm.factors, offered[0], api=endpoint.api)
    fields = {name: value for name, value in condition.fields().items() if name != "tools"}
    if endpoint.api == "ollama.chat":
        fields.pop("tool_choice", None)  # the API has none
    own: dict[str, Json] = {
        "wire": endpoint.api,
        "condition": msgspec.structs.asdict(arm.factors),
        "task": arm.task,
        "sampling": {k: v for k, v in msgspec.structs.asdict(study.sampling).items() if v != {}},
        "seeds": list(seeds_of(study, task)),
        "sampling_seeds": [s for s in study.samples() if s is not None] or None,
        "prompts": hashed({**prompts.texts(), **msgspec.structs.asdict(arm.factors)}),
        "tools": hashed(sorted(distinct)),
        "harness_parser": condition.parser,
        "loop_policy": policy(study, arm),
        "truecall": __version__,
        "detector": VERSION,
    }
    mine = {name: declared(value) for name, value in own.items()}
    entries, quarrels = joined(*facts(known, endpoint), mine)
    entries = {name: fact for name, fact in entries.items() if name in ENTRIES}
    sent = {**fields, **_sampler(study, endpoint)}
    if len(distinct) > 1 and "response_format" in sent:
        del sent["response_format"]  # it holds the tools, which differ from item to item
    return Card(arm=arm.name, entries=entries, declared=sent), quarrels


def policy(study: Study, arm: Arm) -> str:
    """What ends an episode, in words."""
    limits = study.limits
    reminders = f"{limits.nudges} reminder" + ("" if limits.nudges == 1 else "s")
    return (
        f"{limits.loops}: a loop is the same call {limits.repeats} times, or {limits.idle} calls without progress; "
        f"at most {arm.turns} turns; {reminders}"
    )


def _sampler(study: Study, endpoint: Endpoint) -> dict[str, Json]:
    """The sampling parameters as a request names them; the sampling seed has an entry of its own."""
    sampling = study.sampling
    if endpoint.api == "ollama.chat":
        options = {"temperature": sampling.temperature, "num_predict": sampling.max_tokens}
        return {k: v for k, v in options.items() if v is not None}
    named = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens, **sampling.extra}
    return {name: value for name, value in named.items() if value is not None}


def seeds_of(study: Study, task: Task) -> tuple[int, ...]:
    """The seeds of a task: those of the study, as far as a bank has items for them."""
    return tuple(seed for seed in study.seed_list() if task.count is None or seed < task.count)


def bank_of(study: Study, **options: Any) -> dict[str, Task]:
    """The tasks of a study by name. ``options``: as in :func:`truecall.tasks.get`."""
    return {name: tasks.get(name, **options) for name in study.tasks}
