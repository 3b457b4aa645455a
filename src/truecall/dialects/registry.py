"""Every dialect, and which of them an opener can start."""

from __future__ import annotations

from truecall.dialects import bare, elements, envelopes, gemma, glm, harmony, hermes, lines, named, tagged
from truecall.dialects.base import Dialect

HERMES, GLM, QWEN, ATTEMPT = hermes.Hermes(), glm.Glm(), tagged.Qwen3Coder(), hermes.Attempt()
BARE, FENCED, PYTHONIC, CLINE = bare.BareJson(), bare.FencedJson(), bare.Pythonic(), elements.Cline()
REACT, QWEN_FN, HARMONY, HARMONY_BARE = (
    lines.React(),
    lines.QwenFn(),
    harmony.Harmony(),
    harmony.HarmonyBare(),
)
FUNCTOOLS, HCX, GIGACHAT = envelopes.Functools(), envelopes.Hcx(), envelopes.GigaChat3()
MISTRAL, LMSTUDIO, M3 = named.Mistral(), envelopes.LmStudio(), elements.MiniMaxM3()
TOOL_CODE = envelopes.ToolCodeTag()
FUNCTIONARY = named.Functionary32()
_XML_AGENT = elements.LangChainXml()
_TOOL_CALLS = envelopes.ToolCalls()
DEEPSEEK, _KIMI, _STEP3 = named.DeepSeek(), named.Kimi(), tagged.Step3()
_SOLAR, _PLAMO, _GRANITE3 = named.Solar(), named.Plamo3(), envelopes.Granite3()
_DSML, _GCML, _K3 = tagged.Dsml(), tagged.GigaChat35(), elements.KimiK3()
_FUNCTION, _SEED, _MINIMAX, _ANTHROPIC = (
    tagged.Functionary31(), tagged.SeedOss(), tagged.MiniMax(), tagged.Anthropic(),
)  # fmt: skip
_DOTS, _MUSE, _CPM = tagged.Dots(), tagged.Muse(), tagged.MiniCpm5()
_PYTHON_TAG, _LFM2, _OLMO3 = bare.PythonTag(), envelopes.Lfm2(), envelopes.Olmo3()
GEMMA4, FGEMMA, _G20B = gemma.Gemma4(), gemma.FunctionGemma(), envelopes.Granite20b()
_K2H, _HY3 = glm.K2Horizon(), glm.HunyuanV3()

DIALECTS: tuple[Dialect, ...] = (
    HERMES, QWEN, GLM, BARE, bare.Llama3Json(), FENCED, PYTHONIC, MISTRAL, DEEPSEEK, _DSML, _KIMI, HARMONY,
    _FUNCTION, _PYTHON_TAG, REACT, envelopes.ToolsTag(), _GRANITE3, _G20B, _TOOL_CALLS, envelopes.MiniMaxM1(),
    envelopes.HunyuanA13b(), _MINIMAX, M3, _ANTHROPIC, _SEED, GEMMA4, FGEMMA, TOOL_CODE, _LFM2,
    _OLMO3, FUNCTOOLS, LMSTUDIO, HCX, CLINE, QWEN_FN, lines.CommandR(), envelopes.InternLm(), envelopes.Apertus(),
    _XML_AGENT, envelopes.CohereAction(), envelopes.Nemotron(), envelopes.LongCat(), GIGACHAT, _GCML, _PLAMO,
    named.Inkling(), _SOLAR, _STEP3, _CPM, _DOTS, _MUSE, _K3, _K2H, _HY3,
)  # fmt: skip
"""One instance of each, in the order of the documentation."""

_CALL_TAG: tuple[Dialect, ...] = (HERMES, QWEN, GLM, ATTEMPT)

TOKENS: dict[str, tuple[Dialect, ...]] = {
    "tool_call": _CALL_TAG,
    "tool": (_XML_AGENT, QWEN, hermes.Generic()),
    "tool_name": (_XML_AGENT,),
    "function_name": (_XML_AGENT,),
    "tools": (envelopes.ToolsTag(),),
    "function": (_FUNCTION,),
    "invoke": (_ANTHROPIC,),
    "function_calls": (_ANTHROPIC, _OLMO3),
    "antml:function_calls": (_ANTHROPIC,),
    "antml:invoke": (_ANTHROPIC,),
    "tool_calls": (_TOOL_CALLS,),
    "function_call": (_G20B, _ANTHROPIC),
    "functioncall": (_G20B,),
    "|function_call|": (GIGACHAT, _G20B),
    "|function|": (_G20B,),
    "|tool_call|": (_GRANITE3,),
    "TOOLCALL": (envelopes.Nemotron(),),
    "longcat_tool_call": (envelopes.LongCat(), GLM),
    "seed:tool_call": (_SEED,),
    "minimax:tool_call": (_MINIMAX,),
    "minimax:tool_calls": (_MINIMAX,),
    "dots_function_call": (_DOTS, envelopes.DotsJson()),
    "atem:function_calls": (_MUSE,),
    "atem:invoke": (_MUSE,),
    "steptml:invoke": (_STEP3,),
    "|tool_calls_begin|": (_STEP3, DEEPSEEK),
    "|tool_call_begin|": (_STEP3, DEEPSEEK, _KIMI),
    "|tool_calls_section_begin|": (_KIMI,),
    "|tool_call_section_begin|": (_KIMI,),
    "|tool_calls|": (_SOLAR, _GRANITE3),
    "|tool_call:begin|": (_SOLAR,),
    "|plamo:begin_tool_requests:plamo|": (_PLAMO,),
    "|plamo:begin_tool_request:plamo|": (_PLAMO,),
    "|content_invoke_tool_json|": (named.Inkling(),),
    "|action_start|": (envelopes.InternLm(),),
    "|tools_prefix|": (envelopes.Apertus(),),
    "|START_ACTION|": (envelopes.CohereAction(),),
    "|tool_call_start|": (_LFM2,),
    "|python_start|": (envelopes.Llama4Pythonic(),),
    "|python_tag|": (_PYTHON_TAG,),
    "tool_code": (TOOL_CODE,),
    "|tool_call": (GEMMA4,),
    "start_function_call": (FGEMMA,),
    "|open|": (_K3,),
    "ifm|tool_call": (_K2H, envelopes.K2Json()),
}
"""What stands between ``<`` and the end of a tag's name -> the dialects to try, in order."""

GENERIC: tuple[Dialect, ...] = (hermes.Generic(), QWEN)
"""For tags of unknown vendors whose name says "call"."""


def by_name() -> dict[str, Dialect]:
    """Dialects by name and alias; a name wins over an alias."""
    out: dict[str, Dialect] = {}
    for dialect in DIALECTS:
        out.setdefault(dialect.name, dialect)
    for dialect in DIALECTS:
        for alias in dialect.aliases:
            out.setdefault(alias, dialect)
    return out


def tagged_head(token: str) -> tuple[Dialect, ...]:
    """DSML-like tokens: bars around a word before the tag's own name."""
    if "DSML" in token:
        return (_DSML,)
    return (_GCML,) if "GCML" in token else ()
