"""One episode: the model and the task in turns, until one of them ends it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from truecall import classify, wire
from truecall.card import fingerprint
from truecall.conditions import Condition, Executable, Message
from truecall.conditions.prompts import NUDGE
from truecall.funnel import Episode, Turn, turn_of
from truecall.records import (
    CallVerdict,
    Choice,
    Delivery,
    EvidenceTier,
    Json,
    Part,
    Record,
    Verdict,
)
from truecall.run.journal import Ended, Key
from truecall.run.loops import LoopWatch
from truecall.run.sender import Sent, request_failed
from truecall.run.study import Limits
from truecall.tasks import Instance, Result, State

Ask = Callable[[int, list[Message]], Awaitable[Sent]]
"""Gives the answer of a turn, counted from 1, to these messages."""

Tell = Callable[[int, Verdict], None]
"""Is told the verdict on a turn."""


class Setting(Record, frozen=True):
    """What an episode is played under.

    ``turns`` is the cap. ``fields``: the request bodies but for their messages. ``rendered``: the template shows
    the tools; None: not known.
    """

    turns: int
    limits: Limits
    fields: dict[str, Json]
    api: str = "openai.chat"
    rendered: bool | None = None
    eligible: bool = True


@dataclass
class _Story:
    """What has happened so far."""

    turns: list[Turn] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    marks: list[tuple[str, int]] = field(default_factory=list)
    silent: int = 0  # turns in a row without a call
    confused: int = 0  # turns that take a tool for the function to be written

    def count(self, sent: Sent) -> None:
        usage = sent.response.usage
        if usage is not None:
            self.prompt_tokens += usage.prompt_tokens or 0
            self.completion_tokens += usage.completion_tokens or 0
        marks = msgspec.json.encode(fingerprint(sent.exchange, sent.response), order="sorted").decode()
        if self.marks and self.marks[-1][0] == marks:
            self.marks[-1] = (marks, self.marks[-1][1] + 1)
        else:
            self.marks.append((marks, 1))

    def observed(self) -> None:
        """The results of the last turn's calls have come back to the model."""
        if self.turns and self.turns[-1].executed:
            self.turns[-1] = msgspec.structs.replace(self.turns[-1], observed=True)


async def play(
    key: Key,
    instance: Instance,
    condition: Condition,
    opening: Sequence[Message],
    ask: Ask,
    tell: Tell,
    setting: Setting,
) -> Ended:
    """Plays an episode to its end. Whatever the model and the server do is data in the result.

    How it ended: ``submitted`` (the task is over), ``answered`` (a last word in prose), ``no_call`` (turns
    without a call, reminders included), ``single_turn``, ``loop``, ``turn_cap``, ``request_failed``.
    """
    messages, state, story = list(opening), instance.start(), _Story()
    watch = LoopWatch(setting.limits.repeats, setting.limits.idle)
    single = instance.turns == 1
    cap = min(setting.turns, instance.turns or setting.turns)
    ended = "turn_cap"
    for number in range(1, cap + 1):
        sent = await ask(number, messages)
        story.count(sent)
        verdict, choice = judged(sent, condition, messages, setting)
        tell(number, verdict)
        story.confused += _confused(verdict, instance)
        if choice is None:
            story.turns.append(_turn(verdict, sent, instance, setting, executed=False, passed=None))
            ended = "request_failed" if request_failed(sent.exchange) else "no_answer"
            break
        story.observed()
        surfaced = condition.surfaced(choice)
        calls = condition.executable(surfaced)
        done = [] if single else await _run(calls, state, watch, number)
        if single:
            await state.close([each.call for each in calls if each.call is not None])
        elif not calls:
            await state.answered(choice.content or "")
        executed = any(each.call is not None for each in calls) if not single else None
        story.turns.append(_turn(verdict, sent, instance, setting, executed=executed, passed=state.passed))
        messages += condition.reply(choice, done)
        ending = _ending(state, story, calls, condition, choice, single, setting.limits)
        if not ending and watch.found is not None and setting.limits.loops == "stop":
            ending = "loop"
        if ending:
            ended = ending
            break
        if not calls:
            messages.append({"role": "user", "content": NUDGE})
    answered = ended not in ("request_failed", "no_answer")
    episode = Episode(
        arm=key.arm,
        item=key.item,
        seed=key.seed,
        sample=key.sample,
        turns=tuple(story.turns),
        solved=state.passed if answered else None,
        ended=ended,
    )
    return Ended(
        episode=episode,
        loop=watch.found,
        prompt_tokens=story.prompt_tokens,
        completion_tokens=story.completion_tokens,
        marks=tuple(story.marks),
        confused=story.confused if instance.decoy is not None else None,
    )


def _ending(
    state: State,
    story: _Story,
    calls: Sequence[Executable],
    condition: Condition,
    choice: Choice,
    single: bool,
    limits: Limits,
) -> str:
    """How the episode ends with this turn; "" where it goes on."""
    if single:
        return "single_turn"
    if state.ended:
        return "submitted"
    if calls:
        story.silent = 0
        return ""
    if condition.final(choice.content or ""):
        return "answered"
    story.silent += 1
    return "no_call" if story.silent > limits.nudges else ""


async def _run(
    calls: Sequence[Executable], state: State, watch: LoopWatch, turn: int
) -> list[tuple[Executable, Result]]:
    """Runs the calls of a turn in order; after a submission the rest are left alone."""
    done: list[tuple[Executable, Result]] = []
    for each in calls:
        if each.call is None:
            result = Result(text=each.fault, error=True)
        elif state.ended:
            result = Result(text="The task is over.", error=True)
        else:
            result = await state.call(each.call)
            watch.saw(turn, each.call, new=result.new)
        done.append((each, result))
    return done


# --------------------------------------------------------------------------- the verdict on a turn


def judged(
    sent: Sent, condition: Condition, messages: Sequence[Message], setting: Setting
) -> tuple[Verdict, Choice | None]:
    """The verdict, and the answer that a harness goes on from (None: there is none).

    In text conditions the harness's parser has been over the answer before it is judged.
    """
    response = sent.response
    choice = response.choices[0] if response.choices else None
    failed = request_failed(sent.exchange) or response.error is not None
    seen = response
    if choice is not None and not condition.native and not failed:
        seen = msgspec.structs.replace(response, choices=(condition.surfaced(choice), *response.choices[1:]))
    asked = {**setting.fields, "messages": list(messages[-1:])}  # no more of the history is looked at
    verdict = classify.judge_exchange(
        sent.exchange,
        condition.tools,
        api=setting.api,
        request=wire.read_request(asked, setting.api),
        detokenized=sent.detokenized,
        response=seen,
    )
    if not condition.native:
        verdict = _in_text(verdict)
    return verdict, None if failed else choice


def _in_text(verdict: Verdict) -> Verdict:
    """In text conditions the parser is the harness's, and the text itself is what it read."""
    tier = EvidenceTier.CONTENT if verdict.tier is EvidenceTier.TOOL_CALLS else verdict.tier
    calls = tuple(_blamed(call) for call in verdict.calls)
    shown = Part.HARNESS if _parsers(verdict.cause, verdict.delivery) else verdict.cause
    return msgspec.structs.replace(verdict, tier=tier, calls=calls, cause=shown)


def _blamed(call: CallVerdict) -> CallVerdict:
    return msgspec.structs.replace(call, cause=Part.HARNESS) if _parsers(call.cause, call.delivery) else call


def _parsers(cause: Part, delivery: Delivery) -> bool:
    return cause is Part.PARSER and delivery is Delivery.LEAKED


def _confused(verdict: Verdict, instance: Instance) -> bool:
    """Whether some call of the turn, whatever became of it, takes a tool for the function to be written."""
    decoy = instance.decoy
    return decoy is not None and any(decoy.taken(call.name, call.arguments) for call in verdict.calls)


def _turn(
    verdict: Verdict,
    sent: Sent,
    instance: Instance,
    setting: Setting,
    *,
    executed: bool | None,
    passed: bool | None,
) -> Turn:
    turn = turn_of(
        verdict,
        eligible=setting.eligible,
        expected=instance.expected,
        rendered=setting.rendered,
        executed=executed,
        observed=False,
        passed=passed,
        digest=_digest(sent),
    )
    # The last request counts itself where it failed; those before it are counted here.
    return msgspec.structs.replace(turn, failed_attempts=max(0, sent.failed - turn.failed_requests))


def _digest(sent: Sent) -> str | None:
    """The digest of what the model gave in this turn; None where no answer came."""
    if request_failed(sent.exchange) or not sent.response.choices:
        return None
    choice = sent.response.choices[0]
    calls = [(call.name, call.arguments) for call in choice.tool_calls]
    text = msgspec.json.encode((choice.content, choice.reasoning, calls))
    return hashlib.sha256(text).hexdigest()[:32]
