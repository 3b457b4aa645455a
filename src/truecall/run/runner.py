"""Runs a study into a run folder; a folder that is there already is gone on with where it stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

from truecall.conditions import Condition, Message, make
from truecall.config import Connection
from truecall.errors import UsageError
from truecall.records import Json, Record, Verdict
from truecall.redact import Redactor
from truecall.run.cards import (
    CARD,
    RunCard,
    bank_of,
    first_card,
    load_card,
    seeds_of,
    study_digest,
    with_arms,
)
from truecall.run.episode import Setting, play
from truecall.run.journal import Ended, Journal, Key, Past
from truecall.run.sender import Budget, OutOfBudget, Sender, Sent
from truecall.run.stage import Stage, prepare
from truecall.run.study import Arm, Study, arms_of
from truecall.sandbox import Sandbox
from truecall.store import Keep, RunFolder
from truecall.store.history import Chain
from truecall.tasks import Instance, Task

OnEpisode = Callable[[Key, Ended], None]


class Outcome(Record, frozen=True):
    """How a run ended. ``left``: episodes that are not done (the budget is spent); ``resent``: sent twice."""

    episodes: int
    done_before: int
    left: int
    requests: int
    resent: int
    evidence_refused: dict[str, str]


class Cell(Record, frozen=True):
    """One episode that is to be played."""

    arm: Arm
    seed: int
    sample: int | None


def cells(study: Study, bank: dict[str, Task], endpoint: str) -> Iterator[Cell]:
    """The episodes of one endpoint's arms; seed by seed, so that all arms advance together."""
    arms = [arm for arm in arms_of(study) if arm.endpoint == endpoint]
    for seed in study.seed_list():
        for arm in arms:
            if seed in seeds_of(study, bank[arm.task]):
                for sample in study.samples():
                    yield Cell(arm=arm, seed=seed, sample=sample)


async def run(
    study: Study,
    path: Path,
    connection: Connection,
    *,
    keep: Keep = "full",
    retry_failed: bool = False,
    sandbox: Sandbox | None = None,
    on_episode: OnEpisode | None = None,
) -> Outcome:
    """Runs all episodes of ``study`` that the folder does not hold yet.

    Endpoints without an address of their own go to ``connection``. What models and servers do is data in the
    folder. ``retry_failed``: episodes that ended in a failed request are taken up again.

    Raises:
        UsageError: the folder belongs to another study, or the study needs what is not there.
    """
    bank = bank_of(study, sandbox=sandbox)
    redactor = Redactor()
    with RunFolder(path, redactor=redactor, keep=keep) as folder:
        card = _begin(folder, study, unsafe=sandbox is not None and sandbox.unsafe)
        past = Past(path, retry_failed=retry_failed)
        journal = Journal(folder, past)
        budget = Budget(study.limits.requests, past.requests)
        async with AsyncExitStack() as stack:
            stages = [
                await prepare(e, connection, redactor, stack, before=card.known.get(e.name))
                for e in study.endpoints
            ]
            if not card.arms:
                card = with_arms(card, {s.endpoint.name: s.known for s in stages}, bank)
                folder.write(CARD, card)
            runs = [_Runner(study, bank, stage, budget, journal, past, on_episode) for stage in stages]
            async with asyncio.TaskGroup() as group:
                for each in runs:
                    for _ in range(each.stage.endpoint.concurrency or study.limits.concurrency):
                        group.create_task(each.work())
        return Outcome(
            episodes=sum(each.played for each in runs),
            done_before=len(past.done),
            left=sum(each.left for each in runs),
            requests=budget.sent - past.requests,
            resent=sum(each.sender.resent for each in runs),
            evidence_refused={r.stage.endpoint.name: r.sender.refused for r in runs if r.sender.refused},
        )


def _begin(folder: RunFolder, study: Study, *, unsafe: bool) -> RunCard:
    """The card of the folder: the one that is there, or a first one, on the disk before any request."""
    if (folder.path / CARD).exists():
        card = load_card(folder.path)
        if card.study_sha256 != study_digest(study):
            raise UsageError(f"{folder.path} holds a run of another study: name another folder")
        return card
    card = first_card(study, time.time(), unsafe_sandbox=unsafe)
    folder.write(CARD, card)
    return card


class _Runner:
    """The episodes of one endpoint, played by as many workers as its concurrency allows."""

    def __init__(
        self,
        study: Study,
        bank: dict[str, Task],
        stage: Stage,
        budget: Budget,
        journal: Journal,
        past: Past,
        on_episode: OnEpisode | None,
    ) -> None:
        self.stage = stage
        self.played = self.left = 0
        self._study, self._bank, self._journal, self._past = study, bank, journal, past
        self._on_episode = on_episode
        self._cells = cells(study, bank, stage.endpoint.name)
        self.sender = Sender(
            endpoint=stage.endpoint,
            client=stage.client,
            stack=stage.stack,
            model=stage.known.model,
            url=stage.url,
            sampling=study.sampling,
            retries=study.limits.retries,
            budget=budget,
            journal=journal,
            past=past,
        )

    async def work(self) -> None:
        """Plays episodes until none is left."""
        for cell in self._cells:
            instance = self._bank[cell.arm.task].make(cell.seed)
            key = Key(cell.arm.name, instance.item, instance.seed, cell.sample)
            if key in self._past.done:
                continue
            try:
                ended = await self._play(key, cell, instance)
            except OutOfBudget:
                self.left += 1
                continue
            self._journal.episode(key, ended)
            self.played += 1
            if self._on_episode is not None:
                self._on_episode(key, ended)

    async def _play(self, key: Key, cell: Cell, instance: Instance) -> Ended:
        arm, api = cell.arm, self.stage.endpoint.api
        condition = make(arm.factors, instance.tools(arm.factors.schema), api=api)
        fields = self.sender.fields(condition.fields(), cell.sample)
        chain = Chain()

        async def ask(turn: int, messages: list[Message]) -> Sent:
            return await self.sender.ask(key, turn, messages, fields, chain)

        def tell(turn: int, verdict: Verdict) -> None:
            self._journal.verdict(key, turn, verdict)

        example = await demonstration(self._bank[arm.task], arm, api) if arm.factors.few_shot else []
        setting = Setting(
            turns=arm.turns,
            limits=self._study.limits,
            fields=fields,
            api=api,
            rendered=self.stage.known.rendered if arm.factors.condition == "native" else True,
            eligible=arm.factors.tool_choice != "none",
        )
        return await play(key, instance, condition, condition.opening(instance, example), ask, tell, setting)


async def demonstration(task: Task, arm: Arm, api: str) -> list[Message]:
    """A solved instance as messages, in the arm's own condition.

    Raises:
        UsageError: the task has no example.
    """
    instance = task.example()
    if instance is None:
        raise UsageError(f"task {task.name} has no example: few_shot can't be used with it")
    condition: Condition = make(arm.factors, instance.tools(arm.factors.schema), api=api)
    state = instance.start()
    messages: list[Message] = [{"role": "user", "content": instance.prompt}]
    for number, call in enumerate(instance.solution):
        choice = condition.wrote(call, number)
        [executable] = condition.executable(condition.surfaced(choice))
        messages += condition.reply(choice, [(executable, await state.call(call))])
    return messages


def first_bodies(study: Study, bank: dict[str, Task]) -> Iterator[tuple[Arm, dict[str, Json]]]:
    """The first request of each arm, as far as it is known without asking a server: for plans."""
    endpoints = {endpoint.name: endpoint for endpoint in study.endpoints}
    for arm in arms_of(study):
        seeds = seeds_of(study, bank[arm.task])
        instance = bank[arm.task].make(seeds[0])
        endpoint = endpoints[arm.endpoint]
        condition = make(arm.factors, instance.tools(arm.factors.schema), api=endpoint.api)
        yield (
            arm,
            {
                "model": endpoint.model or "(what the server offers)",
                **condition.fields(),
                "messages": condition.opening(instance, []),
                "max_tokens": study.sampling.max_tokens,
            },
        )
