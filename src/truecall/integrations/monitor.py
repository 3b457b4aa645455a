"""A monitor for rollouts: are calls emitted, accepted, executed, observed? And are all of them lost?

    monitor = Monitor()
    monitor.turn(text, tools=tools, parsed=calls)      # after each of the model's turns
    trainer.log(monitor.metrics())                     # once a step; then monitor.reset()

Counters are whole numbers that add up over workers (`Monitor.add`). ``turn`` never raises: a fault of its own is
counted. Metric names, all below ``truecall/``:

=========================  ==========================================================================
turns                      turns seen
emitted                    turns in which the model wrote a whole call
emitted_valid              of which one fits an offered tool and its schema (0 where no tools were given)
placeholder                of which one has blanks in place of arguments
accepted                   turns in which the parser returned a call
lost                       turns with a whole call in which the parser returned none
unknown                    turns for which the parsed calls were not given
executed, observed         turns of which a call ran / a result came back, as told by `Monitor.ran`
faults                     turns that the monitor itself could not read
emitted_rate               emitted / turns
accepted_rate              accepted / (turns - unknown)
lost_share                 lost / emitted turns whose parsed calls are known
cold_start                 1 where calls are emitted and none was ever accepted, else 0
=========================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from truecall.detector import detect
from truecall.records import Call, CallTier
from truecall.scan.prefilter import Prefilter
from truecall.schema import compile_tools

COUNTERS: Final = (
    *("turns", "emitted", "emitted_valid", "placeholder", "accepted", "lost", "unknown"),
    *("emitted_known", "executed", "observed", "faults"),
)
"""All counters, by the names in `Monitor.counts`. ``emitted_known``: emitted, where the parsed calls were given."""

PREFIX: Final = "truecall/"
_ENOUGH: Final = 5
_HELD: Final = 64


class Monitor:
    """Counts of one worker, or of several after `add`. Not locked: one for each thread or event loop."""

    def __init__(self, tools: Sequence[Any] | None = None) -> None:
        self.counts: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        self._tools = tools
        self._held: dict[tuple[int, ...], tuple[Any, Any, Prefilter]] = {}

    def turn(
        self, text: str, tools: Sequence[Any] | None = None, parsed: Iterable[Any] | None = None
    ) -> None:
        """One turn of the model: what it wrote (special tokens kept), the tools, and what the parser returned.

        ``tools``: dicts in OpenAI's form or objects with ``model_dump``; by default the monitor's own. ``parsed``: any
        collection of calls; None: not known. Never raises.
        """
        counts = self.counts
        counts["turns"] += 1
        try:
            emitted = self._read(text, tools if tools is not None else self._tools)
            accepted = None if parsed is None else any(True for _ in parsed)
        except Exception:  # whatever a trainer hands over, its training goes on
            counts["faults"] += 1
            return
        if accepted is None:
            counts["unknown"] += 1
        elif accepted:
            counts["accepted"] += 1
        if emitted and accepted is not None:
            counts["emitted_known"] += 1
            counts["lost"] += not accepted

    def ran(self, *, executed: bool | None = None, observed: bool | None = None) -> None:
        """What became of the last turn's calls: one ran, a result came back to the model."""
        self.counts["executed"] += executed is True
        self.counts["observed"] += observed is True

    def add(self, counts: Mapping[str, int]) -> None:
        """Adds another worker's counts; names that are not ours are passed over."""
        for name in COUNTERS:
            value = counts.get(name, 0)
            if isinstance(value, int):
                self.counts[name] += value

    def reset(self) -> None:
        """Back to nothing, for the next step."""
        self.counts = dict.fromkeys(COUNTERS, 0)

    def metrics(self) -> dict[str, float]:
        """Counts and rates under their metric names; a rate without turns is left out."""
        c = self.counts
        out = {f"{PREFIX}{name}": float(c[name]) for name in COUNTERS if name != "emitted_known"}
        known = c["turns"] - c["unknown"] - c["faults"]
        for name, k, n in (
            ("emitted_rate", c["emitted"], c["turns"]),
            ("accepted_rate", c["accepted"], known),
            ("lost_share", c["lost"], c["emitted_known"]),
        ):
            if n > 0:
                out[f"{PREFIX}{name}"] = k / n
        out[f"{PREFIX}cold_start"] = float(self.cold_start)
        return out

    @property
    def cold_start(self) -> bool:
        """Calls were emitted in at least five turns whose parsed calls are known, and none was accepted."""
        return self.counts["emitted_known"] >= _ENOUGH and self.counts["accepted"] == 0

    def warning(self) -> str | None:
        """A sentence for the log of the trainer, or None where nothing is wrong."""
        c = self.counts
        if self.cold_start:
            return (
                f"{c['emitted_known']} turns hold a whole tool call and the parser accepted none: "
                "the tool-using branch gets no reward. Check the parser against the chat template."
            )
        if c["lost"]:
            return f"{c['lost']} of {c['emitted_known']} turns with a whole tool call lost it before it was executed."
        return None

    # ------------------------------------------------------------------- reading

    def _read(self, text: str, tools: Sequence[Any] | None) -> bool:
        plain, prefilter = self._plain(tools)
        if not prefilter.may_call(text):
            return False
        whole = [call for call in detect(text, plain).calls if call.well_formed]
        if not whole:
            return False
        counts = self.counts
        counts["emitted"] += 1
        counts["emitted_valid"] += any(_fits(call) for call in whole)
        counts["placeholder"] += any(_fits(call) and call.tier is not CallTier.TIGHT for call in whole)
        return True

    def _plain(self, tools: Sequence[Any] | None) -> tuple[Any, Prefilter]:
        """The tools as plain dicts; kept by identity, since trainers hand over the same objects again and again."""
        key = () if tools is None else tuple(map(id, tools))
        held = self._held.get(key)
        if held is None:
            if len(self._held) >= _HELD:
                self._held.clear()
            plain = None if tools is None else [_dict(tool) for tool in tools]
            held = self._held[key] = (list(tools or ()), plain, Prefilter(compile_tools(plain)))
        return held[1], held[2]


def _fits(call: Call) -> bool:
    return call.offered is True and not call.violations


def _dict(tool: Any) -> Any:
    dump = getattr(tool, "model_dump", None)
    return dump(exclude_unset=True, exclude_none=True) if callable(dump) else tool
