"""One pass over a text: every place where a call can start is read once, in order.

The sweep finds readings and the structure around them (reasoning, fences, results, other speakers' turns);
what is a call and what is only an illustration is for `truecall.dialects.judge`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from truecall.dialects import registry
from truecall.dialects.bare import OBJECT, PY_LIST, Fence, open_fence
from truecall.dialects.base import Dialect
from truecall.dialects.structure import REASON, REASON_ENDS, RESULTS, Structure

_TOKEN = re.compile(r"<(/?)([^\s<>=\[\](){}\"',]{1,64})")
_RUN = re.compile(r"(.)\1*+")
_SQUARE = re.compile(r"\[(/?)([A-Z][A-Z_]{2,24})\]")
_GENERIC = re.compile(
    r"(?:^|[_:\-|.])(?:call|calls|toolcall|tool_call|function|tool|tool_use|invoke|action)s?\|?$",
    re.IGNORECASE,
)
_GEMMA_HEAD = re.compile(r"(?:^|[\n>\s])(call:[\w.\-]{1,128}\s*+)$")
_LINE = re.compile(
    r"(?i:[ \t>*\-]*|[ \t*]*(?:tool|function)[ _]?call[*]*:[*]*[ \t]*)(?:```\w*\n)?[ \t]*(?:print\()?(?:await )?"
    r"(?:default_api\.|functions\.|tools\.)?$"
)

_STREAMS = (
    ("<", "_angle"), ("[", "_square"), ("{", "_brace"), ("```", "_ticks"), ("~~~", "_ticks"),
    ("ction:", "_action"),
    ("✿FUNCTION✿", "_flower"), ("to=functions.", "_recipient"),
)  # fmt: skip
"""What can start something, and the method that handles it."""


@lru_cache(maxsize=4096)
def _handlers(token: str) -> tuple[Dialect, ...]:
    """The dialects that a tag's name can start."""
    found = registry.TOKENS.get(token)
    if found is not None:
        return found
    if "DSML" in token or "GCML" in token:
        return registry.tagged_head(token)
    for part in (token.split(":")[0], token.split(":")[-1], token.split("|")[-1]):
        if part != token and part in ("tool_call", "tool_calls", "function_calls", "invoke", "function"):
            return registry.TOKENS[part]
    return registry.GENERIC if _GENERIC.search(token) else ()


class Sweep(Structure):
    """One pass over a text. After `run`: ``placed``, ``regions``, ``fences``, ``notes``."""

    def _marks(self) -> list[tuple[str, str]]:
        """As `_STREAMS`: the offered names that the text holds before a parenthesis."""
        text = self.src.text
        if "(" not in text:
            return []
        return [(mark, "_call_line") for name in self.src.named if (mark := name + "(") in text]

    def run(self) -> None:
        """Sweep the text from start to end."""
        norm, size, limit = self.src.norm, self.src.size, self.src.limit
        find = norm.find
        nexts: list[int] = []
        kept: list[tuple[str, Callable[[int], int]]] = []
        for literal, step in (*_STREAMS, *self._marks()):
            at = find(literal) if literal[-1] in norm else -1
            if at >= 0:
                nexts.append(at)
                kept.append((literal, getattr(self, step)))
        pos = 0
        while nexts:
            at = min(nexts)
            index = nexts.index(at)
            if self.fence is not None and at >= self.fence.stop:
                pos = max(pos, self.fence.end)
                self.fence = None
            if at >= pos:
                pos = max(kept[index][1](at), at + 1)
            if pos >= size or self.drafts + len(self.regions) + len(self.fences) > limit:
                break
            if pos == at + 1:
                nexts[index] = find(kept[index][0], pos)
            else:
                nexts = [n if n >= pos or n < 0 else find(kept[i][0], pos) for i, n in enumerate(nexts)]
            while -1 in nexts:
                gone = nexts.index(-1)
                del nexts[gone], kept[gone]
        if pos < size and self.drafts + len(self.regions) + len(self.fences) > limit:
            self.notes.append("capped")

    # ------------------------------------------------------------------ "<"

    def _angle(self, at: int) -> int:
        src = self.src
        if src.norm.startswith("<<<<<<<<", at):
            return self._run(at)
        match = _TOKEN.match(src.norm, at)
        if not match:
            if src.norm.startswith("<]minimax[>[", at):
                return self._add(registry.M3.read(src, at), at)
            if src.norm.startswith("<<function>>", at):
                return self._add(registry.PYTHONIC.gorilla(src, at), at)
            return at + 1
        token = match.group(2)
        if match.group(1):
            return self._closing(at, token, match.end())
        low = token.lower()
        if low in REASON and self.fence is None and src.norm.startswith(">", match.end()):
            return self._open(at, match.end() + 1, f"</{token}>")
        if token[0] == "|":
            step = self._special(at, token, match.end())
            if step:
                return step
        if token in REASON_ENDS and self.region is not None:
            return self._shut(at, match.end() + src.norm.startswith(">", match.end()))
        if token in RESULTS:
            return self._result(at, token)
        handlers = _handlers(token)
        if handlers:
            end = self._try(handlers, at)
            if end > at + 1:
                return end
        if token in src.tools.tools or (src.text[at + 1 : match.end()] in src.tools.tools):
            return self._add(registry.CLINE.read(src, at), at)
        if token == "start_of_turn":
            return self._role(at) or at + 1
        if token == "arg_key":
            return self._add(registry.GLM.headless(src, at), at)
        return at + 1

    # ------------------------------------------------------------------ other openers

    def _square(self, at: int) -> int:
        src = self.src
        if src.norm.startswith("[[[[[[[[", at):
            return self._run(at)
        match = _SQUARE.match(src.norm, at)
        if match:
            word = match.group(2)
            if word == "THINK" and match.group(1):
                return self._shut(at, match.end())
            if word == "THINK":
                return self._open(at, match.end(), "[/THINK]") if self.fence is None else match.end()
            if word == "TOOL_CALLS" and not match.group(1):
                return self._add(registry.MISTRAL.read(src, at), at)
            if word == "TOOL_REQUEST":
                return self._add(registry.LMSTUDIO.read(src, at), at)
            if word == "TOOL_RESULTS" and not match.group(1):
                self._foreign()
                end = src.find("[/TOOL_RESULTS]", at)
                return end if end >= 0 else match.end()
            return match.end()
        if self.fence is not None:
            return at + 1
        if PY_LIST.match(src.text, at):
            return self._add(registry.PYTHONIC.read(src, at), at)
        back = src.text[max(0, at - 40) : at]
        if back.endswith("functools"):
            return self._add(registry.FUNCTOOLS.read(src, at - 9), at)
        if back.rstrip().endswith("-> tool/function_call"):
            begin = src.text.rfind("->", 0, at)
            return self._add(registry.HCX.read(src, begin), at)
        return self._bare(at)

    def _run(self, at: int) -> int:
        """A long run of one bracket: only the last ones can start anything."""
        match = _RUN.match(self.src.norm, at)
        return match.end() - 3 if match else at + 1

    def _bare(self, at: int) -> int:
        reading = registry.BARE.read(self.src, at)
        if reading is None or not reading.drafts:
            self.src.doubt(at)
        return self._add(reading, at)

    def _brace(self, at: int) -> int:
        if self.fence is not None:
            return at + 1
        src = self.src
        if src.norm.startswith("{{{{{{{{", at):
            return self._run(at)
        back = src.text[max(0, at - 140) : at]
        head = _GEMMA_HEAD.search(back) if "call:" in back else None
        if head:
            return self._headless_gemma(at - len(head.group(1)), at)
        if not OBJECT.match(src.text, at):
            if src.text.startswith('"{\\"', at - 1) and not src.text[: at - 1].strip():
                return self._add(registry.BARE.encoded(src, at - 1), at)
            if src.text.startswith("{}", at):
                return self._add(registry.BARE.empty(src, at), at)
            return at + 1
        if back.rstrip().endswith("-> tool/function_call"):
            return self._add(registry.HCX.read(src, src.text.rfind("->", 0, at)), at)
        return self._bare(at)

    def _headless_gemma(self, begin: int, at: int) -> int:
        """``call:W{…}`` whose own tokens were stripped."""
        window = self.src.text[at : at + 400]
        dialect = registry.FGEMMA if "<escape>" in window else registry.GEMMA4
        return self._add(dialect.read(self.src, begin), at)

    def _ticks(self, at: int) -> int:
        src = self.src
        if self.fence is not None:
            return at + 3
        line = src.text.rfind("\n", max(0, at - 200), at)
        lead = src.text[line + 1 : at] if line >= 0 or at < 200 else "x"
        fence = open_fence(src, at)
        if fence is None or (lead.strip(" \t>-*0123456789.)") and not fence.language):
            return self._inline(at)
        self.fences.append(fence)
        if fence.stop == fence.body and src.text[fence.end : fence.end + 1].isalnum():
            self.src.doubt(at)  # an outer block, should two closers come
        reading = registry.FENCED.body(src, fence)
        if reading is None:
            under = registry.FENCED.under_name(src, fence)
            if under is not None:
                self.fences.pop()
                return self._add(under, at)
        else:
            self._place(reading, fence)
            return reading.end
        find = src.norm.find
        if find("<", fence.body, fence.stop) < 0 and find("[TOOL_", fence.body, fence.stop) < 0:
            return fence.end  # nothing in it can start a call
        self.fence = fence
        return fence.body

    def _inline(self, at: int) -> int:
        """Ticks inside a line: a one-line block, or noise."""
        src = self.src
        reach = at + 4000
        end = src.text.find("```", at + 3, reach)
        if end < 0 or "\n" in src.text[at:end]:
            if end < 0 and src.size < reach and "\n" not in src.text[at:]:
                src.doubt(at)  # the closer may still come
            return at + 3
        begin = at + 3
        word = re.compile(r"[\w+#]*[ \t]*").match(src.text, begin)
        begin = word.end() if word else begin
        if src.text[begin : begin + 1] in ("{", "["):
            fence = Fence(at, begin, end, end + 3, "json")
            reading = registry.FENCED.body(src, fence)
            if reading is not None:
                self.fences.append(fence)
                self._place(reading, fence)
                return max(reading.end, end + 3)
        return end + 3

    def _action(self, at: int) -> int:
        src = self.src
        begin = at - 1
        while begin > 0 and src.text[begin - 1] in "*_#":
            begin -= 1
        line = src.text.rfind("\n", max(0, begin - 80), begin)
        if src.text[at - 1 : at] not in ("A", "a") or src.text[line + 1 : begin].strip(" \t>-"):
            return at + 1
        if self.fence is not None and self.fence.language not in ("", "text", "plaintext"):
            return at + 1
        end = self._add(registry.REACT.read(src, begin), at)
        if end > at + 1 and not self.apart:
            near = src.skip(end)
            if src.text.startswith(("Observation", "**Observation"), near):
                self._foreign()
        return end

    def _flower(self, at: int) -> int:
        return self._add(registry.QWEN_FN.read(self.src, at), at)

    def _recipient(self, at: int) -> int:
        return self._add(registry.HARMONY_BARE.read(self.src, at), at)

    def _call_line(self, at: int) -> int:
        """An offered name before a parenthesis: a call when it begins its line."""
        if self.fence is not None:
            return at + 1
        text = self.src.text
        line = text.rfind("\n", max(0, at - 120), at)
        lead = text[line + 1 : at] if line >= 0 or at < 120 else "x"
        if lead.endswith(("default_api.", "functions.")) or not lead.strip() or _LINE.match(lead):
            reading = registry.PYTHONIC.line(self.src, at)
            if reading and lead.endswith("default_api."):
                reading.dialect = registry.TOOL_CODE.name
            return self._add(reading, at)
        return at + 1
