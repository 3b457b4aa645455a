"""Which parser reads which dialect, per engine, and the reverse.

Names as registered in vLLM 0.32.0, SGLang 0.5.23 and verl 0.9.1. The first name is the one to use; the others
are aliases, or parsers that read the dialect too. llama.cpp has no parser to choose: it derives one from the
chat template, so its entries name the family of template that makes it expect the dialect. Ollama's entries
are ``PARSER`` lines of a Modelfile. A dialect without an entry is read by no parser of that engine.
"""

from __future__ import annotations

from collections.abc import Mapping

_VLLM: dict[str, tuple[str, ...]] = {
    "hermes": ("hermes", "qwen3_json", "granite4", "ernie45"),
    "llama3_json": ("llama3_json", "llama4_json"),
    "pythonic": ("pythonic", "llama4_pythonic"),
    "mistral": ("mistral",),
    "qwen3_coder": ("qwen3_coder", "qwen3_xml", "step3p5", "mimo"),
    "deepseek": ("deepseek_v31", "deepseek_v3"),
    "deepseek_v3": ("deepseek_v3",),
    "deepseek_v31": ("deepseek_v31",),
    "deepseek_dsml": ("deepseek_v32", "deepseek_v4", "deepseek_v41"),
    "deepseek_v32": ("deepseek_v32",),
    "deepseek_v4": ("deepseek_v4", "deepseek_v41"),
    "glm": ("glm45", "glm47"),
    "kimi": ("kimi_k2",),
    "kimi_k3": ("kimi_k3",),
    "harmony": ("openai",),
    "gemma4": ("gemma4",),
    "functiongemma": ("functiongemma",),
    "minimax": ("minimax_m2",),
    "minimax_m3": ("minimax_m3",),
    "lfm2": ("lfm2",),
    "phi4_functools": ("phi4_mini_json",),
    "granite": ("granite",),
    "granite20b_fc": ("granite-20b-fc",),
    "internlm": ("internlm",),
    "jamba": ("jamba",),
    "hunyuan": ("hunyuan_a13b",),
    "hunyuan_v3": ("hy_v3", "hy_v4"),
    "xlam": ("xlam",),
    "apertus": ("apertus",),
    "cohere": ("cohere_command3", "cohere_command4"),
    "longcat": ("longcat",),
    "olmo3": ("olmo3",),
    "seed_oss": ("seed_oss",),
    "step3": ("step3",),
    "minicpm5": ("minicpm5",),
    "dots": ("dots",),
    "muse_glimmer": ("muse_glimmer",),
    "k2_horizon": ("k2_horizon",),
    "gigachat3": ("gigachat3",),
    "inkling": ("inkling",),
    "plamo3": ("plamo3",),
}

_SGLANG: dict[str, tuple[str, ...]] = {
    "hermes": ("hermes", "qwen25", "qwen", "trinity"),
    "llama3_json": ("llama3",),
    "pythonic": ("pythonic",),
    "mistral": ("mistral",),
    "qwen3_coder": ("qwen3_coder", "step3p5", "mimo", "nanbeige"),
    "deepseek": ("deepseekv31", "deepseekv3"),
    "deepseek_v3": ("deepseekv3",),
    "deepseek_v31": ("deepseekv31",),
    "deepseek_dsml": ("deepseekv32", "deepseekv4", "deepseekv41"),
    "deepseek_v32": ("deepseekv32",),
    "deepseek_v4": ("deepseekv4", "deepseekv41"),
    "glm": ("glm45", "glm47", "glm"),
    "kimi": ("kimi_k2",),
    "kimi_k3": ("kimi_k3",),
    "harmony": ("gpt-oss",),
    "gemma4": ("gemma4",),
    "minimax": ("minimax-m2",),
    "minimax_m3": ("minimax-m3",),
    "lfm2": ("lfm2",),
    "internlm": ("interns1",),
    "hunyuan": ("hunyuan",),
    "apertus": ("apertus2509",),
    "cohere": ("cohere_command4",),
    "step3": ("step3",),
    "minicpm5": ("minicpm5",),
    "dots": ("dots",),
    "muse_glimmer": ("muse",),
    "k2_horizon": ("k2_horizon",),
    "gigachat3": ("gigachat3",),
    "gigachat35": ("gigachat35",),
    "inkling": ("inkling",),
}

_LLAMACPP: dict[str, tuple[str, ...]] = {
    "hermes": ("Hermes 2 Pro / Qwen2.5 / Qwen3",),
    "llama3_json": ("Llama 3.x",),
    "mistral": ("Ministral 3 / Magistral",),
    "qwen3_coder": ("Qwen3-Coder",),
    "deepseek_v31": ("DeepSeek V3.1",),
    "deepseek_dsml": ("DeepSeek V3.2 / V4",),
    "glm": ("GLM 4.5 / 4.6 / 4.7",),
    "kimi": ("Kimi K2",),
    "kimi_k3": ("Kimi K3",),
    "harmony": ("gpt-oss",),
    "gemma4": ("Gemma 4",),
    "minimax_m3": ("MiniMax M3",),
    "lfm2": ("LFM2 / LFM2.5",),
    "minicpm5": ("MiniCPM 5",),
    "muse_glimmer": ("Muse Glimmer",),
    "functionary": ("Functionary v3.2",),
    "gigachat3": ("GigaChat 3",),
}

_OLLAMA: dict[str, tuple[str, ...]] = {
    "hermes": ("qwen3", "qwen3-thinking", "qwen3-vl-instruct"),
    "qwen3_coder": ("qwen3-coder", "qwen3.5", "nemotron-3-nano"),
    "mistral": ("ministral",),
    "deepseek_v31": ("deepseek3", "cogito"),
    "glm": ("glm-4.7",),
    "harmony": ("harmony",),
    "gemma4": ("gemma4",),
    "functiongemma": ("functiongemma",),
    "lfm2": ("lfm2", "lfm2-thinking"),
    "olmo3": ("olmo3", "olmo3-think"),
    "cohere": ("cohere",),
    "muse_glimmer": ("glimmer",),
}

_VERL: dict[str, tuple[str, ...]] = {
    "hermes": ("hermes",),
    "qwen3_coder": ("qwen3_coder",),
    "deepseek_v4": ("deepseek_v4",),
    "glm": ("glm",),
    "harmony": ("gpt-oss",),
    "kimi": ("kimi",),
    "minimax": ("minimax",),
    "gemma4": ("gemma4",),
    "seed_oss": ("seed",),
}

# Other names of a dialect, as the detector or the model cards have them.
_ALIASES = {
    "bare_json": "llama3_json",  # only the llama3_json parsers take a bare object, and not while streaming
    "granite4": "hermes",
    "gpt-oss": "harmony",
    "kimi_k2": "kimi",
    "minimax_m2": "minimax",
    "phi4_mini": "phi4_functools",
    "qwen3_coder_xml": "qwen3_coder",
    "glm45": "glm",
    "glm47": "glm",
    "mistral_json": "mistral",
    "mistral_args": "mistral",
    "llama4_pythonic": "pythonic",
}

DIALECT_PARSERS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "vllm": _VLLM,
    "sglang": _SGLANG,
    "llamacpp": _LLAMACPP,
    "ollama": _OLLAMA,
    "verl": _VERL,
}
"""Engine -> dialect -> parser names, the best first."""


def _reverse(table: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    # A parser that stands under a coarse and a fine name of one dialect keeps the first, the case name.
    found: dict[str, str] = {}
    for dialect, names in table.items():
        for name in names:
            found.setdefault(name, dialect)
    return found


PARSER_DIALECTS: Mapping[str, Mapping[str, str]] = {e: _reverse(t) for e, t in DIALECT_PARSERS.items()}
"""Engine -> parser name -> the dialect that it reads."""


def parsers_for(engine: str, dialect: str) -> tuple[str, ...]:
    """The parsers of ``engine`` that read ``dialect`` or an alias of it, best first; () if none does."""
    table = DIALECT_PARSERS.get(engine, {})
    return table.get(dialect) or table.get(_ALIASES.get(dialect, ""), ())
