"""What gateways and services answer in the engine's place."""

from __future__ import annotations

from typing import Any

from tests.faults.kinds import TOOL_CALL, Answer, Scenario, completion, error

NGINX = {"server": "nginx/1.27.0"}


def page(title: str, server: str = "nginx/1.27.0") -> str:
    """An error page as nginx writes it."""
    return (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n"
        f"<hr><center>{server}</center>\r\n</body>\r\n</html>\r\n"
    )


OK: dict[str, Any] = completion(None, [TOOL_CALL], finish="tool_calls")
_GATE = (
    'litellm.BadRequestError: OpenAIException - {"object":"error","message":"\\"auto\\" tool choice requires '
    '--enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}. '
    "Received Model Group=prod\nAvailable Model Group Fallbacks=None"
)
_HISTORY = (
    "litellm.BadRequestError: AnthropicException - Failed to parse tool call arguments for tool 'shell_command' "
    "(Anthropic tool invoke). Error: Extra data: line 1 column 65 (char 64)."
)

SCENARIOS = (
    Scenario("nginx-502", "nginx, the engine is down", (Answer(502, page("502 Bad Gateway"), NGINX),)),
    Scenario("nginx-504", "nginx gave up waiting", (Answer(504, page("504 Gateway Time-out"), NGINX),)),
    Scenario(
        "nginx-413", "nginx, body too large", (Answer(413, page("413 Request Entity Too Large"), NGINX),)
    ),
    Scenario(
        "cloudflare-524",
        "Cloudflare gave up waiting",
        (Answer(524, "error code: 524", {"server": "cloudflare", "cf-ray": "8f-OSL"}),),
    ),
    Scenario(
        "envoy-503",
        "Envoy, no upstream",
        (
            Answer(
                503,
                "upstream connect error or disconnect/reset before headers. reset reason: connection failure",
                {"server": "envoy"},
            ),
        ),
    ),
    Scenario(
        "kong-401",
        "Kong wants a key",
        (Answer(401, {"message": "No API key found in request"}, {"server": "kong/3.4.2"}),),
    ),
    Scenario(
        "litellm-gate",
        "LiteLLM wraps vLLM's refusal",
        (Answer(400, error(_GATE, None, "400"), {"x-litellm-version": "1.80.0"}),),
    ),
    Scenario(
        "litellm-history",
        "LiteLLM wraps a refusal of the history",
        (Answer(400, error(_HISTORY, None, "400"), {"x-litellm-version": "1.80.0"}),),
    ),
    Scenario(
        "openrouter-no-endpoint",
        "OpenRouter has no provider that takes tools",
        (
            Answer(
                404,
                {
                    "error": {
                        "message": "No endpoints found that support tool use. To learn more …",
                        "code": 404,
                    }
                },
                {"server": "cloudflare", "cf-ray": "8f-OSL"},
            ),
        ),
    ),
    Scenario(
        "openrouter-provider-error",
        "OpenRouter hands on a provider's error as a string",
        (
            Answer(
                400,
                {
                    "error": {
                        "message": "Provider returned error",
                        "code": 400,
                        "metadata": {
                            "raw": '{"error":{"message":"`tool calling` is not supported with this model"}}'
                        },
                    }
                },
            ),
        ),
    ),
    Scenario(
        "rate-limited-then-ok",
        "429 with Retry-After: 1, then an answer",
        (
            Answer(
                429,
                error("Rate limit reached for requests", "rate_limit_exceeded", 429),
                {"retry-after": "1"},
            ),
            Answer(200, OK),
        ),
    ),
    Scenario(
        "rate-limited",
        "429 for ever, Retry-After: 3600",
        (Answer(429, error("Too Many Requests", None, 429), {"retry-after": "3600"}),),
    ),
    Scenario(
        "overloaded-then-ok",
        "503 while busy, then an answer",
        (
            Answer(503, {"error": "server busy, please try again.  maximum pending requests exceeded"}),
            Answer(200, OK),
        ),
    ),
    Scenario(
        "wrong-key", "401", (Answer(401, error("Incorrect API key provided: sk-…", None, "invalid_api_key")),)
    ),
    Scenario(
        "model-unknown", "404", (Answer(404, error("The model `m` does not exist.", "NotFoundError", 404)),)
    ),
)
