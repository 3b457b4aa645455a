"""Words that tell an act from an illustration: "I'll check" against "for example".

One aho-corasick pass finds the stems in a short stretch of text; a small pattern at each hit decides. The rules
that use them stand in docs/detector.md.
"""

from __future__ import annotations

import re

import ahocorasick_rs

SHOWN = 1  # the words present a call, tell of it or imagine it
FIRM = 2  # plainly so, even where markers speak for a call
ACT = 4  # the model announces that it acts
STRONG = 8  # so plainly that even a finished sentence says it of what follows
_BOTH = SHOWN | FIRM
_ALL = SHOWN | FIRM | STRONG
_SAYS = (
    r"(?:also |then |now |usually |just )?(?:call|use|write|send|invoke|run|make|emit|respond|reply|return|output|"
    r"produce|generate|issue|be|look|say|answer|put|try|post|type|copy|adapt)\b"
)
_IMPERATIVE = r"(?:^|[.,:;!?]\s*|\b(?:and|then|please|to|just) )$"
_THING = r"(?:call|json|output|form|format|way|version|request|reply|response)"
_FORM = r"(?:json|output|form|format|way|version|response)"
_MODAL = r"(?:can|could|would|should|might|may|must)\b"
_PAST = (
    r"(?:i|we|it|she|he|they|model|assistant|agent|log|transcript|request|user|you|bot)"
    r"(?:'d| had| have| just| then)? $"
)
_RECORD = (
    r"(?:log|transcript|request|record|trace|history|dataset|file|model|assistant|agent)s?(?: had| have)? $"
)
_TOLD = (
    "ran", "called", "sent", "emitted", "wrote", "used", "made", "issued", "produced", "returned", "shows",
    "contains", "contain", "contained", "show", "has", "lists", "invoked", "recorded", "posted",
    "pasted", "showed", "looked", "typed", "entered",
)  # fmt: skip

_CALL = r"(?:call|calling|invocation|usage|output|request|response|reply|message|turn|format|json|tools?|how|what)"
_SOUGHT = r"(?:requir|request|specif|expect|desir|giv|provid|correct|right|proper|ask)\w*"
_NOT_ASKED_FOR = rf"^(?!.*\b(?:in|using|with|to|following|per) (?:the|your) {_SOUGHT} (?:\w+ )?$)"
_OPENS = r"(?:(?:^|[.:;!?]\s*)(?:the |an? |one )?|(?:,\s*|\bthis is |\bhere(?:'s| is) )(?:the |an? |one ))$"
_STARTS = r"(?:^|[.,:;!?(]\s*)$"
_OTHERS = "user|developer|people|client|programmer|agent|model|assistant|team|framework|engine"
_SOURCES = (
    "tutorial", "readme", "docs", "documentation", "manual", "guide", "spec", "specification", "article", "blog post",
    "textbook", "handbook", "wiki", "cookbook", "reference", "snippet", "excerpt", "fixture", "listing",
    "paper", "faq", "ticket", "issue", "bug report",
)  # fmt: skip
_THIS = r"(?:this|that|so|these|the following|the one below|as follows)"

# stem (lower case, at the start of a word) -> (meaning, pattern that must match there or None, pattern that
# must match what stands before or None)
_Rule = tuple[str, int, str | None, str | None]
_RULES: list[_Rule] = [
    *((stem, _ALL, None, None) for stem in (
        "e.g.", "hypothetical", "例如", "比如", "示例", "假设", "例えば", "예를 들어", "예시", "zum beispiel",
        "beispielsweise", "par exemple", "por ejemplo", "per esempio", "ad esempio", "por exemplo",
        "bijvoorbeeld", "till exempel", "for eksempel", "например",
    )),
    *((stem, _ALL, rf"{stem}(?:\s*[,:;.(–—-]|\s*$| (?:to|if|when|an?|the|you|one|this|consider)\b)", None)
      for stem in ("for example", "for instance")),
    *((stem, _ALL, rf"{stem}(?: {_THIS}\b.*| an? (?:\w+ )*{_CALL}s?)?\W*$", None) for stem in (
        "looks like", "look like", "looked like",
    )),
    *((stem, _ALL, None, r"\b(?:what|how) .*$") for stem in ("looks like", "look like", "looked like")),
    *((stem, _ALL, rf"{stem}\b(?![-!])", None) for stem in ("suppose", "imagine")),
    ("illustration", _ALL, rf"illustration(?:(?: purposes?)?(?: only)?\W*$|\s*[,:]| of (?:\w+ ){{0,3}}{_CALL})", None),
    *((stem, _BOTH, rf"{stem}\w*(?: d(?:e |\W)\S+)?\W*$", None) for stem in (
        "exemple", "ejemplo", "beispiel", "esempio", "пример",
    )),
    ("aussieht", _BOTH, r"aussieht\W*$", None),
    ("so sieht", _BOTH, r"so sieht\b.*\baus\W*$", None),
    *((stem, _BOTH, None, None) for stem in (
        "een voorbeeld", "ett exempel", "et eksempel", "um exemplo", "un esempio", "så här skulle",
        "ressemble", "donnerait", "se vería",
        "is written", "is formatted", "are written", "are formatted", "docs say", "docs show", "would have",
        "instead of", "rather than", "i could have", "i could also", "格式如下", "格式为", "格式是",
    )),
    ("documentation", _BOTH, r"documentation (?:says|shows|of|for|gives|has|reads|describes|lists)", None),
    ("documentation", _BOTH, r"documentation\s*:", None),
    *((stem, SHOWN, None, None) for stem in (
        "such as", "is expressed", "is encoded", "is spelled", "written as", "written like", "formatted as",
        "formatted like", "of the form", "in the form", "according to the docs", "according to the manual",
        "according to the readme", "previously", "earlier", "last time", "had been", "placeholder", "pretend",
        "in theory", "illustrate", "illustrative", "quote", "as follows", "like this", "like so",
        "you'd", "z. b.", "z.b.", "你可以", "您可以", "可以这样", "如果你", "文档",
        "sieht so aus", "so aussehen", "kannst du", "können sie", "vous pouvez", "puedes", "podrías",
        "el formato", "le format", "можете", "выглядит", "できます", "のように",
    )),
    *((stem, _BOTH, rf"{stem}(?:write|emit|call|use|send|run|output)\b", None) for stem in (
        "don't ", "do not ", "does not ", "never ",
    )),
    ("example", SHOWN, r"examples?\s*+(?:\d\s*+)?(?:of|:|\(|is|would|call|usage|output|request|response)", None),
    ("example", _ALL, rf"example(?:\W*$| (?:\w+ ){{0,4}}{_CALL}s?\b)", r"\b(?:an?(?:other)?|one) (?:\w+ ){0,3}$"),
    ("example", _BOTH, rf"example (?:\w+ )?{_CALL}s?\W*$", _OPENS),
    *((stem, _BOTH, rf"{stem} (?:\w+ )?(?:{_CALL}s?|payload|body|form|one)(?: (?:of|from) .*)?"
       r"(?: (?:is|was|could be|would be|might be))?\W*$", _OPENS) for stem in (
        "typical", "possible", "sample", "mock", "dummy", "fake", "demo", "exemplary", "hypothetical", "wrong",
        "incorrect", "invalid", "malformed", "bad", "schematic", "usual", "expected",
    )),
    *((stem, _BOTH, rf"{stem} way(?: (?:is|was|would be))?\W*$", _OPENS) for stem in (
        "wrong", "incorrect", "bad", "usual",
    )),
    *((stem, _BOTH, rf"{stem}(?: (?:of|for) .*)?(?: (?:is|would be))?\W*$", _OPENS) for stem in (
        "sample", "demo", "sketch", "mock-up", "mockup", "skeleton", "prototype", "general form", "general pattern",
        "pattern", "dummy", "mock",
    )),
    ("sketch", _BOTH, r"sketch\W*$", r"\b(?:an?|only|just) (?:\w+ )?$"),
    ("pseudocode", _BOTH, r"pseudocode\W*$", None),
    *((stem, _ALL, rf"{stem}(?: {_THIS})?\W*$", None) for stem in (
        "something like", "something along these lines", "something along the lines of", "along these lines",
        "give you an idea", "give an idea", "illustrate", "as a demonstration", "for demonstration", "for reference",
        "show what i mean", "show you what i mean", "written out", "written out in full", "spelled out", "as an idea",
    )),
    ("example", _BOTH, r"example (?:\d+|one|two|three)\W*$", None),
    *((stem, _BOTH, rf"{stem} (?:this|that|it|these|the (?:following|blanks?))\b.*$", _STARTS) for stem in (
        "copy", "adapt", "adjust", "modify", "edit", "fill in", "compare", "picture", "avoid", "do not do", "don't do",
    )),
    ("never do", _BOTH, r"never do\b.*$", None),
    ("use this as", _BOTH, r"use this as (?:an?|the|your) (?:\w+ )?(?:point|template|example|basis|guide)", None),
    ("expected to", _BOTH, rf"expected to {_SAYS}", None),
    ("correct", _BOTH, r"correct (?:answer|output|response|solution)(?: (?:of|from) .*)?\W*$", _OPENS),
    *((stem, _BOTH, rf"{stem}\W*$", _STARTS) for stem in ("versus", "as opposed to", "compared to", "unlike this")),
    *((stem, _BOTH, rf"{stem}s? (?:reported|posted|pasted|shared|quoted|filed)\b", None)
      for stem in _OTHERS.split("|")),
    ("to make", _ALL, r"to make (?:this|that|it) (?:more |quite )?(?:concrete|clear|clearer|plain)\b", _STARTS),
    ("assume", _ALL, r"assume\b", _STARTS),
    *((stem, _ALL, rf"{stem}(?: speaking)?(?: {_THIS}| like {_THIS})?\W*$", _STARTS) for stem in (
        "roughly", "more or less", "approximately", "schematically", "in essence",
    )),
    ("one way", _BOTH, r"one way (?:to|of|is)\b", _STARTS),
    ("such a", _BOTH, rf"such an? (?:\w+ )?{_CALL}\b", None),
    ("for reference", _ALL, r"for reference,(?! (?:i|let)\b)", _STARTS),
    ("consider", _ALL, r"consider(?:\W*$| (?:the following|this|an?|these) )", _STARTS),
    *((stem, _ALL, rf"{stem}(?: that)? (?:you|we|they|someone|somebody|(?:a|the) (?:user|client|customer|caller))\b",
       _STARTS) for stem in ("say", "let's say")),
    ("say", _ALL, r"say\s*[:,]\s*$", _STARTS),
    *((stem, _ALL, rf"{stem}[.:,]*\s*$", _STARTS) for stem in ("eg", "ex", "i.e.")),
    *((stem, _BOTH, rf"{stem} (?:be|read|look)(?: (?:written|expressed|phrased|formatted|encoded|spelled)"
       r"(?: (?:as|like|so|thus))?)?\W*$", None) for stem in ("might", "could")),
    *((stem, _BOTH, rf"{stem}s?\W*$", r"\bhow\b.*$") for stem in ("look",)),
    *((stem, _BOTH, rf"{stem}s?(?: {_THIS})?\W*$", None) for stem in ("resemble", "be similar to", "think of it as")),
    *((stem, _BOTH, rf"{stem}s? (?:often |usually |typically |normally |sometimes |generally ){_SAYS}", _STARTS)
      for stem in (*_OTHERS.split("|"), "one")),
    *((stem, _BOTH, rf"{stem}s? (?:shows?|has|have|gives?|says?|lists?|reads?|suggests?|recommends?|describes?|puts?|"
       r"contains?|illustrates?|comes? from|is from)\b(?: \w+){0,3}\W*$", None) for stem in _SOURCES),
    *((stem, _BOTH, rf"{stem}s?,? (?:(?:you|they|we)(?: can| will|'ll)? (?:find|see|give|show)|there is)\b", None)
      for stem in _SOURCES),
    *((stem, _BOTH, rf"{stem}s?\W*$", r"\b(?:from|quot\w+|in|see|per) (?:the|our|its|an?) (?:\w+ )?$")
      for stem in _SOURCES),
    *((stem, _BOTH, rf"{stem} (?:\w+ ){{0,2}}?(?:{_OTHERS})s? (?:\w+ )?{_SAYS}", None) for stem in (
        "some", "many", "most", "other", "several",
    )),
    *((stem, _BOTH, rf"{stem}(?: \w+)? (?:contain|hold|send|write|emit|produce|put|post|issue)\b",
       r"^(?!.*\b(?:i|we)(?:'d)? $).*$") for stem in ("might", "may", "would", "could")),
    ("in a real", _BOTH, r"in a real (?:system|setup|session|application|app|project|agent|run|conversation)\b", None),
    *((stem, _BOTH, rf"{stem}\W*$", r"(?:^|[.;!?]\s*)$") for stem in ("wrong", "incorrect", "bad", "invalid")),
    ("not like this", _BOTH, None, None),
    ("in this example", _BOTH, None, None),
    ("example", _BOTH, r"example (?:below|above)\b", None),
    *((stem, _BOTH, rf"{stem} (?:then |now )?(?:writes|answers|responds|replies|emits|outputs|calls|sends|says)\b",
       None) for stem in ("model", "assistant", "agent")),
    *((stem, _BOTH, rf"{stem} (?:\w+ )?{_THIS} (?:\w+ )?(?:line|entry|record|snippet|text|block|{_CALL})s?"
       r"(?: in\b[^,;]*)?\W*$", None) for stem in ("found", "saw", "see", "noticed", "spotted")),
    *((stem, _BOTH, rf"{stem} (?:\w+ ){{0,2}}(?:message|turn|reply|response|answer|call|output) "
       r"(?:was|said|contained|read|had)\W*$", None) for stem in ("previous", "last", "earlier", "prior", "original")),
    *((stem, _BOTH, rf"{stem} (?:this|it|the following) .*\b(?:yourself|your)\b", _IMPERATIVE) for stem in (
        "execute", "run", "make", "use", "send", "call", "issue", "paste", "copy and paste", "enter", "type",
    )),
    *((stem, _BOTH, rf"{stem} (?:this|the following) (?:\w+ )?(?:call|command|request)\b", r"\bplease $") for stem in (
        "execute", "run", "make", "send", "issue",
    )),
    *((stem, SHOWN, rf"{stem} (?:it|them|this|that)\b", _IMPERATIVE) for stem in (
        "use", "call", "invoke", "run", "write", "send",
    )),
    *((stem, _BOTH, rf"{stem} (?:this|the following)\b", _IMPERATIVE) for stem in ("paste", "copy and paste")),
    *((stem, _ALL, rf"{stem} (?:this|that|it|such|the (?:following|above))\b.*\b(?:would|could|might)\b", _STARTS)
      for stem in ("running", "calling", "executing", "sending", "making")),
    ("in your", SHOWN, r"in your (?:\w+ )?(?:report|ticket|issue|log|example|post)s?\b", None),
    ("if ", _ALL, r"if (?:the|an?|this|that|such an?) (?:\w+ ){1,3}(?:were|had)\b", None),
    *((stem, _BOTH, rf"{stem} {_SAYS}", None) for stem in ("what i'd", "what i would")),
    *((stem, _BOTH, rf"{stem}[*_]*\s*:\W*$", _STARTS) for stem in (
        "right", "correct", "valid", "good", "before", "after",
    )),
    ("usage", _BOTH, r"usage\s*+:", None),
    ("example", _BOTH, r"example\s*+:", None),
    *((stem, _BOTH, rf"{stem}s?(?:\s*+:| (?:is|was|looks|used|(?:would|should) be)(?: {_THIS})?\W*$|"
       rf" (?:of|for) (?:\w+ ){{0,3}}{_CALL}s?\b)", _NOT_ASKED_FOR) for stem in (
        "format", "syntax", "shape", "template", "schema", "structure", "layout",
    )),
    ("sample", SHOWN, r"sample (?:call|output|request|payload)", None),
    ("you ", SHOWN, rf"you (?:{_MODAL} {_SAYS}|need to {_SAYS}|asked (?:what|which|how|why|when|about|me (?:what|how))|"
     r"ran|sent|pasted|wrote|posted|called|provided|showed)", None),
    ("your ", SHOWN, r"your (?:client|parser|code|regex|server|agent|harness|logs?|prompt|script|app)", None),
    *((stem, SHOWN, rf"{stem}\w* {_MODAL} {_SAYS}", None) for stem in (
        "one", "they", "developer", "client", "model", "assistant", "agent", "user", "server", "parser",
    )),
    *((stem, _BOTH, rf"{stem}s? (?:would|should|could|must|might) {_SAYS}", None) for stem in (
        "model", "assistant", "agent", "user", "client", "server", "parser",
    )),
    ("we ", SHOWN, rf"we {_MODAL} {_SAYS}", None),
    ("if ", _ALL, r"if (?:i|we) (?:had|were)\b", None),
    ("if ", SHOWN, r"if (?:you|i|we|the user|they|it) (?:want|were|had|could|confirm|agree|like|prefer|need|wish|"
     r"decide|allow|say|approve|give|chang|ask)", None),
    ("if ", _BOTH, r"if (?:you|the user|they|i had|i were|we had)\b", None),
    ("would", SHOWN, r"would (?:be|emit|return|produce|write|send|look|call|use|run|issue|invoke|make|need)", None),
    ("in the ", SHOWN, r"in the (?:previous|last|first|format|earlier) ?(?:turn|message|step|call|request)?", None),
    *((stem, SHOWN, rf"{stem}\b", _PAST) for stem in _TOLD),
    *((stem, _BOTH, rf"{stem}\b", _RECORD) for stem in _TOLD),
    ("already", SHOWN, None, r"\b(?:i|we|you)(?:'ve| have| had)? $"),
    ("was ", SHOWN, r"was (?:called|sent|emitted|written|run|invoked|issued)", None),
    ("was", SHOWN, r"was\s*+:", None),
    *((stem, SHOWN, rf"{stem}\s(?:\w+ )?{_THING}", None) for stem in (
        "invalid", "wrong", "incorrect", "broken", "malformed", "bad", "valid",
    )),
    *((stem, SHOWN, rf"{stem}\s(?:\w+ )?{_FORM}", None) for stem in ("correct", "right", "proper")),
    ("here", SHOWN, r"here(?:'s| is) (?:roughly |about |just )?(?:how|what)\b", None),
    ("this is", _BOTH, rf"this is (?:how|what) (?!i\b|we\b)(?:\w+ ){{0,5}}(?:{_CALL}s?|looks?)\b", None),
    ("this is", SHOWN, r"this is (?:how|what)\b(?! (?:i|we)\b)", None),
    ("the ", SHOWN, r"the (?:response|log|request|output|transcript|message|trace|history|record|body|payload)s? "
     r"(?:you|above|below|was|is|shows|contains|reads)", None),
    *((stem, ACT, None, None) for stem in (
        "i'll", "i’ll", "i will", "i am going to", "i'm going to", "i need to", "i shall", "i should", "i must",
        "i have to", "let me", "let us", "calling", "invoking", "executing", "going to", "next, i", "now i",
        "proceed", "one moment", "sure", "first", "我来", "让我", "我将", "我会", "ich werde", "ich rufe", "je vais",
        "voy a", "сейчас", "します", "我先", "我现在", "déjame", "permíteme", "lass mich", "lassen sie mich",
        "laissez-moi", "laisse-moi", "here goes", "as requested", "as you requested", "as you asked",
    )),
    ("let's", ACT, r"let's (?!imagine|suppose|say\b|assume|pretend)", None),
    ("so", ACT, r"so\s*:?\s*$", r"[,;]\s*$"),
    ("so", ACT, r"so,? i (?:now |first |then )?(?!would|could|might|had|was|can)\w+", r"[,;]\s*$"),
    ("based on", ACT, r"based on (?:the|your|this|these) (?:\w+ ){0,2}(?:functions?|tools?|request|question|query|"
     r"information|instructions?|context)\b", None),
    *((stem, ACT, rf"{stem} your (?:\w+ )?(?:instructions?|request|question|query)\b", None) for stem in (
        "per", "according to", "following",
    )),
    *((stem, ACT, rf"{stem}(?:can|could|should|would) "
      r"(?:use|call|invoke|make|do|look|check|get|find|search|try|run)\b", None) for stem in ("we ", "i ")),
    ("here", ACT, r"here(?:'s| is) the (?:function|tool|json|call|appropriate|required)", None),
    ("the ", ACT, r"the (?:appropriate|required|necessary|corresponding|correct|right|resulting|following) "
     r"(?:function|tool|json)\b(?!.*\byourself\b)", r"^(?!.*\bplease \w+ $)"),
    ("function call would be", ACT, None, None),
    ("to ", ACT, r"to (?:answer|find|get|do|solve|check|retrieve|look|fetch|help)\b", None),
]  # fmt: skip

_SURROGATES = re.compile("[\ud800-\udfff]")
_stems = list(dict.fromkeys(stem for stem, *_ in _RULES))
_finder = ahocorasick_rs.AhoCorasick(_stems)
_Check = tuple[int, re.Pattern[str] | None, re.Pattern[str] | None]


def _table() -> list[list[_Check]]:
    out: list[list[_Check]] = [[] for _ in _stems]
    for stem, meaning, here, before in _RULES:
        check = (meaning, re.compile(here) if here else None, re.compile(before) if before else None)
        out[_stems.index(stem)].append(check)
    return out


_checks = _table()


def cues(text: str) -> int:
    """What the words of a short text say: a sum of SHOWN, FIRM and ACT."""
    low = text.lower()
    if not low.isascii():
        low = _SURROGATES.sub("\ufffd", low)  # the finder takes only what encodes to UTF-8
    found = 0
    for index, start, _ in _finder.find_matches_as_indexes(low, overlapping=True):
        if start and low[start - 1].isalnum() and low[start].isascii():
            continue
        for meaning, here, before in _checks[index]:
            if found & meaning == meaning:
                continue
            if here is not None and not here.match(low, start):
                continue
            if before is not None and not before.search(low[max(0, start - 40) : start]):
                continue
            found |= meaning
    return found


_AFTER = re.compile(
    r"[\s.,;:)*_\"'`]*(?:(?:so|and|then|but) (?:your|the|that|you|wait)|where\b|replace\b|in this example|"
    r"the (?:example|above)\b|in the \w+ above\b|(?:please )?confirm\b|"
    r"this (?:is|was) (?:only |just |merely )?(?:an? )?(?:example|illustration|how|what)|"
    r"(?:it|that|this|which) (?:returned|came back|failed|was|had|did not)|but (?:i|you|we|that|since|it)|however\b|"
    r"shall i|should i\b|do you want|would you like|just (?:say|let me)|note that this is|"
    r"you (?:can|could|should|would|need|must|may)|your (?:client|parser|code|server)|as you can see|"
    r"as (?:shown|described))",
    re.IGNORECASE,
)
_AFTER_PLAIN = re.compile(
    r"[\s.,:;)*_(]*(?:(?:however|but|please|note|remember)\b[\s,:]*){0,3}(?:that )?"
    r"(?:(?:please )?replace\s[^\n]{1,60}\s(?:with|by)\b|"
    r"(?:this|that|the|it)(?: \w+){0,3}(?: (?:is|was)|['’]s) (?:only |just |merely |simply )?"
    r"(?:an?|for) (?:\w+ )?(?:example|illustration|sample|placeholder|demonstration)\b(?! (?:file|data|city)))",
    re.IGNORECASE,
)
_AFTER_FIRM = re.compile(
    r"[\s.,]*(?:so\b|and wait|where\b|replace\b|in this example|in the \w+ above\b|just\b|shall\b|"
    r"should\b|do you|would you)",
    re.IGNORECASE,
)
_DOING = re.compile(
    r"(?:re)?(?:search|check|look|fetch|run|try|read|call|query|load)\w{0,3}ing\b[^.!?]*[.:!…]*\s*+$",
    re.IGNORECASE,
)
_PROSE = re.compile(r"\s*+[\w(\"'“]")
_TAGS = re.compile(r"</?[^<>\n]{1,60}>|\[/?[A-Z_]+\]")
_SENTENCE_ENDS = re.compile(r".*(?:[.!?;。！？；]\s+|\n)", re.DOTALL)
_REACH = 240


def strip_tags(text: str) -> str:
    """A text without tags and bracketed markers."""
    return _TAGS.sub("", text) if "<" in text or "[" in text else text


_FINISHED = frozenset(".!?。！？")
_HEADING = re.compile(
    r"#{1,6}\s.*\b(?:usage|examples?|format|syntax|reference|docs?|documentation|request|sample|schema|template)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"\s*[a-z]")


def introduction(lead: str) -> tuple[str, bool]:
    """The last clause before a call, and whether it is finished: then it introduces nothing."""
    text = lead.rstrip()[-_REACH:]
    ends = _SENTENCE_ENDS.match(text)
    last = text[ends.end() :].lstrip() if ends else text
    return strip_tags(last), last[-1:] in _FINISHED


def illustrates(lead: str, tail: str, firm: bool = True) -> bool:
    """Whether the words before (or right after) present a call instead of making it.

    ``firm``: markers speak for an act, so the words have to be plain, or prose has to follow. A finished sentence
    tells of something else, unless it says that an example comes.
    """
    intro, finished = introduction(lead) if lead else ("", True)
    said = cues(intro) if intro else 0
    if said and not said & ACT and _DOING.match(intro):
        said |= ACT
    if tail and _AFTER_PLAIN.match(tail):
        return True
    follows = bool(tail) and _AFTER.match(tail) is not None
    if intro[:1] == "#" and (_HEADING.match(intro) or tail.lstrip().startswith("#")):
        return True
    act, shown = bool(said & ACT), bool(said & SHOWN)
    if follows and shown and not act:
        return True
    if finished and not said & STRONG:
        return follows and not firm and not act and _AFTER_FIRM.match(tail) is not None
    if act and not said & STRONG:
        return follows and _AFTER_FIRM.match(tail) is not None
    prose = bool(tail) and _PROSE.match(strip_tags(tail)) is not None
    if said & FIRM and not (act and not prose):
        return True
    if shown and not act:
        return prose or not firm
    words = intro.count(" ") + (intro[-1:] != ":")
    if not act and not finished and words > 1 and _GOES_ON.match(tail):
        return True
    return follows and not act and (not firm or _AFTER_FIRM.match(tail) is not None)
