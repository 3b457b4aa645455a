"""A callback for TRL's GRPO and RLOO trainers that tells what became of the calls in each step's completions.

    trainer.add_callback(TruecallCallback(trainer))

It reads the completions that the trainer keeps for its table (``log_completions=True``) and adds its metrics to the
trainer's own, so that they are averaged and logged as all others. Completions that TRL parsed into messages show
what was accepted, executed and observed; where the content is the decoded text and no tool list was given, what was
accepted is unknown. Made for TRL 1.16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truecall.integrations.monitor import Monitor
from truecall.sources.base import Place
from truecall.sources.messages import conversation

try:
    from transformers import TrainerCallback as _Base
except ImportError:  # the callback can be made and tested without the library
    _Base = object

_NOWHERE = Place(file="")


class TruecallCallback(_Base):  # type: ignore[misc]
    """Counts each step's completions. ``tools``: OpenAI's form; by default the trainer's, where they are dicts.

    ``warn``: called with a sentence once calls are seen to be lost; by default ``print``.
    """

    def __init__(self, trainer: Any, tools: Sequence[Any] | None = None, warn: Any = print) -> None:
        self.trainer = trainer
        self.monitor = Monitor(tools if tools is not None else _tools_of(trainer))
        self._parses = bool(getattr(trainer, "tools", None))
        self._warn = warn
        self._warned = False

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Counts the completions of the step that ended. Never raises."""
        try:
            self._count()
        except Exception:  # a change in TRL must not end a training
            self.monitor.counts["faults"] += 1

    def _count(self) -> None:
        self.monitor.reset()
        for completion in list(self.trainer._logs["completion"]):
            count_completion(self.monitor, completion, parses=self._parses)
        mode = "train" if getattr(getattr(self.trainer, "model", None), "training", True) else "eval"
        for name, value in self.monitor.metrics().items():
            self.trainer._metrics[mode][name].append(value)
        warning = self.monitor.warning()
        if warning and not self._warned:
            self._warned = True
            self._warn(f"truecall: {warning}")


def count_completion(monitor: Monitor, completion: Any, *, parses: bool | None = None) -> None:
    """Counts the turns of one completion: text, or messages. ``parses``: the trainer parses calls into messages."""
    if isinstance(completion, str):
        monitor.turn(completion)
        return
    for turn in conversation(completion, place=_NOWHERE, known=parses or None):
        text = turn.text or ""
        if turn.surfaced and not monitor_reads(text):
            text += "".join(_written(call) for call in turn.surfaced)
        monitor.turn(text, parsed=turn.surfaced)
        if turn.surfaced:
            monitor.ran(executed=turn.executed, observed=turn.observed)


def monitor_reads(text: str) -> bool:
    """Whether a text has any call-like markup, beside calls that were parsed out of it."""
    return "{" in text or "<" in text


def _written(call: Any) -> str:
    """A parsed call in the form that the detector reads: TRL takes the model's own text away when it parses."""
    import msgspec

    arguments = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return ""
    payload = msgspec.json.encode({"name": call.name, "arguments": arguments or {}}).decode()
    return f"<tool_call>\n{payload}\n</tool_call>"


def _tools_of(trainer: Any) -> list[Any] | None:
    """The trainer's tools where they are schemas; functions say too little of their arguments."""
    tools = getattr(trainer, "tools", None)
    return list(tools) if tools and all(isinstance(tool, dict) for tool in tools) else None
