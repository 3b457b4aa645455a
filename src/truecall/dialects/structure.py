"""What stands around calls: reasoning, other speakers' turns, results, channels."""

from __future__ import annotations

import re

import msgspec

from truecall.dialects import registry
from truecall.dialects.bare import Fence
from truecall.dialects.base import Dialect, Reading, Source
from truecall.dialects.harmony import message

REASON = frozenset((
    "think", "thinking", "thought", "thoughts", "seed:think", "longcat_think", "mm:think", "reasoning",
    "scratch_pad", "scratchpad", "ifm|think", "antml:thinking", "inner_monologue", "reflection",
))  # fmt: skip
"""Tags of reasoning, in lower case."""
_REASON_TOKENS = {
    "|START_THINKING|": "<|END_THINKING|>", "|inner_prefix|": "<|inner_suffix|>", "|think|": "<|/think|>",
    "|begin_of_thought|": "<|end_of_thought|>", "|plamo:begin_think:plamo|": "<|plamo:end_think:plamo|>",
}  # fmt: skip
REASON_ENDS = frozenset(
    (
        "|END_THINKING|",
        "|inner_suffix|",
        "|/think|",
        "|end_of_thought|",
        "|plamo:end_think:plamo|",
        "channel|",
    )
)
RESULTS = frozenset((
    "tool_response", "tool_result", "tool_results", "function_results", "function_result", "observation",
    "tool_output", "tool_outputs", "function_response", "|tool_response>", "|tool_outputs_begin|",
    "|tool_output_begin|", "start_function_response", "|START_TOOL_RESULT|", "|tool_result|",
))  # fmt: skip
"""Openers of what a tool gave back."""
_ROLE = re.compile(
    r"<(?:\|(?:im_start|start_header_id|start_of_role|turn|header_start|im_user|im_system)(?:\|>|>)"
    r"|start_of_turn>)\s*+"
    r"(user|tool|ipython|function|observation|tool_response|environment|assistant|model)\b"
    r"|<\|(user|observation|User|tool|Assistant|assistant)\|>|<\|(im_user)\|>"
)
_OWN_ROLES = frozenset(("assistant", "model", "Assistant"))
_BEFORE_SEP = re.compile(r"(?:^|[\n>])\s*+(function|[^\W\d][\w.\-]{0,127})\s*+$")


class Region(msgspec.Struct, eq=False, gc=False):
    """A stretch of reasoning; ``close`` is where its own end begins, ``end`` -1 while it is open."""

    start: int
    close: int = -1
    end: int = -1


class Placed(msgspec.Struct, eq=False, gc=False):
    """A reading and where it was found."""

    reading: Reading
    region: Region | None = None
    fence: Fence | None = None
    apart: bool = False


class Structure:
    """The state of one pass, and how it changes where structure begins or ends."""

    def __init__(self, src: Source, reasoning_open: bool | None = None) -> None:
        self.src = src
        self.implicit = reasoning_open is not False
        self.placed: list[Placed] = []
        self.regions: list[Region] = []
        self.fences: list[Fence] = []
        self.notes: list[str] = []
        self.region: Region | None = None
        self.region_close = ""
        self.fence: Fence | None = None
        self.foreign = False
        self.apart = False
        self.drafts = 0

    # ------------------------------------------------------------------ readings

    def _add(self, reading: Reading | None, at: int) -> int:
        if reading is None:
            return at + 1
        if reading.drafts:
            self._place(reading, self.fence)
        return max(reading.end, at + 1)

    def _place(self, reading: Reading, fence: Fence | None) -> None:
        reading.end = min(reading.end, self.src.size)
        self.drafts += len(reading.drafts)
        self.placed.append(Placed(reading, self.region, fence, self.apart))

    def _try(self, dialects: tuple[Dialect, ...], at: int) -> int:
        for dialect in dialects:
            reading = dialect.read(self.src, at)
            if reading is not None:
                return self._add(reading, at)
        self.src.doubt(at)
        return at + 1

    def _special(self, at: int, token: str, end: int) -> int:
        """Special tokens that are structure: channels, roles, reasoning. 0: none of these."""
        src = self.src
        if not src.norm.startswith(">", end):
            return 0
        if token in ("|channel|", "|start|"):
            return self._channel(at)
        if token in ("|end|", "|return|", "|call|") and self.region_close == "<|end|>":
            return self._shut(at, end + 1)
        if token == "|role_sep|":
            begin = src.norm.rfind("function call", max(0, at - 20), at)
            return self._add(registry.GIGACHAT.read(src, begin), at) if begin >= 0 else 0
        if token == "|channel":
            line = src.norm[end : end + 12]
            if line.startswith((">thought", ">analysis")):
                return self._open(at, end + 1, "<channel|>")
            return 0
        if token == "|tool_sep|":
            before = _BEFORE_SEP.search(src.norm, max(0, at - 140), at)
            return self._add(registry.DEEPSEEK.read(src, before.start(1)), at) if before else 0
        if token in _REASON_TOKENS:
            return self._open(at, end + 1, _REASON_TOKENS[token])
        if token in REASON_ENDS:
            return self._shut(at, end + 1)
        if token in ("|open|", "|close|"):
            word = src.norm[end + 1 : end + 14]
            if word.startswith("think<|sep|>"):
                if token == "|open|":
                    return self._open(at, end + 13, "<|close|>think<|sep|>")
                return self._shut(at, end + 13)
            return 0
        return self._role(at)

    def _channel(self, at: int) -> int:
        """A harmony header: a call, reasoning, or an answer."""
        found = message(self.src, at)
        if self.region is not None and self.region_close == "<|end|>":
            self._shut(at, at)
        if found is None:
            # Special tokens of other families share the names.
            return 0
        if found.role.startswith("functions."):
            self._foreign()
            return found.end
        if found.recipient is not None and not self.src.norm.startswith("<atem:", self.src.skip(found.body)):
            return self._add(registry.HARMONY.call(self.src, found), at)
        if found.channel == "analysis":
            return self._open(at, found.body, "<|end|>")
        return found.body

    def _role(self, at: int) -> int:
        match = _ROLE.match(self.src.norm, at)
        if not match:
            return 0
        role = match.group(1) or match.group(2) or match.group(3)
        if role not in _OWN_ROLES:
            if match.group(2) in ("user", "tool", "User", "observation") and at + 40 > self.src.size:
                return match.end()  # a stop token at the end of the text
            self._foreign()
        return match.end()

    def _foreign(self) -> None:
        """Another speaker's turn began: what the model goes on to write is no act of this turn."""
        if any(p.region is None for p in self.placed) and not self.apart:
            self.apart = True
            self.notes.append("hallucinated_observation")

    def _result(self, at: int, token: str) -> int:
        """A tool's result inside the text: an echo, or an invention."""
        src = self.src
        self._foreign()
        closers = {
            "|tool_outputs_begin|": "<|tool_outputs_end|>", "|tool_output_begin|": "<|tool_output_end|>",
            "start_function_response": "<end_function_response>", "|START_TOOL_RESULT|": "<|END_TOOL_RESULT|>",
        }  # fmt: skip
        closer = closers.get(token, f"</{token}>")
        end = src.find(closer, at)
        return end + len(closer) if end >= 0 else at + len(token) + 1

    # ------------------------------------------------------------------ reasoning

    def _open(self, at: int, after: int, closer: str) -> int:
        if self.region is None:
            if self._mentioned(at):
                return after
            self.region = Region(at)
            self.region_close = closer
            self.regions.append(self.region)
        return after

    def _mentioned(self, at: int) -> bool:
        """Whether a tag stands in inline code: then it is talked about."""
        line = self.src.text[max(0, at - 300) : at]
        line = line[line.rfind("\n") + 1 :]
        return line.count("`") % 2 == 1

    def _shut(self, at: int, after: int) -> int:
        after = min(after, self.src.size)
        if self.region is not None:
            self.region.close = at
            self.region.end = after
            self.region = None
            self.region_close = ""
            self.fence = None
        elif self.implicit and not self.regions and not self._mentioned(at) and self.fence is None:
            region = Region(0)  # its opener stood in the prompt
            region.close = at
            region.end = after
            self.regions.append(region)
            for placed in self.placed:
                placed.region = region
            self.fences.clear()
        return after

    def _closing(self, at: int, token: str, end: int) -> int:
        after = end + 1 if self.src.norm.startswith(">", end) else end
        if token.lower() in REASON and after > end:
            if self.region is not None and self.fence is not None and self.fence.start < self.region.start:
                return after
            if self.region is None or self.region_close == f"</{token}>" or self.region_close == "":
                return self._shut(at, after)
        return after
