"""What engines say of themselves, as documented: answers by probe path, for engines that can't be run here.

Shapes after docs/findings/contracts.md and the engines' documentation; values made up.
"""

from __future__ import annotations

from typing import Any

Answers = dict[str, tuple[int, dict[str, str], Any]]

UVICORN = {"server": "uvicorn"}
DONE = {"role": "assistant", "content": "ok"}


def chat(ident: str, **more: Any) -> tuple[int, dict[str, str], Any]:
    body = {
        "id": ident,
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": DONE, "finish_reason": "stop"}],
        **more,
    }
    return 200, {}, body


def models(owner: str, **more: Any) -> tuple[int, dict[str, str], Any]:
    entry = {"id": "m", "object": "model", "created": 1, "owned_by": owner, **more}
    return 200, {}, {"object": "list", "data": [entry]}


SGLANG: Answers = {
    "/v1/models": (200, UVICORN, models("sglang", root="m", max_model_len=32768)[2]),
    "/model_info": (
        200,
        UVICORN,
        {
            "model_path": "org/m",
            "served_model_name": "m",
            "is_generation": True,
            "weight_version": "default",
            "tool_call_parser": "qwen25",
            "reasoning_parser": None,
        },
    ),
    "/server_info": (200, UVICORN, {"version": "0.5.23", "quantization": "fp8", "internal_states": [{}]}),
    # SGLang answers Ollama's routes too
    "/api/version": (200, UVICORN, {"version": "0.5.23"}),
    "chat": chat("0f" * 16, metadata={"weight_version": "default"}),
}

SGLANG_OLD: Answers = {
    "/v1/models": (200, UVICORN, models("sglang", max_model_len=8192)[2]),
    "/get_model_info": (200, UVICORN, {"model_path": "org/m", "is_generation": True}),
    "chat": (
        400,
        UVICORN,
        {"object": "error", "message": "x", "type": "BadRequest", "param": None, "code": 400},
    ),
}

VLLM_OLD: Answers = {
    "/v1/models": (200, UVICORN, models("vllm", root="org/m", max_model_len=4096)[2]),
    "/version": (200, UVICORN, {"version": "0.6.3"}),
    "chat": (
        400,
        UVICORN,
        {
            "object": "error",
            "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
}

VLLM_DEV: Answers = {
    "/v1/models": (200, UVICORN, models("vllm", max_model_len=4096)[2]),
    "/server_info": (200, UVICORN, {"vllm_config": "model='m', quantization=awq, tool_call_parser='hermes'"}),
    "/tokenizer_info": (200, UVICORN, {"chat_template": "{{ messages }}"}),
    "chat": chat("chatcmpl-1", system_fingerprint="vllm-0.32.0-74f5f58d"),
}

OLLAMA: Answers = {
    "/": (200, {}, "Ollama is running"),
    "/api/version": (200, {}, {"version": "0.20.7"}),
    "/v1/models": (200, {}, models("library")[2]),
    "/api/ps": (200, {}, {"models": [{"name": "m", "model": "m", "digest": "d1", "context_length": 4096}]}),
    "/api/show": (
        200,
        {},
        {
            "modelfile": "# made by\nFROM /blob\nRENDERER qwen3-coder\nPARSER qwen3-coder\n",
            "template": "{{ .Prompt }}",
            "details": {"format": "gguf", "family": "qwen3", "quantization_level": "Q4_K_M"},
            "model_info": {"qwen3.context_length": 40960},
            "capabilities": ["completion", "tools"],
        },
    ),
    "chat": chat("chatcmpl-412", system_fingerprint="fp_ollama"),
}

LMSTUDIO: Answers = {
    "/v1/models": (200, {}, models("organization_owner")[2]),
    "/api/v1/models": (
        200,
        {},
        {
            "models": [
                {
                    "type": "llm",
                    "key": "m",
                    "quantization": {"name": "Q4_K_M", "bits_per_weight": 4},
                    "max_context_length": 131072,
                    "loaded_instances": [{"id": "m", "config": {"context_length": 8192}}],
                    "capabilities": {"vision": False, "trained_for_tool_use": False},
                }
            ]
        },
    ),
    "/api/v0/models": (
        200,
        {},
        {"data": [{"id": "m", "state": "loaded", "quantization": "Q4_K_M", "capabilities": ["tool_use"]}]},
    ),
    "chat": chat("chatcmpl-a1", stats={}, system_fingerprint="m"),
}

TGI: Answers = {
    "/info": (
        200,
        {"x-compute-type": "gpu+optimized"},
        {
            "model_id": "org/m",
            "model_sha": "abc",
            "version": "3.3.4",
            "sha": "def",
            "docker_label": "sha-def",
            "max_total_tokens": 4096,
            "max_concurrent_requests": 128,
        },
    ),
    "chat": chat("", system_fingerprint="3.3.4-native"),
}

OPENAI: Answers = {
    "/v1/models": (
        200,
        {"openai-version": "2020-10-01", "server": "cloudflare", "cf-ray": "x"},
        models("openai")[2],
    ),
    "chat": chat("chatcmpl-Abc"),
}

OPENROUTER: Answers = {
    "/v1/models": models("x", context_length=131072, supported_parameters=["temperature", "max_tokens"]),
    "chat": (
        404,
        {"server": "cloudflare"},
        {"error": {"message": "No endpoints found that support tool use.", "code": 404}},
    ),
}

DEAD: Answers = {
    "/v1/models": (502, {"server": "nginx/1.27.0"}, "<html><hr><center>nginx/1.27.0</center></html>"),
    "chat": (502, {"server": "nginx/1.27.0"}, "<html><hr><center>nginx/1.27.0</center></html>"),
}

LLAMACPP: Answers = {
    "/v1/models": (200, {"server": "llama.cpp"}, models("llamacpp", meta={"n_ctx_train": 8192})[2]),
    "/props": (
        200,
        {"server": "llama.cpp"},
        {
            "default_generation_settings": {"n_ctx": 4096},
            "model_path": "/models/m.gguf",
            "chat_template": "{{ messages }}",
            "chat_template_caps": {"supports_tools": False, "supports_tool_calls": False},
            "build_info": "b11549-0c1e570",
        },
    ),
    "chat": chat("chatcmpl-" + "Ab1" * 10 + "Cd", system_fingerprint="b11549-0c1e570"),
}

ENGINES = {
    "vllm": VLLM_DEV,
    "sglang": SGLANG,
    "llamacpp": LLAMACPP,
    "ollama": OLLAMA,
    "lmstudio": LMSTUDIO,
    "tgi": TGI,
}
