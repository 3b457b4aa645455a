"""Which readings are the model's own act: the rules of docs/detector.md.

A reading in markers of its own is an act unless the text around it quotes, explains or imagines it. A reading
without markers has to show more: an offered name, a place of its own, no sign of illustration.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from truecall.dialects.bare import Fence
from truecall.dialects.base import Draft, Reading, Source
from truecall.dialects.cues import illustrates, strip_tags
from truecall.dialects.structure import Placed, Region, Structure

_NOISE = re.compile(
    r"(?:\s|<\|[^<>|]{1,48}\|>|</?s>|<eos>|<end_of_turn>|<start_of_turn>(?:model)?|<turn\|>|"
    r"</?(?:answer|response|output|final)>|<channel\|>|</?[\w:]{0,20}(?:tool_calls?|function_calls?|tools?)>|</?[\w|:]{0,24}\Z|\[e~\[|\[/?[A-Z_]{3,20}\]|assistant|final|```|`{1,2}\Z|>>>)*\Z"
)
_WORD = re.compile(r"\w")
_MID = re.compile(r"[ \t]*[.,;:)?!\]'\"”’`“»」]|[ \t]+(?:[a-z(]|\()")
_NOISE_STARTS = frozenset("<[`>af")
_CODE_BEFORE = re.compile(r"(?:[=(\[,?&|]|[\"'`“‘]|\breturn|\bprint)\s*$|\w\.$")
_TUPLE_BEFORE = re.compile(r"\((?:True|False)?, ?$|: ?\($")
_LIST_GOES_ON = re.compile(r"[ \t]*[.,;:)?!=({]")
_SOURCE_CODE = re.compile(r"(?m)^\s*(?:import|from|def|class|for|while|return|if|#include|Traceback)\b")
_PYTHON = frozenset(("pythonic", "gemma_tool_code"))
_QUOTE_PAIRS = {
    '"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "„": "“", "»": "«", "「": "」", "『": "』", "‹": "›",
}  # fmt: skip
_CODE_LANGUAGES = frozenset((
    "js", "javascript", "ts", "typescript", "bash", "sh", "shell", "console", "yaml", "yml", "c", "cpp", "c++",
    "java", "go", "rust", "ruby", "php", "sql", "diff", "css", "toml", "ini", "curl", "http", "jsx", "tsx", "kotlin",
    "swift", "csharp", "c#", "dockerfile", "makefile", "powershell", "markdown", "md", "jinja", "jinja2",
))  # fmt: skip
_BOOKISH = frozenset(("markdown", "md", "jinja", "jinja2"))  # blocks in which a call may be shown
_LONG_CODE = 20_000
_SPEAKER = re.compile(r"\W{0,3}(?:assistant|ai|model|bot|agent)\W{0,3}:", re.IGNORECASE)
_OTHER_SPEAKER = re.compile(r"^\W{0,3}(?:user|human|customer|question)\W{0,3}:", re.IGNORECASE | re.MULTILINE)
_LOGGED = re.compile(r"\W{0,3}(?:\d{4}-\d\d-\d\d|\w{0,30}(?:Error|Exception|ERROR|WARNING|INFO|DEBUG)\b)")
_CHOICE = re.compile(r"\s*\(?[A-Fa-f][).:]\s*$")
WINDOW = 320


def blank(text: str) -> bool:
    """Whether a text holds nothing but space and special tokens."""
    if not text or text.isspace():
        return True
    return len(text) < 2000 and text.lstrip()[0] in _NOISE_STARTS and _NOISE.match(text) is not None


def _quoted(lead: str, tail: str) -> bool:
    """Whether a call stands on a quoted line, in inline code or in quotation marks."""
    line = lead[lead.rfind("\n") + 1 :]
    if not line:
        return False
    head = line.lstrip()
    if head.startswith(">") and not head.startswith((">>>", ">]")):
        return True
    if line.count("`") % 2 == 1:
        return True
    if _SPEAKER.match(line) and _OTHER_SPEAKER.search(lead):  # a transcript of two
        return True
    return line[-1] in _QUOTE_PAIRS and tail[:1] == _QUOTE_PAIRS[line[-1]]


def explicit_act(src: Source, reading: Reading, lead: str, tail: str) -> bool:
    """Whether a reading in markers of its own is an act, by its names and the words before and after it."""
    drafts = reading.drafts
    if _mocks(drafts, src, alone=blank(lead) and blank(tail)):
        return False
    return act_by_words(lead, tail, closed=reading.closed, weak=all(d.weak for d in drafts))


def act_by_words(lead: str, tail: str, *, closed: bool = True, weak: bool = False) -> bool:
    """Whether the words before and after markers of a call leave it an act; ``weak``: it is call-shaped only."""
    if (not lead or blank(lead)) and (not tail or blank(tail)):
        return True
    line = lead[lead.rfind("\n") + 1 :]
    words = False
    if line:
        if _quoted(lead, tail):
            return False
        words = _WORD.search(strip_tags(line)) is not None
    if tail and closed and _MID.match(tail) and (words or weak):
        return False
    if words and weak:
        return not closed and not tail.strip() and not illustrates(lead, tail)
    return not illustrates(lead, tail)


def _string_of_all(lead: str, tail: str) -> bool:
    """Whether nothing but quotation marks stands around a payload."""
    if not lead or lead[-1] not in _QUOTE_PAIRS or tail[:1] != _QUOTE_PAIRS[lead[-1]]:
        return False
    return blank(lead[:-1]) and blank(tail[1:])


class Judge:
    """Decides over the readings of one sweep."""

    def __init__(self, src: Source, sweep: Structure) -> None:
        self.src = src
        self.sweep = sweep
        self.notes = sweep.notes
        self.size = src.size
        self.ends = sorted(r.end for r in sweep.regions if r.end >= 0)

    def calls(self) -> list[Placed]:
        """The readings that are calls, in order."""
        kept: list[Placed] = []
        placed = self.sweep.placed
        for index, item in enumerate(placed):
            before = placed[index - 1].reading.end if index else 0
            after = placed[index + 1].reading.start if index + 1 < len(placed) else self.size
            if item.apart:
                continue
            if self._is_act(item, before, max(after, item.reading.end)):
                kept.append(item)
        return self._reasoning(kept)

    # ------------------------------------------------------------------ one reading

    def _is_act(self, item: Placed, before: int, after: int) -> bool:
        reading, src = item.reading, self.src
        floor = before
        if item.region is not None and item.region.start >= floor:
            floor = item.region.start
        elif item.region is None and self.sweep.regions:
            index = bisect_right(self.ends, reading.start)
            floor = max(floor, self.ends[index - 1] if index else 0)
        lead = src.text[max(floor, reading.start - WINDOW) : reading.start]
        ceiling = after
        if item.region is not None and item.region.close >= 0:
            ceiling = min(after, max(item.region.close, reading.end))
        tail = src.text[reading.end : min(ceiling, reading.end + WINDOW)]
        if item.fence is not None and reading.start > item.fence.start:
            return self._in_fence(item, lead, tail)
        whole = blank(lead) and blank(tail)
        if reading.standing:
            return whole or not _quoted(lead, tail)
        if reading.explicit and item.fence is None:
            return explicit_act(src, reading, lead, tail)
        if item.fence is not None:
            return self._fenced(item, lead, tail, whole)
        return self._bare(item, lead, tail, whole)

    def _fenced(self, item: Placed, lead: str, tail: str, whole: bool) -> bool:
        fence, drafts = item.fence, item.reading.drafts
        assert fence is not None
        tools = self.src.tools
        if not whole and lead[lead.rfind("\n") + 1 :].lstrip().startswith(">"):
            return False
        if fence.language in _CODE_LANGUAGES:
            return False
        if tools.known and tools.names:
            if not all(tools.offered(d.name) for d in drafts):
                return False
        elif not whole and any(d.weak or d.repairs for d in drafts):
            return False
        if whole:
            return True
        return not _quoted(lead, tail) and not illustrates(lead, tail, firm=False)

    def _in_fence(self, item: Placed, lead: str, tail: str) -> bool:
        """Markers inside a code block: the block must be the act itself."""
        fence, reading = item.fence, item.reading
        assert fence is not None
        if fence.language in _CODE_LANGUAGES or fence.language in ("python", "py"):
            return self._behind_code(fence, reading, tail)
        tools = self.src.tools
        if tools.names and not all(tools.offered(d.name) for d in reading.drafts):
            return False
        if any(_mock(d, self.src) or d.weak for d in reading.drafts):
            return False
        inside = self.src.text[fence.body : reading.start] if reading.start - fence.body < WINDOW else "x"
        rest = self.src.text[reading.end : min(fence.stop, reading.end + WINDOW)]
        if not blank(strip_tags(inside)) or not blank(strip_tags(rest)):
            return False
        before = self.src.text[max(0, fence.start - WINDOW) : fence.start]
        after = self.src.text[fence.end : fence.end + WINDOW]
        return not illustrates(before, after, firm=False)

    def _behind_code(self, fence: Fence, reading: Reading, tail: str) -> bool:
        """Markers at the end of a text whose code block was never closed: the call follows the code."""
        size = reading.start - fence.body
        if fence.end < self.size or not reading.closed or size > _LONG_CODE or fence.language in _BOOKISH:
            return False
        code = self.src.text[fence.body : reading.start]
        if code[-1:] != "\n" or not blank(tail) or any(code.count(q) % 2 for q in ('"""', "'''", "`")):
            return False
        return all(d.formed and self.src.tools.offered(d.name) for d in reading.drafts)

    def _bare(self, item: Placed, lead: str, tail: str, whole: bool) -> bool:
        """A reading without markers: JSON, or Python calls."""
        reading, tools, drafts = item.reading, self.src.tools, item.reading.drafts
        offered = all(tools.offered(d.name) for d in drafts)
        if any("unquoted_value" in d.repairs for d in drafts):
            return False
        if reading.dialect in _PYTHON:
            return self._python(item, lead, tail, whole, offered)
        if whole:
            return not _mocks(drafts, self.src, alone=True)
        if _string_of_all(lead, tail):
            if lead[-1] != "`":
                for draft in drafts:
                    draft.repairs += ("quoted",)
            return True
        line = lead[lead.rfind("\n") + 1 :]
        if _quoted(lead, tail) or (_CODE_BEFORE.search(line) and not _TUPLE_BEFORE.search(line)):
            return False
        if _LOGGED.match(line) or _CHOICE.match(line):
            return False
        if not offered and not self._speaks_for_itself(drafts, lead, tail, line):
            return False
        if line.strip() and _MID.match(tail) and not _TUPLE_BEFORE.search(line):
            return False
        return not illustrates(lead, tail, firm=False)

    def _speaks_for_itself(self, drafts: list[Draft], lead: str, tail: str, line: str) -> bool:
        """Whether a call of an unknown name is clear: whole, on its own line, first or last in the text."""
        if any(d.weak or d.repairs for d in drafts):
            return False
        own = not line.strip() or line.rstrip().endswith((":", ">", "]", ".", "!"))
        return own and (blank(lead) or blank(tail))

    def _python(self, item: Placed, lead: str, tail: str, whole: bool, offered: bool) -> bool:
        """Python calls: alone, as a list in brackets, or on lines of their own."""
        drafts, start = item.reading.drafts, item.reading.start
        if not offered:
            named = all(d.formed and "positional_arguments" not in d.defects for d in drafts)
            return whole and named
        if whole:
            return True
        line = lead[lead.rfind("\n") + 1 :]
        before = line.rstrip()
        if _quoted(lead, tail) or before.endswith(">>>"):
            return False
        if before.endswith("default_api.") or before == "functions.":
            return True
        if self.src.text[start] == "[":
            around = _CODE_BEFORE.search(line) or _LIST_GOES_ON.match(tail)
            return all(d.formed for d in drafts) and not around and not illustrates(lead, tail, firm=False)
        if before and not before.endswith((":", ".", "print(", ">", "*", "-")):
            return False
        if re.search(r"[\w=+]", tail.split("\n", 1)[0]) or _SOURCE_CODE.search(lead + tail):
            return False
        if before and _CODE_BEFORE.search(line) and not before.endswith("print("):
            return False
        return not illustrates(lead, tail, firm=False)

    # ------------------------------------------------------------------ reasoning

    def _reasoning(self, kept: list[Placed]) -> list[Placed]:
        """Calls in reasoning count only where nothing replaced them."""
        inside = [p for p in kept if p.region is not None and not p.reading.standing]
        if not inside:
            return kept
        outside = [p for p in kept if p.region is None or p.reading.standing]
        regions = {id(p.region): p.region for p in inside}
        last: Region | None = max(regions.values(), key=lambda r: r.start if r else -1)
        assert last is not None
        keep: list[Placed] = []
        if not any(p.reading.start > last.start for p in outside) and self._last_word(last, inside):
            group = [p for p in inside if p.region is last]
            keep = self._cluster(group)
        return sorted(outside + keep, key=lambda p: p.reading.start)

    def _last_word(self, region: Region, inside: list[Placed]) -> bool:
        """Whether no answer follows the region, or an open region ends in its call."""
        text = self.src.text
        if region.end >= 0:
            end = region.end
            for other in self.sweep.regions:
                if other.start >= end and other.end >= 0 and blank(text[end : other.start]):
                    end = other.end
            rest = text[end : end + 2001]
            return self.size - end <= 2000 and blank(rest)
        final = max(p.reading.end for p in inside if p.region is region)
        if self.size - final <= 2000 and blank(text[final:]):
            self.notes.append("unclosed_reasoning")
            return True
        return False

    def _cluster(self, group: list[Placed]) -> list[Placed]:
        """The last calls with nothing between them: parallel ones; earlier ones were drafts."""
        out = [group[-1]]
        for item in reversed(group[:-1]):
            if not blank(self.src.text[item.reading.end : out[0].reading.start]):
                break
            out.insert(0, item)
        return out


_MOCK_NAMES = re.compile(
    r"(?:name|tool_name|function_name|func_name|function-name|tool-name|NAME|TOOL_NAME|FUNCTION_NAME|FUNCTION|TOOL|"
    r"<[^<>]*>|\{{1,2}[^{}]*\}{1,2}|\.\.\.|…|your_\w+|some_(?:tool|function)\w*|my_tool|example_(?:tool|function)\w*)$"
)
_EXAMPLE_NAMES = re.compile(r"(?:x|y|f|w|foo|bar|baz|func|fn|abc|xyz)$")


def _mock(draft: Draft, src: Source, *, alone: bool = False) -> bool:
    """A name that stands for any name: the text shows a form, not a call.

    ``alone``: nothing stands around the call, and only a plain blank tells.
    """
    if draft.name is None or draft.name in src.tools.tools:
        return False
    if _MOCK_NAMES.match(draft.name):
        return True
    return not alone and _EXAMPLE_NAMES.match(draft.name) is not None


def _mocks(drafts: list[Draft], src: Source, *, alone: bool = False) -> bool:
    """Whether every name is one that `_mock` knows."""
    if len(drafts) == 1:
        return _mock(drafts[0], src, alone=alone)
    return all(_mock(draft, src, alone=alone) for draft in drafts)
